import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.data.problem.samples import ImageKind
from onesided.data.read.arrays import ChannelAxis, checked_values, from_arrays
from tests.data.image_files import noise

LABELS = [1, 0, 0, 1, 0]


def test_labels_say_who_is_positive_and_who_unlabelled() -> None:
    read = from_arrays(noise(0, 5, 2), LABELS)
    assert read.labelled.tolist() == [True, False, False, True, False]
    assert read.samples.classes.tolist() == [1, -1, -1, 1, -1]
    assert read.samples.names == ("0", "1", "2", "3", "4")
    assert read.notices == ()


def test_known_negatives_come_in_by_name_only() -> None:
    labels = [1, 0, -1, 1, 0]
    with pytest.raises(DataError, match="two values"):
        from_arrays(noise(0, 5, 2), labels)
    assert from_arrays(noise(0, 5, 2), labels, labels_mean="pnu").samples.classes.tolist() == [
        *(1, -1, 0, 1, -1)
    ]


@pytest.mark.parametrize("labels", [[1, -1, -1, 1, -1], [True, False, False, True, False]])
def test_other_ways_to_write_labels_get_one_notice(labels: list[int]) -> None:
    read = from_arrays(noise(0, 5, 2), labels)
    assert read.labelled.tolist() == [True, False, False, True, False]
    assert len(read.notices) == 1


@pytest.mark.parametrize(
    "labels", [[1, 0, 2, 1, 0], [0] * 5, [1] * 5, [1, 0, float("nan"), 1, 0], [1, 0]]
)
def test_labels_that_say_nothing_are_a_value_error(labels: list[float]) -> None:
    with pytest.raises(ValueError, match=r"[Ll]abel"):
        from_arrays(noise(0, 5, 2), labels)


def test_values_and_labels_must_be_equally_many() -> None:
    with pytest.raises(DataError, match="X holds 4 samples and y 5 labels"):
        from_arrays(noise(0, 4, 2), LABELS)


def test_channels_last_and_first_and_none_become_the_same() -> None:
    grey = noise(0, 5, 8, 7)
    expected = grey[:, None]
    for given_array in (grey, grey[..., None], grey[:, None]):
        np.testing.assert_array_equal(from_arrays(given_array, LABELS).samples.values, expected)


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_the_short_axis_holds_the_channels(channels: int) -> None:
    images = noise(0, 5, channels, 8, 9)
    first = from_arrays(images, LABELS).samples.values
    last = from_arrays(images.transpose(0, 2, 3, 1), LABELS).samples.values
    np.testing.assert_array_equal(first, images)
    np.testing.assert_array_equal(last, images)
    assert last.flags.c_contiguous


@pytest.mark.parametrize(
    ("shape", "words"), [((5, 3, 8, 3), "both"), ((5, 6, 6, 6), "both"), ((5, 13, 8, 8), "neither")]
)
def test_an_ambiguous_order_is_refused_unless_it_is_said(
    shape: tuple[int, ...], words: str
) -> None:
    images = noise(0, *shape)
    with pytest.raises(DataError, match=f'{words} of the second and the last.*channels="first"'):
        from_arrays(images, LABELS)
    first: ChannelAxis = "first"
    np.testing.assert_array_equal(
        from_arrays(images, LABELS, channels=first).samples.values, images
    )
    np.testing.assert_array_equal(
        from_arrays(images, LABELS, channels="last").samples.values, images.transpose(0, 3, 1, 2)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_from_0_to_1_are_scaled_to_255(dtype: type[np.floating]) -> None:
    images = noise(0, 5, 8, 8)
    read = from_arrays((images / 255).astype(dtype), LABELS)
    np.testing.assert_array_equal(read.samples.values[:, 0], images)


def test_whole_numbers_from_0_to_255_are_pixels_of_any_type() -> None:
    images = noise(0, 5, 8, 8)
    for dtype in (np.int64, np.uint16, np.int16):
        np.testing.assert_array_equal(
            from_arrays(images.astype(dtype), LABELS).samples.values[:, 0], images
        )


def test_masks_become_black_and_white() -> None:
    read = from_arrays(noise(0, 5, 8, 8) > 128, LABELS)
    assert set(np.unique(read.samples.values)) == {0, 255}


@pytest.mark.parametrize(
    "images",
    [
        np.full((5, 8, 8), 1.5),
        np.full((5, 8, 8), -0.1),
        np.full((5, 8, 8), np.nan),
        np.full((5, 8, 8), 16.0),
        np.full((5, 8, 8), 256),
        np.full((5, 8, 8), -1),
    ],
)
def test_numbers_whose_black_and_white_must_be_guessed_are_refused(images: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"from 0 to 1; X holds .* from .* to"):
        from_arrays(images, LABELS)


def test_pixels_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="uint8"):
        from_arrays(np.full((5, 8, 8), "x"), LABELS)


