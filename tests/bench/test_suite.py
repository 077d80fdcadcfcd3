"""The suite of the NcPU paper holds every table and figure, with the numbers of the paper."""

import pytest

from onesided.bench.cells import Cell, planned
from onesided.bench.scale import read_scale, scale_names
from onesided.bench.suite import MEASURED, Counts, read_suite, tables_named
from onesided.core.errors import ConfigError
from onesided.data.sources import SOURCES
from onesided.run.config import RunConfig, SetConfig
from tests.run.test_recipes import KM2_PRIORS, PUBLISHED

NCPU = read_suite("ncpu")

# The labels of \begin{table} and \begin{figure} in the paper's source, read by hand.
LABELS = [
    "fig:noisy_pair_cl",
    "fig:tSNE_training_dataset",
    "fig:noicpu_framework",
    "fig:tSNE_risk",
    "fig:hyperparameters_analyses",
    "fig:training_stability",
    "fig:tSNE_training_dataset_full",
    "fig:abcd_dataset",
    "fig:fitting_speed",
    "fig:similarity_display",
    "fig:hyperparameters_analyses_appendix",
    "tab_ablation_study",
    "tab_l_other_method",
    "tab_main_results",
    "tab_class_imbalance",
    "tab_distribution_imbalance",
    "tab_datasets",
    "tab_results_cifar10/100",
    "tab:results_stl10/abcd",
    "tab_ablation_twocom_appendix",
    "tab_abl_ld_appendix",
    "tab_ablation_contrastiveloss",
    "tab_computational_overhead",
]


def test_every_table_and_figure_of_the_paper_has_an_id() -> None:
    assert sorted(NCPU.labels) == sorted(LABELS)
    assert len(set(NCPU.labels.values())) == len(LABELS), "no two share an id"


def test_only_gradients_and_three_studies_are_ours() -> None:
    ours = {"gradients", "schedule", "pace", "prototypes"}
    assert set(NCPU.tables) - set(NCPU.labels.values()) == ours


@pytest.mark.parametrize("data", PUBLISHED)
def test_accuracy_of_table_1_is_that_of_the_recipes(data: str) -> None:
    for method, text in PUBLISHED[data].items():
        mean, deviation = NCPU.published[data][method]["oa"]
        assert f"{mean:.2f} ± {deviation:.1f}" == text


@pytest.mark.parametrize("data", NCPU.published_data)
def test_the_library_splits_as_the_paper_counts(data: str) -> None:
    published, entry = NCPU.published_data[data], SOURCES[data]
    assert (published.positives, published.unlabelled) == (entry.positives, entry.unlabelled)
    assert published.prior == entry.prior


@pytest.mark.parametrize("scale", scale_names())
def test_every_cell_has_settings_that_a_run_accepts(scale: str) -> None:
    cells = planned(tables_named("ncpu"), scale, [0])
    assert {cell.table for cell in cells} == {
        name
        for name, table in NCPU.tables.items()
        if table.kind in MEASURED and scale in (table.scales or [scale])
    }
    for cell in cells:
        config = cell.config()
        assert config.method_name == cell.what.method
        assert config.seed == 0


def test_tables_that_share_a_row_share_its_run() -> None:
    first = Cell("ncpu", "table1", "ncpu", "cifar100", "paper", 0)
    second = Cell("ncpu", "table2", "ncpu", "cifar100", "paper", 0)
    other = Cell("ncpu", "table2", "ncpu-self", "cifar100", "paper", 0)
    assert first.key() == second.key() != other.key()


def test_at_the_papers_scale_a_cell_is_the_recipe() -> None:
    ncpu = Cell("ncpu", "table2", "ncpu", "cifar100", "paper", 0).config()
    assert (ncpu.train.epochs, ncpu.train.batch_size) == (1300, 256)
    assert ncpu.method.model_dump()["entropy_weight"] == 0.5
    assert ncpu.backbone.name == "resnet18"
    holistic = Cell("ncpu", "table1", "holisticpu", "cifar10", "paper", 0).config()
    assert holistic.train.epochs == 40


def test_a_recipes_prior_is_used_on_its_own_split_only() -> None:
    def prior(row: str, data: str, scale: str) -> object:
        return Cell("ncpu", "table1", row, data, scale, 0).config().prior

    for data, value in KM2_PRIORS.items():
        assert prior("nnpu", data, "paper") == value
        assert prior("nnpu", data, "features") == "auto"
    assert prior("nnpu", "digits", "small") == "auto"
    assert prior("nnpu-true", "cifar10", "paper") == "truth"


def test_a_rows_counts_are_shares_on_another_data_set() -> None:
    split = read_scale("small").data_settings("digits", Counts(positives=500, prior=0.05))
    assert split["positives"] == SOURCES["digits"].positives // 2
    assert split["unlabelled"] == SOURCES["digits"].unlabelled
    assert split["prior"] == 0.05
    study = Cell("ncpu", "table9", "study-upu", "cifar100", "features", 0).config().data
    assert isinstance(study, SetConfig)
    assert (study.positives, study.unlabelled, study.prior) == (100, 2000, 0.6)
    scarce = Cell("ncpu", "table11", "ncpu-prior05", "cifar10", "paper", 0).config().data
    assert isinstance(scarce, SetConfig)
    assert (scarce.positives, scarce.unlabelled, scarce.prior) == (1000, 20000, 0.05)


def test_a_sweep_has_a_row_for_each_value_and_its_own_row_once() -> None:
    rows = NCPU.rows_of("figure5")
    assert list(rows)[:4] == ["ncpu", "ncpu-alpha-0.9", "ncpu-alpha-0.95", "ncpu-alpha-0.999"]
    assert rows["ncpu-w_r-100"].settings["method"] == {"alignment_weight": 100.0}


@pytest.mark.parametrize(("scale", "epochs"), [("small-400", 400), ("small-30", 30)])
def test_a_compressed_scale_shortens_long_schedules_and_adapts_their_warm_ups(
    scale: str, epochs: int
) -> None:
    def of(row: str, at: str) -> RunConfig:
        return Cell("ncpu", "table1", row, "digits", at, 0).config()

    long, short = of("ncpu", "small"), of("ncpu", scale)
    assert (long.train.epochs, short.train.epochs) == (1300, epochs)
    assert short.train.batch_size == long.train.batch_size
    assert short.method.model_dump()["warmup_epochs"] <= 0.3 * epochs
    momenta = [one.method.model_dump()["target_momentum"] for one in (long, short)]
    assert momenta[1] ** epochs == pytest.approx(momenta[0] ** 1300)
    assert of("holisticpu", scale).train.epochs == min(40, epochs), "40 are not made longer"


def test_a_schedule_is_measured_at_its_own_scales_only() -> None:
    at = NCPU.tables["schedule"].scales
    counted = {scale: len(planned([("ncpu", "schedule")], scale, [0])) for scale in scale_names()}
    assert {scale for scale, count in counted.items() if count} == set(at)


@pytest.mark.parametrize(
    ("target", "said"),
    [("ncpu/tabel2", "Did you mean 'table2'?"), ("nncpu", "Did you mean 'ncpu'?")],
)
def test_an_unknown_name_is_refused_with_the_nearest(target: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"There is no suite|has no table") as refused:
        tables_named(target)
    assert said in str(refused.value)
