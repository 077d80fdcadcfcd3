from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import system
from onesided.geo.input.footprints import Buildings
from onesided.geo.scene import chips as module
from onesided.geo.scene.chips import Chip, cut_chips

COUNT = 600


class Numbers:
    """A scene whose chip of row n is full of n; some rows have none."""

    channels = 2

    def __init__(self, *, breaks_at: int | None = None, salt: int = 0) -> None:
        names = tuple(f"b{row}" for row in range(COUNT))
        shapes = np.full(COUNT, None, object)
        self.buildings = Buildings(names, shapes, system("EPSG:4326"), {})
        self.breaks_at, self.salt, self.asked = breaks_at, salt, 0

    def order(self) -> np.ndarray:
        return np.random.default_rng(0).permutation(COUNT)

    def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
        for row in rows:
            if self.asked == self.breaks_at:
                raise KeyboardInterrupt
            self.asked += 1
            shape = (2, size, size)
            yield "too far" if row % 7 == 0 else np.full(shape, (row + self.salt) % 251, np.uint8)

    def identity(self) -> Mapping[str, Any]:
        return {"salt": self.salt}


def test_every_building_is_at_its_row_and_skipped_ones_have_a_reason(tmp_path: Path) -> None:
    cut = cut_chips(Numbers(), tmp_path, size=4)
    assert cut.values.shape == (COUNT, 2, 4, 4)
    for row in range(COUNT):
        assert (cut.values[row] == (0 if row % 7 == 0 else row % 251)).all()
    assert cut.reasons == dict.fromkeys(range(0, COUNT, 7), "too far")
    assert cut.kept.sum() == COUNT - len(cut.reasons)


def test_a_stopped_cutting_resumes_and_gives_the_same(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        cut_chips(Numbers(breaks_at=400), tmp_path / "a", size=4)
    again = Numbers()
    resumed = cut_chips(again, tmp_path / "a", size=4)
    assert again.asked == COUNT - module.CHUNK
    whole = cut_chips(Numbers(), tmp_path / "b", size=4)
    np.testing.assert_array_equal(resumed.values, whole.values)
    assert resumed.reasons == whole.reasons


def test_what_a_killed_cutting_left_half_written_is_removed(tmp_path: Path) -> None:
    cut_chips(Numbers(), tmp_path, size=4)
    left = tmp_path / f".{module.NAMES}.123.part"
    left.write_text('{"nam')
    cut_chips(Numbers(), tmp_path, size=4)
    assert not left.exists()


def test_finished_chips_are_not_cut_again(tmp_path: Path) -> None:
    first = cut_chips(Numbers(), tmp_path, size=4)
    again = Numbers()
    second = cut_chips(again, tmp_path, size=4)
    assert again.asked == 0
    np.testing.assert_array_equal(first.values, second.values)
    assert first.reasons == second.reasons


@pytest.mark.parametrize("changed", ["size", "scene", "note"])
def test_chips_of_another_scene_are_cut_again(tmp_path: Path, changed: str) -> None:
    cut_chips(Numbers(), tmp_path, size=4)
    if changed == "note":
        (tmp_path / module.NOTES).write_bytes(b"\xff\n")
    again = Numbers(salt=changed == "scene")
    cut = cut_chips(again, tmp_path, size=5 if changed == "size" else 4)
    assert again.asked == COUNT
    assert cut.values[1, 0, 0, 0] == 1 + (changed == "scene")


def test_a_note_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    cut_chips(Numbers(), tmp_path, size=4)
    notes = tmp_path / module.NOTES
    notes.write_bytes(notes.read_bytes()[:-5])
    again = Numbers()
    cut_chips(again, tmp_path, size=4)
    assert again.asked == COUNT % module.CHUNK


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    cut_chips(Numbers(), tmp_path, size=4, progress=lambda *done: seen.append(done))
    assert seen == [(256, COUNT), (512, COUNT), (COUNT, COUNT)]


def test_a_chip_of_other_bands_is_skipped_and_harms_no_neighbour(tmp_path: Path) -> None:
    class Mixed(Numbers):
        def chips(self, rows: Sequence[int], size: int) -> Iterator[Chip]:
            for row, chip in zip(rows, super().chips(rows, size), strict=True):
                yield np.zeros((4, size, size), np.uint8) if row == 1 else chip

    cut = cut_chips(Mixed(), tmp_path, size=4)
    assert cut.reasons[1] == "its images have 4 bands where others have 2"
    assert (cut.values[2] == 2).all()


def test_a_flipped_bit_in_a_chip_is_told(tmp_path: Path) -> None:
    cut_chips(Numbers(), tmp_path, size=4)
    pixels = tmp_path / "pixels.u8"
    damaged = bytearray(pixels.read_bytes())
    damaged[5 * 2 * 4 * 4 + 1] ^= 8  # in the chip of row 5
    pixels.write_bytes(damaged)
    with pytest.raises(DataError, match=r"pixels\.u8 is damaged .*row 5 .* cut again"):
        cut_chips(Numbers(), tmp_path, size=4)
    (tmp_path / "notes.jsonl").unlink()
    assert cut_chips(Numbers(), tmp_path, size=4).values[5].max() == 5
