"""Files of the package are found by their names, and may lie over one another."""

from pathlib import Path

import pytest

from onesided.bench.named_files import NamedFiles
from onesided.bench.scale import Scale
from onesided.core.errors import ConfigError


@pytest.fixture
def files(tmp_path: Path) -> NamedFiles[Scale]:
    (tmp_path / "long.toml").write_text(
        'summary = "long"\nreduced = "yes"\nshare = 0.5\n[train]\nepochs = 9\nbatch_size = 4\n'
    )
    (tmp_path / "short.toml").write_text('base = "long"\nsummary = "short"\n[train]\nepochs = 2\n')
    (tmp_path / "lost.toml").write_text('base = "nowhere"\nsummary = "lost"\n')
    return NamedFiles("scale", Scale, tmp_path)


def test_a_file_changes_what_it_says_of_the_one_below(files: NamedFiles[Scale]) -> None:
    short = files.read("short")
    assert (short.summary, short.reduced, short.share) == ("short", "yes", 0.5)
    assert short.train == {"epochs": 2, "batch_size": 4}
    assert files.read("long").train == {"epochs": 9, "batch_size": 4}


@pytest.mark.parametrize(
    ("name", "said"), [("shrot", "Did you mean 'short'"), ("lost", "There is no scale 'nowhere'")]
)
def test_a_name_that_no_file_has_is_refused(name: str, said: str, files: NamedFiles[Scale]) -> None:
    with pytest.raises(ConfigError, match=said):
        files.read(name)


def test_files_are_listed_by_name(files: NamedFiles[Scale]) -> None:
    assert files.names() == ["long", "lost", "short"]
