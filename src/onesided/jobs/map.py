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
from onesided.geo.input.vector import count_footprints
from onesided.geo.output.basemap import Basemap, basemap_of
from onesided.geo.output.files import MapFiles, write_files
from onesided.geo.output.page_content import PAGE_MEGABYTES
from onesided.geo.output.page_files import remove_other_files
from onesided.geo.output.summary import Summary, summarise
from onesided.geo.output.table import MapTable, score_chips
from onesided.geo.scene.chips import Chips, cut_chips
from onesided.geo.scene.cutting import check_images_fit, read_cutting
from onesided.geo.scene.shift import parse_shift
from onesided.geo.scene.sources import MapSources, MarkedScene, open_sources
from onesided.geo.scene.tiles import is_event
from onesided.jobs.fit import check_before_reading
from onesided.jobs.map_request import MapRequest, word_of, words_of
from onesided.jobs.region import Region, RegionResult, Wanted, formats_of, part_of
from onesided.jobs.settings import PathLike, nested, training_flags
from onesided.jobs.training import train_on_chips
from onesided.jobs.words import MOST_SKIPPED
from onesided.metrics.selection import Optimism
from onesided.run.config import ChipsConfig, check_prior, storable
from onesided.run.folder import CHIPS, check_place, working_in
from onesided.run.presets import plan_run
from onesided.run.prior import PriorUsed
from onesided.run.ray_engine import RayEngine, engine_named
from onesided.storage.lock import alone
from onesided.storage.together import settle, together

MANY = 100_000
"""From so many buildings on a map is made in pieces."""
ONLY_IN_PIECES = (".parquet", ".fgb", ".pmtiles")


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
    image: PathLike | Sequence[PathLike] | None = None,
    pre: PathLike | Sequence[PathLike] | None = None,
    footprints: PathLike | None = None,
    points: PathLike | None = None,
    positives: PathLike | None = None,
    positives_column: str | None = None,
    positives_layer: str | None = None,
    layer: str | None = None,
    id_column: str | None = None,
    footprints_crs: str | None = None,
    image_crs: str | None = None,
    shift: str | Sequence[float] | None = None,
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
    part: str | None = None,
    formats: str | Sequence[str] | None = None,
    cells: float | None = None,
    areas: PathLike | None = None,
    region: bool | None = None,
    settings: Mapping[str, Any] | None = None,
    basemap: str | None = None,
    page_megabytes: float = PAGE_MEGABYTES,
    overwrite: bool = False,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    monitor: Monitor | None = None,
) -> MapResult | RegionResult:
    """Score every building of a place from a few that are marked as damaged.

    Writes a GeoPackage and GeoJSON, a style for QGIS, summary.csv and map.html. The same call
    resumes a stopped one.

    Examples:
        >>> import onesided
        >>> found = onesided.map_buildings(
        ...     image="post.tif", footprints="buildings.gpkg", positives="damaged.csv",
        ...     method="ce", epochs=2, output="damage.gpkg",
        ... )
        >>> [path.name for path in found.files]
        ['damage.gpkg', 'damage.geojson', 'damage.qml', 'summary.csv', 'map.html']

    Args:
        output: File to write, .gpkg or .geojson; the others go beside it.
        image: Image after the event: a file, several, a folder of tiles, a .zip, an address of a
            GeoTIFF, or a STAC file.
        pre: Image of the same place before it, likewise.
        footprints: Buildings.
        points: Instead of both, a folder of crops LON_LAT, or a CSV file of them.
        positives: Damaged buildings: CSV file of ids, layer, or folder of crops.
        positives_column: Instead, COLUMN=VALUE of the footprints.
        positives_layer: Layer of a positives file of several.
        layer: Layer of a footprints file of several.
        id_column: Column with the id of each building.
        footprints_crs: Coordinate system where the file names none.
        image_crs: Likewise of the image.
        shift: Metres to the east and to the north by which footprints are moved before cutting.
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
        part: Part of a region to score, such as 3/64; needs `model`.
        formats: Further formats to write: parquet, fgb, pmtiles.
        cells: Side in metres of cells to count buildings in.
        areas: File of areas to count buildings in.
        region: Whether to work in pieces; None does where buildings are many.
        settings: Further settings by table; they win over what the other parameters say.
        basemap: A map from the network that the page offers, switched off: osm or an address.
        page_megabytes: Room for sharp images beside map.html.
        overwrite: Replace another run in the run folder.
        engine: local, or ray: several processes and machines score the pieces of a region.
        workers: Processes of Ray.
        address: Of a Ray cluster that runs already; None starts Ray on this machine.
        monitor: Receives notices and progress.
    """
    by = engine_named(engine, workers=workers, address=address)
    region = _or_by(by, region)
    request = dict(
        output=storable(str(output)),
        image=words_of(image),
        pre=words_of(pre),
        footprints=word_of(footprints),
        points=word_of(points),
        positives=word_of(positives),
        positives_column=positives_column,
        positives_layer=positives_layer,
        layer=layer,
        id_column=id_column,
        footprints_crs=footprints_crs,
        image_crs=image_crs,
        shift=parse_shift(shift),
        test=word_of(test),
        formats=formats_of(formats),
        cells=cells,
        areas=word_of(areas),
        region=region,
        basemap=basemap,
        page_megabytes=page_megabytes,
    )
    asked = MapRequest.from_settings(request, "onesided map")
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
    model = None if model is None else Path(model)
    if model is not None:
        check_goes_with_model(given, preset)
    return map_settings(
        asked,
        given,
        preset=preset or "quick",
        run=run_of(Path(output)) if run is None else Path(run),
        model=model,
        part=part,
        engine=by,
        overwrite=overwrite,
        monitor=monitor or Monitor(),
    )


