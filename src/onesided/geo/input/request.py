"""From what a person gives to buildings that can be seen, and who of them is marked."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import Buildings, read_footprints
from onesided.geo.input.image import Stretch
from onesided.geo.input.points import PointScene, add_marked_folder, read_points
from onesided.geo.input.positives import Marks, marks_of_column, marks_of_ids, marks_of_layer
from onesided.geo.input.tiles import TileScene, is_event, read_event
from onesided.geo.scene.chips import Scene
from onesided.geo.scene.footprint_scene import FootprintScene, Sight, open_scene
from onesided.geo.scene.holdout import check_enough

TABLES = (".csv", ".txt", ".tsv")


@dataclass(frozen=True)
class Request:
    """What the command was given; None where a flag was left out."""

    image: Path | None = None
    pre: Path | None = None
    footprints: Path | None = None
    points: Path | None = None
    positives: Path | None = None
    positives_column: str | None = None
    positives_layer: str | None = None
    layer: str | None = None
    id_column: str | None = None
    footprints_crs: str | None = None
    image_crs: str | None = None
    margin: float = 0.5

    def check(self, *, has_model: bool) -> None:
        """Say which flags are missing or do not go together."""
        if self.points is None and (self.image is None or self.footprints is None):
            raise ConfigError(
                "A map needs --image and --footprints, or --points with crops named LON_LAT."
            )
        if self.points is not None:
            for flag in ("image", "pre", "footprints", "positives_column", "layer"):
                if getattr(self, flag) is not None:
                    name = flag.replace("_", "-")
                    raise ConfigError(f"--{name} does not go with --points. Leave one of them out.")
        if self.positives is not None and self.positives_column is not None:
            raise ConfigError("Give --positives or --positives-column, not both.")
        if self.positives_layer is not None and (
            self.positives is None or self.positives.suffix.lower() in TABLES
        ):
            raise ConfigError(
                "--positives-layer names a layer of a vector file that is given with --positives."
            )
        if self.positives is None and self.positives_column is None and not has_model:
            raise ConfigError(
                "Who is damaged? Give the marked buildings with --positives, a CSV file of ids or "
                "a layer, or use a trained model with --model."
            )


@dataclass(frozen=True)
class MapInput:
    """Buildings that can be seen.

    Attributes:
        scene: The buildings, and how to see them.
        marked: Which are marked.
        warnings: What was left out of what was given.
        after_from: First channel of the image after the event.
        sight: The image to show under the map, if there is one.
        stretches: How the values of each image become 0 to 255; none for pictures.
    """

    scene: Scene
    marked: Bool[np.ndarray, "n"]
    warnings: tuple[str, ...] = ()
    after_from: int = 0
    sight: Sight | None = None
    stretches: tuple[Stretch, ...] = ()


def prepare(
    stack: ExitStack,
    request: Request,
    *,
    has_model: bool = False,
    stretches: tuple[Stretch, ...] = (),
) -> MapInput:
    """Open everything; the stack closes it.

    Args:
        stack: Keeps the images open.
        request: What was given.
        has_model: Whether nothing has to be trained, so that nobody needs to be marked.
        stretches: Those of the model, which take the place of the images' own.
    """
    request.check(has_model=has_model)
    if request.points is not None:
        prepared = _prepare_points(request, request.points)
    else:
        prepared = _prepare_footprints(stack, request, stretches)
    if prepared.marked.all() and not has_model:
        raise DataError(
            f"All {len(prepared.marked)} buildings are marked, so there is none left to find. "
            "Give the footprints of all buildings of the place, damaged or not."
        )
    if not has_model:
        check_enough(prepared.marked, "are given")  # before an hour of cutting
    return prepared


def _prepare_points(request: Request, points: Path) -> MapInput:
    files = read_points(points)
    if request.positives is not None and request.positives.is_dir():
        together = add_marked_folder(files, request.positives)
        return MapInput(PointScene(together.files), together.marked)
    scene = PointScene(files)
    marks = _marks(request, scene.buildings)
    return MapInput(scene, marks.marked, marks.warnings)


def _prepare_footprints(
    stack: ExitStack, request: Request, stretches: tuple[Stretch, ...]
) -> MapInput:
    assert request.image is not None
    assert request.footprints is not None
    scene: FootprintScene | TileScene
    if is_event(request.footprints):
        scene = read_event(
            request.footprints, request.image, pre=request.pre, margin=request.margin
        )
        after_from = scene.channels // 2 if request.pre is not None else 0
        sight: Sight | None = None
        used: tuple[Stretch, ...] = ()
    else:
        buildings = read_footprints(
            request.footprints,
            layer=request.layer,
            id_column=request.id_column,
            given_system=request.footprints_crs,
        )
        scene = open_scene(
            stack,
            buildings,
            [path for path in (request.pre, request.image) if path is not None],
            margin=request.margin,
            given_system=request.image_crs,
            stretches=stretches or None,
        )
        sight = scene.sights[-1]
        after_from = scene.channels - sight.image.bands
        used = tuple(each.stretch for each in scene.sights)
    marks = _marks(request, scene.buildings)
    warnings = (*scene.buildings.warnings, *marks.warnings)
    return MapInput(scene, marks.marked, warnings, after_from, sight, used)


def _marks(request: Request, buildings: Buildings) -> Marks:
    if request.positives_column is not None:
        return marks_of_column(buildings, request.positives_column)
    if request.positives is None:
        return Marks(np.zeros(len(buildings), bool))
    if request.positives.is_dir():
        raise ConfigError(
            f"{request.positives} is a folder. With --footprints, --positives takes a CSV file of "
            "ids or a vector layer; a folder of crops goes with --points."
        )
    if request.positives.suffix.lower() in TABLES:
        return marks_of_ids(buildings, request.positives, request.id_column)
    return marks_of_layer(buildings, request.positives, layer_name=request.positives_layer)
