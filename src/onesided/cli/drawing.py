"""What `onesided map` does: see buildings, train or take a model, score, write, tell."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesided.core.config import Settings
    from onesided.geo.input.request import Prepared, Request
    from onesided.geo.output.mapping import MapFiles
    from onesided.geo.output.summary import Summary
    from onesided.geo.output.table import MapTable
    from onesided.geo.scene.chips import Chips
    from onesided.run.prior import PriorUsed


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    request: "Request"
    files: "MapFiles"
    folder: Path
    truth: "Mapping[str, int] | None"
    stack: ExitStack
    quiet: bool


@dataclass(frozen=True)
class Drawn:
    """What came of it."""

    table: "MapTable"
    summary: "Summary"
    warnings: tuple[str, ...]
    degenerate: str | None


def train_and_draw(job: Job, given: "Settings", preset: str, *, overwrite: bool) -> Drawn:
    """Train on the marked buildings against all others, and draw the map."""
    from onesided.cli.show import counting, note
    from onesided.engine.fit import Watcher
    from onesided.engine.train_config import choose_device
    from onesided.geo.input.request import prepare
    from onesided.geo.output.mapping import held_out_rows, score_chips, write_cutting
    from onesided.geo.scene.holdout import load_chips
    from onesided.report import write_report
    from onesided.run.config import ChipsConfig
    from onesided.run.execute import run
    from onesided.run.folder import check_place
    from onesided.run.presets import resolve
    from onesided.run.prior import PriorUsed

    # What is wrong is told at once, not after an hour of cutting.
    checked = resolve(given, preset)
    choose_device(checked.train.device)
    checked.network.weights_file()
    check_place(job.folder, overwrite=overwrite)
    assert isinstance(checked.data, ChipsConfig)
    prepared = prepare(job.stack, job.request)
    chips = _cut(job, prepared, checked.data.size)
    loaded = load_chips(prepared.scene.buildings, chips, prepared.marked, checked.data)
    config = resolve(given, preset, loaded.split)
    for sentence in loaded.notices:
        note(sentence, quiet=job.quiet)
    with counting(f"training {config.method.card.title}", quiet=job.quiet) as counter:
        watcher = Watcher(step=counter.step, epoch=counter.epoch, embed=counter)
        result = run(config, loaded, job.folder, overwrite=overwrite, watcher=watcher)
    write_cutting(job.folder, prepared, checked.data.margin)
    write_report(job.folder)
    held_out = held_out_rows(loaded.split, len(chips.values))
    table = score_chips(job.folder, chips, prepared, held_out)
    return _draw(
        job,
        Seen(prepared, chips, table),
        prior=PriorUsed.of_result(result.content),
        unseen=False,
        told=(*loaded.notices, *result.content["warnings"]),
    )


def draw_by_model(job: Job, model: Path, prior: str | None) -> Drawn:
    """Draw the map by a model that was trained before."""
    import numpy as np

    from onesided.engine.model_file import load_model
    from onesided.geo.input.request import prepare
    from onesided.geo.output.mapping import check_images_fit, read_cutting, score_chips
    from onesided.run.config import check_prior
    from onesided.run.prior import PriorUsed

    known = check_prior(prior) if prior is not None else None
    _, description = load_model(model)
    cutting = read_cutting(model)
    request = job.request if cutting is None else replace(job.request, margin=cutting.margin)
    prepared = prepare(
        job.stack, request, has_model=True, stretches=cutting.stretches if cutting else ()
    )
    check_images_fit(prepared, model, description, cutting)
    chips = _cut(job, prepared, description.sample_shape[-1])
    table = score_chips(model, chips, prepared, np.zeros(len(chips.values), bool))
    told = "Scored by a model that was trained elsewhere: look at some buildings of each decision."
    return _draw(
        job,
        Seen(prepared, chips, table),
        prior=PriorUsed(known, None, None, "given") if isinstance(known, float) else None,
        unseen=True,
        told=(told,),
    )


@dataclass(frozen=True)
class Seen:
    """Buildings, what was seen of them, and what the model says."""

    prepared: "Prepared"
    chips: "Chips"
    table: "MapTable"


def _cut(job: Job, prepared: "Prepared", size: int) -> "Chips":
    from onesided.cli.show import counting, note, warn
    from onesided.geo.scene.chips import cut_chips
    from onesided.run.folder import CHIPS, working_in

    for sentence in prepared.warnings:
        warn(sentence)
    job.files.make_folder()
    job.stack.enter_context(working_in(job.folder))  # or another map would cut into these chips
    with counting("cutting out buildings", quiet=job.quiet) as counter:
        chips = cut_chips(prepared.scene, job.folder / CHIPS, size=size, progress=counter)
    names = prepared.scene.buildings.names
    for row, reason in list(chips.reasons.items())[:5]:
        note(f"Skipped {names[row]}: {reason}.", quiet=job.quiet)
    if len(chips.reasons) > 5:
        note(f"And {len(chips.reasons) - 5} more, see summary.csv.", quiet=job.quiet)
    return chips


def _draw(
    job: Job, seen: Seen, *, prior: "PriorUsed | None", unseen: bool, told: Sequence[str]
) -> Drawn:
    from onesided.geo.output.mapping import write_files
    from onesided.geo.output.summary import summarise

    summary = summarise(seen.table, prior=prior, truth=job.truth, unseen=unseen)
    alarm = (summary.degenerate,) if summary.degenerate else ()
    every = (*alarm, *seen.prepared.warnings, *told, *summary.warnings)
    warnings = tuple(dict.fromkeys(every))
    write_files(job.files, seen.table, seen.chips, seen.prepared, summary, warnings)
    return Drawn(seen.table, summary, warnings, summary.degenerate)


def check_goes_with_model(given: "Settings", preset: str | None) -> None:
    """Refuse settings of a training where a finished model is used."""
    from onesided.core.errors import ConfigError

    trained = {"data": {"name": "chips"}}
    asked = given if preset is None else {**given, "preset": preset}
    for key, value in asked.items():
        if key != "prior" and value != trained.get(key):
            raise ConfigError(
                f"--model takes a finished model as it is, and a setting of {key} was given. "
                "Leave --model out to train, or leave out --size, --margin, --method, --preset, "
                "--epochs, --seed, --backbone, --weights, --freeze and --set."
            )


def conclude(drawn: Drawn, files: "MapFiles", *, as_json: bool, allow_degenerate: bool) -> None:
    """Print what was found; exit with 3 where the model is degenerate."""
    from onesided.cli.show import print_json, say, warn
    from onesided.core.errors import DegenerateModel

    table, summary = drawn.table, drawn.summary
    called = summary.figure("called_positive").value
    if as_json:
        print_json(
            {
                "files": [str(path) for path in files.paths()],
                "buildings": len(table),
                "scored": int(table.scored.sum()),
                "called_positive": called,
                "skipped": len(table.reasons),
                "summary": summary.to_json(),
                "warnings": list(drawn.warnings),
            }
        )
    else:
        for sentence in drawn.warnings:
            warn(sentence)
        say(
            f"{len(table)} buildings: {int(table.marked.sum())} marked, {called} of the others "
            f"called damaged, {len(table.reasons)} skipped."
        )
        say("\n".join(f"Wrote {path}" for path in files.paths()))
    if drawn.degenerate and not allow_degenerate:
        raise DegenerateModel(
            f"Degenerate model: {drawn.degenerate} All files are written, to find the cause; "
            "--allow-degenerate accepts the model."
        )
