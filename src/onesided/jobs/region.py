"""Score every building of a region: `onesided map` where there are too many for memory.

Footprints are sorted into pieces. A model is trained on the marked buildings and a random sample of
the others, or brought along. Then each piece is cut and scored without storing chips. A part of the
pieces can be scored on each of several machines; `merge_region` makes one map of all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.config import Settings
from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.core.monitor import Monitor
from onesided.engine.model_file import load_model
from onesided.geo.input.coordinates import WGS84, system
from onesided.geo.input.footprint_stream import streamed_footprints
from onesided.geo.input.footprints import Buildings
from onesided.geo.input.image import Stretch
from onesided.geo.input.imagery import Imagery, find_imagery, with_absolute_paths
from onesided.geo.input.positives import read_truth
from onesided.geo.output.areas import Areas, Rates, grid_cells, named_areas, read_areas, write_areas
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.files import PAGE, SUMMARY, check_places
from onesided.geo.output.layers import style_text
from onesided.geo.output.page import write_map
from onesided.geo.output.page_content import PAGE_MEGABYTES
from onesided.geo.output.page_files import remove_other_files
from onesided.geo.output.region_page import region_page
from onesided.geo.output.region_pictures import RegionImages
from onesided.geo.output.streamed import FORMATS, Decided, write_region
from onesided.geo.output.summary import Summary, summarise, write_summary
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import cut_chips
from onesided.geo.scene.cutting import check_images_fit, read_cutting
from onesided.geo.scene.footprint_scene import (
    SceneImage,
    open_images,
    outlined_scene,
    size_warnings,
)
from onesided.geo.scene.halving import middles
from onesided.geo.scene.holdout import check_enough
from onesided.geo.scene.pieces import DIVISION, Division, divide, read_division
from onesided.geo.scene.region_marks import region_marks, training_sample
from onesided.geo.scene.scoring import (
    SCORES,
    PieceTask,
    Scoring,
    read_scores,
    score_piece,
    scoring_by,
)
from onesided.geo.scene.shift import parse_shift, shift_warning
from onesided.geo.scene.sources import MapSources, MarkedScene, imagery_warnings
from onesided.jobs.fit import check_before_reading
from onesided.jobs.map_request import MapRequest, words_of
from onesided.jobs.settings import PathLike
from onesided.jobs.training import TrainedOnChips, train_on_chips
from onesided.metrics.calibration import Calibration
from onesided.metrics.selection import Optimism
from onesided.run.config import ChipsConfig
from onesided.run.folder import CHIPS, REGION, Place, check_place, make_folder, working_in
from onesided.run.presets import Plan, plan_run
from onesided.run.prior import PriorUsed
from onesided.run.ray_engine import RayEngine
from onesided.storage.atomic import (
    read_json,
    remove_half_written,
    replacing,
    write_json,
    write_text,
)
from onesided.storage.lock import alone
from onesided.storage.own_file import read_arrays
from onesided.storage.progress import Progress
from onesided.storage.together import settle, together

FACTS, MARKS = "region.json", "marks.npz"
CELLS, AREAS = "cells.csv", "areas.csv"


@dataclass(frozen=True)
class Wanted:
    """What is to be written of a region.

    Attributes:
        output: The file that was asked for; the others go beside it.
        formats: Endings of further files, such as .parquet.
        cells: Side in metres of the cells that are counted; None counts none.
        areas: File of polygons that are counted; None counts none.
        basemap: A map from the network that the page offers.
        page_megabytes: Room for images beside the page.
    """

    output: Path
    formats: tuple[str, ...] = ()
    cells: float | None = None
    areas: Path | None = None
    basemap: Basemap | None = None
    page_megabytes: float = PAGE_MEGABYTES

    def check(self) -> None:
        """Refuse files that cannot be written."""
        for ending in (self.output.suffix.lower(), *self.formats):
            if ending not in FORMATS:
                raise ConfigError(
                    f"A map is written as {', '.join(FORMATS)}; got {ending or 'no ending'}."
                )
        check_places(self.files())
        if self.cells is not None and not 0 < self.cells < math.inf:
            raise ConfigError(f"--cells takes the side of a cell in metres; got {self.cells:g}.")
        if self.areas is not None:
            read_areas(self.areas)

    def check_apart(self, given: Mapping[str, Path]) -> None:
        """Refuse to overwrite files that were given, by flag."""
        for flag, path in given.items():
            for written in self.files():
                if written.exists() and written.samefile(path):
                    raise ConfigError(
                        f"The map would be written over {path}, which was given with {flag}. "
                        "Choose another name or folder with -o."
                    )

    @property
    def page(self) -> Path:
        """The page beside the layers, which a browser opens."""
        return self.output.with_name(PAGE)

    def layers(self) -> list[Path]:
        """Return the files of all buildings."""
        others = [self.output.with_suffix(ending) for ending in self.formats]
        return list(dict.fromkeys([self.output, *others]))

    def files(self) -> list[Path]:
        """Return all files that are written, the one that was asked for first."""
        counted = ((CELLS, self.cells), (AREAS, self.areas))
        names = [SUMMARY, PAGE, *(name for name, asked in counted if asked is not None)]
        beside = [self.output.with_name(name) for name in names]
        return [*self.layers(), self.output.with_suffix(".qml"), *beside]


@dataclass(frozen=True)
class RegionResult:
    """A region that was scored, in part or as a whole.

    Attributes:
        table: Scores and decisions; its buildings have no names or shapes, which are in the files.
        summary: Counts and figures; None where only a part was scored.
    """

    table: MapTable | None
    summary: Summary | None
    warnings: tuple[str, ...]
    files: tuple[Path, ...]
    folder: Path

    @property
    def degenerate(self) -> str | None:
        """Why the model is of no use, if it is of none."""
        return None if self.summary is None else self.summary.degenerate


@dataclass(frozen=True)
class Region:
    """One region: its inputs and its folder."""

    sources: MapSources
    wanted: Wanted
    folder: Path
    asked: MapRequest
    truth: Mapping[str, int] | None
    stack: ExitStack
    monitor: Monitor
    engine: RayEngine | None = None

    def map(
        self,
        given: Settings,
        *,
        preset: str | None,
        model: Path | None,
        part: tuple[int, int] | None,
        prior: float | None,
        overwrite: bool,
    ) -> RegionResult:
        """Score the region, or a part of it by a model that is given."""
        self.wanted.check()
        if part is not None and model is None:
            raise ConfigError(
                "--part needs --model: train once on one machine, and give its run folder to all."
            )
        self.sources.check(has_model=model is not None)
        # What can be refused is refused now, before a folder is made and hours are spent.
        place = check_place(self.folder, overwrite=overwrite)
        if model is None:
            check_before_reading(plan := plan_run(given, preset))
            images = self._images(())
        else:
            images = self._images_for(model)
        self._check_footprints()
        self.stack.enter_context(working_in(self.folder))
        for folder in (self.folder / REGION, self.folder / REGION / SCORES):
            remove_half_written(folder)
        division = self._divided()
        if self.wanted.areas is not None:  # areas of another place are refused before training
            named_areas(_middles(division), division.system, self.wanted.areas)
        marks = region_marks(division, self.sources)
        known = Known.nothing(marks.marked)
        warnings = [*imagery_warnings(self.sources), *division.warnings, *marks.warnings]
        if model is None:
            check_enough(marks.marked, "are given", self.sources.positives)
            trained, sample = self._train(division, marks.marked, plan, place, images)
            known.scores[sample], known.held_out[sample] = trained.known, trained.held_out
            known.copies[sample], known.rejected[sample] = trained.copies, trained.rejected
            known.marked[sample] = trained.marked
            used = PriorUsed.of_result(trained.result)
            optimism = Optimism.of_result(trained.result)
            warnings += trained.notices
        else:
            used = None if prior is None else PriorUsed(prior, None, None, "given")
            optimism = Optimism()
        facts = {
            "unseen": model is not None,
            **optimism.to_json(),
            "prior": None if used is None else used.to_json(),
            "warnings": warnings,
        }
        return self._score(division, model or self.folder, images, known, facts, part)

    def _check_footprints(self) -> None:
        """Refuse footprints that cannot be read, or lack the column of ids."""
        assert self.sources.footprints is not None
        with streamed_footprints(
            self.sources.footprints,
            layer=self.sources.layer,
            given_system=self.sources.footprints_crs,
        ) as stream:
            stream.id_column(self.sources.id_column)

    def _divided(self) -> Division:
        assert self.sources.footprints is not None
        with self.monitor.phase("sorting footprints") as phase:
            return divide(
                self.sources.footprints,
                self.folder / REGION,
                layer=self.sources.layer,
                id_column=self.sources.id_column,
                given_system=self.sources.footprints_crs,
                progress=phase,
            )

    def _images(self, stretches: Sequence[Stretch]) -> list[SceneImage]:
        images = self._sources_of_images()
        return open_images(
            self.stack, images, given_system=self.sources.image_crs, stretches=stretches
        )

    def _sources_of_images(self) -> list[Path | Imagery]:
        return [image for image in (self.sources.pre, self.sources.image) if image is not None]

    def _images_for(self, model: Path) -> list[SceneImage]:
        """Open the images as a model needs them; refuse those whose bands are others."""
        settle(model)
        _, description = load_model(model)
        cutting = read_cutting(model)
        images = self._images(cutting.images if cutting else ())
        nobody = Buildings((), np.zeros(0, object), system(WGS84), {})
        shown = MarkedScene(
            outlined_scene(nobody, images),
            np.zeros(0, bool),
            stretches=tuple(image.stretch for image in images),
        )
        check_images_fit(shown, model, description, cutting)
        return images

    def _train(
        self,
        division: Division,
        marked: Bool[np.ndarray, "n"],
        plan: Plan,
        place: Place,
        images: Sequence[SceneImage],
    ) -> tuple[TrainedOnChips, Int64[np.ndarray, "m"]]:
        """Train on the marked buildings and a sample; return also the sample's numbers."""
        config = plan.checked.data
        assert isinstance(config, ChipsConfig), "the settings name chips"
        numbers, buildings = training_sample(division, marked, plan.checked.seed)
        shift = self.sources.shift
        scene = outlined_scene(buildings, images, margin=config.margin, shift=shift)
        for sentence in (*size_warnings(scene), *shift_warning(scene)):
            self.monitor.warn(sentence)
        prepared = MarkedScene(
            scene,
            marked[numbers],
            after_from=scene.channels - images[-1].image.bands,
            stretches=tuple(image.stretch for image in images),
        )
        with self.monitor.phase("cutting out buildings to train on") as phase:
            chips = cut_chips(scene, self.folder / CHIPS, size=config.size, progress=phase)
        trained = train_on_chips(
            prepared, chips, plan, config, place, self.monitor, asked=self.asked
        )
        return trained, numbers

    def _score(
        self,
        division: Division,
        model: Path,
        images: Sequence[SceneImage],
        known: "Known",
        facts: Mapping[str, Any],
        part: tuple[int, int] | None,
    ) -> RegionResult:
        cutting = read_cutting(model)
        margin = cutting.margin if cutting else self.sources.margin
        scoring = scoring_by(model, self.folder / REGION, images, margin, self.sources.shift)
        predictor = scoring.predictor
        curve = None if facts["unseen"] else predictor.calibration
        decided = {
            "threshold": predictor.threshold,
            "calibration": curve.model_dump(mode="json") if curve else None,
        }
        write_json(self.folder / REGION / FACTS, {**facts, **decided})
        with replacing(self.folder / REGION / MARKS) as file:
            np.savez(
                file,
                marked=known.marked,
                scores=known.scores,
                held_out=known.held_out,
                copies=known.copies,
                rejected=known.rejected,
            )
        wanted = range(division.pieces) if part is None else division.of_part(part)
        with self.monitor.phase("scoring pieces of the region") as phase:
            self._score_pieces(scoring, wanted, phase)
        if part is not None:
            self.monitor.note(f"Scored {len(wanted)} of {division.pieces} pieces.")
            return RegionResult(None, None, tuple(facts["warnings"]), (), self.folder)
        return merge_region(
            [self.folder],
            self.wanted,
            truth=self.truth,
            monitor=self.monitor,
            locked=True,
            images=RegionImages(images, self.sources.shift, self.wanted.page_megabytes),
        )

    def _score_pieces(self, scoring: Scoring, wanted: Sequence[int], progress: Progress) -> None:
        """Score the pieces that are not scored yet, here or by workers of Ray."""
        if self.engine is None:
            scoring.run(wanted, progress)
            return
        task = PieceTask(
            number=0,
            region=(self.folder / REGION).resolve(),
            images=tuple(with_absolute_paths(image) for image in self._sources_of_images()),
            given_system=self.sources.image_crs,
            stretches=tuple(image.stretch for image in scoring.images),
            model=scoring.model.resolve(),
            margin=scoring.margin,
            shift=scoring.shift,
        )
        left = scoring.left(wanted)
        tasks = [replace(task, number=number) for number in left]
        scored = self.engine.results(score_piece, tasks)
        for done, _ in enumerate(scored, start=len(wanted) - len(left) + 1):
            progress(done, len(wanted))


