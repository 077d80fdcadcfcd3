import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from onesided.core.errors import CheckpointError, DataError
from onesided.data.columns.cells import Column
from onesided.data.columns.encoder import (
    FEWEST_ROWS,
    MOST_VALUES,
    Encoder,
    EncoderDescription,
    fit_encoder,
)

AREA, TOWN, NOTE = (
    Column(name="area", kind="number"),
    Column(name="town", kind="category"),
    Column(name="note", kind="text"),
)
NOTES = ("the roof is gone", "roof torn by the storm", "all windows intact", "intact and dry")


def raw(rows: int = 60, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    table = np.empty((rows, 3), object)
    table[:, 0] = np.where(random.random(rows) < 0.2, np.nan, random.normal(100, 20, rows))
    table[:, 1] = random.choice(np.array(["Ulm", "Bonn", "Trier", None], object), rows)
    table[:, 2] = random.choice(NOTES, rows)
    return table


def test_numbers_and_gaps_are_as_scikit_learn_fills_them() -> None:
    train, other = raw()[:, :1], raw(seed=1)[:, :1]
    expected = SimpleImputer(strategy="median", add_indicator=True).fit(train.astype(float))
    encoder = fit_encoder([AREA], train, seed=0)
    np.testing.assert_allclose(
        encoder.transform(other), expected.transform(other.astype(float)), rtol=1e-6
    )
    assert encoder.names == ("area", "area is missing")


def test_categories_are_as_scikit_learn_places_them() -> None:
    train, other = raw()[:, 1:2], raw(seed=1)[:, 1:2]
    train[:2, 0], other[0, 0], other[1, 0] = "Köln", "Köln", "Mainz"  # rare, and unknown
    encoder = fit_encoder([TOWN], train, seed=0)
    expected = OneHotEncoder(
        min_frequency=FEWEST_ROWS, handle_unknown="infrequent_if_exist", sparse_output=False
    ).fit(np.where(train == None, "gap", train))  # noqa: E711 - by element
    theirs = expected.transform(np.where(other == None, "gap", other))  # noqa: E711
    names = [str(name).removeprefix("x0_") for name in expected.get_feature_names_out()]
    ours = {"gap": "town is missing", "infrequent_sklearn": "town = another"}
    order = [encoder.names.index(ours.get(name, f"town = {name}")) for name in names]
    np.testing.assert_array_equal(encoder.transform(other)[:, order], theirs)
    assert encoder.unknown(other) == {"town": 2}


def test_an_unknown_value_without_a_place_for_others_is_all_zeros() -> None:
    train = np.array([["a"], ["b"]] * 10, object)
    encoder = fit_encoder([TOWN], train, seed=0)
    np.testing.assert_array_equal(
        encoder.transform(np.array([["a"], ["x"], [None]], object)), [[1, 0], [0, 0], [0, 0]]
    )


def test_only_the_commonest_values_have_places() -> None:
    train = np.array([[f"v{row % 100}"] for row in range(500)], object)
    (column,) = fit_encoder([TOWN], train, seed=0).columns
    assert (len(column.values), column.width) == (MOST_VALUES, MOST_VALUES + 1)


def test_texts_are_tf_idf_on_orthonormal_directions() -> None:
    train, other = raw()[:, 2:], raw(seed=1)[:, 2:]
    encoder = fit_encoder([NOTE], train, seed=0)
    tfidf = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(train[:, 0])
    components = encoder.arrays["components.0"]
    np.testing.assert_allclose(components @ components.T, np.eye(len(components)), atol=1e-5)
    expected = tfidf.transform(other[:, 0]).toarray() @ components.T
    np.testing.assert_allclose(encoder.transform(other), expected, atol=1e-6)
    unknown = np.array([["completely other words"], [None]], object)
    np.testing.assert_array_equal(encoder.transform(unknown), 0)


def test_texts_that_share_no_words_are_refused_if_there_is_nothing_else() -> None:
    train = np.array([[f"w{row}"] for row in range(20)], object)
    with pytest.raises(DataError, match="share no words"):
        fit_encoder([NOTE], train, seed=0)
    both = np.concatenate([np.arange(20.0)[:, None].astype(object), train], axis=1)
    assert fit_encoder([AREA, NOTE], both, seed=0).names == ("area",)


def test_the_same_seed_gives_the_same_encoder_and_the_order_of_columns_stays() -> None:
    columns, train = [AREA, TOWN, NOTE], raw()
    first, again = (fit_encoder(columns, train, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.transform(train), again.transform(train))
    assert first.transform(train).shape == (60, first.description.width)
    assert len(first.names) == len(first.column_of) == first.description.width
    assert {name.split()[0] for name in np.array(first.names)[first.column_of == 1]} == {"town"}


def test_an_encoder_comes_back_from_its_words_and_arrays() -> None:
    train = raw()
    encoder = fit_encoder([AREA, TOWN, NOTE], train, seed=0)
    words = EncoderDescription.model_validate_json(encoder.description.model_dump_json())
    again = Encoder(words, dict(encoder.arrays))
    np.testing.assert_array_equal(again.transform(train), encoder.transform(train))


@pytest.mark.parametrize("change", ["missing", "more", "longer", "whole numbers"])
def test_arrays_that_do_not_fit_are_refused(change: str) -> None:
    encoder = fit_encoder([AREA, TOWN, NOTE], raw(), seed=0)
    arrays = dict(encoder.arrays)
    match change:
        case "missing":
            del arrays["idf.2"]
        case "more":
            arrays["idf.1"] = arrays["idf.2"]
        case "longer":
            arrays["fill"] = np.zeros(4)
        case _:
            arrays["fill"] = np.zeros(3, np.int64)
    with pytest.raises(CheckpointError, match="do not fit"):
        Encoder(encoder.description, arrays)
