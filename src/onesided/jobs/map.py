"""Score every building of an area: the job of `onesided map`."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError
from onesided.core.monitor import Monitor
from onesided.engine.model_file import load_model
from onesided.geo.input.positives import read_truth
from onesided.geo.output.files import MapFiles, write_files
from onesided.geo.output.summary import Summary, summarise
from onesided.geo.output.table import MapTable, score_chips
from onesided.geo.scene.chips import Chips, cut_chips
from onesided.geo.scene.cutting import check_images_fit, read_cutting, write_cutting
from onesided.geo.scene.holdout import held_out_rows, load_chips, out_of_fold_scores
from onesided.geo.scene.sources import MapSources, MarkedScene, open_sources
from onesided.jobs.choices import MOST_SKIPPED, method_lines
from onesided.jobs.fit import check_before_reading, watcher
from onesided.jobs.settings import PathLike, nested, training_flags
from onesided.report import write_report
from onesided.run.config import ChipsConfig, check_prior
from onesided.run.execute import run as run_problem
from onesided.run.folder import CHIPS, SCORED, check_place, working_in
from onesided.run.presets import plan_run
from onesided.run.prior import PriorUsed
from onesided.run.problem import build_problem
from onesided.run.scored import Scored


@dataclass(frozen=True)
class MapResult:
    """A map, and what it found.

    Attributes:
        table: Every building with its score, rank, decision and role.
        summary: Counts and figures.
        warnings: What limits them.
        files: What was written, the file that was asked for first.
        folder: The run folder.
    """

    table: MapTable
    summary: Summary
    warnings: tuple[str, ...]
    files: tuple[Path, ...]
    folder: Path

    @property
    def degenerate(self) -> str | None:
        """Why the model is of no use: it calls everything or nothing damaged. Else None."""
        return self.summary.degenerate


def map_buildings(
    *,
    output: PathLike,
    image: PathLike | None = None,
    pre: PathLike | None = None,
    footprints: PathLike | None = None,
    points: PathLike | None = None,
    positives: PathLike | None = None,
    positives_column: str | None = None,
    positives_layer: str | None = None,
    layer: str | None = None,
    id_column: str | None = None,
    footprints_crs: str | None = None,
    image_crs: str | None = None,
    test: PathLike | None = None,
    model: PathLike | None = None,
    run: PathLike | None = None,
    size: int | None = None,
    margin: float | None = None,
    method: str | None = None,
    preset: str | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    backbone: str | None = None,
    weights: PathLike | None = None,
    freeze: bool = False,
    prior: float | str | None = None,
    settings: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    monitor: Monitor | None = None,
) -> MapResult:
    """Score every building of a place from a few that are marked as damaged.

    Writes a GeoPackage and GeoJSON, a style for QGIS, summary.csv and map.html. The same call
    resumes a stopped one.

    Example:
        >>> import onesided
        >>> found = onesided.map_buildings(
        ...     image="post.tif", footprints="buildings.gpkg", positives="damaged.csv",
        ...     method="ce", epochs=2, output="damage.gpkg",
        ... )
        >>> [path.name for path in found.files]
        ['damage.gpkg', 'damage.geojson', 'damage.qml', 'summary.csv', 'map.html']

    Args:
        output: File to write, .gpkg or .geojson; the others go beside it.
        image: Image after the event.
        pre: Image of the same place before it.
        footprints: Buildings.
        points: Instead of both, a folder of crops LON_LAT, or a CSV file of them.
        positives: Damaged buildings: CSV file of ids, layer, or folder of crops.
        positives_column: Instead, COLUMN=VALUE of the footprints.
        positives_layer: Layer of a positives file of several.
        layer: Layer of a footprints file of several.
        id_column: Column with the id of each building.
        footprints_crs: Coordinate system where the file names none.
        image_crs: Likewise of the image.
        test: CSV file of id and label, for reporting; never trained on.
        model: Run folder whose model scores; nothing is trained.
        run: Run folder to write; None means beside the output.
        size: Side of a chip in pixels.
        margin: Surroundings of a building, in its own sizes.
        method: Name of the method.
        preset: How much to spend.
        epochs: Passes over the data.
        seed: Seed of the run.
        backbone: Network.
        weights: A .safetensors file to start from.
        freeze: Train only a head, on features of a frozen backbone.
        prior: Share of damaged buildings among the unmarked, or how to estimate it.
        settings: Further settings by table; they win over what the other parameters say.
        overwrite: Replace another run in the run folder.
        monitor: Receives notices and progress.
    """
    sources = MapSources(
        image=_path(image),
        pre=_path(pre),
        footprints=_path(footprints),
        points=_path(points),
        positives=_path(positives),
        positives_column=positives_column,
        positives_layer=positives_layer,
        layer=layer,
        id_column=id_column,
        footprints_crs=footprints_crs,
        image_crs=image_crs,
    )
    sources.check(has_model=model is not None)
    flags = nested(
        {
            "data.name": "chips",
            "data.size": size,
            "data.margin": margin,
            **training_flags(
                method=method,
                backbone=backbone,
                weights=weights,
                freeze=freeze,
                epochs=epochs,
                prior=prior,
                seed=seed,
            ),
        }
    )
    given = merge(flags, settings or {})
    files = MapFiles.beside(Path(output))
    read = {"image": image, "pre": pre, "footprints": footprints, "points": points}
    read |= {"positives": positives, "test": test}
    there = {f"--{name}": Path(path) for name, path in read.items() if path and Path(path).exists()}
    files.check_apart(there)
    with ExitStack() as stack:
        job = _Job(
            sources=sources,
            files=files,
            folder=Path(run) if run else Path(output).with_name(f"{Path(output).stem}-run"),
            truth=read_truth(Path(test)) if test else None,
            stack=stack,
            monitor=monitor or Monitor(),
        )
        if model is None:
            return job.train_and_map(given, preset or "quick", overwrite=overwrite)
        check_goes_with_model(given, preset)
        return job.map_by_model(Path(model), given.get("prior"))


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


@dataclass(frozen=True)
class _Job:
    """One map: its inputs, its output files and its run folder."""

    sources: MapSources
    files: MapFiles
    folder: Path
    truth: Mapping[str, int] | None
    stack: ExitStack
    monitor: Monitor

    def train_and_map(self, given: Settings, preset: str, *, overwrite: bool) -> MapResult:
        """Train on the marked buildings against all others, and write the map."""
        # Bad settings are refused now, not after an hour of cutting.
        plan = plan_run(given, preset)
        check_before_reading(plan)
        place = check_place(self.folder, overwrite=overwrite)
        wanted = plan.checked.data
        assert isinstance(wanted, ChipsConfig), "the settings above name chips"
        prepared = open_sources(self.stack, replace(self.sources, margin=wanted.margin))
        chips = self._cut(prepared, wanted.size)
        buildings = prepared.scene.buildings
        loaded = load_chips(buildings, chips, prepared.marked, wanted)
        problem = build_problem(plan.for_data(loaded.split), loaded)
        for sentence in loaded.notices:
            self.monitor.note(sentence)
        title = problem.config.method.card.title
        with self.monitor.phase(f"training {title}") as phase:
            result = run_problem(problem, place, watcher(phase)).content
        # After it: a run that is refused says one sentence and nothing else.
        for sentence in method_lines(problem.config):
            self.monitor.note(sentence)
        write_cutting(self.folder, prepared.stretches, wanted.margin)
        write_report(self.folder)
        scored, count = Scored.load(self.folder / SCORED), len(chips.values)
        known = out_of_fold_scores(loaded.split, scored, count)
        held_out = held_out_rows(loaded.split, count) | ~np.isnan(known)
        return self._write(
            prepared,
            chips,
            score_chips(
                self.folder,
                buildings,
                chips,
                marked=prepared.marked,
                held_out=held_out,
                known=known,
            ),
            prior=PriorUsed.of_result(result),
            unseen=False,
            notices=(*loaded.notices, *result["warnings"]),
            optimism=result.get("optimism", 0.0),
        )

    def map_by_model(self, model: Path, prior: object | None) -> MapResult:
        """Write the map by a model that was trained before."""
        known = None if prior is None else check_prior(prior)
        _, description = load_model(model)
        cutting, sources = read_cutting(model), self.sources
        if cutting is not None:
            sources = replace(sources, margin=cutting.margin)
        stretches = cutting.images if cutting else ()
        prepared = open_sources(self.stack, sources, has_model=True, stretches=stretches)
        check_images_fit(prepared, model, description, cutting)
        chips = self._cut(prepared, description.sample_shape[-1])
        nothing = np.zeros(len(chips.values), bool)
        elsewhere = (
            "Scored by a model that was trained elsewhere: look at some buildings of each decision."
        )
        return self._write(
            prepared,
            chips,
            score_chips(
                model, prepared.scene.buildings, chips, marked=prepared.marked, held_out=nothing
            ),
            prior=PriorUsed(known, None, None, "given") if isinstance(known, float) else None,
            unseen=True,
            notices=(elsewhere,),
        )

    def _cut(self, prepared: MarkedScene, size: int) -> Chips:
        for sentence in prepared.warnings:
            self.monitor.warn(sentence)
        self.files.make_folder()
        self.stack.enter_context(
            working_in(self.folder)
        )  # so that no second map cuts into these chips
        with self.monitor.phase("cutting out buildings") as phase:
            chips = cut_chips(prepared.scene, self.folder / CHIPS, size=size, progress=phase)
        names, reasons = prepared.scene.buildings.names, list(chips.reasons.items())
        for row, reason in reasons[:MOST_SKIPPED]:
            self.monitor.note(f"Skipped {names[row]}: {reason}.")
        if len(reasons) > MOST_SKIPPED:
            self.monitor.note(f"And {len(reasons) - MOST_SKIPPED} more, see summary.csv.")
        return chips

    def _write(
        self,
        prepared: MarkedScene,
        chips: Chips,
        table: MapTable,
        *,
        prior: PriorUsed | None,
        unseen: bool,
        notices: Sequence[str],
        optimism: float = 0.0,
    ) -> MapResult:
        summary = summarise(table, prior=prior, truth=self.truth, unseen=unseen, optimism=optimism)
        alarm = (summary.degenerate,) if summary.degenerate else ()
        every = (*alarm, *prepared.warnings, *notices, *summary.warnings)
        warnings = tuple(dict.fromkeys(every))
        write_files(self.files, table, chips, prepared, summary, warnings)
        return MapResult(table, summary, warnings, tuple(self.files.paths()), self.folder)


def check_goes_with_model(given: Settings, preset: str | None) -> None:
    """Refuse training settings where a finished model is used."""
    trained = {"data": {"name": "chips"}}
    asked = given if preset is None else {**given, "preset": preset}
    for key, value in asked.items():
        if key != "prior" and value != trained.get(key):
            raise ConfigError(
                f"--model takes a finished model as it is, and a setting of {key} was given. "
                "Leave --model out to train, or leave out --size, --margin, --method, --preset, "
                "--epochs, --seed, --backbone, --weights, --freeze and --set."
            )
