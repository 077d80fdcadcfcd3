"""NcPU against a slow, obvious version of its algorithm, and its switches one by one."""

import pytest
import torch

from onesided.core.batch import Losses, Outputs, PUBatch
from onesided.core.errors import ConfigError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.base import EMBEDDING
from onesided.methods.ncpu import RULES, NcPU, NcPUConfig
from tests.methods.slow_votes import (
    BATCH,
    ROWS,
    SMALL,
    at,
    built,
    equals_the_loops,
    random_batch,
    random_outputs,
    views_of,
)

VARIANTS = NcPUConfig.switches


def method(**settings: object) -> NcPU:
    return built(NcPUConfig.from_settings({**SMALL, **settings}), NcPU)


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_ten_steps_equal_the_loops_over_samples(variant: str) -> None:
    equals_the_loops(method(variant=variant), 10)


@pytest.mark.parametrize("rule", ["none", "prototype", "prototype+threshold", "phantom"])
def test_every_way_of_disambiguation_equals_the_loops(rule: str) -> None:
    equals_the_loops(method(disambiguation=rule, target_momentum=0.6), 10)


@pytest.mark.parametrize(
    "switch",
    [{key: value} for key, value in VARIANTS["released"].items()],
    ids=lambda switch: next(iter(switch)),
)
def test_every_switch_of_the_released_code_can_be_set_alone(switch: dict[str, object]) -> None:
    equals_the_loops(method(**switch), 6)


def test_a_variant_fills_its_switches_and_a_given_switch_wins() -> None:
    released = NcPUConfig.from_settings({"variant": "released", "confidence_cap": 0.9})
    assert released.bound == "coordinate"
    assert released.self_pair == "plain"
    assert released.confidence_cap == 0.9
    assert NcPUConfig().bound == "similarity"


