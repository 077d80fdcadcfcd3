from benchmarks import tabular
from onesided.data.sources import SOURCES


def test_every_row_is_a_valid_run_on_vectors_with_the_true_prior_where_one_is_needed() -> None:
    study = tabular.grid(tabular.BUDGETS)
    assert study.data_names == ("breast-cancer", "digit-vectors")
    for one in study.entries:
        config = one.config(seed=0)
        assert config.prior == ("truth" if config.method.needs.prior else "auto")
        assert SOURCES[one.data_name].load(None).train.kind == "vector"


def test_ncpu_is_compared_with_ce_and_nnpu_on_every_set() -> None:
    study = tabular.grid(tabular.BUDGETS)
    for name in study.data_names:
        labels = {one.label for one in study.entries if one.data_name == name}
        assert labels >= {label for pair in study.pairs for label in pair}
    assert study.pairs == (("CE", "NcPU"), ("nnPU", "NcPU"))
