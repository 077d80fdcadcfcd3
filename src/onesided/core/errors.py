"""Errors of input: each has one sentence that tells a tired person what to do."""


class OnesidedError(Exception):
    """Bad input: the message says what was expected, what came, and what to do.

    The command line prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = 2


class DataNotFound(OnesidedError):
    """Expected files are missing, or hold nothing readable."""


class DataError(OnesidedError, ValueError):
    """Files, arrays or labels have the wrong content."""


class ConfigError(OnesidedError, ValueError):
    """A setting has an unknown name or an impossible value."""


class CheckpointError(OnesidedError):
    """A checkpoint, model or other file of a run is damaged, hostile, or of another run."""


class FolderTaken(OnesidedError):
    """Another command is at work in the folder."""


class MissingLibrary(OnesidedError):
    """A library is needed and not installed.

    Attributes:
        remedy: The command that installs it.
    """

    def __init__(self, problem: str, extra: str | None) -> None:
        """Name the extra, or None for a library that every installation should have."""
        if extra is None:
            self.remedy = "pip install --force-reinstall onesided"
            super().__init__(f"{problem} It belongs to onesided; install that again: {self.remedy}")
            return
        self.remedy = f"pip install 'onesided[{extra}]'"
        super().__init__(f"{problem} Install the extra `{extra}`: {self.remedy}")


class TrainingFailed(OnesidedError):
    """The loss is not finite; the message names the term."""


class DegenerateModel(OnesidedError):
    """The trained model calls everything, or nothing, positive."""

    exit_code = 3


class Interrupted(OnesidedError):
    """A signal requested a stop; the state is saved, and the same command resumes."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number

    def add_remedy(self, sentence: str) -> None:
        """Add a sentence about how to resume."""
        self.args = (f"{self} {sentence}",)


class ContractError(OnesidedError, TypeError):
    """A method broke one of the laws of the method contract."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if there is none."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
