import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer as published_tumours

from onesided.data.problem.samples import Source
from onesided.data.sources import SOURCES
from onesided.data.sources.digits import load_digits
from onesided.data.sources.tabular import MALIGNANT, load_breast_cancer, load_digit_vectors


@pytest.mark.parametrize(
    ("source", "features", "train", "test"),
    [(load_breast_cancer(), 30, 380, 189), (load_digit_vectors(), 64, 1201, 596)],
    ids=["breast-cancer", "digit-vectors"],
)
def test_columns_of_the_training_part_have_mean_0_and_deviation_1_or_never_vary(
    source: Source, features: int, train: int, test: int
) -> None:
    assert source.test is not None
    values = source.train.values
    assert values.shape == (train, features)
    assert source.test.values.shape == (test, features)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-5)
    spread = values.std(axis=0)
    assert (np.isclose(spread, 1, atol=1e-4) | (spread == 0)).all()


def test_tumours_are_positive_where_they_are_malignant_and_every_row_is_used_once() -> None:
    source = load_breast_cancer()
    assert source.test is not None
    assert source.train.class_names[MALIGNANT] == "malignant"
    assert SOURCES["breast-cancer"].positive_classes == (MALIGNANT,)
    rows = [int(name.rpartition("/")[2]) for name in source.train.names + source.test.names]
    assert sorted(rows) == list(range(569))
    classes = np.concatenate([source.train.classes, source.test.classes])
    np.testing.assert_array_equal(classes, published_tumours().target[rows])
    shares = [(part.classes == MALIGNANT).mean() for part in (source.train, source.test)]
    assert shares[0] == pytest.approx(shares[1], abs=0.01)


def test_digit_vectors_are_the_pixels_of_the_digits_up_to_shift_and_scale() -> None:
    pixels = load_digits().train.values.reshape(1201, 64).astype(float)
    vectors = load_digit_vectors().train.values
    for column in (10, 28, 53):
        assert np.corrcoef(pixels[:, column], vectors[:, column])[0, 1] == pytest.approx(1)
