from pathlib import Path

import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.read.text_folders import read_text_folders


def write(folder: Path, *texts: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        content = text.encode() if isinstance(text, str) else text
        (folder / f"{number}.txt").write_bytes(content)
    return folder


def test_texts_are_read_with_their_labels_and_names(tmp_path: Path) -> None:
    read = read_text_folders(
        write(tmp_path / "P", "roof gone", "\ufeffroof torn"),
        write(tmp_path / "U", "all fine"),
        write(tmp_path / "N", "nothing here"),
    )
    assert read.samples.names == ("P/0.txt", "P/1.txt", "U/0.txt", "N/0.txt")
    assert read.samples.values[:, 0].tolist() == [
        "roof gone",
        "roof torn",
        "all fine",
        "nothing here",
    ]
    assert read.samples.classes.tolist() == [POSITIVE, POSITIVE, UNKNOWN, NEGATIVE]
    assert [column.kind for column in read.samples.columns] == ["text"]


def test_other_files_are_counted_and_unreadable_ones_tolerated(tmp_path: Path) -> None:
    positives = write(tmp_path / "P", *[f"text {n}" for n in range(40)], b"\xff\xfe")
    (positives / "notes.doc").write_bytes(b"")
    read = read_text_folders(positives, write(tmp_path / "U", "all fine"))
    assert read.samples.skipped == (("P/40.txt", "is not UTF-8 text (it holds the byte 0xff)"),)
    assert "1 .doc" in read.notices[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"a\0b", "zero byte"), (b"\xe9", "UTF-8")],
)
def test_too_many_unreadable_texts_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    unlabelled = write(tmp_path / "U", "all fine")
    with pytest.raises(DataError, match=rf"1 of 2 texts in .*{reason}"):
        read_text_folders(write(tmp_path / "P", "roof", content), unlabelled)
    with pytest.raises(DataNotFound, match=rf"No readable text .*{reason}"):
        read_text_folders(write(tmp_path / "Q", content), unlabelled)


def test_a_text_on_both_sides_is_treated_as_the_scenario_says(tmp_path: Path) -> None:
    positives = write(tmp_path / "P", "roof gone", "roof torn")
    unlabelled = write(tmp_path / "U", "roof gone", "all fine", "dry")
    single = read_text_folders(positives, unlabelled)
    assert (single.duplicates, len(single.samples)) == (1, 4)
    assert "1 unlabelled texts are also among the labelled" in single.notices[0]
    both = read_text_folders(positives, unlabelled, scenario="case-control")
    assert (both.duplicates, len(both.samples)) == (1, 5)
    with pytest.raises(DataError, match=r"both positive and negative; the first is P/0\.txt"):
        read_text_folders(positives, unlabelled, write(tmp_path / "N", "roof gone"))
