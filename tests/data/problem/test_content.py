"""What shows the same thing has one number, is on one side, and counts once."""

import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.content import contents_of, counted, repetition_notice
from onesided.data.problem.dataset import LabelledDataset, Selection
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import held_out_together, split_one_sided
from onesided.run.load import unseen_test


def photographs(count: int, seed: int = 0) -> np.ndarray:
    """Return smooth random images (N, 3, 32, 32) with a little noise."""
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, (count, 5, 5, 3), dtype=np.uint8)
    smooth = [
        np.asarray(Image.fromarray(one).resize((32, 32), Image.Resampling.BICUBIC)) for one in small
    ]
    noisy = np.stack(smooth).astype(int) + random.integers(-6, 7, (count, 32, 32, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8).transpose(0, 3, 1, 2)


def encoded_again(images: np.ndarray, quality: int = 75, side: int = 32) -> np.ndarray:
    def once(image: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        Image.fromarray(image.transpose(1, 2, 0)).resize((side, side)).save(
            file, "JPEG", quality=quality
        )
        return np.asarray(Image.open(file).resize((32, 32))).transpose(2, 0, 1)

    return np.stack([once(image) for image in images])


def everything(values: np.ndarray) -> Selection:
    return Selection(values, np.arange(len(values)))


def samples_of(values: np.ndarray, positives: int) -> Samples:
    classes = np.where(np.arange(len(values)) < positives, POSITIVE, UNKNOWN).astype(np.int64)
    return Samples(values, classes, tuple(map(str, range(len(values)))))


@pytest.mark.parametrize(("quality", "side"), [(90, 32), (75, 32), (85, 24), (85, 48)])
def test_an_image_that_was_encoded_again_or_resized_is_the_same_image(
    quality: int, side: int
) -> None:
    images = photographs(60)
    again = encoded_again(images[:30], quality, side)
    found = contents_of([everything(images), everything(again)])
    assert np.array_equal(found.number[:30], found.number[60:])
    assert (found.copies, found.near) == (0, 30)
    assert len(np.unique(found.number)) == 60


def test_handwritten_digits_and_different_photographs_stay_apart() -> None:
    digits = np.rint(load_digits().images * 255 / 16).astype(np.uint8)[:, None]
    assert contents_of([everything(digits)]).near <= 2
    assert contents_of([everything(photographs(400))]).near == 0


def test_grey_images_without_detail_are_compared_exactly() -> None:
    faint = np.random.default_rng(0).integers(120, 123, (50, 3, 32, 32), dtype=np.uint8)
    assert contents_of([everything(faint)]).near == 0
    assert contents_of([everything(np.concatenate([faint, faint]))]).copies == 50


def test_another_colour_is_another_image() -> None:
    images = photographs(40)
    found = contents_of([everything(images), everything(images[:, ::-1])])
    assert len(np.unique(found.number)) == 80


def test_thousands_of_images_are_searched_by_their_first_directions() -> None:
    images = photographs(4200)
    found = contents_of([everything(images), everything(encoded_again(images[:50]))])
    assert (found.number[:50] == found.number[4200:]).mean() > 0.95
    assert found.near <= 55


def test_copies_are_on_one_side_and_count_once() -> None:
    values = np.concatenate([np.repeat(photographs(20), 10, axis=0), photographs(100, seed=1)])
    samples = samples_of(values, 200)
    labelled = samples.classes == POSITIVE
    content = contents_of([everything(values)]).number
    held_out = held_out_together(samples, labelled, content=content, share=0.2, seed=3)
    split = split_one_sided(
        samples,
        labelled,
        held_out_share=0.2,
        scenario="single-set",
        seed=3,
        held_out=held_out,
        content=content,
    )
    assert split.held_out is not None
    assert split.held_out.content is not None
    assert split.train.content is not None
    assert not np.isin(split.held_out.content, split.train.content).any()
    assert split.held_out.labelled.sum() == 40
    rows = counted(split.held_out, split.train)
    assert rows is not None
    assert rows[split.held_out.labelled].sum() == 4
    assert rows[~split.held_out.labelled].sum() == 20


def test_few_images_many_times_are_few_images() -> None:
    values = np.concatenate([np.repeat(photographs(8), 10, axis=0), photographs(100, seed=1)])
    samples = samples_of(values, 80)
    content = contents_of([everything(values)]).number
    with pytest.raises(DataError, match="Only 8 of the 80 positives differ"):
        split_one_sided(
            samples,
            samples.classes == POSITIVE,
            held_out_share=0.2,
            scenario="single-set",
            seed=0,
            content=content,
        )


def test_where_all_items_differ_the_split_is_as_it_always_was() -> None:
    samples = samples_of(photographs(120), 30)
    labelled = samples.classes == POSITIVE
    assert held_out_together(samples, labelled, content=None, share=0.2, seed=3) is None
    assert repetition_notice(contents_of([everything(samples.values)])) == ()


def known(values: np.ndarray) -> LabelledDataset:
    truth = np.where(np.arange(len(values)) % 2, POSITIVE, NEGATIVE).astype(np.int64)
    return LabelledDataset(everything(values), truth, tuple(map(str, range(len(values)))))


def test_test_items_that_were_trained_on_are_left_out_and_counted() -> None:
    trained, fresh = photographs(50), photographs(40, seed=1)
    test = known(np.concatenate([trained[:10], encoded_again(trained[10:20]), fresh]))
    kept, (notice,) = unseen_test(test, [everything(trained)])
    assert kept is not None
    assert kept.names == tuple(map(str, range(20, 60)))
    assert notice.startswith("20 of 60 test items show what the model is trained on")


def test_a_test_part_of_which_too_little_is_left_gives_no_figure() -> None:
    trained = photographs(50)
    kept, (notice,) = unseen_test(known(trained), [everything(trained)])
    assert kept is None
    assert "0 positive and 0 negative ones remain, too few for a figure" in notice


def test_a_fresh_test_part_stays_as_it_is() -> None:
    test = known(photographs(5, seed=1))
    assert unseen_test(test, [everything(photographs(50))]) == (test, ())