@dataclass(frozen=True)
class Known:
    """What is known of buildings before the region is scored, by their numbers.

    Attributes:
        scores: By models that saw none of a building's neighbours; NaN elsewhere.
        held_out: Which buildings the model was not trained on, of those it could have been.
        copies: Which of the sample look the same as another that counts in figures.
        rejected: Which buildings reviewers call undamaged.
    """

    marked: Bool[np.ndarray, "n"]
    scores: Float64[np.ndarray, "n"]
    held_out: Bool[np.ndarray, "n"]
    copies: Bool[np.ndarray, "n"]
    rejected: Bool[np.ndarray, "n"]

    @classmethod
    def nothing(cls, marked: Bool[np.ndarray, "n"]) -> "Known":
        """Return the marks alone."""
        nobody = np.zeros(len(marked), bool)
        return cls(
            marked.copy(), np.full(len(marked), np.nan), nobody, nobody.copy(), nobody.copy()
        )

    @classmethod
    def read(cls, path: Path) -> "Known":
        """Return what was stored; parts of a region that were scored earlier have no rejections."""
        arrays = read_arrays(path)
        return cls(**{"rejected": np.zeros(len(arrays["marked"]), bool), **arrays})


def merge_region(
    folders: Sequence[Path],
    wanted: Wanted,
    *,
    truth: Mapping[str, int] | None = None,
    monitor: Monitor | None = None,
    locked: bool = False,
    images: RegionImages | None = None,
) -> RegionResult:
    """Make one map of pieces that were scored in several run folders.

    Ranks, threshold and figures are those of the whole region. Without `images` its page has no
    pictures.
    """
    wanted.check()
    monitor = monitor or Monitor()
    first = folders[0] / REGION
    division = read_division(first)
    for folder in folders[1:]:
        if read_division(folder / REGION).content != division.content:
            raise DataError(
                f"{folder} and {folders[0]} hold different footprints, so they are no parts of "
                "one region. Score all parts from the same file."
            )
    with ExitStack() as stack:
        if not locked:
            stack.enter_context(working_in(folders[0]))
        found = read_scores(division, [folder / REGION / SCORES for folder in folders])
        facts, known = read_json(first / FACTS), Known.read(first / MARKS)
        scores = np.where(np.isnan(known.scores), found.scores, known.scores)
        table = MapTable(
            Buildings(_names(division, truth), np.full(division.count, None), division.system, {}),
            scores,
            known.marked,
            known.held_out,
            found.reasons,
            float(facts["threshold"]),
            known.copies,
            _curve_of(facts),
            known.rejected if known.rejected.any() else None,
        )
        prior = PriorUsed.of_result(facts)
        summary = summarise(
            table,
            prior=prior,
            truth=truth,
            unseen=bool(facts["unseen"]),
            optimism=Optimism.of_result(facts),
        )
        alarm = (summary.degenerate,) if summary.degenerate else ()
        warnings = tuple(dict.fromkeys((*alarm, *facts["warnings"], *summary.warnings)))
        with _changing(wanted) as new:
            page_folder = _write(division, table, summary, warnings, new, monitor, images)
        remove_other_files(wanted.page, page_folder)
    return RegionResult(table, summary, warnings, tuple(wanted.files()), folders[0])


