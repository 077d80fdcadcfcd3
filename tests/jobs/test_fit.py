"""One training walks the line once: nothing is read, checked, divided or validated twice."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import onesided
from onesided.core.errors import ConfigError
from onesided.core.monitor import Monitor
from onesided.jobs import fit as job
from onesided.methods import METHODS
from onesided.run import embed as embedding
from onesided.run import execute, folder, problem, training
from onesided.run.config import RunConfig
from tests.cli.pictures import draw_data

SMALL = {"backbone": {"width": 0.125}, "train": {"batch_size": 16, "device": "cpu"}}
ONCE = {
    "training_split": problem,
    "check_needs": problem,
    "negatives_for_evaluation": problem,
    "check_place": job,
    "working_in": job,
    "load_data": job,
    "build_problem": job,
    "run": job,
    "write_report": job,
    "embed": execute,
    "train": execute,
    "finish": execute,
    "find_prior": training,
    "build_method": training,
    "build_embedder": embedding,
}
"""Functions of the line, by the module that calls them."""


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of every function of the line."""
    calls: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: object, **named: object) -> object:
            calls[name] += 1
            return function(*given, **named)

        return call

    for name, module in ONCE.items():
        monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
    checked = RunConfig.from_settings.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        RunConfig, "from_settings", classmethod(counting("RunConfig.from_settings", checked))
    )
    monkeypatch.setattr(folder, "read_result", counting("read_result", folder.read_result))
    return calls


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that no test changes."""
    return draw_data(tmp_path_factory.mktemp("data"))


def train(data: Path, output: Path, **given: Any) -> job.FitResult:  # noqa: ANN401
    given = {"method": "nnpu", "epochs": 1, "settings": SMALL, **given}
    return onesided.fit(data / "P", data / "U", output=output, **given)


class Listening(Monitor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.phases: list[str] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def phase(self, title: str) -> Any:  # noqa: ANN401
        self.phases.append(title)
        return super().phase(title)


@dataclass(frozen=True)
class Heard:
    """A run, what its monitor was told, and how often each function was called."""

    found: job.FitResult
    monitor: Listening
    calls: Counter[str]


@pytest.fixture(scope="module")
def heard(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """One epoch of nnPU, for all tests that only look at it."""
    monitor = Listening()
    with pytest.MonkeyPatch.context() as patch:
        calls = counted(patch)
        found = train(data, tmp_path_factory.mktemp("runs") / "run", monitor=monitor)
    return Heard(found, monitor, calls)


@pytest.fixture(scope="module")
def searched(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """A search, for all tests that only look at it."""
    monitor, output = Listening(), tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        calls = counted(patch)
        found = onesided.fit(data / "P", data / "U", output=output, epochs=3, monitor=monitor)
    return Heard(found, monitor, calls)


def test_every_function_of_the_line_is_called_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    backbone = {"backbone": "efficientnet_lite0", "freeze": True, "settings": {"train": {}}}
    found = train(data, tmp_path / "run", **backbone)
    assert calls == Counter([*ONCE, "RunConfig.from_settings"])
    assert found.result == json.loads((tmp_path / "run" / "result.json").read_text())


def test_a_finished_run_is_read_and_nothing_is_trained(
    data: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    again = train(data, heard.found.folder)
    assert again == heard.found
    assert heard.calls["train"] == heard.calls["write_report"] == 1
    assert calls["read_result"] == 1
    assert calls["train"] == calls["embed"] == calls["write_report"] == 0


def test_methods_beside_share_one_reading_and_one_store_of_features(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    network = {"backbone": "efficientnet_lite0", "freeze": True, "settings": {}}
    found = train(data, tmp_path / "run", compare=["ce", "upu"], prior=0.4, **network)
    assert [row["method"] for row in found.comparison] == ["nnpu", "ce", "upu"]
    assert calls["load_data"] == calls["working_in"] == calls["write_report"] == 1
    assert calls["run"] == calls["build_problem"] == calls["RunConfig.from_settings"] == 3
    assert len(list((tmp_path / "run").rglob("*.chunk"))) == 1


def test_a_monitor_is_told_what_was_chosen_and_every_phase(heard: Heard) -> None:
    monitor = heard.monitor
    assert monitor.phases == ["reading", "training nnPU"]
    summary = METHODS["nnpu"].card.summary
    assert f"Method: nnPU (onesided methods nnpu tells more). {summary}" in monitor.notes
    assert "Preset: quick; 1 epoch of batches of 16, learning rate 0.05." in monitor.notes


def test_a_search_is_told_with_its_time_and_what_has_no_effect_on_it(searched: Heard) -> None:
    found, monitor = searched.found, searched.monitor
    assert monitor.phases == ["reading", "training auto"]
    assert any(note.startswith("Method: auto (onesided methods auto") for note in monitor.notes)
    (time,) = (note for note in monitor.notes if note.startswith("Preset: quick; "))
    assert "candidates that take 2 minutes together" in time
    (unused,) = (note for note in monitor.notes if "take no notice of" in note)
    assert unused.endswith("train.epochs.")
    assert found.result["chosen_by"] == "auto"
    assert found.result["leaderboard"][0]["folds"] == found.result["folds"] == 5


def test_a_search_reads_and_embeds_once_however_many_it_trains(searched: Heard) -> None:
    calls = searched.calls
    assert calls["load_data"] == calls["embed"] == calls["train"] == calls["finish"] == 1
    assert calls["build_method"] > 10  # of every candidate and fold, and of the winner
    assert len(list(searched.found.folder.rglob("*.chunk"))) == 1


def test_a_list_of_methods_may_be_words_with_commas_between_them(
    data: Path, tmp_path: Path
) -> None:
    found = train(data, tmp_path / "run", compare="ce, upu", prior=0.4)
    assert [row["method"] for row in found.comparison] == ["nnpu", "ce", "upu"]
    with pytest.raises(ConfigError, match="--compare names nothing"):
        train(data, tmp_path / "other", compare=[])
    with pytest.raises(ConfigError, match="--estimator names nothing"):
        onesided.estimate_prior(data="toy-vectors", estimators=",")


def test_a_prior_refuses_settings_that_it_would_ignore() -> None:
    with pytest.raises(ConfigError, match="a setting of train was given"):
        onesided.estimate_prior(data="toy-vectors", settings={"train": {"epochs": 3}})


@pytest.mark.parametrize("limits", [{"top": 0}, {"top": -1}, {"tolerate": 5}])
def test_a_ranking_refuses_limits_that_make_no_sense(limits: Any, tmp_path: Path) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError, match="expected"):
        onesided.rank(tmp_path, tmp_path, tmp_path / "ranked.csv", **limits)


def test_a_report_is_written_without_torch(heard: Heard, tmp_path: Path) -> None:
    shutil.copytree(heard.found.folder, tmp_path / "run")
    code = f"""
