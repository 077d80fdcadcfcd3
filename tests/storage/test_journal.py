from pathlib import Path

import pytest

from onesided.core.errors import DataError
from onesided.storage.journal import Journal

ABOUT = {"of": "this"}


def write(path: Path, *entries: object) -> Journal:
    journal = Journal(path, ABOUT)
    with journal.writing() as append:
        for entry in entries:
            append(entry)
    return journal


def test_entries_come_back_also_those_of_an_earlier_process(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal", {"scores": [0.1, 1 / 3]})
    assert list(Journal(tmp_path / "missing", ABOUT).entries()) == []
    write(tmp_path / "journal", [2], "drei\n")
    assert list(journal.entries()) == [{"scores": [0.1, 1 / 3]}, [2], "drei\n"]


@pytest.mark.parametrize("kept", range(1, 60))
def test_a_journal_cut_anywhere_keeps_its_complete_lines_and_resumes_after_them(
    tmp_path: Path, kept: int
) -> None:
    path = tmp_path / "journal"
    write(path, "first", ["second"], {"third": 3})
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    before = list(Journal(path, ABOUT).entries())
    # The first line is the header; none of the entries is there without it.
    assert before == ["first", ["second"], {"third": 3}][: max(0, whole[:kept].count(b"\n") - 1)]
    assert list(write(path, "new").entries()) == [*before, "new"]


def test_a_journal_of_something_else_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "journal", 1, 2)
    other = Journal(tmp_path / "journal", {"of": "that"})
    assert list(other.entries()) == []
    with other.writing() as append:
        append(3)
    assert list(other.entries()) == [3]
    assert list(Journal(tmp_path / "journal", ABOUT).entries()) == []


def test_a_garbled_line_is_reported_with_what_to_do(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal", 1)
    with journal.path.open("ab") as file:
        file.write(b"{]\n")
    with pytest.raises(DataError, match=r"journal is damaged .* Delete it"):
        list(journal.entries())


def test_a_flipped_bit_is_found_in_every_line(tmp_path: Path) -> None:
    journal = write(tmp_path / "journal", {"scores": [0.25]}, {"scores": [0.5]})
    whole, entries = journal.path.read_bytes(), list(journal.entries())
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        journal.path.write_bytes(damaged)
        try:
            found = list(journal.entries())
        except DataError:
            continue
        # A damaged header, or an end that is none, costs entries; it changes none.
        assert found == entries[: len(found)]
        assert len(found) < len(entries)
