"""From the files that a person gives to a scene with marked buildings."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import Buildings, read_footprints
from onesided.geo.input.image import Stretch
from onesided.geo.input.imagery import Imagery
from onesided.geo.input.positives import Marks, marks_of_column, marks_of_ids, marks_of_layer
from onesided.geo.scene.chips import Scene
from onesided.geo.scene.footprint_scene import OutlinedImage, open_scene, size_warnings
from onesided.geo.scene.holdout import check_enough
from onesided.geo.scene.points import PointScene, add_marked_folder, read_points
from onesided.geo.scene.shift import shift_warning
from onesided.geo.scene.tiles import is_event, read_event

TABLES = (".csv", ".txt", ".tsv")


@dataclass(frozen=True)
class MapSources:
    """The files of a map and how to read them; None where a flag was left out."""

    image: Path | Imagery | None = None
    pre: Path | Imagery | None = None
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
    shift: tuple[float, float] = (0.0, 0.0)
    """Metres to the east and to the north by which footprints are moved before cutting."""

    def check(self, *, has_model: bool) -> None:
        """Refuse flags that are missing or do not go together."""
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
                "Which buildings are damaged? Give the marked ones with --positives, a CSV file of "
                "ids or a layer, or use a trained model with --model."
            )


@dataclass(frozen=True)
class MarkedScene:
    """A scene, and which of its buildings are marked.

    Attributes:
        warnings: About ids and marks that were left out.
        after_from: First channel of the image after the event.
        background: The image to show under the map, if there is one.
        stretches: How the values of each image become 0 to 255; none for pictures.
    """

    scene: Scene
    marked: Bool[np.ndarray, "n"]
    warnings: tuple[str, ...] = ()
    after_from: int = 0
    background: OutlinedImage | None = None
    stretches: tuple[Stretch, ...] = ()


def open_sources(
    stack: ExitStack,
    sources: MapSources,
    *,
    has_model: bool = False,
    stretches: tuple[Stretch, ...] = (),
) -> MarkedScene:
    """Open all files of a map; the stack closes the images at the end.

    With a finished model no building has to be marked, and the images are stretched as those
    that it was trained on (`stretches`).
    """
    sources.check(has_model=has_model)
    if sources.points is not None:
        opened = _open_points(sources, sources.points)
    else:
        opened = _open_footprints(stack, sources, stretches)
    if not has_model:
        if opened.marked.all():
            raise DataError(
                f"All {len(opened.marked)} buildings are marked, so there is none left to find. "
                "Give the footprints of all buildings of the place, damaged or not."
            )
        # before an hour of cutting
        check_enough(opened.marked, "are given", sources.positives)
    return opened


def _open_points(sources: MapSources, points: Path) -> MarkedScene:
    files = read_points(points)
    if sources.positives is not None and sources.positives.is_dir():
        files, marked = add_marked_folder(files, sources.positives)
        return MarkedScene(PointScene(files), marked)
    scene = PointScene(files)
    marks = _marks(sources, scene.buildings)
    return MarkedScene(scene, marks.marked, marks.warnings)


def _open_footprints(
    stack: ExitStack, sources: MapSources, stretches: tuple[Stretch, ...]
) -> MarkedScene:
    assert sources.image is not None
    assert sources.footprints is not None
    if is_event(sources.footprints):
        for image in (sources.image, sources.pre):
            if isinstance(image, Imagery):
                raise ConfigError(
                    f"With xBD label files, {image} has to be a folder of pictures or one picture."
                )
        assert not isinstance(sources.image, Imagery)
        assert not isinstance(sources.pre, Imagery)
        event = read_event(
            sources.footprints, sources.image, pre=sources.pre, margin=sources.margin
        )
        marks = _marks(sources, event.buildings)
        after_from = event.channels // 2 if sources.pre is not None else 0
        return MarkedScene(event, marks.marked, marks.warnings, after_from)
    buildings = read_footprints(
        sources.footprints,
        layer=sources.layer,
        id_column=sources.id_column,
        given_system=sources.footprints_crs,
    )
    scene = open_scene(
        stack,
        buildings,
        [path for path in (sources.pre, sources.image) if path is not None],
        margin=sources.margin,
        given_system=sources.image_crs,
        stretches=stretches,
        shift=sources.shift,
    )
    marks = _marks(sources, buildings)
    return MarkedScene(
        scene,
        marks.marked,
        warnings=(
            *imagery_warnings(sources),
            *buildings.warnings,
            *size_warnings(scene),
            *shift_warning(scene),
            *marks.warnings,
        ),
        after_from=scene.channels - scene.images[-1].image.bands,
        background=scene.images[-1],
        stretches=tuple(outlined.stretch for outlined in scene.images),
    )


def imagery_warnings(sources: MapSources) -> tuple[str, ...]:
    """Return what was decided about images of several files, and about the network."""
    images = (sources.pre, sources.image)
    return tuple(told for image in images if isinstance(image, Imagery) for told in image.warnings)


def _marks(sources: MapSources, buildings: Buildings) -> Marks:
    if sources.positives_column is not None:
        return marks_of_column(buildings, sources.positives_column)
    if sources.positives is None:
        return Marks(np.zeros(len(buildings), bool))
    if sources.positives.is_dir():
        raise ConfigError(
            f"{sources.positives} is a folder. With --footprints, --positives takes a CSV file of "
            "ids or a vector layer; a folder of crops goes with --points."
        )
    if sources.positives.suffix.lower() in TABLES:
        return marks_of_ids(buildings, sources.positives, sources.id_column)
    return marks_of_layer(buildings, sources.positives, layer_name=sources.positives_layer)
