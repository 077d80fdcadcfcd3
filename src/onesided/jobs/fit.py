"""Train a model, or resume its training, in a run folder: the job of `onesided fit`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onesided.core.config import Settings, merge, read_toml
from onesided.core.dist import rank
from onesided.core.monitor import Monitor, Phase
from onesided.data.read.cache import MappedImages
from onesided.data.read.picture import reading_up_to
from onesided.engine.fit import Watcher
from onesided.engine.train_config import choose_device
from onesided.jobs.choices import choices
from onesided.jobs.settings import (
    PathLike,
    data_name,
    minutes_of,
    names_in,
    nested,
    training_flags,
    without_other_settings,
)
from onesided.jobs.words import skipped_lines
from onesided.methods.auto import AutoConfig
from onesided.metrics.stored import degenerate_reason
from onesided.report import is_fresh, write_report
from onesided.run.compare import (
    COMPARED,
    baseline_settings,
    check_compared,
    comparison_rows,
    read_comparison,
)
from onesided.run.execute import run
from onesided.run.folder import (
    CACHE,
    COMPARISON,
    REPORT,
    STORE,
    Place,
    check_place,
    working_in,
)
from onesided.run.load import load_data
from onesided.run.presets import Plan, plan_run
from onesided.run.problem import Problem, build_problem
from onesided.storage.atomic import write_json
from onesided.storage.together import together, write_checksums


@dataclass(frozen=True)
class FitResult:
    """The result of a training.

    Attributes:
        folder: The run folder: model, ranked pool (`scores.csv`), report, log, settings.
        result: The content of `result.json`.
        comparison: A row for this method and each method that was trained beside it; empty
            without `compare`.
        report: The page for people.
    """

    folder: Path
    result: Mapping[str, Any]
    comparison: tuple[Mapping[str, Any], ...]
    report: Path

    @property
    def degenerate(self) -> str | None:
        """The reason, if the model calls everything or nothing positive; else None."""
        return degenerate_reason(self.result)


def fit(
    positives: PathLike | None = None,
    unlabelled: PathLike | None = None,
    *,
    output: PathLike,
    negatives: PathLike | None = None,
    test: PathLike | None = None,
    table: PathLike | None = None,
    text: str | None = None,
    text_encoder: str | None = None,
    group: str | None = None,
    sample_weight: str | None = None,
    data: str | None = None,
    root: PathLike | None = None,
    method: str | None = None,
    compare: str | Sequence[str] | None = None,
    preset: str | None = None,
    budget: str | float | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    backbone: str | None = None,
    weights: PathLike | None = None,
    freeze: bool = False,
    prior: float | str | None = None,
    threshold: float | str | None = None,
    config: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
    precision: str | None = None,
    tolerate: float | None = None,
    largest_image: float | None = None,
    cache: PathLike | None = None,
    overwrite: bool = False,
    monitor: Monitor | None = None,
) -> FitResult:
    """Train a model from a few positives and an unlabelled pool, and write its run folder.

    The same call resumes a stopped run, to the bit; a finished run is only read.

    Examples:
        >>> import onesided
        >>> found = onesided.fit(data="toy-images", method="ce", epochs=2, output="runs/toy")
        >>> found.result["method"]
        'ce'
        >>> sorted(path.name for path in found.folder.glob("model.*"))
        ['model.json', 'model.safetensors']

    Args:
        positives: Folder of positives.
        unlabelled: Folder of the unlabelled pool.
        output: Run folder to write.
        negatives: Folder of known negatives; methods that can are trained on some of them.
        test: Folder with `positive` and `negative`, for reporting only.
        table: Instead of folders, a CSV file: label, and path or columns to learn from.
        text: Column of the table to read as text, whatever it looks like.
        text_encoder: Pretrained encoder of texts, hf:FOLDER; None counts their words.
        group: Column of the table whose rows of one value are never both trained on and held
            out; for folders "parent", the folder that a file lies in.
        sample_weight: Column of the table that says how much each row counts in training.
        data: Instead of both, a data set by name.
        root: Folder of that data set.
        method: Name of the method, see `onesided methods`.
        compare: Names of methods to train beside it, on the same split: a list, or ce,nnpu.
        preset: How much time to spend; None means quick, or no preset if `config` is given.
        budget: Time that auto may take, such as 2min, 20min or 2h, instead of a preset's.
        epochs: Passes over the data; None lets the preset choose.
        seed: Seed of the run.
        backbone: Network.
        weights: A .safetensors file to start from.
        freeze: Train only a head, on features of a frozen backbone.
        prior: Share of positives among the unlabelled, or how to estimate it.
        threshold: A number, or a rule such as "recall=0.9".
        config: TOML file, for example a run's config.toml.
        settings: Further settings by table; they win over what the other parameters say.
        device: auto, cpu or cuda.
        precision: auto, fp32 or bf16.
        tolerate: Share of unreadable files to accept.
        largest_image: Millions of pixels up to which images are read; None means 64.
        cache: Folder for decoded images and features; several runs share it.
        overwrite: Replace another run in the output folder.
        monitor: Receives notices and progress.
    """
    folders = {"-p": positives, "-u": unlabelled, "-n": negatives}
    others = {
        **{"--root": root, "--test": test, "--tolerate": tolerate, "--cache": cache},
        **{"--text": text, "--text-encoder": text_encoder},
        **{"--group": group, "--sample-weight": sample_weight},
    }
    flags = nested(
        {
            "data.name": data_name(data, table, folders, others),
            "data.root": root,
            "data.positive_folder": positives,
            "data.unlabelled_folder": unlabelled,
            "data.negative_folder": negatives,
            "data.test_folder": test,
            "data.table": table,
            "data.kinds": None if text is None else {text: "text"},
            "data.text_encoder": text_encoder,
            "data.group": group,
            "data.sample_weight": sample_weight,
            "data.tolerate": tolerate,
            **training_flags(
                method=method,
                backbone=backbone,
                weights=weights,
                freeze=freeze,
                epochs=epochs,
                prior=prior,
                seed=seed,
            ),
            "train.device": device,
            "train.precision": precision,
            "method.minutes": minutes_of(budget),
            "threshold": threshold,
        }
    )
    said = merge(flags, settings or {})
    from_file = without_other_settings(read_toml(Path(config)), said) if config else {}
    with reading_up_to(largest_image):
        return fit_settings(
            merge(from_file, said),
            Path(output),
            # A run's config.toml says everything itself; a preset goes beneath it if asked for.
            preset=preset or (None if config else "quick"),
            compare=compare,
            cache=None if cache is None else Path(cache),
            overwrite=overwrite,
            monitor=monitor or Monitor(),
        )


def fit_settings(
    given: Settings,
    output: Path,
    *,
    preset: str | None,
    compare: str | Sequence[str] | None = None,
    cache: Path | None = None,
    overwrite: bool = False,
    monitor: Monitor,
) -> FitResult:
    """Train by settings; wrong ones are refused before any data is read."""
    plans = [plan_run(given, preset)]
    compared = [] if compare is None else names_in(compare, "--compare")
    check_compared(compared, plans[0].checked.method_name)
    if compared and isinstance(plans[0].checked.method, AutoConfig):
        # On its folds a search compares more items than a second run on a held-out part could.
        also = [*plans[0].checked.method.also, *compared]
        plans, compared = [plan_run(merge(given, {"method": {"also": also}}), preset)], []
    plans += [plan_run(baseline_settings(given, name), preset) for name in compared]
    check_before_reading(plans[0])
    place = check_place(output, overwrite=overwrite)
    cache = cache or output / CACHE
    with monitor.phase("reading") as phase:
        loaded = load_data(plans[0].checked.data, phase, cache)
    if isinstance(loaded.split.train.values.pool, MappedImages):
        monitor.note(f"Decoded images are kept in {cache}.")
    configs = [plan.for_data(loaded.split) for plan in plans]
    # A recipe may add to the data of its method; what is compared has one split for all.
    problems = [build_problem(replace(one, data=configs[0].data), loaded) for one in configs]
    for sentence in (*skipped_lines(loaded.skipped), *loaded.notices):
        monitor.note(sentence)
    for sentence in choices(problems[0], preset):
        monitor.note(sentence)
    return _train_all(problems, place, monitor, features=cache / STORE)


def check_before_reading(plan: Plan) -> None:
    """Refuse a missing device or weights file before any data is read."""
    choose_device(plan.checked.train.device)
    plan.checked.backbone.weights_file()


def watcher(phase: Phase, monitor: Monitor) -> Watcher:
    """Return a watcher that reports progress to a phase, and what it resumes to a monitor."""
    return Watcher(
        step=phase.step,
        epoch=phase.epoch,
        embed=phase.embed,
        tried=phase.tried,
        resumed=monitor.note,
    )


def _train_all(
    problems: Sequence[Problem], place: Place, monitor: Monitor, *, features: Path
) -> FitResult:
    """Do the first run in the output folder and the others below it; write the report."""
    output, results = place.path, []
    with working_in(output):
        for number, problem in enumerate(problems):
            name, title = problem.config.method_name, problem.config.method.card.title
            if number:
                place = check_place(output / COMPARED / name, overwrite=place.overwrite)
            with monitor.phase(f"training {title}") as phase:
                done = run(problem, place, watcher(phase, monitor), features=features)
                results.append(done.content)
        rows = comparison_rows(output, results) if len(results) > 1 else []
        if rank() == 0:
            write_page(output, rows)
    return FitResult(output, results[0], tuple(rows), output / REPORT)


def write_page(run: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page of a run, with the comparison where there is one, unless both are fresh."""
    if rows and read_comparison(run) != rows:
        with together(run) as new:
            write_json(new / COMPARISON, rows)
            write_report(run, new=new)
            write_checksums(new, run)
    elif not is_fresh(run):
        write_report(run)
    return run / REPORT