def _curve_of(facts: Mapping[str, Any]) -> Calibration | None:
    stored = facts.get("calibration")  # earlier versions wrote none
    return None if stored is None else Calibration.from_settings(stored, FACTS)


def merge_parts(
    words: Sequence[str],
    *,
    output: PathLike,
    formats: str | Sequence[str] | None = None,
    cells: float | None = None,
    areas: PathLike | None = None,
    test: PathLike | None = None,
    image: PathLike | Sequence[PathLike] | None = None,
    pre: PathLike | Sequence[PathLike] | None = None,
    image_crs: str | None = None,
    shift: str | Sequence[float] | None = None,
    page_megabytes: float = PAGE_MEGABYTES,
    monitor: Monitor | None = None,
) -> RegionResult:
    """Make one map of the parts in some run folders: the job of `onesided map merge RUN...`.

    With the images of the region, its page shows them.
    """
    if words[0] != "merge":
        raise ConfigError(f"onesided map takes no argument but merge; got {words[0]!r}.")
    folders = [Path(word) for word in words[1:]]
    if not folders:
        raise ConfigError("onesided map merge takes the run folders of the parts.")
    for folder in folders:
        if not (folder / REGION / DIVISION).is_dir():
            raise DataNotFound(
                f"{folder} holds no part of a region. Give the run folders of onesided map --part."
            )
    wanted = Wanted(
        Path(output),
        formats_of(formats),
        cells,
        None if areas is None else Path(areas),
        page_megabytes=page_megabytes,
    )
    truth = read_truth(Path(test)) if test else None
    with ExitStack() as stack:
        given = ((words_of(pre), "--pre"), (words_of(image), "--image"))
        found = [find_imagery(paths, flag) for paths, flag in given if paths]
        opened = open_images(stack, found, given_system=image_crs)
        images = RegionImages(opened, parse_shift(shift), page_megabytes)
        return merge_region(folders, wanted, truth=truth, monitor=monitor, images=images)


