"""The threshold of a run: chosen from P and U alone, explained in a sentence, stored everywhere."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from onesided.core.errors import ConfigError, DataError, DataNotFound, OnesidedError
from onesided.engine.model_file import ModelDescription
from onesided.metrics.intervals import auc_spread, clopper_pearson
from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.selection import SHARES, Optimism
from onesided.metrics.threshold_rules import HALF, parse_rule
from onesided.nets.build import BackboneConfig
from onesided.run.compare import move_thresholds
from onesided.run.decisions import (
    NewThreshold,
    check_rule,
    choose_threshold,
    threshold_after_training,
)
from onesided.run.execute import ranked_rows
from onesided.run.folder import read_result
from onesided.run.prior import PriorUsed
from onesided.run.scored import Scored, entries_at, figures_at, prior_for_estimates
from onesided.storage.atomic import write_json, write_text
from onesided.storage.table import csv_text

DRAWN = 40


def clouds(seed: int = 0) -> Scored:
    """Scores of a good model: positives high, four in ten of U among them."""
    random = np.random.default_rng(seed)

    def scores(positives: int, unlabelled: int) -> tuple[np.ndarray, np.ndarray]:
        hidden = round(0.4 * unlabelled)
        high = random.beta(8, 2, positives + hidden)
        low = random.beta(2, 8, unlabelled - hidden)
        return np.concatenate([high, low]), np.arange(positives + unlabelled) < positives

    train, held_out = scores(100, 500), scores(60, 200)
    return Scored(*train, *held_out)


SCORED = clouds()
PAIR = SCORED.held_out_pair()
assert PAIR is not None
positives, unlabelled = PAIR


def test_the_usual_threshold_of_0_5_gives_no_notice() -> None:
    chosen = choose_threshold(HALF, SCORED, None)
    assert chosen.value == 0.5
    assert chosen.notices == ()
    assert chosen.to_json("onesided fit")["rule"] == "0.5"


def test_a_number_is_taken_as_it_is() -> None:
    chosen = choose_threshold(parse_rule("0.73"), SCORED, None)
    assert chosen.value == 0.73
    assert chosen.notices == (chosen.sentence,)
    assert "Threshold 0.73 by the rule 0.73" in chosen.sentence


def test_top_k_counts_all_of_u_also_what_was_trained_on() -> None:
    chosen = choose_threshold(parse_rule("top-k=123"), SCORED, None)
    assert (SCORED.unlabelled > chosen.value).sum() == 123
    assert "123 of 700 unlabelled items" in chosen.sentence


def test_ties_at_the_threshold_are_reported() -> None:
    tied = replace(SCORED, train=np.where(SCORED.train > 0.5, 0.9, SCORED.train), held_out=None)
    tied = replace(tied, held_out_labelled=None)
    count = int((tied.unlabelled == 0.9).sum())
    chosen = choose_threshold(parse_rule("top-k=10"), tied, None)
    assert (tied.unlabelled > chosen.value).sum() == 0
    assert f"0 of 500 unlabelled items that were scored lie above it, not 10: {count} items" in (
        chosen.sentence
    )


@pytest.mark.parametrize("recall", [0.5, 0.9, 1.0])
def test_recall_is_reported_with_its_exact_interval(recall: float) -> None:
    chosen = choose_threshold(parse_rule(f"recall={recall}"), SCORED, None)
    found = int((positives > chosen.value).sum())
    assert found == np.ceil(recall * 60)
    low, high = clopper_pearson(found, 60)
    assert f"{found} of 60 held-out positives" in chosen.sentence
    assert f"95 % interval {low:.3f} to {high:.3f}" in chosen.sentence


def test_the_interval_of_a_recall_rule_knows_groups() -> None:
    item = np.arange(260)
    in_houses = replace(
        SCORED,
        train_group=1000 + np.arange(len(SCORED.train)),
        held_out_group=np.where(item < len(positives), item // 6, item),
    )
    rule = parse_rule("recall=1.0")
    found, alone = (choose_threshold(rule, one, None).sentence for one in (in_houses, SCORED))
    low, _ = clopper_pearson(10, 10)  # ten houses, all found
    assert f"95 % interval {low:.3f} to 1.000" in found
    assert found != alone


def test_the_prior_of_the_run_goes_before_an_estimate_and_a_given_one_before_both() -> None:
    given = choose_threshold(parse_rule("prior=0.25"), SCORED, 0.4)
    known = choose_threshold(parse_rule("prior"), SCORED, 0.3)
    estimated = choose_threshold(parse_rule("prior"), SCORED, None)
    shares = [(unlabelled > one.value).mean() for one in (given, known, estimated)]
    assert shares[:2] == [0.25, 0.3]
    assert shares[2] == pytest.approx(0.4, abs=0.1)
    assert "as given" in given.sentence
    assert "prior of this run" in known.sentence
    assert "estimated by BBE" in estimated.sentence


def test_a_prior_of_the_same_scores_is_told_to_flatter_the_figures() -> None:
    told = {
        text: "biased slightly high" in choose_threshold(parse_rule(text), SCORED, prior).sentence
        for text, prior in (("prior", None), ("prior=0.4", None), ("recall=0.9", None))
    }
    assert told == {"prior": True, "prior=0.4": False, "recall=0.9": False}


@pytest.mark.slow
def test_recall_holds_within_its_interval_although_the_same_positives_chose_the_threshold() -> None:
    """BBE's bin lies where P is many by chance, and the threshold by the prior lies near that bin.

    So recall is counted where it is luckiest. With thirty positives and classes that overlap it is
    some points too high, which the interval of Clopper and Pearson still covers.
    """
    random, distance, positives, unlabelled = np.random.default_rng(11), 1.5, 30, 600
    held, lucky = 0, list[float]()
    for _ in range(DRAWN):
        hidden = random.binomial(unlabelled, 0.45)
        middle = np.repeat([distance, 0.0], [positives + hidden, unlabelled - hidden])
        scores = ndtr(random.normal(middle, 1) / 2)
        labelled = np.arange(len(scores)) < positives
        scored = Scored(scores, labelled, fold=np.arange(len(scores)) % 5)
        chosen = threshold_after_training(parse_rule("prior"), scored, None)
        evaluation = figures_at(scored, chosen.value, scenario="single-set", prior=None)
        assert evaluation is not None
        recall, true = evaluation.figures["recall"], ndtr(distance - 2 * ndtri(chosen.value))
        assert recall.value is not None
        assert recall.interval is not None
        held += int(recall.interval[0] <= true <= recall.interval[1])
        lucky.append(recall.value - float(true))
    assert held >= 0.85 * DRAWN
    assert np.mean(lucky) < 0.06


def test_without_a_held_out_part_a_given_prior_is_met_on_all_of_u() -> None:
    alone = replace(SCORED, held_out=None, held_out_labelled=None)
    chosen = choose_threshold(parse_rule("prior=0.2"), alone, None)
    assert (alone.unlabelled > chosen.value).mean() == 0.2


def test_max_f1_is_better_than_0_5_by_lee_and_liu_s_criterion() -> None:
    chosen = choose_threshold(parse_rule("max-f1"), SCORED, None)

    def criterion(threshold: float) -> float:
        called = (unlabelled > threshold).sum()
        return float((positives > threshold).mean() ** 2 / ((called + 1) / 201))

    assert all(criterion(chosen.value) >= criterion(t) - 1e-12 for t in np.linspace(0, 1, 101))
    assert f"{criterion(chosen.value):.3f}" in chosen.sentence
    assert "biased slightly high" in chosen.sentence


def test_truth_and_known_negatives_choose_nothing() -> None:
    random = np.random.default_rng(1)
    known = replace(
        SCORED, test=random.random(50), test_truth=np.arange(50) % 2, negatives=random.random(9)
    )
    for rule in map(parse_rule, ("prior", "max-f1", "recall=0.8", "top-k=50", "0.6")):
        assert choose_threshold(rule, known, None) == choose_threshold(rule, SCORED, None)


@pytest.mark.parametrize("text", ["prior", "max-f1", "recall=0.9"])
def test_rules_about_held_out_items_need_some(text: str) -> None:
    with pytest.raises(ConfigError, match=r"holds none out.*data\.held_out"):
        check_rule(parse_rule(text), unlabelled=100, held_out=False)
    check_rule(parse_rule(text), unlabelled=100, held_out=True)


def test_more_items_than_there_are_cannot_be_called() -> None:
    check_rule(parse_rule("top-k=100"), unlabelled=100, held_out=False)
    with pytest.raises(ConfigError, match="more items than there are unlabelled ones: 100"):
        check_rule(parse_rule("top-k=101"), unlabelled=100, held_out=False)


def test_scores_survive_the_file_to_the_bit(tmp_path: Path) -> None:
    known = replace(SCORED, test=np.array([0.1, 1 - 1e-16]), test_truth=np.array([0, 1]))
    known.save(tmp_path / "scores.npz")
    back = Scored.load(tmp_path / "scores.npz")
    for name in ("train", "train_labelled", "held_out", "held_out_labelled", "test", "test_truth"):
        assert np.array_equal(getattr(back, name), getattr(known, name)), name
    assert back.negatives is None


def test_a_file_of_scores_that_is_missing_or_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    with pytest.raises(DataNotFound, match="same fit command"):
        Scored.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(OnesidedError, match="cannot be read"):
        Scored.load(path)
    np.savez(path, train=np.zeros(3), train_labelled=np.zeros(4, dtype=bool))
    with pytest.raises(OnesidedError, match="do not fit"):
        Scored.load(path)
    np.savez(path, train=np.zeros(3), unknown=np.zeros(3))
    with pytest.raises(OnesidedError, match="cannot be read"):
        Scored.load(path)


def test_figures_are_those_of_the_threshold() -> None:
    known = replace(SCORED, negatives=np.repeat([0.1, 0.65, 0.9, 0.2], 25))
    for threshold in (0.3, 0.7):
        evaluation = figures_at(known, threshold, scenario="single-set", prior=None)
        entries = entries_at(known, threshold, evaluation, None)
        figures = entries["pu"]["figures"]
        assert figures["recall"]["value"] == (positives > threshold).mean()
        assert figures["share_positive"]["value"] == (unlabelled > threshold).mean()
        assert entries["known_negatives"]["value"] == (0.5 if threshold < 0.65 else 0.25)
        assert entries["test"] is None
        assert entries["threshold"] == threshold


def same_for_all(seed: int) -> Scored:
    """Scores of a model that separates nothing."""
    random = np.random.default_rng(seed)
    held_out = random.random(4200)
    labelled = np.arange(4200) < 200
    return Scored(held_out, labelled, held_out, labelled)


def test_a_prior_that_cannot_be_told_is_not_called_the_prior() -> None:
    random = np.random.default_rng(0)
    labelled = np.arange(1650) < 150
    hidden = np.arange(1650) < 555  # positives, who score a little higher
    scores = 1 / (1 + np.exp(-random.normal(0.9 * hidden)))
    folded = Scored(scores, labelled, None, None, fold=np.arange(1650) % 5)
    chosen = choose_threshold(parse_rule("prior"), folded, None)
    assert "it cannot be told: all from" in chosen.sentence
    assert "the prior is" not in chosen.sentence


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_separate_nothing_give_no_prior_and_no_precision(seed: int) -> None:
    scored = same_for_all(seed)
    prior = prior_for_estimates(scored, None, None)
    assert prior is None
    evaluation = figures_at(scored, 0.5, scenario="case-control", prior=prior)
    assert evaluation is not None
    precision = evaluation.figures["precision"]
    assert precision.value is None
    assert "cannot be estimated from this model's held-out scores" in (precision.missing or "")


def test_a_prior_that_scores_do_not_give_is_refused_but_loses_no_training() -> None:
    scored, rule = same_for_all(0), parse_rule("prior")
    with pytest.raises(DataError, match=r"cannot be estimated.*Give it, as in prior=0\.3"):
        choose_threshold(rule, scored, None)
    after = threshold_after_training(rule, scored, None)
    assert after.value == 0.5
    assert after.rule == rule
    assert "cannot be estimated" in after.notices[0]
    assert after.notices[0].startswith("There is no threshold by the prior: ")
    assert after.notices[0].endswith("For now the threshold is 0.5.")
    for given in (parse_rule("prior=0.2"), parse_rule("recall=0.9"), HALF):
        known = choose_threshold(given, scored, None)
        assert threshold_after_training(given, scored, None) == known


@pytest.mark.parametrize("text", ["recall=0.9", "max-f1"])
def test_scores_that_are_all_zero_cost_no_training_either(text: str) -> None:
    zero, labelled = np.zeros(60), np.arange(60) < 20
    scored, rule = Scored(zero, labelled, zero, labelled), parse_rule(text)
    with pytest.raises(DataError, match="zero"):
        choose_threshold(rule, scored, None)
    after = threshold_after_training(rule, scored, None)
    assert (after.value, after.rule) == (0.5, rule)
    assert "zero" in after.notices[0]


def test_a_prior_from_the_scores_it_evaluates_is_not_called_independent_of_them() -> None:
    own = prior_for_estimates(SCORED, None, None)
    assert own is not None
    assert own.value == pytest.approx(0.4, abs=0.1)
    assert own.origin == OWN_SCORES
    own_figures = figures_at(SCORED, 0.5, scenario="case-control", prior=own)
    elsewhere = replace(own, origin="KM2")
    other = figures_at(SCORED, 0.5, scenario="case-control", prior=elsewhere)
    assert own_figures is not None
    assert other is not None
    for name in ("precision", "f1", "proxy_accuracy", "auc"):
        assert "KM2" in other.figures[name].assumes
        assert "KM2" not in own_figures.figures[name].assumes
        assert OWN_SCORES in own_figures.figures[name].assumes
        assert own_figures.figures[name].value == other.figures[name].value


def test_the_methods_or_a_given_prior_goes_before_an_estimate() -> None:
    used = PriorUsed(0.7, 0.6, 0.8, "KM2")
    assert prior_for_estimates(SCORED, used, 0.2) == used
    assert prior_for_estimates(SCORED, None, 0.2) == PriorUsed(0.2, None, None, "given")


def finished(folder: Path, scored: Scored, prior: PriorUsed | None = None) -> Path:
    """Write as much of a finished run as the choice of a threshold reads."""
    folder.mkdir(parents=True)
    result = {"method": "ncpu", "seed": 0, "threshold": 0.5, "test": None, "pu": None}
    known = {"scenario": "single-set", "prior": None if prior is None else prior.to_json()}
    write_json(folder / "result.json", {**result, **known, "warnings": []})
    model = ModelDescription(
        method="ncpu",
        settings={},
        backbone=BackboneConfig(),
        sample_shape=(1,),
        mean=(0.0,),
        std=(1.0,),
        kind="vector",
    )
    write_json(folder / "model.json", model.model_dump(mode="json"))
    names = [str(row) for row in range(len(scored.unlabelled))]
    rows = ranked_rows(names, scored.unlabelled, 0.5)
    table = csv_text(("item", "score", "rank", "decision"), rows)
    write_text(folder / "scores.csv", table)
    scored.save(folder / "scores.npz")
    return folder


def test_a_prior_that_was_not_given_stays_an_estimate_later(tmp_path: Path) -> None:
    run = finished(tmp_path / "run", SCORED, prior_for_estimates(SCORED, None, None))
    at_fit = choose_threshold(parse_rule("prior"), SCORED, None)
    assert NewThreshold.of(run, parse_rule("prior")).chosen == at_fit
    assert "estimated by BBE" in at_fit.sentence
    named = finished(tmp_path / "named", SCORED, PriorUsed(0.3, None, None, "given"))
    assert "prior of this run" in NewThreshold.of(named, parse_rule("prior")).chosen.sentence


def test_a_rule_that_one_of_several_runs_refuses_changes_none(tmp_path: Path) -> None:
    run = finished(tmp_path / "run", SCORED)
    blind = replace(SCORED, held_out=np.zeros_like(SCORED.held_out))
    finished(run / "compare" / "ce", blind)
    before = {path: path.read_bytes() for path in run.rglob("*.*")}
    with pytest.raises(DataError, match=r"No threshold gives a recall of 0\.9"):
        move_thresholds(run, parse_rule("recall=0.9"))
    assert {path: path.read_bytes() for path in run.rglob("*.*")} == before


@pytest.mark.parametrize("optimism", [None, 0.0, 0.07])
def test_another_threshold_keeps_the_correction_of_a_search(
    tmp_path: Path, optimism: float | None
) -> None:
    folded = replace(SCORED, fold=np.zeros(len(SCORED.train), np.int64))
    run = finished(tmp_path / "run", folded)
    if optimism is not None:  # runs of one method, and older ones, have no such entry
        write_json(run / "result.json", {**read_result(run), "optimism": optimism})
    changed = move_thresholds(run, parse_rule("0.6"))
    pair = folded.held_out_pair()
    assert pair is not None
    plain = auc_spread(*pair).value
    assert changed["pu"]["figures"]["proxy_auc"]["value"] == pytest.approx(plain - (optimism or 0))
    assert move_thresholds(run, parse_rule("0.5")).get("optimism") == optimism


def test_another_threshold_keeps_the_correction_of_recall_and_the_groups(tmp_path: Path) -> None:
    group = np.arange(len(SCORED.train)) // 10
    folded = replace(SCORED, fold=np.zeros(len(SCORED.train), np.int64), held_out=None)
    folded = replace(folded, held_out_labelled=None)
    recalls = {}
    for name, scored in (("alone", folded), ("grouped", replace(folded, train_group=group))):
        for luck in (0.0, 0.04):
            run = finished(tmp_path / f"{name}-{luck}", scored)
            entries = Optimism(0.01, (luck,) * len(SHARES)).to_json()
            write_json(run / "result.json", {**read_result(run), **entries})
            figures = move_thresholds(run, parse_rule("0.6"))["pu"]["figures"]
            recalls[name, luck] = figures["recall"]
    plain, lowered = recalls["alone", 0.0], recalls["alone", 0.04]
    assert lowered["value"] == pytest.approx(plain["value"] - 0.04)
    assert lowered["high"] - lowered["low"] > plain["high"] - plain["low"]
    assert recalls["grouped", 0.0]["value"] == plain["value"]
    assert recalls["grouped", 0.0]["low"] < plain["low"]


@pytest.mark.parametrize("optimism", [-0.1, 2, "much", None])
def test_a_damaged_optimism_is_refused(tmp_path: Path, optimism: object) -> None:
    run = finished(tmp_path / "run", SCORED)
    content = {**read_result(run), "optimism": optimism}
    write_json(run / "result.json", content)
    with pytest.raises(OnesidedError, match="wrong value in 'optimism'"):
        move_thresholds(run, parse_rule("0.6"))
