"""Teacher against loops over samples, its two networks, and what earlier versions called it."""

import pytest
import torch

from onesided.core.former import first_names, method_today, result_today
from onesided.core.labels import POSITIVE
from onesided.methods.ncpu import NcPUConfig
from onesided.methods.teacher import Teacher, TeacherConfig
from tests.methods.slow_votes import (
    SMALL,
    at,
    built,
    equals_the_loops,
    random_batch,
    random_outputs,
    views_of,
)

VARIANTS = list(TeacherConfig.switches)
SWITCHED = {
    "views": "three",
    "weighing": "sources",
    "judge": "online",
    "voter": "prototype",
    "alignment": "robust",
    "entropy_weight": 0.5,
    "disambiguation": "none",
}


def method(**settings: object) -> Teacher:
    return built(TeacherConfig.from_settings({**SMALL, **settings}), Teacher)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ten_steps_equal_the_loops_over_samples(variant: str) -> None:
    equals_the_loops(method(variant=variant), 10)


@pytest.mark.parametrize("switch", list(SWITCHED))
def test_every_switch_set_alone_equals_the_loops(switch: str) -> None:
    equals_the_loops(method(**{switch: SWITCHED[switch]}), 8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_labelled_positives_have_the_target_positive_at_every_step(variant: str) -> None:
    ours = method(variant=variant)
    for step in range(8):
        batch = random_batch(step)
        ours.loss(random_outputs(step), batch, at(step // 2))
        target = ours.targets.read(batch.row, batch.labelled, torch.zeros_like(batch.labelled))
        assert bool((target[batch.labelled, POSITIVE] == 1).all())


def test_two_views_are_one_pass_less_and_the_classifier_learns_from_the_query() -> None:
    ours = method()
    passes: list[int] = []
    ours.backbone.register_forward_hook(lambda *_: passes.append(1))
    assert set(ours.views) == {"query", "key"}
    batch = views_of(ours)
    outputs = ours(batch, at(0))
    assert len(passes) == 1
    assert torch.equal(outputs["logits"], ours.classifier(ours.backbone(batch.views["query"])))


def test_the_teacher_scores_new_samples_and_is_all_that_is_saved() -> None:
    ours = method().eval()
    samples = torch.rand(5, 2, dtype=torch.float64)
    before = ours.classify(samples)
    with torch.no_grad():
        for parameter in (*ours.backbone.parameters(), *ours.classifier.parameters()):
            parameter.add_(1)
    assert torch.equal(ours.classify(samples), before)
    again = method().eval()
    again.load_state_dict(ours.inference_state(), strict=False)
    assert torch.equal(again.classify(samples), before)
    assert torch.equal(again.embed(samples), ours.embed(samples))


@pytest.mark.parametrize(("epoch", "momentum"), [(0, 0.1), (4, 0.5), (1000, 0.99)])
def test_the_teacher_follows_fast_at_first(epoch: int, momentum: float) -> None:
    ours = method()
    assert ours.judge is not None
    before = ours.judge.copies[0].get_parameter("weight").clone()
    with torch.no_grad():
        ours.classifier.weight.add_(1.0)
    ours(views_of(ours), at(epoch))
    moved = (ours.judge.copies[0].get_parameter("weight") - before).mean()
    assert float(moved) == pytest.approx(1 - momentum)


@pytest.mark.parametrize(("epochs", "warmup"), [(4, 2), (6, 3), (30, 3), (76, 19)])
def test_votes_begin_before_gentle_views_are_memorised(epochs: int, warmup: int) -> None:
    assert TeacherConfig().for_budget(epochs).warmup_epochs == warmup


OLD_SWITCHES = {"views": "two", "weighing": "classes", "judge": "target"}
BUDGET = {**OLD_SWITCHES, "variant": "budget", "alignment": "self", "voter": "judge"}
FEATURES = {**OLD_SWITCHES, "variant": "features", "alignment": "robust", "voter": "prototype"}


@pytest.mark.parametrize(
    ("old", "variant"), [(BUDGET, "plain"), (FEATURES, "features")], ids=["budget", "features"]
)
def test_what_was_called_a_variant_of_ncpu_opens_as_teacher(
    old: dict[str, str], variant: str
) -> None:
    base = NcPUConfig().model_dump(exclude={"pairs", "prototype_class"})  # no settings then
    before = {**base, "alignment_weight": 1.0, "entropy_weight": 0.0, **old}
    name, settings = method_today("ncpu", before)
    assert name == "teacher"
    today = TeacherConfig.from_settings(settings)
    assert today == TeacherConfig.from_settings({"variant": variant})
    assert first_names(name, today.model_dump()) == {"name": "ncpu", **before}


def test_ncpu_itself_keeps_its_name_and_its_identity() -> None:
    papers = {"views": "three", "weighing": "sources", "judge": "online", "voter": "prototype"}
    rules = {"pairs": "labelled", "prototype_class": "labelled"}
    config = NcPUConfig.from_settings({"entropy_weight": 0.5, **rules}).model_dump()
    first = {key: value for key, value in config.items() if key not in rules} | papers
    assert method_today("ncpu", first) == ("ncpu", config)
    assert first_names("ncpu", config) == {"name": "ncpu", **first}


def test_another_rule_of_pairs_or_prototypes_is_another_run() -> None:
    config = NcPUConfig().model_dump()
    for rule in ("pairs", "prototype_class"):
        assert first_names("ncpu", config)[rule] == config[rule] == "predicted"
    assert first_names("nnpu", {"pairs": "probabilities"}) == {"name": "nnpu"}


def test_ncpu_of_the_version_before_keeps_the_prototypes_it_had() -> None:
    before = NcPUConfig().model_dump(exclude={"prototype_class"})
    assert NcPUConfig.from_settings(before).prototype_class == "labelled"
    assert NcPUConfig.from_settings({"vote": "after"}).prototype_class == "predicted"


def test_a_mixture_of_both_is_no_ncpu() -> None:
    mixed = {"variant": "paper", "views": "three", "judge": "target"}
    assert method_today("ncpu", mixed) == ("teacher", {**mixed, "variant": "plain"})


def test_other_methods_and_results_stay_as_they_are() -> None:
    assert method_today("ce", {"balance": "plain"}) == ("ce", {"balance": "plain"})
    assert first_names("ce", {"balance": "plain"}) == {"name": "ce", "balance": "plain"}
    for result in ({"method": "ncpu", "variant": "paper"}, {"method": "ce"}, {"method": ["odd"]}):
        assert result_today(result) == result
    assert result_today({"method": "ncpu", "variant": "budget", "seed": 1}) == {
        "method": "teacher",
        "title": "Teacher",
        "variant": "plain",
        "seed": 1,
    }