import sys
from onesided.jobs.report import report
report({str(tmp_path / "run")!r})
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_of_an_earlier_version_is_the_same_run_and_opens(data: Path, tmp_path: Path) -> None:
    found = train(data, tmp_path / "run", method="ce")
    # Made by version 0.1.0 as it was before the settings were renamed.
    split = json.loads((tmp_path / "run" / "manifest.json").read_text())["split_hash"]
    assert split == "8f834965d8b58fc9dc79fb8c61ba1f90fbc30817f830dd1bfd5385bcca4f77f7"
    config = tmp_path / "run" / "config.toml"
    text = config.read_text().replace("[backbone]", "[network]")
    config.write_text(text.replace("freeze = false", 'trained = "all"'))
    loaded = onesided.PUClassifier.load(found.folder)
    assert loaded.backbone == "auto"


def test_texts_are_told_how_they_become_numbers(tmp_path: Path) -> None:
    topics = ("rocket orbit moon", "engine wheel brake")
    rows = [
        f"{'positive' if row < 20 else 'unlabelled'},the {topics[row % 2]} of day {row} was here"
        for row in range(80)
    ]
    (tmp_path / "posts.csv").write_text("\n".join(["label,post", *rows]))
    monitor = Listening()
    table = tmp_path / "posts.csv"
    job.fit(table=table, text="post", method="linear", output=tmp_path / "run", monitor=monitor)
    (told,) = (note for note in monitor.notes if note.startswith("Texts: "))
    assert "TF-IDF" in told
    assert "--text-encoder takes a pretrained encoder" in told