PAIRED: dict[str, list[list[int]]] = {
    "predicted": [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
    "probabilities": [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
    "labelled": [[1, 0, 1], [0, 1, 0], [1, 0, 1]],
}


@pytest.mark.parametrize("rule", list(PAIRED))
def test_a_labelled_positive_that_is_predicted_negative_pairs_by_the_rule(rule: str) -> None:
    """Rows: a labelled positive and two of U; predicted negative, negative, positive."""
    probability = torch.zeros(3, 2)
    probability[:, POSITIVE] = torch.tensor([0.2, 0.3, 0.9])
    probability[:, NEGATIVE] = 1 - probability[:, POSITIVE]
    batch = PUBatch(torch.arange(3), torch.tensor([True, False, False]))
    pairs = NcPUConfig.from_settings({"pairs": rule}).class_pairs(probability, batch)
    assert pairs.int().tolist() == PAIRED[rule]


@pytest.mark.parametrize("pairs", ["probabilities", "labelled"])
def test_pairs_by_a_lower_threshold_equal_the_loops(pairs: str) -> None:
    equals_the_loops(method(pairs=pairs, pair_threshold=0.2), 6)


def test_the_paper_pairs_by_prediction_and_the_released_code_by_probabilities() -> None:
    assert NcPUConfig().pairs == "predicted"
    assert NcPUConfig.from_settings({"variant": "released"}).pairs == "probabilities"


@pytest.mark.parametrize(("rule", "moves"), [("predicted", NEGATIVE), ("labelled", POSITIVE)])
def test_a_labelled_positive_that_is_predicted_negative_moves_a_prototype_by_the_rule(
    rule: str, moves: int
) -> None:
    ours = method(prototype_class=rule)
    outputs = random_outputs(0)
    outputs["logits"][:, POSITIVE], outputs["logits"][:, NEGATIVE] = -1.0, 1.0
    batch = PUBatch(torch.arange(BATCH), torch.ones(BATCH, dtype=torch.bool))
    ours.loss(outputs, batch, at(0))
    assert ours.prototypes.vectors[moves].any()
    assert not ours.prototypes.vectors[1 - moves].any()


def test_a_pair_threshold_that_would_be_ignored_is_refused() -> None:
    with pytest.raises(ConfigError, match="no effect on pairs of one predicted class"):
        NcPUConfig.from_settings({"pair_threshold": 0.2})


def losses_at(epoch: int, **settings: object) -> tuple[NcPU, Losses]:
    ours = method(**settings)
    return ours, ours.loss(random_outputs(1), random_batch(1), at(epoch))


def test_during_warm_up_the_table_stands_still_and_the_gate_is_open() -> None:
    ours, losses = losses_at(0, warmup_epochs=5)
    assert torch.equal(ours.targets.phantom[:, NEGATIVE], torch.ones(ROWS, dtype=torch.float64))
    assert float(losses.watched["gated"]) == 0
    assert ours.prototypes.vectors.any(), "prototypes already move"


def test_entropy_ramps_up_over_the_warm_up() -> None:
    config = NcPUConfig(warmup_epochs=4, entropy_weight=8)
    weights = [config.entropy_at(at(epoch)) for epoch in range(7)]
    assert weights == [0, 2, 4, 6, 8, 8, 8]


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("rule", ["none", "prototype", "prototype+threshold", "phantom"])
def test_labelled_positives_have_the_target_positive_at_every_step(variant: str, rule: str) -> None:
    ours = method(variant=variant, disambiguation=rule)
    for step in range(8):
        batch = random_batch(step)
        ours.loss(random_outputs(step), batch, at(step // 2))
        none = torch.zeros(BATCH, dtype=torch.bool)
        target = ours.targets.read(batch.row, batch.labelled, none)
        assert torch.equal(
            target[batch.labelled, POSITIVE],
            torch.ones(int(batch.labelled.sum()), dtype=torch.float64),
        )


def test_without_alignment_the_branch_is_not_trained() -> None:
    _, losses = losses_at(3, alignment="none")
    assert float(losses.terms["alignment"]) == 0


@pytest.mark.parametrize(("alignment", "value"), [("self", 2.0), ("class", 2.0)])
def test_orthogonal_embeddings_cost_two(alignment: str, value: float) -> None:
    ours = method(alignment=alignment, alignment_weight=1)
    embeddings = torch.eye(EMBEDDING, dtype=torch.float64)
    outputs = Outputs(
        {
            "logits": torch.zeros(BATCH, 2, dtype=torch.float64),
            "query": embeddings[:BATCH],
            "key": embeddings[BATCH : 2 * BATCH],
        }
    )
    losses = ours.loss(outputs, random_batch(0), at(3))
    assert float(losses.terms["alignment"]) == pytest.approx(value)


def test_the_target_network_follows_before_the_key_is_computed() -> None:
    ours = method(encoder_momentum=0.5)
    with torch.no_grad():
        for parameter in ours.backbone.parameters():
            parameter.add_(1.0)
    before = [p.clone() for p in ours.branch.target.parameters()]
    ours(views_of(ours), at(0))
    online = [*ours.backbone.parameters(), *ours.branch.projector.parameters()]
    for old, new, followed in zip(before, ours.branch.target.parameters(), online, strict=True):
        assert torch.allclose(new, 0.5 * old + 0.5 * followed)


def test_keys_have_no_gradient_and_queries_have() -> None:
    ours = method()
    assert set(ours.views) == {"classify", "query", "key"}
    outputs = ours(views_of(ours), at(0))
    assert outputs["query"].requires_grad
    assert not outputs["key"].requires_grad


@pytest.mark.parametrize(("epochs", "momentum"), [(400, 0.9679), (100, 0.8775), (40, 0.7213)])
def test_a_smaller_budget_keeps_the_number_of_half_lives(epochs: int, momentum: float) -> None:
    assert NcPUConfig().for_budget(epochs).target_momentum == pytest.approx(momentum, abs=1e-4)


def test_the_paper_budget_changes_nothing() -> None:
    assert NcPUConfig().for_budget(1300) == NcPUConfig()
    assert NcPUConfig().for_features(1300) == NcPUConfig()


@pytest.mark.parametrize(
    ("epochs", "warmup", "momentum"),
    [(400, 5, 0.8), (100, 5, 0.8), (40, 2, 0.7213), (4, 1, 0.0381)],
)
def test_on_frozen_features_votes_count_early_in_a_short_run(
    epochs: int, warmup: int, momentum: float
) -> None:
    short = NcPUConfig().for_features(epochs)
    assert short.warmup_epochs == warmup
    assert short.target_momentum == pytest.approx(momentum, abs=1e-4)
    pace = ("warmup_epochs", "target_momentum")
    others = NcPUConfig().model_dump(exclude=set(pace))
    assert short.model_dump(exclude=set(pace)) == others, "the mathematics stay"


def test_an_unknown_switch_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'alignment_weight'"):
        NcPUConfig.from_settings({"aligment_weight": 20})


@pytest.mark.parametrize(("variant", "now"), [("budget", "plain"), ("features", "features")])
def test_what_is_not_the_papers_mathematics_is_refused_with_its_true_name(
    variant: str, now: str
) -> None:
    named = f"'{variant}' is now a method of its own.*'teacher' and method.variant = '{now}'"
    with pytest.raises(ConfigError, match=named):
        NcPUConfig.from_settings({"variant": variant})


def test_switches_of_earlier_files_are_left_out_where_they_say_what_the_paper_says() -> None:
    papers = {"views": "three", "weighing": "sources", "judge": "online", "voter": "prototype"}
    # What these files trained is kept too: labelled positives were put on their own side of Q,
    # and moved the positive prototype.
    first = {"pairs": "labelled", "prototype_class": "labelled"}
    assert NcPUConfig.from_settings(papers) == NcPUConfig.from_settings(first)
    old = NcPUConfig.from_settings({**papers, "variant": "released"})
    assert (old.pairs, old.bound) == ("labelled", "coordinate")
    for key, other in {"views": "two", "judge": "target"}.items():
        with pytest.raises(ConfigError, match=f"{key} = '{other}' is not NcPU.*'teacher'"):
            NcPUConfig.from_settings({**papers, key: other})


def test_a_short_run_says_that_only_its_pace_is_not_the_papers() -> None:
    said = NcPUConfig().notice(6)
    assert said is not None
    assert said.startswith("NcPU's rules are as published. What a short run changes (6 of 1300")
    assert NcPUConfig().notice(1300) is None


def test_a_short_run_names_the_rules_that_are_not_the_papers() -> None:
    said = NcPUConfig(alignment="none", vote="before").notice(6)
    assert said is not None
    assert "are as published, but for alignment = none, vote = before. What" in said
    released = NcPUConfig.from_settings({"variant": "released", "bound": "none"}).notice(6)
    assert released is not None
    assert "are those of the authors' code, but for bound = none. What" in released


def test_every_setting_of_ncpu_is_a_rule_or_its_pace_and_size() -> None:
    pace = {"alignment_weight", "encoder_momentum", "projector_width", "entropy_weight"}
    pace |= {"warmup_epochs", "prototype_momentum", "target_momentum", "threshold_momentum"}
    assert {*RULES, *pace, "variant"} == NcPUConfig.model_fields.keys()
