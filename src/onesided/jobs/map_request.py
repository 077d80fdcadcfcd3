"""What `onesided map` was asked for, beside the settings of its training: `map.json` of a run.

The next round of a map reads the same images and footprints and writes the same kinds of files.
Local paths are kept in full, so that the command may be given from any folder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from onesided.core.config import Config
from onesided.core.errors import ConfigError
from onesided.geo.input.imagery import Imagery, find_imagery
from onesided.geo.output.page_content import PAGE_MEGABYTES
from onesided.geo.scene.sources import MapSources
from onesided.geo.scene.tiles import is_event
from onesided.jobs.settings import PathLike
from onesided.run.config import storable
from onesided.run.folder import MAP
from onesided.run.load import stored_path
from onesided.storage.atomic import read_json, write_text

FILES = ("output", "footprints", "points", "positives", "test", "areas")
"""Fields that name a local file or folder."""


class MapRequest(Config):
    """Everything that a map is made of but the model; None or nothing where a flag was left out."""

    output: str
    """File to write; the others go beside it."""
    image: tuple[str, ...] = ()
    """Images after the event: files, folders, archives or addresses."""
    pre: tuple[str, ...] = ()
    """Images before it."""
    footprints: str | None = None
    """File of buildings."""
    points: str | None = None
    """Folder of crops, or a CSV file of them."""
    positives: str | None = None
    """Damaged buildings."""
    positives_column: str | None = None
    """COLUMN=VALUE of the footprints."""
    positives_layer: str | None = None
    """Layer of the positives."""
    layer: str | None = None
    """Layer of the footprints."""
    id_column: str | None = None
    """Column with the id of each building."""
    footprints_crs: str | None = None
    """Coordinate system of the footprints."""
    image_crs: str | None = None
    """Coordinate system of the images."""
    shift: tuple[float, float] = (0.0, 0.0)
    """Metres to the east and to the north."""
    test: str | None = None
    """CSV file of true classes."""
    formats: tuple[str, ...] = ()
    """Endings of further files."""
    cells: float | None = None
    """Side of cells in metres."""
    areas: str | None = None
    """File of areas to count buildings in."""
    region: bool | None = None
    """Whether to work in pieces."""
    basemap: str | None = None
    """A map from the network that the page offers."""
    page_megabytes: float = PAGE_MEGABYTES
    """Room for sharp images beside the page."""

    def write(self, folder: Path) -> None:
        """Store it in a run folder, with local paths in full."""
        full = self.model_copy(
            update={
                "image": tuple(map(_in_full, self.image)),
                "pre": tuple(map(_in_full, self.pre)),
                **{name: _in_full(path) for name in FILES if (path := getattr(self, name))},
            }
        )
        write_text(folder / MAP, full.model_dump_json(indent=2))

    @classmethod
    def of(cls, run: Path) -> Self:
        """Return what the map of a run was asked for."""
        path = run / MAP
        if not path.exists():
            raise ConfigError(
                f"{run} does not say which images and buildings its map was made of: an earlier "
                "version wrote it. Export the answers (--export answers.csv), and give the map "
                "command again with another -o and --set data.answers=answers.csv."
            )
        return cls.from_settings(read_json(path), str(path))

    def beside(self, output: Path) -> Self:
        """Return the same request for another file."""
        return self.model_copy(update={"output": storable(str(output))})

    def sources(self) -> MapSources:
        """Return the files of the map; images that are several, or an archive, are found now."""
        return MapSources(
            image=self._imagery(self.image, "--image"),
            pre=self._imagery(self.pre, "--pre"),
            footprints=self.path("footprints"),
            points=self.path("points"),
            positives=self.path("positives"),
            positives_column=self.positives_column,
            positives_layer=self.positives_layer,
            layer=self.layer,
            id_column=self.id_column,
            footprints_crs=self.footprints_crs,
            image_crs=self.image_crs,
            shift=self.shift,
        )

    def _imagery(self, words: tuple[str, ...], flag: str) -> Path | Imagery | None:
        """Return the image that a flag names; pictures of an xBD event stay a folder."""
        if not words:
            return None
        footprints = self.path("footprints")
        found = [word if "://" in word else str(stored_path(word)) for word in words]
        if len(found) == 1 and (footprints is None or is_event(footprints)):
            return Path(found[0])
        return find_imagery(found, flag)

    def path(self, name: str) -> Path | None:
        """Return the file or folder that a field names; None where it names none."""
        return stored_path(getattr(self, name))

    def given(self) -> dict[str, Path]:
        """Return the local files that the map reads, by flag."""
        named = {name: self.path(name) for name in FILES if name != "output"}
        named |= {f"image {number}": Path(each) for number, each in enumerate(self.image)}
        return {
            f"--{name.split()[0]}": path
            for name, path in named.items()
            if path is not None and path.exists()
        }


def words_of(given: PathLike | Sequence[PathLike] | None) -> tuple[str, ...]:
    """Return one path or several as words that a file can hold."""
    if given is None:
        return ()
    return tuple(
        storable(str(each)) for each in ([given] if isinstance(given, str | Path) else given)
    )


def word_of(given: PathLike | None) -> str | None:
    """Return a path as a word that a file can hold."""
    return None if given is None else storable(str(given))


def _in_full(path: str) -> str:
    """Return a local path from the root on; an address of the network as it is."""
    return path if "://" in path else str(Path(path).absolute())