def _names(division: Division, truth: Mapping[str, int] | None) -> tuple[str, ...]:
    """Return the name of each building where true labels need it; else nothing, which is small."""
    if truth is None:
        return ("",) * division.count
    names = [""] * division.count
    for piece in division.all():
        for number, name in zip(piece.numbers.tolist(), piece.buildings.names, strict=True):
            names[number] = name
    return tuple(names)


@contextmanager
def _changing(wanted: Wanted) -> Iterator[Wanted]:
    """Give the same files in a new folder; at the end of the block they change together."""
    output = wanted.output
    make_folder(output.parent, instead="Choose another place with -o.")
    with (
        alone(output.with_name(f".{output.name}.lock")),
        together(output.parent, output.name) as new,
    ):
        yield replace(wanted, output=new / output.name)


def _write(
    division: Division,
    table: MapTable,
    summary: Summary,
    warnings: Sequence[str],
    wanted: Wanted,
    monitor: Monitor,
    images: RegionImages | None,
) -> str | None:
    """Write the files; return the folder of the page's images, relative to the page."""
    layers = wanted.layers()
    style, counts = wanted.output.with_suffix(".qml"), wanted.output.with_name(SUMMARY)
    decided = Decided(
        table.scores,
        table.marked,
        table.held_out,
        table.ranks,
        table.reasons,
        table.threshold,
        table.curve,
        table.rejected,
    )
    with monitor.phase("writing the map") as phase:
        for done, path in enumerate(layers, start=1):
            write_region(division, decided, path)
            phase(done, len(layers))
    write_text(style, style_text(is_point=False))
    write_summary(summary, counts)
    with monitor.phase("writing the page"):
        page = region_page(
            division,
            decided,
            summary,
            title=wanted.output.stem,
            images=images,
            warnings=warnings,
            basemap=wanted.basemap,
        )
        page_folder = write_map(page, wanted.page)
    if wanted.cells is not None or wanted.areas is not None:
        places = _middles(division)
        if wanted.cells is not None:
            path = wanted.output.with_name(CELLS)
            _count(grid_cells(places, division.system, wanted.cells), path, table, summary)
        if wanted.areas is not None:
            path = wanted.output.with_name(AREAS)
            _count(named_areas(places, division.system, wanted.areas), path, table, summary)
    return page_folder