def run_of(output: Path) -> Path:
    """Return the run folder of a map, where none was named: beside the file that was asked for."""
    return output.with_name(f"{output.stem}-run")


def map_settings(
    asked: MapRequest,
    given: Settings,
    *,
    preset: str | None,
    run: Path,
    model: Path | None = None,
    part: str | None = None,
    engine: RayEngine | None = None,
    overwrite: bool = False,
    monitor: Monitor,
) -> MapResult | RegionResult:
    """Make a map by settings; wrong ones are refused before any image is read."""
    sources = asked.sources()
    sources.check(has_model=model is not None)
    output = asked.path("output")
    assert output is not None
    online = basemap_of(asked.basemap) if asked.basemap is not None else None
    wanted = Wanted(
        output, asked.formats, asked.cells, asked.path("areas"), online, asked.page_megabytes
    )
    test = asked.path("test")
    with ExitStack() as stack:
        if in_pieces(sources, part, wanted, region=asked.region):
            wanted.check_apart(asked.given())
            known = None if "prior" not in given else check_prior(given["prior"])
            return Region(
                sources=sources,
                wanted=wanted,
                folder=run,
                asked=asked,
                truth=read_truth(test) if test else None,
                stack=stack,
                monitor=monitor,
                engine=engine,
            ).map(
                given,
                preset=preset,
                model=model,
                part=part_of(part),
                prior=known if isinstance(known, float) else None,
                overwrite=overwrite,
            )
        files = MapFiles.beside(output)
        files.check_apart(asked.given())
        job = _Job(
            sources=sources,
            files=files,
            folder=run,
            asked=asked,
            truth=read_truth(test) if test else None,
            stack=stack,
            monitor=monitor,
            basemap=online,
        )
        if model is None:
            return job.train_and_map(given, preset, overwrite=overwrite)
        return job.map_by_model(model, given.get("prior"))


def _or_by(engine: RayEngine | None, region: bool | None) -> bool | None:
    """Return whether pieces are asked for: what Ray scores are pieces."""
    if engine is None:
        return region
    if region is False:
        raise ConfigError("--engine ray scores pieces of a region; leave out --no-region.")
    return True


def in_pieces(
    sources: MapSources, part: str | None, wanted: Wanted, *, region: bool | None
) -> bool:
    """Return whether the map is made in pieces: asked for, or too many buildings for memory."""
    if sources.footprints is None or is_event(sources.footprints):
        if part is not None or region:
            raise ConfigError("--part, --region and --engine ray take --image and --footprints.")
        return False
    further = wanted.formats or wanted.cells is not None or wanted.areas is not None
    if part is not None or region or further or wanted.output.suffix.lower() in ONLY_IN_PIECES:
        return region is not False
    return region is None and count_footprints(sources.footprints) > MANY


@dataclass(frozen=True)
class _Job:
    """One map: its inputs, its output files and its run folder."""

    sources: MapSources
    files: MapFiles
    folder: Path
    asked: MapRequest
    truth: Mapping[str, int] | None
    stack: ExitStack
    monitor: Monitor
    basemap: Basemap | None = None

    def train_and_map(self, given: Settings, preset: str | None, *, overwrite: bool) -> MapResult:
        """Train on the marked buildings against all others, and write the map."""
        # Bad settings are refused now, not after an hour of cutting.
        plan = plan_run(given, preset)
        check_before_reading(plan)
        place = check_place(self.folder, overwrite=overwrite)
        wanted = plan.checked.data
        assert isinstance(wanted, ChipsConfig), "the settings above name chips"
        prepared = open_sources(self.stack, replace(self.sources, margin=wanted.margin))
        chips = self._cut(prepared, wanted.size)
        trained = train_on_chips(
            prepared, chips, plan, wanted, place, self.monitor, asked=self.asked
        )
        table = score_chips(
            self.folder,
            prepared.scene.buildings,
            chips,
            marked=trained.marked,
            held_out=trained.held_out,
            known=trained.known,
            copies=trained.copies,
            rejected=trained.rejected if trained.rejected.any() else None,
        )
        return self._write(
            prepared,
            chips,
            table,
            prior=PriorUsed.of_result(trained.result),
            unseen=False,
            notices=trained.notices,
            optimism=Optimism.of_result(trained.result),
        )

    def map_by_model(self, model: Path, prior: object | None) -> MapResult:
        """Write the map by a model that was trained before."""
        known = None if prior is None else check_prior(prior)
        settle(model)
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
                model,
                prepared.scene.buildings,
                chips,
                marked=prepared.marked,
                held_out=nothing,
                elsewhere=True,
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
        optimism: Optimism | None = None,
    ) -> MapResult:
        summary = summarise(table, prior=prior, truth=self.truth, unseen=unseen, optimism=optimism)
        alarm = (summary.degenerate,) if summary.degenerate else ()
        every = (*alarm, *prepared.warnings, *notices, *summary.warnings)
        warnings = tuple(dict.fromkeys(every))
        asked = self.files.paths()[0]
        with (
            alone(asked.with_name(f".{asked.name}.lock")),
            together(asked.parent, asked.name) as new,
        ):
            page_folder = write_files(
                self.files.inside(new),
                table,
                chips,
                prepared,
                summary,
                warnings,
                basemap=self.basemap,
                page_megabytes=self.asked.page_megabytes,
            )
        remove_other_files(self.files.page, page_folder)
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
