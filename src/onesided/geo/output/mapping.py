"""The end of the line: a trained model over the chips, and the files people use."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool
from pydantic import Field

from onesided.core.config import Config
from onesided.core.errors import CheckpointError, ConfigError, DataError, OnesidedError
from onesided.data.problem.dataset import PUSplit, Selection
from onesided.engine.model_file import ModelDescription, load_model
from onesided.geo.input.image import Stretch
from onesided.geo.input.request import MapInput
from onesided.geo.output.layers import write_geojson, write_geopackage
from onesided.geo.output.page import write_map
from onesided.geo.output.showing import map_page
from onesided.geo.output.style import style_text
from onesided.geo.output.summary import Summary, write_summary
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips
from onesided.run.folder import make_folder
from onesided.storage.atomic import read_json, write_text

CUTTING = "cutting.json"
SUMMARY, PAGE = "summary.csv", "map.html"


class ImageCutting(Config):
    """How the values of one image became 0 to 255."""

    low: tuple[float, ...]
    """Black, for each band."""
    high: tuple[float, ...]
    """White, for each band."""


class Cutting(Config):
    """How the chips that a model was trained on were cut; kept beside the model."""

    format: Literal[1] = 1
    """Version of this description."""
    margin: float = Field(ge=0)
    """Surroundings of a building, in its own sizes."""
    images: tuple[ImageCutting, ...] = ()
    """Before and after, or after alone; none where crops were files already."""

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The same as what is applied to images."""
        return tuple(Stretch(image.low, image.high) for image in self.images)


def write_cutting(run: Path, prepared: MapInput, margin: float) -> None:
    """Keep beside the model how its chips were cut, so that others can be cut alike."""
    images = tuple(ImageCutting(low=each.low, high=each.high) for each in prepared.stretches)
    write_text(run / CUTTING, Cutting(margin=margin, images=images).model_dump_json(indent=2))


def read_cutting(run: Path) -> Cutting | None:
    """Return how a model's chips were cut, None where onesided map did not cut them."""
    if not (run / CUTTING).exists():
        return None
    return Cutting.from_settings(read_json(run / CUTTING), str(run / CUTTING))


def check_images_fit(
    prepared: MapInput, run: Path, model: ModelDescription, cutting: Cutting | None
) -> None:
    """Refuse images whose bands are not those the model was trained on."""
    if len(model.sample_shape) != 3:
        raise DataError(f"The model in {run} was trained on numbers, not on images.")
    wanted, given = model.sample_shape[0], prepared.scene.channels
    if wanted != given:
        hint = " Is --pre missing?" if wanted == 2 * given else ""
        hint = " Leave --pre out?" if given == 2 * wanted else hint
        raise DataError(
            f"The model in {run} takes images of {wanted} bands, all images together; these have "
            f"{given}.{hint} Give the bands it was trained on, or train on these images."
        )
    trained = [len(image.low) for image in cutting.images] if cutting else []
    shown = [len(stretch.low) for stretch in prepared.stretches]
    if trained and shown and trained != shown:
        raise DataError(
            f"The model in {run} was trained on images of {trained} bands, one after the other; "
            f"these have {shown}. Give them as they were given then."
        )


def score_chips(
    run: Path, chips: Chips, prepared: MapInput, held_out: Bool[np.ndarray, "n"]
) -> MapTable:
    """Return the score of every building that can be seen."""
    predictor, _ = load_model(run)
    rows = np.flatnonzero(chips.kept)
    scores = np.full(len(chips.values), np.nan)
    if len(rows):
        scores[rows] = predictor.scores(Selection(chips.values, rows))
    if not np.isfinite(scores[rows]).all():
        raise CheckpointError(
            f"The model in {run} gives scores that are no numbers, so its weights are damaged. "
            "Restore them from a copy, or train again."
        )
    return MapTable(
        buildings=prepared.scene.buildings,
        scores=scores,
        marked=prepared.marked,
        held_out=held_out,
        reasons=chips.reasons,
        threshold=predictor.threshold,
    )


def held_out_rows(split: PUSplit, count: int) -> Bool[np.ndarray, "n"]:
    """Return which buildings a split keeps out of training."""
    held_out = np.zeros(count, bool)
    if split.held_out is not None:
        held_out[split.held_out.values.index] = True
    return held_out


@dataclass(frozen=True)
class MapFiles:
    """Where the parts of a map go: all beside the file that was asked for."""

    geopackage: Path | None
    geojson: Path
    style: Path
    summary: Path
    page: Path

    @classmethod
    def beside(cls, output: Path) -> "MapFiles":
        """Return the places, or say what is wrong with the one that was given."""
        ending = output.suffix.lower()
        if ending not in (".gpkg", ".geojson"):
            raise ConfigError(f"-o takes a file that ends in .gpkg or .geojson; got {output}.")
        if output.is_dir():
            raise OnesidedError(f"{output} is a folder, and -o takes a file.")
        above = next(place for place in output.absolute().parents if place.exists())
        if not above.is_dir():
            raise OnesidedError(
                f"{above} is a file, and {output} would lie inside it. Choose another place with "
                "-o."
            )
        return cls(
            geopackage=output if ending == ".gpkg" else None,
            geojson=output if ending == ".geojson" else output.with_suffix(".geojson"),
            style=output.with_suffix(".qml"),
            summary=output.with_name(SUMMARY),
            page=output.with_name(PAGE),
        )

    def check_apart(self, given: Mapping[str, Path]) -> None:
        """Refuse to write over what was given: footprints and map may bear one name.

        Args:
            given: What is read, by its flag; files that are there.
        """
        for flag, path in given.items():
            for written in self.paths():
                if written.exists() and written.samefile(path):
                    raise ConfigError(
                        f"The map would be written over {path}, which was given with {flag}. "
                        "Choose another name or folder with -o."
                    )

    def make_folder(self) -> None:
        """Make the folder that all of them lie in; called once what was given can be used."""
        make_folder(self.geojson.parent, instead="Choose another place with -o.")

    def paths(self) -> list[Path]:
        """Return all files, the one that was asked for first."""
        first = [self.geopackage] if self.geopackage else []
        return [*first, self.geojson, self.style, self.summary, self.page]


def write_files(
    files: MapFiles,
    table: MapTable,
    chips: Chips,
    prepared: MapInput,
    summary: Summary,
    warnings: tuple[str, ...] = (),
) -> None:
    """Write the map in all its forms."""
    if files.geopackage is not None:
        write_geopackage(table, files.geopackage)
    write_geojson(table, files.geojson)
    is_point = all(
        shape is None or shape.geom_type == "Point" for shape in table.buildings.geometries
    )
    write_text(files.style, style_text(is_point=is_point))
    write_summary(summary, files.summary)
    page = map_page(
        table,
        chips,
        summary,
        title=files.geojson.stem,
        after_from=prepared.after_from,
        sight=prepared.sight,
        warnings=warnings,
    )
    write_map(page, files.page)
