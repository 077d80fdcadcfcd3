"""Claims are inequalities that the program judges, seed by seed."""

import pytest

from onesided.bench.claims import by_scale, claims_page, judge, parse
from onesided.bench.results import Key, Record
from onesided.bench.suite import Claim, Suite, read_suite
from onesided.core.errors import ConfigError

NCPU = read_suite("ncpu")


def suite_claiming(*holds: str) -> Suite:
    return NCPU.model_copy(update={"claims": (Claim(name="one", says="One.", holds=holds),)})


def cells(**accuracy: list[float]) -> dict[Key, Record]:
    """Return finished cells on digits: accuracies in per cent by row, one for each seed."""
    found: dict[Key, Record] = {}
    for row, many in accuracy.items():
        for seed, oa in enumerate(many):
            figures = {"oa": oa / 100, "recall": oa / 100}
            key = (row, "digits", "small", seed)
            found[key] = {"status": "finished", "figures": figures}
    return found


@pytest.mark.parametrize(
    ("holds", "found", "word"),
    [
        (["ncpu.oa > ce.oa"], cells(ncpu=[90, 91], ce=[60, 61]), "held"),
        (["ncpu.oa > ce.oa"], cells(ncpu=[50, 51], ce=[60, 61]), "not held"),
        (["ncpu.oa > ce.oa"], cells(ncpu=[90, 51], ce=[60, 61]), "mixed"),
        (["ncpu.oa > ce.oa"], cells(ncpu=[90]), "not run"),
        (["ncpu.oa > ce.oa"], {}, "not run"),
        (["ncpu.oa > ce.oa", "ncpu.recall < 95"], cells(ncpu=[90]), "incomplete"),
        (["ncpu.oa > ce.oa", "ncpu.oa > upu.oa"], cells(ncpu=[90], ce=[60]), "incomplete"),
        (["ncpu.oa > ce.oa", "ncpu.recall < 95"], cells(ncpu=[96], ce=[60]), "mixed"),
        (["ncpu.oa ~ ce.oa within 2"], cells(ncpu=[61.9], ce=[60]), "held"),
        (["ncpu.oa ~ ce.oa within 2"], cells(ncpu=[62.1], ce=[60]), "not held"),
        (["ncpu.recall < 5"], cells(ncpu=[4.9]), "held"),
    ],
)
def test_a_claim_is_judged_by_all_its_inequalities_and_seeds(
    holds: list[str], found: dict[Key, Record], word: str
) -> None:
    (verdict,) = judge(suite_claiming(*holds), found)
    assert verdict.word == word


def test_only_seeds_that_both_rows_have_are_compared() -> None:
    (verdict,) = judge(suite_claiming("ncpu.oa > ce.oa"), cells(ncpu=[90, 10], ce=[60]))
    assert verdict.word == "held"
    assert [seed for seed, _, _ in verdict.parts[0].seeds] == [0]


def test_a_failed_cell_counts_as_not_run() -> None:
    found = cells(ncpu=[90], ce=[60])
    found["ce", "digits", "small", 0] = {"status": "failed", "failure": "no"}
    (verdict,) = judge(suite_claiming("ncpu.oa > ce.oa"), found)
    assert verdict.word == "not run"


def test_every_claim_of_the_suite_names_rows_that_exist() -> None:
    rows = NCPU.all_rows()
    for claim in NCPU.claims:
        for text in claim.holds:
            assert set(parse(text).rows) <= set(rows), text


@pytest.mark.parametrize(
    "text",
    ["ncpu > ce", "ncpu.oa = ce.oa", "ncpu.oa ~ ce.oa", "ncpu.speed > 3", "a.oa > b.oa within 2"],
)
def test_an_inequality_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="The claim"):
        parse(text)


def test_the_page_shows_verdict_and_numbers() -> None:
    verdicts = judge(suite_claiming("ncpu.oa > ce.oa"), cells(ncpu=[90, 91], ce=[60, 61]))
    page = claims_page("NcPU", "somewhere", verdicts, "the command")
    assert "| digits | small | **held** | ncpu.oa > ce.oa: 90.5 and 60.5, 2 of 2 seeds |" in page


def test_the_page_names_places_without_a_verdict_in_one_line() -> None:
    found = cells(ncpu=[90], ce=[60])
    for data in ("cifar10", "cifar100"):
        found["ncpu", data, "features", 0] = found["ncpu", "digits", "small", 0]
    verdicts = judge(suite_claiming("ncpu.oa > ce.oa"), found)
    page = claims_page("NcPU", "somewhere", verdicts, "the command")
    assert page.count("| **") == 1
    assert "Not run: cifar10 at features, cifar100 at features." in page
    assert "\nNot run.\n" in claims_page("NcPU", "", judge(suite_claiming("a.oa < 1"), {}), "")


def test_a_schedule_judges_every_inequality_between_its_rows_at_each_scale() -> None:
    """Of three lengths: it holds at the longest, for one seed of two at the next, then for none."""
    found: dict[Key, Record] = {}
    for scale, accuracies in (
        ("small", [90.0, 91.0]),
        ("small-400", [90.0, 59.0]),
        ("small-100", [50.0, 51.0]),
    ):
        for (row, data, _, seed), record in cells(ncpu=accuracies, ce=[60, 60]).items():
            found[row, data, scale, seed] = record
    judged = by_scale(NCPU, NCPU.tables["schedule"], found)
    words = {scale: one.word for scale, one in judged["ncpu.oa > ce.oa"].items()}
    assert words == {
        "small": "held",
        "small-400": "mixed",
        "small-100": "not held",
        "small-30": "not run",
    }
    assert judged["ncpu.oa > ce.oa"]["small-400"].numbers == "74.5 and 60.0, 1 of 2 seeds"
    assert "nnpu-robust.oa > nnpu-true.oa" in judged
    assert "upu-robust.oa > upu-true.oa" not in judged, "uPU is not among its rows"


def test_the_papers_own_numbers_hold_its_claims() -> None:
    """What the paper prints on CIFAR-100, as one seed; claims without printed cells are not run."""
    printed = {
        (row, "cifar100", "paper", 0): {
            "status": "finished",
            "figures": {
                name: figures[name][0] / 100 if name in figures else None
                for name in ("oa", "f1", "precision", "recall", "auc")
            },
        }
        for row, figures in NCPU.published["cifar100"].items()
    }
    words = {verdict.claim.name: verdict.word for verdict in judge(NCPU, printed)}
    assert words.pop("insensitive") == "not run"
    for ours in ("pace", "pace-of-short-runs", "prototypes-of-positives"):
        assert words.pop(ours) == "not run", "of rows that the paper does not have"
    assert set(words.values()) == {"held"}
