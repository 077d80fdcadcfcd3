"""Every recipe is a row of the NcPU paper's Table 1, and says nothing but what is its own."""

import json
import re

import pytest

from onesided.core.config import Config, Settings, read_toml
from onesided.data.sources import SOURCES
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS
from onesided.methods.ncpu import NcPUConfig
from onesided.run.config import RunConfig, SetConfig
from onesided.run.presets import RECIPES, Amount, plan_run, recipe_settings
from tests.run import situations
from tests.run.situations import PRESETS

FILES = {path.stem: path for path in sorted(RECIPES.glob("*.toml"))}
FILED = [
    (data, method) for method, path in FILES.items() for data in read_toml(path) if data != "all"
]
every_recipe = pytest.mark.parametrize(("data_name", "method_name"), FILED)

# Overall accuracy in per cent, Table 1 of the paper.
PUBLISHED = {
    "cifar10": {
        "ncpu": "97.36 ± 0.1",
        "ce": "60.45 ± 0.1",
        "supervised": "96.96 ± 0.2",
        "upu": "65.52 ± 0.2",
        "nnpu": "87.29 ± 0.5",
        "imbpu": "87.29 ± 0.4",
        "vpu": "85.94 ± 0.6",
        "tedn": "86.29 ± 2.4",
        "distpu": "85.29 ± 2.6",
        "holisticpu": "84.20 ± 2.1",
        "lagam": "95.78 ± 0.5",
        "pico": "89.72 ± 0.1",
        "wsc": "90.55 ± 0.3",
        "puet": "78.51 ± 0.4",
    },
    "cifar100": {
        "ncpu": "88.28 ± 0.6",
        "ce": "50.36 ± 0.0",
        "supervised": "89.65 ± 0.3",
        "upu": "61.44 ± 0.9",
        "nnpu": "72.00 ± 0.8",
        "imbpu": "72.07 ± 0.7",
        "vpu": "69.01 ± 1.2",
        "tedn": "69.85 ± 0.9",
        "distpu": "67.63 ± 0.8",
        "holisticpu": "64.01 ± 6.5",
        "lagam": "84.82 ± 0.1",
        "pico": "69.98 ± 0.4",
        "wsc": "75.39 ± 2.1",
        "puet": "62.81 ± 0.2",
    },
    "stl10": {
        "ncpu": "91.40 ± 0.4",
        "ce": "50.30 ± 0.0",
        "upu": "57.08 ± 0.4",
        "nnpu": "80.62 ± 0.1",
        "imbpu": "80.68 ± 0.6",
        "vpu": "75.76 ± 5.5",
        "tedn": "66.26 ± 4.9",
        "distpu": "85.62 ± 1.5",
        "holisticpu": "72.81 ± 6.4",
        "lagam": "88.64 ± 0.0",
        "pico": "60.71 ± 0.6",
        "wsc": "79.06 ± 4.5",
        "puet": "75.36 ± 0.2",
    },
    "abcd": {
        "ncpu": "91.10 ± 0.6",
        "ce": "55.70 ± 0.2",
        "supervised": "92.00 ± 0.2",
        "upu": "83.76 ± 2.1",
        "nnpu": "87.73 ± 0.4",
        "imbpu": "88.14 ± 0.6",
        "vpu": "84.06 ± 3.0",
        "tedn": "88.90 ± 0.9",
        "distpu": "86.25 ± 1.7",
        "holisticpu": "65.49 ± 1.5",
        "lagam": "75.90 ± 0.4",
        "pico": "74.07 ± 2.2",
        "wsc": "80.10 ± 2.8",
        "puet": "78.09 ± 2.9",
    },
    "xbd": {
        "ncpu": "87.60 ± 1.0",
        "ce": "84.08 ± 0.2",
        "supervised": "88.47 ± 0.3",
        "upu": "86.82 ± 0.3",
        "nnpu": "82.60 ± 0.6",
        "imbpu": "82.51 ± 0.5",
        "vpu": "73.60 ± 1.8",
        "tedn": "85.40 ± 0.8",
        "distpu": "82.94 ± 0.8",
        "holisticpu": "81.98 ± 4.1",
        "lagam": "79.14 ± 1.5",
        "pico": "49.36 ± 0.5",
        "wsc": "84.89 ± 0.8",
        "puet": "74.92 ± 0.1",
    },
}
KM2_PRIORS = {"cifar10": 0.4781, "cifar100": 0.7188, "stl10": 0.4854, "abcd": 0.5751, "xbd": 0.4547}