def _middles(division: Division) -> Float64[np.ndarray, "n 2"]:
    places = np.full((division.count, 2), np.nan)
    for piece in division.all():
        places[piece.numbers] = middles(piece.buildings.geometries)
    return places


def _count(areas: Areas, path: Path, table: MapTable, summary: Summary) -> None:
    write_areas(
        areas,
        path,
        scored=table.scored,
        marked=table.marked,
        called=np.nan_to_num(table.scores) > table.threshold,
        rates=rates_of(summary),
    )


def rates_of(summary: Summary) -> Rates:
    """Return precision and recall with their intervals, where the summary has them."""
    found: dict[str, tuple[float, float, float] | None] = {"precision": None, "recall": None}
    for figure in summary.figures:
        ends = (figure.told, figure.low, figure.high)
        if figure.name in found and not figure.part and None not in ends:
            found[figure.name] = tuple(float(end) for end in ends if end is not None)  # type: ignore[assignment]
    return Rates(found["precision"], found["recall"])


def part_of(text: str | None) -> tuple[int, int] | None:
    """Return k and n of a part such as 3/64."""
    if text is None:
        return None
    which, slash, parts = text.partition("/")
    if slash and which.strip().isdecimal() and parts.strip().isdecimal():
        number, count = int(which), int(parts)
        if 1 <= number <= count:
            return number, count
    raise ConfigError(f"--part takes a part such as 3/64, from 1/64 to 64/64; got {text!r}.")


def formats_of(words: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return endings of formats such as parquet,fgb."""
    if words is None:
        return ()
    names = words.split(",") if isinstance(words, str) else words
    endings = [f".{name.strip().lower().lstrip('.')}" for name in names if name.strip()]
    for ending in endings:
        if ending not in FORMATS:
            known = ", ".join(each.lstrip(".") for each in FORMATS)
            raise ConfigError(f"--formats takes {known}; got '{ending.lstrip('.')}'.")
    return tuple(dict.fromkeys(endings))
