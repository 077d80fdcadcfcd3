"""The files of a map, and how to write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onesided.core.errors import ConfigError, OnesidedError
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.layers import style_text, write_geojson, write_geopackage
from onesided.geo.output.page import write_map
from onesided.geo.output.page_content import PAGE_MEGABYTES, map_page
from onesided.geo.output.page_files import files_root
from onesided.geo.output.summary import Summary, write_summary
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.footprint_scene import FootprintScene
from onesided.geo.scene.sources import MarkedScene
from onesided.run.folder import make_folder
from onesided.storage.atomic import write_text

PAGE, SUMMARY = "map.html", "summary.csv"


def check_places(files: Sequence[Path]) -> None:
    """Refuse files that cannot be written where they belong, before hours are spent on them.

    The first is the one that was asked for; `PAGE` is among the others.
    """
    asked = files[0]
    if asked.is_dir():
        raise OnesidedError(f"{asked} is a folder, and -o takes a file.")
    above = next(folder for folder in asked.absolute().parents if folder.exists())
    if not above.is_dir():
        raise OnesidedError(
            f"{above} is a file, and {asked} would lie inside it. Choose another place with -o."
        )
    for file in files[1:]:
        if file.is_dir():
            raise OnesidedError(
                f"{file} is a folder, and the map would write a file of that name beside {asked}. "
                "Move it away, or choose another place with -o."
            )
    images = files_root(asked.with_name(PAGE))
    if images.exists() and not images.is_dir():
        raise OnesidedError(
            f"{images} is a file, and the map would make a folder of that name for the images of "
            f"{PAGE}. Move it away, or choose another place with -o."
        )


@dataclass(frozen=True)
class MapFiles:
    """Paths of the files of a map: all beside the file that was asked for."""

    geopackage: Path | None
    geojson: Path
    style: Path
    summary: Path
    page: Path

    @classmethod
    def beside(cls, output: Path) -> "MapFiles":
        """Return the paths, or refuse a file that cannot be written."""
        ending = output.suffix.lower()
        if ending not in (".gpkg", ".geojson"):
            raise ConfigError(
                "-o takes a file that ends in .gpkg or .geojson, and from footprints also "
                f"in .parquet or .fgb; got {output}."
            )
        files = cls(
            geopackage=output if ending == ".gpkg" else None,
            geojson=output if ending == ".geojson" else output.with_suffix(".geojson"),
            style=output.with_suffix(".qml"),
            summary=output.with_name(SUMMARY),
            page=output.with_name(PAGE),
        )
        check_places(files.paths())
        return files

    def check_apart(self, given: Mapping[str, Path]) -> None:
        """Refuse to overwrite files that were given, by flag: footprints may have the same name."""
        for flag, path in given.items():
            for written in self.paths():
                if written.exists() and written.samefile(path):
                    raise ConfigError(
                        f"The map would be written over {path}, which was given with {flag}. "
                        "Choose another name or folder with -o."
                    )

    def inside(self, folder: Path) -> "MapFiles":
        """Return the files of the same names in another folder."""
        layer = self.geopackage
        return MapFiles(
            geopackage=None if layer is None else folder / layer.name,
            geojson=folder / self.geojson.name,
            style=folder / self.style.name,
            summary=folder / self.summary.name,
            page=folder / self.page.name,
        )

    def make_folder(self) -> None:
        """Make the folder of the files; called once the input is known to be usable."""
        make_folder(self.geojson.parent, instead="Choose another place with -o.")

    def paths(self) -> list[Path]:
        """Return all files, the one that was asked for first."""
        first = [self.geopackage] if self.geopackage else []
        return [*first, self.geojson, self.style, self.summary, self.page]


def write_files(
    files: MapFiles,
    table: MapTable,
    chips: Chips,
    scene: MarkedScene,
    summary: Summary,
    warnings: tuple[str, ...] = (),
    *,
    basemap: Basemap | None = None,
    page_megabytes: float = PAGE_MEGABYTES,
) -> str | None:
    """Write all files of a map; return the folder of the page's images, relative to the page.

    `basemap` is a map from the network that the page offers; `page_megabytes` is the room for
    sharp images beside the page.
    """
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
        after_from=scene.after_from,
        images=scene.scene.images if isinstance(scene.scene, FootprintScene) else (),
        warnings=warnings,
        basemap=basemap,
        most_megabytes=page_megabytes,
    )
    return write_map(page, files.page)
