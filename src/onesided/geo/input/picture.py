"""PNG and JPEG with a world file: small images, read at once, without GDAL.

A world file lies beside the picture (`scene.pgw`, `scene.jgw` or `scene.wld`) and holds six
numbers, one in each line; a `.prj` file beside it names the coordinate system.
"""

from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from onesided.core.errors import DataError
from onesided.data.read.picture import decode, opaque_parts, read_header
from onesided.geo.input.coordinates import System, known_system, system
from onesided.geo.input.image import ImageWindow


class Picture:
    """A plain picture and its place; see `OpenImage`."""

    is_eight_bit = True

    def __init__(self, path: Path, matrix: tuple[float, ...], its_system: System) -> None:
        self.path, self.matrix, self.system = path, matrix, its_system
        # A world file tells of pixels as they are stored, whatever a camera noted beside them.
        header = read_header(path, upright=False)
        self.bands, self.height, self.width = header.channels, header.height, header.width
        self.block = (self.height, self.width)

    @cached_property
    def pixels(self) -> UInt8[np.ndarray, "bands height width"]:
        """Everything, decoded when first needed."""
        return decode(self.path, upright=False)

    @cached_property
    def opaque(self) -> Bool[np.ndarray, "height width"]:
        """Where the picture is not transparent."""
        return opaque_parts(self.path)

    def read(self, left: int, top: int, right: int, bottom: int, *, shrink: int = 1) -> ImageWindow:
        """Return pixels, or every so manyth of them."""
        values = self.pixels[:, top:bottom:shrink, left:right:shrink]
        return ImageWindow(values, self.opaque[top:bottom:shrink, left:right:shrink])


def located_picture(path: Path, given_system: str | None) -> Picture:
    """Return a picture whose place a world file tells."""
    named = path.with_suffix(".prj")
    found = None
    if named.is_file():
        found = known_system(named.read_text(encoding="utf-8", errors="replace").strip())
    if found is None and given_system:
        found = system(given_system)
    matrix = _world_file(path)
    if found is None:
        raise DataError(
            f"{path} does not say in which coordinate system its world file is. Name it with "
            "--image-crs, for example --image-crs EPSG:32615."
        )
    return Picture(path, matrix, found)


def _world_file(path: Path) -> tuple[float, ...]:
    ending = path.suffix.lower()
    for name in (f".{ending[1]}{ending[-1]}w", f"{ending}w", ".wld"):
        place = path.with_suffix(name)
        if place.is_file():
            break
    else:
        raise DataError(
            f"{path} does not say where on Earth it is: a picture needs a world file beside it, "
            f"{path.with_suffix('.wld').name}. Or give a GeoTIFF."
        )
    try:
        a, d, b, e, x, y = (float(word) for word in place.read_text(encoding="ascii").split())
    except ValueError:
        raise DataError(f"{place} is not a world file: expected six numbers.") from None
    # A world file gives the middle of the first pixel, we count from its corner.
    return a, b, x - (a + b) / 2, d, e, y - (d + e) / 2