def resolved(data_name: str, method_name: str, preset: str = "paper") -> RunConfig:
    """Return the run that a person gets who names data, method and preset, and nothing else."""
    given = {"data": {"name": data_name}, "method": {"name": method_name}}
    return plan_run(given, preset).for_amount(Amount(41_000))


def test_a_recipe_is_what_it_was_when_every_pair_had_a_file_of_its_own() -> None:
    assert situations.recipes() == json.loads(situations.RECIPES.read_text(encoding="utf-8"))


@every_recipe
def test_a_recipe_is_filed_under_a_data_set_and_a_method_that_exist(
    data_name: str, method_name: str
) -> None:
    assert data_name in SOURCES
    assert method_name in METHODS


def test_there_is_one_recipe_for_every_published_row_of_a_method_that_exists() -> None:
    assert set(FILED) == {(data, method) for data, row in PUBLISHED.items() for method in row}


@every_recipe
@pytest.mark.parametrize("preset", PRESETS)
def test_a_recipe_gives_a_run_of_its_method_on_its_data(
    data_name: str, method_name: str, preset: str
) -> None:
    config = resolved(data_name, method_name, preset)
    assert config.data.name == data_name
    assert config.method_name == method_name
    assert type(config.method) is METHODS[method_name]


@every_recipe
def test_the_paper_preset_takes_the_papers_backbone_and_epochs(
    data_name: str, method_name: str
) -> None:
    config = resolved(data_name, method_name)
    assert config.backbone.name == "resnet18"
    if method_name in ("ncpu", "ce", "supervised", "upu", "nnpu", "imbpu", "pico"):
        assert config.train.epochs == 1300, "the other baselines kept schedules of their own"


@pytest.mark.parametrize("method_name", FILES)
def test_the_first_line_names_the_method_and_the_source(method_name: str) -> None:
    first = FILES[method_name].read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(f"# {METHODS[method_name].card.title}: NcPU paper, Table 1")


@every_recipe
def test_the_published_accuracy_stands_above_its_section(data_name: str, method_name: str) -> None:
    text = FILES[method_name].read_text(encoding="utf-8")
    above = text.partition(f"\n[{data_name}]\n")[0].rpartition("\n\n")[2]
    published = PUBLISHED[data_name][method_name]
    assert re.findall(r"^# .+ Expected: OA (\d+\.\d+ ± \d+\.\d)", above) == [published]


@every_recipe
def test_a_recipe_holds_only_what_differs_from_the_defaults(
    data_name: str, method_name: str
) -> None:
    recipe = recipe_settings(data_name, method_name)
    assert set(recipe) <= {"train", "method", "prior", "data"}
    assert repeated(recipe, "train", TrainConfig) == []
    assert repeated(recipe, "method", METHODS[method_name]) == []


@pytest.mark.parametrize("method_name", FILES)
def test_what_all_data_sets_share_is_said_once(method_name: str) -> None:
    sections = read_toml(FILES[method_name])
    common = sections.pop("all", {})
    for section in sections.values():
        assert not _keys(common) & _keys(section)


def _keys(settings: Settings) -> set[str]:
    tables = {k: v for k, v in settings.items() if isinstance(v, dict)}
    plain = settings.keys() - tables.keys()
    return plain | {f"{name}.{key}" for name, table in tables.items() for key in table}


def repeated(recipe: Settings, table: str, model: type[Config]) -> list[str]:
    """Return the settings that only say again what the default is."""
    settings = recipe.get(table, {})
    return [key for key, value in settings.items() if model.model_fields[key].default == value]


@pytest.mark.parametrize(
    ("data_name", "batch_size", "learning_rate", "entropy_weight"),
    [
        ("cifar10", 256, 1e-3, 5.0),
        ("cifar100", 256, 1e-3, 0.5),
        ("stl10", 512, 1e-2, 5.0),
        ("abcd", 32, 1e-3, 5.0),
        ("xbd", 128, 1e-4, 5.0),
    ],
)
def test_ncpu_has_the_settings_of_the_papers_appendix(
    data_name: str, batch_size: int, learning_rate: float, entropy_weight: float
) -> None:
    config = resolved(data_name, "ncpu")
    method, train = config.method, config.train
    assert isinstance(method, NcPUConfig)
    assert (train.batch_size, train.learning_rate) == (batch_size, learning_rate)
    assert (train.optimizer, train.momentum, train.schedule) == ("sgd", 0.9, "cosine")
    assert method.variant == "paper"
    assert (method.entropy_weight, method.alignment_weight) == (entropy_weight, 50)
    assert method.warmup_epochs == 30
    momenta = (
        method.prototype_momentum,
        method.target_momentum,
        method.threshold_momentum,
        method.encoder_momentum,
    )
    assert momenta == (0.99, 0.99, 0.99, 0.99)


