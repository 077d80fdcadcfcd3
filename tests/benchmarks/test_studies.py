"""The studies: rows differ only in what is compared, every method has a row, commands work."""

import argparse
from pathlib import Path

import pytest

from benchmarks import ablation, budget, command, methods, tabular
from onesided.data.sources import SOURCES
from onesided.methods import METHODS
from onesided.run.config import RunConfig
from onesided.run.presets import published_settings


def test_every_method_is_a_valid_run_on_digits_and_on_cifar10() -> None:
    study = methods.grid(methods.BUDGETS)
    assert study.data_names == ("digits", "cifar10")
    for one in study.entries:
        config = one.config(seed=0)
        assert config.prior == ("truth" if config.method.needs.prior else "auto")


def test_something_is_left_to_learn_after_every_warm_up() -> None:
    for one in methods.grid(methods.BUDGETS).entries:
        config = one.config(seed=0)
        if one.method.get("alignment", "none") != "none":
            assert 0 < getattr(config.method, "warmup_epochs", 0) <= config.train.epochs / 2


@pytest.mark.parametrize("preset", budget.STUDIES)
def test_every_preset_is_measured_beside_the_same_rows(preset: str) -> None:
    study, asked = budget.grid(preset), budget.STUDIES[preset]
    labels = ["Teacher", "CE", "nnPU", "nnPU + robust", "Supervised"]
    assert study.data_names == asked.data
    assert "cifar10" in asked.beside or preset not in budget.PRESETS
    for name in asked.data:
        rows = [one.label for one in study.entries if one.data_name == name]
        assert rows == (labels if name in asked.beside else ["Teacher"])
    for one in study.entries:
        assert one.config(seed=0).prior == ("truth" if "nnPU" in one.label else "auto")


@pytest.mark.parametrize("word", budget.STUDIES)
def test_teachers_row_is_what_the_study_says_people_can_type(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = budget.STUDIES[word]
    row = next(one for one in budget.grid(word).entries if one.data_name == "cifar10")
    _, preset = study.flags.split()
    monkeypatch.chdir(command.REPOSITORY)
    planned = published_settings(preset, data_name="cifar10", method_name="teacher", given={})
    assert row.config(seed=0) == RunConfig.from_settings(planned)


def test_the_night_is_the_evening_with_more_passes_over_u() -> None:
    changed = {
        "train": {
            "epochs": 48,
            "learning_rate": 0.1,
            "positives_per_batch": 16,
            "views": "gentle",
        },
        "method": {"warmup_epochs": 7},
    }
    (row,) = budget.grid("night").entries
    planned = published_settings(
        "evening", data_name="cifar10", method_name="teacher", given=changed
    )
    assert row.config(seed=0) == RunConfig.from_settings(planned)


def test_a_study_of_a_longer_preset_has_files_and_a_command_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert budget.main(["evening", "--quick", "--table", "--work", str(tmp_path)]) == 2
    assert "python -m benchmarks.budget evening --quick first" in capsys.readouterr().err
    assert len({study.name for study in budget.STUDIES.values()}) == len(budget.STUDIES)


def test_a_row_of_the_switches_differs_in_that_switch_alone() -> None:
    study = ablation.grid("cifar10", ablation.SMALL)
    rows = {one.label: one.config(seed=0).to_settings() for one in study.entries}
    base = rows.pop(ablation.BASE)
    assert study.evaluated_on == "clean"
    assert list(rows) == [label for _, label in study.pairs]
    for label, settings in rows.items():
        changed = ablation.SWITCHES.get(label, {}), ablation.TRAINING.get(label, {})
        for table, change in zip(("method", "train"), changed, strict=True):
            differing = {k: v for k, v in settings[table].items() if v != base[table][k]}
            assert differing == change, label
            settings[table] = base[table]
        assert settings == base


def test_every_method_of_the_library_has_a_row_for_every_data_set() -> None:
    study = methods.grid(methods.BUDGETS)
    for name in study.data_names:
        rows = [str(one.method["name"]) for one in study.entries if one.data_name == name]
        assert rows == list(METHODS)
    assert len({(one.data_name, one.label) for one in study.entries}) == len(study.entries)


def test_settings_of_their_own_have_a_method_and_a_reason() -> None:
    assert methods.OWN.keys() <= METHODS.keys()
    assert all(own.reason for own in methods.OWN.values())


def test_published_figures_are_found_by_the_labels_of_the_tables() -> None:
    published = command.paper_figures("methods")["figures"]["cifar10"]
    compared = ("ncpu", "ce", "supervised", "upu", "nnpu", "imbpu")
    assert {METHODS[name].card.title for name in compared} <= published.keys()


def test_published_figures_are_percent_and_agree_with_each_other() -> None:
    published = command.paper_figures("methods")["figures"]["cifar10"]
    for figures in published.values():
        precision, recall = figures["precision"][0], figures["recall"][0]
        harmonic = 2 * precision * recall / (precision + recall)
        # The mean of three F1 is near, not equal to, the F1 of mean precision and recall.
        assert figures["f1"][0] == pytest.approx(harmonic, abs=0.5)
        assert 50 < figures["oa"][0] < 100


@pytest.mark.slow
def test_the_quick_study_runs_prints_its_table_and_writes_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--quick", "--work", str(tmp_path)]
    assert tabular.main([*words, "--seeds", "0"]) == 0
    ran = capsys.readouterr().out
    assert "5/5 toy-vectors, Supervised, seed 0: OA" in ran

    assert tabular.main([*words, "--table"]) == 0
    table = capsys.readouterr().out
    assert ran.endswith(table)

    assert tabular.main([*words, "--docs"]) == 0
    assert (tmp_path / "tabular.md").read_text().endswith(table.removesuffix("\n"))


def test_a_table_before_the_first_run_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tabular.main(["--quick", "--table", "--work", str(tmp_path)]) == 2
    assert "Run python -m benchmarks.tabular --quick first" in capsys.readouterr().err


def test_seeds_are_a_list_of_different_whole_numbers() -> None:
    assert command.seeds("0, 2,5") == (0, 2, 5)
    for wrong in ("", "0,,1", "a", "-1", "1,1"):
        with pytest.raises(argparse.ArgumentTypeError, match="such as 0,1,2"):
            command.seeds(wrong)


def test_rows_of_the_tabular_study_run_on_vectors_with_the_true_prior_if_needed() -> None:
    study = tabular.grid(tabular.BUDGETS)
    assert study.data_names == ("breast-cancer", "digit-vectors")
    for one in study.entries:
        config = one.config(seed=0)
        assert config.prior == ("truth" if config.method.needs.prior else "auto")
        assert SOURCES[one.data_name].load(None).train.kind == "vector"


def test_ncpu_is_compared_with_ce_and_nnpu_on_every_table() -> None:
    study = tabular.grid(tabular.BUDGETS)
    for name in study.data_names:
        labels = {one.label for one in study.entries if one.data_name == name}
        assert labels >= {label for pair in study.pairs for label in pair}
    assert study.pairs == (("CE", "NcPU"), ("nnPU", "NcPU"))