@pytest.mark.parametrize("shape", [(5,), (5, 0), (5, 0, 8), (5, 2, 8, 8, 3)])
def test_shapes_that_are_neither_images_nor_vectors_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="X "):
        from_arrays(np.zeros(shape), LABELS)


def test_a_single_number_is_refused() -> None:
    with pytest.raises(DataError, match="shape"):
        from_arrays(np.array(3.0), LABELS)


def test_vectors_become_float32() -> None:
    read = from_arrays([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], LABELS)
    assert read.samples.values.dtype == np.float32
    assert read.samples.kind == "vector"
    assert read.samples.values[4].tolist() == [9, 10]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_a_vector_that_is_not_finite_is_named_by_row_and_column(bad: float) -> None:
    vectors = np.zeros((5, 3))
    vectors[3, 1] = bad
    with pytest.raises(DataError, match="row 3, column 1"):
        from_arrays(vectors, LABELS)


def test_vectors_of_words_are_refused() -> None:
    with pytest.raises(DataError, match="must be numbers"):
        from_arrays(np.full((5, 2), "tall"), LABELS)


def test_vectors_are_a_copy_so_that_the_callers_array_stays_his() -> None:
    vectors = np.zeros((5, 3), np.float32)
    read = from_arrays(vectors, LABELS)
    vectors[:] = 1
    assert read.samples.values.max() == 0


def test_torch_tensors_are_arrays_too() -> None:
    images = torch.from_numpy(noise(0, 5, 3, 8, 8))
    np.testing.assert_array_equal(from_arrays(images, LABELS).samples.values, images.numpy())


@pytest.mark.parametrize(("shape", "kind"), [((5, 2), "digit"), ((5, 8, 8), "vector")])
def test_a_kind_that_does_not_go_with_the_shape_is_refused(
    shape: tuple[int, ...], kind: ImageKind
) -> None:
    with pytest.raises(DataError, match=kind):
        from_arrays(noise(0, *shape), LABELS, kind=kind)


def test_the_kind_is_the_callers() -> None:
    assert from_arrays(noise(0, 5, 8, 8), LABELS, kind="digit").samples.kind == "digit"
    assert from_arrays(noise(0, 5, 8, 8), LABELS).samples.kind == "photograph"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=12))
def test_unlabelled_images_equal_to_a_positive_are_counted_and_stay(
    items: list[tuple[bool, int]],
) -> None:
    items += [(True, 4), (False, 5)]
    labels = np.array([positive for positive, _ in items], int)
    images = np.array([np.full((8, 8), 20 * content) for _, content in items], np.uint8)
    among_positives = {content for positive, content in items if positive}
    read = from_arrays(images, labels)
    assert len(read.samples) == len(items)
    assert read.duplicates == sum(
        content in among_positives for positive, content in items if not positive
    )
    assert len(read.notices) == (read.duplicates > 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint16])
def test_whole_numbers_of_0_and_1_are_no_images_until_somebody_says_what_white_is(
    dtype: type,
) -> None:
    masks: np.ndarray = np.random.default_rng(0).integers(0, 2, (20, 8, 8)).astype(dtype)
    with pytest.raises(DataError, match="If 1 means white, multiply X by 255"):
        from_arrays(masks, [1] * 10 + [0] * 10)
    white = from_arrays(masks.astype(bool), [1] * 10 + [0] * 10).samples.values
    assert set(np.unique(white)) == {0, 255}


@pytest.mark.parametrize("top", [15, 16])
def test_many_images_of_four_bits_are_not_taken_for_black(top: int) -> None:
    dark = np.random.default_rng(0).integers(0, top + 1, (20, 8, 8)).astype(np.uint8)
    with pytest.raises(DataError, match=f"If {top} means white, multiply X by {255 // top}"):
        from_arrays(dark, [1] * 10 + [0] * 10)
    assert np.array_equal(checked_values(dark[:3])[:, 0], dark[:3]), "a few may be of a night"


def test_floats_that_were_divided_by_255_twice_are_refused() -> None:
    images = np.random.default_rng(0).random((20, 8, 8)) / 255
    with pytest.raises(DataError, match="nearly black"):
        from_arrays(images, [1] * 10 + [0] * 10)


def test_black_images_are_images() -> None:
    assert not from_arrays(np.zeros((20, 8, 8), np.uint8), [1] * 10 + [0] * 10).samples.values.any()