@pytest.mark.parametrize("data_name", list(PUBLISHED))
def test_methods_that_need_a_prior_get_the_one_the_paper_used(data_name: str) -> None:
    for method_name in PUBLISHED[data_name]:
        given = recipe_settings(data_name, method_name).get("prior")
        needed = METHODS[method_name].needs.prior
        assert given == (KM2_PRIORS[data_name] if needed else None)


@pytest.mark.parametrize("data_name", list(PUBLISHED))
def test_the_priors_are_values_that_the_bisection_of_km2_can_return(data_name: str) -> None:
    # Eight halvings of [1, 8] end in the middle of a cell: 1 - 512 / (512 + 7 j), j odd.
    reachable = {round(1 - 512 / (512 + 7 * j), 4) for j in range(1, 512, 2)}
    assert KM2_PRIORS[data_name] in reachable


@pytest.mark.parametrize("method_name", ["ce", "upu", "nnpu", "imbpu"])
def test_baselines_on_stl10_keep_their_learning_rate_but_take_its_batch(method_name: str) -> None:
    train = resolved("stl10", method_name).train
    assert (train.batch_size, train.learning_rate) == (512, 1e-3)


def test_supervised_has_no_recipe_where_the_classes_are_unknown() -> None:
    assert METHODS["supervised"].needs.truth
    assert SOURCES["stl10"].prior is None
    assert recipe_settings("stl10", "supervised") == {}


@pytest.mark.parametrize("method_name", ["ce", "supervised", "upu", "nnpu", "imbpu", "pico"])
@pytest.mark.parametrize(
    ("data_name", "batch_size", "learning_rate"), [("abcd", 32, 1e-3), ("xbd", 128, 1e-4)]
)
def test_baselines_on_remote_sensing_share_batch_and_rate_with_ncpu(
    method_name: str, data_name: str, batch_size: int, learning_rate: float
) -> None:
    train = resolved(data_name, method_name).train
    assert (train.batch_size, train.learning_rate) == (batch_size, learning_rate)


@pytest.mark.parametrize(("data_name", "unlabelled"), [("abcd", 4000), ("xbd", 20000)])
@pytest.mark.parametrize(("method_name", "steps"), [("vpu", 1500), ("tedn", 33000)])
def test_rounds_of_thirty_steps_become_as_many_passes_over_u(
    data_name: str, unlabelled: int, method_name: str, steps: int
) -> None:
    train = resolved(data_name, method_name).train
    per_epoch = unlabelled // (train.batch_size // 2)
    assert abs(train.epochs * per_epoch - steps) < per_epoch


@pytest.mark.parametrize(("data_name", "clean"), [("abcd", 30), ("xbd", 50)])
def test_lagam_gets_as_many_clean_samples_as_the_authors_gave_it(
    data_name: str, clean: int
) -> None:
    data = resolved(data_name, "lagam").data
    assert isinstance(data, SetConfig)
    assert data.clean == clean


@pytest.mark.parametrize(
    "change",
    [{"positives": 500}, {"unlabelled": 4000}, {"prior": 0.1}, {"positive_classes": [0, 1]}],
    ids=str,
)
def test_a_prior_of_the_papers_split_is_not_used_on_another_split(change: Settings) -> None:
    """The number is KM2's on the paper's P and U; elsewhere it would be a wrong prior."""
    own = {"data": {"name": "cifar10"}, "method": {"name": "nnpu"}}
    assert plan_run(own, "paper").checked.prior == KM2_PRIORS["cifar10"]
    other = {"data": {"name": "cifar10", **change}, "method": {"name": "nnpu"}}
    assert plan_run(other, "paper").checked.prior == "auto"
    assert plan_run({**other, "prior": 0.3}, "paper").checked.prior == 0.3


def test_other_held_out_sizes_leave_the_papers_split_and_its_prior() -> None:
    given = {
        "data": {"name": "cifar10", "held_out_positives": 10, "held_out_unlabelled": 100},
        "method": {"name": "nnpu"},
    }
    assert plan_run(given, "paper").checked.prior == KM2_PRIORS["cifar10"]
