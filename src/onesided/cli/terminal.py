"""What a job tells, as a terminal shows it: progress with time left, and sentences, on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from onesided.cli.progress import counting
from onesided.cli.show import note, warn
from onesided.core.monitor import Monitor, Phase


@dataclass(frozen=True)
class Terminal(Monitor):
    """Tells a person; warnings also when quiet."""

    quiet: bool = False

    def note(self, sentence: str) -> None:
        """Print the sentence, unless quiet."""
        note(sentence, quiet=self.quiet)

    def warn(self, sentence: str) -> None:
        """Print the sentence, also when quiet."""
        warn(sentence)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Show a line of progress."""
        with counting(title, quiet=self.quiet) as counter:
            yield counter
