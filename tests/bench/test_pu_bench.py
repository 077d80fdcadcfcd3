"""The suite of PU-Bench follows its protocol on every row, at every scale."""

import pytest

from onesided.bench.cells import Cell, planned, scale_words
from onesided.bench.claims import judge, parse
from onesided.bench.scale import scale_names
from onesided.bench.suite import read_suite, tables_named
from onesided.bench.tables import shown
from onesided.data.sources import SOURCES
from onesided.run.config import RunConfig, SetConfig

SUITE = read_suite("pu-bench")
IMAGES = {"cifar10": 50000, "fashion-mnist": 60000}
"""Training images of each data set, 2 of 5 of which are positive."""


def config(row: str, data: str, scale: str) -> RunConfig:
    return Cell("pu-bench", "accuracy", row, data, scale, 0).config()


@pytest.mark.parametrize("scale", scale_names())
def test_every_cell_has_a_whole_pool_the_true_prior_and_the_most_accurate_epoch(scale: str) -> None:
    cells = planned(tables_named("pu-bench"), scale, [0])
    assert {cell.row for cell in cells} == set(SUITE.rows)
    for cell in cells:
        found = cell.config()
        assert isinstance(found.data, SetConfig)
        assert (found.data.pool, found.data.scenario) == ("whole", "case-control")
        assert (found.prior, found.train.keep) == ("truth", "best-accuracy")


def test_all_rows_are_trained_alike() -> None:
    assert len({config(row, "cifar10", "features").train for row in SUITE.rows}) == 1
    assert config("ncpu", "cifar10", "features").train.epochs == 40


@pytest.mark.parametrize("data", IMAGES)
def test_counts_are_those_of_the_protocol(data: str) -> None:
    split = config("nnpu", data, "paper").data
    assert isinstance(split, SetConfig)
    images, prior = IMAGES[data], 0.4
    assert split.prior == prior == len(split.positive_classes) / 10
    assert split.held_out_positives + split.held_out_unlabelled == images // 100
    held_out = split.held_out_positives + round(prior * split.held_out_unlabelled)
    assert held_out + round(prior * split.unlabelled) == images * prior, "U takes all positives"
    assert split.unlabelled > 0.989 * images
    assert split.positives == round(0.1 * prior * split.unlabelled)


def test_what_is_held_out_stays_large_enough_to_choose_an_epoch_at_a_tenth_of_the_data() -> None:
    split = config("nnpu", "cifar10", "features").data
    assert isinstance(split, SetConfig)
    assert (split.positives, split.unlabelled) == (198, 4947)
    assert (split.held_out_positives, split.held_out_unlabelled) == (20, 480)


def test_the_split_of_embedded_digits_can_be_drawn() -> None:
    split = config("nnpu", "digits", "small").data
    assert isinstance(split, SetConfig)
    classes = SOURCES["digits"].load(None).train.classes
    positives = int((classes % 2 == 0).sum())
    drawn = round(split.prior or 0, 2) * (split.unlabelled + split.held_out_unlabelled)
    assert split.held_out_positives + drawn <= positives


def test_published_numbers_hold_the_claims_and_stand_in_the_table() -> None:
    printed = {
        (row, "cifar10", "paper", 0): {
            "status": "finished",
            "figures": {"oa": figures["oa"][0] / 100},
        }
        for row, figures in SUITE.published["cifar10"].items()
    }
    words = {verdict.claim.name: verdict.word for verdict in judge(SUITE, printed)}
    assert words.pop("ncpu") == "not run", "a row that PU-Bench does not have"
    assert set(words.values()) == {"held"}
    rows = {row.name: row.published["oa"] for row in shown("pu-bench", "accuracy", [])[0].rows}
    assert rows["nnpu"] == "85.3"
    assert rows["ncpu"] == "-"


def test_claims_name_rows_of_the_suite() -> None:
    for claim in SUITE.claims:
        for text in claim.holds:
            assert set(parse(text).rows) <= set(SUITE.rows)


def test_no_scale_is_called_the_papers_own() -> None:
    assert "but for: our network" in scale_words("pu-bench", "paper")
    assert "our network" in scale_words("pu-bench", "features")
    assert scale_words("ncpu", "paper") == "run at the paper's scale"
