"""Images to feature vectors by a frozen backbone, in a file: the job of `onesided embed`."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataNotFound, OnesidedError
from onesided.core.monitor import Monitor
from onesided.data.problem.dataset import Selection
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import Found, find_images, listed_file
from onesided.data.read.images import Size, check_readable, decode_all, survey_images
from onesided.data.read.picture import reading_up_to
from onesided.data.read.vectors import ENDINGS
from onesided.engine.train_config import choose_device
from onesided.jobs.settings import PathLike
from onesided.jobs.words import MOST_SKIPPED, skipped_lines
from onesided.nets.build import BackboneConfig
from onesided.run.embed import fill_store, frozen_backbone, keys_of
from onesided.run.embed_chunks import EmbeddingWork, embed_chunks, with_absolute_paths
from onesided.run.folder import STORE
from onesided.run.load import channel_statistics
from onesided.run.presets import PRETRAINED, SEARCHED_LAYERS, SIZES
from onesided.run.ray_engine import RayEngine, engine_named
from onesided.storage.atomic import replacing, replacing_by_name, write_text
from onesided.storage.features import ROWS, FeatureStore, StoredRows
from onesided.storage.lock import writing_alone
from onesided.storage.names import printable, shown_path
from onesided.storage.optional import library
from onesided.storage.table import csv_text, open_table


@dataclass(frozen=True)
class Embedded:
    """What `embed` wrote.

    Attributes:
        output: The file.
        names: Id of each row: the item's name.
        width: Numbers of a vector.
        skipped: Items that could not be read, with the reason.
        backbone: The backbone, in words.
    """

    output: Path
    names: tuple[str, ...]
    width: int
    skipped: tuple[tuple[str, str], ...]
    backbone: str


def embed(
    images: PathLike,
    output: PathLike,
    *,
    backbone: str = "efficientnet_lite0",
    weights: PathLike | None = None,
    layers: str = "auto",
    image_size: int = 0,
    tolerate: float = 0.05,
    largest_image: float | None = None,
    device: str = "auto",
    cache: PathLike | None = None,
    engine: str = "local",
    workers: int = 2,
    address: str | None = None,
    monitor: Monitor | None = None,
) -> Embedded:
    """Compute the feature vector of every image by a frozen backbone; write them to a file.

    The same call resumes a stopped one.

    Examples:
        >>> import onesided
        >>> found = onesided.embed("images", "features.npz")
        >>> found.width
        2048

    Args:
        images: Folder of images, or CSV file with a column `path`.
        output: File to write: .parquet (columns id and features), .npz (arrays id and features),
            or .npy (the vectors; their ids are then in a file NAME.ids.csv).
        backbone: Name of the network, also hf:FOLDER or onnx:FILE.
        weights: A .safetensors file, for a backbone without published weights.
        layers: Of efficientnet_lite0: last or several; auto takes several at 224 pixels, as a
            search does, so that `fit --cache` finds these features.
        image_size: Side to which images are read; 0 chooses as `fit` does, at most 224.
        tolerate: Share of unreadable files to accept.
        largest_image: Millions of pixels up to which images are read; None means 64.
        device: auto, cpu or cuda.
        cache: Folder that keeps decoded images and features, for `fit --cache` too. Without one
            they are kept until the file is written.
        engine: local, or ray for several processes and machines.
        workers: Processes of Ray.
        address: Of a Ray cluster that runs already; None starts Ray on this machine.
        monitor: Receives notices and progress.
    """
    output, monitor = Path(output), monitor or Monitor()
    by = engine_named(engine, workers=workers, address=address)
    if by is not None and device == "cuda":
        raise ConfigError("--engine ray embeds on processors; leave out --device cuda.")
    _check_output(output)
    settings = _frozen(backbone, weights, layers)
    settings.weights_file()  # or say what is missing, before anything is read
    partial = output.with_name(f"{output.name}.partial")
    keep = partial if cache is None else Path(cache)
    job = _Job(Path(images), image_size, tolerate, keep, settings, monitor)
    with writing_alone(output), reading_up_to(largest_image):
        if by is None:
            found = job.in_this_process(device)
        else:
            found = job.by_workers(by, partial, largest_image)
        _write(output, found.names, found.rows)
        if partial.exists() and (cache is None or by is not None):
            shutil.rmtree(partial)
    for sentence in (*found.notices, *skipped_lines(found.skipped[:MOST_SKIPPED])):
        monitor.note(sentence)
    return Embedded(output, found.names, found.rows.shape[1], found.skipped, found.backbone)


def _frozen(backbone: str, weights: PathLike | None, layers: str) -> BackboneConfig:
    """Return the frozen backbone; what a search would take, where nothing else is asked for."""
    given: dict[str, object] = {"name": backbone, "freeze": True}
    if weights:
        given["weights"] = str(weights)
    if layers != "auto":
        given["layers"] = layers
    elif backbone == PRETRAINED:
        given |= {"layers": SEARCHED_LAYERS, "resize": SIZES[0]}
    return BackboneConfig.from_settings(given, "backbone")


def _check_output(output: Path) -> None:
    """Refuse what cannot be written before hours are spent."""
    if output.suffix.lower() not in ENDINGS:
        raise ConfigError(f"-o is {output}; expected a file that ends in {', '.join(ENDINGS)}.")
    if output.is_dir() or not output.parent.is_dir():
        raise OnesidedError(
            f"{output} cannot be written: it is a folder, or its folder is missing."
        )
    if output.suffix.lower() == ".parquet":
        library("pyarrow", "Writing a Parquet file")


@dataclass(frozen=True)
class _Found:
    """Features of all images that can be read, and what was found out about the files."""

    names: tuple[str, ...]
    rows: StoredRows
    skipped: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    backbone: str


@dataclass(frozen=True)
class _Job:
    """Images, the backbone, and the folder in which decoded images and features are kept."""

    images: Path
    image_size: int
    tolerate: float
    keep: Path
    settings: BackboneConfig
    monitor: Monitor

    def in_this_process(self, device: str) -> _Found:
        """Decode all images, then embed them."""
        with self.monitor.phase("reading") as phase:
            decoded = decode_all(
                _files_of(self.images),
                size=self._size(),
                tolerate=self.tolerate,
                what=shown_path(self.images),
                progress=phase,
                cache=DecodeCache(self.keep),
            )
        values = Selection(decoded.values, np.arange(len(decoded.values)))
        embedder = frozen_backbone(self.settings, values.sample_shape, *channel_statistics(values))
        words = self._tell_backbone(values.sample_shape)
        store = FeatureStore(self.keep / STORE, embedder.identity(), embedder.width)
        keys, where = keys_of(values), choose_device(device)  # type: ignore[arg-type]
        with self.monitor.phase("embedding") as phase:
            fill_store(store, embedder, values, keys, where, phase)
        names = tuple(map(printable, decoded.kept))
        return _Found(names, store.rows(keys), decoded.skipped, decoded.notices, words)

    def by_workers(self, engine: RayEngine, folder: Path, largest_image: float | None) -> _Found:
        """Read the headers here, and let workers of Ray decode and embed chunks of images."""
        files, what = _files_of(self.images), shown_path(self.images)
        with self.monitor.phase("reading headers") as phase:
            survey = survey_images(
                files, size=self._size(), tolerate=self.tolerate, what=what, progress=phase
            )
        shape, store = survey.shape[1:], (self.keep / STORE).resolve()
        work = EmbeddingWork(with_absolute_paths(self.settings), shape, store, largest_image)
        words = self._tell_backbone(shape)
        with self.monitor.phase("embedding") as phase:
            done = embed_chunks(engine, work, files, survey, folder, phase)
        notices = survey.notices_after(done.outcomes)
        read = list(zip(files, survey.all(done.outcomes), strict=True))
        skipped = tuple((file.name, outcome.reason) for file, outcome in read if outcome.reason)
        check_readable(what, len(files), skipped, self.tolerate)
        names = tuple(printable(file.name) for file, outcome in read if not outcome.reason)
        return _Found(names, done.rows, skipped, notices, words)

    def _size(self) -> Size:
        return (self.image_size, self.image_size) if self.image_size else SIZES[0]

    def _tell_backbone(self, shape: tuple[int, ...]) -> str:
        words = self.settings.in_words(shape).removesuffix(", frozen under a head")
        self.monitor.note(f"Features are those of {words}.")
        return words


def _files_of(images: Path) -> list[Found]:
    if images.is_dir():
        return find_images(images)
    if not images.is_file():
        raise DataNotFound(f"There is no folder {shown_path(images)}. Check its name.")
    table = open_table(images, needed="path")
    return [listed_file(table, row)[0] for row in table.rows()]


def _write(output: Path, names: tuple[str, ...], rows: StoredRows) -> None:
    """Write ids and vectors; only a chunk is in memory, but for an .npz file."""
    ending = output.suffix.lower()
    if ending == ".parquet":
        _write_parquet(output, names, rows)
        return
    with replacing(output) as file:
        if ending == ".npz":
            ids = np.array(names, dtype=np.str_)
            np.savez(file, allow_pickle=False, id=ids, features=rows[slice(None)])
            return
        header = {"descr": "<f4", "fortran_order": False, "shape": rows.shape}
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in _chunks(rows):
            file.write(chunk.tobytes())
    write_text(output.with_suffix(".ids.csv"), csv_text(("id",), ((name,) for name in names)))


def _write_parquet(output: Path, names: tuple[str, ...], rows: StoredRows) -> None:
    pyarrow = library("pyarrow", "Writing a Parquet file")
    parquet = library("pyarrow.parquet", "Writing a Parquet file")
    vector = pyarrow.list_(pyarrow.float32(), rows.shape[1])
    schema = pyarrow.schema([("id", pyarrow.string()), ("features", vector)])
    with (
        replacing_by_name(output) as temporary,
        parquet.ParquetWriter(str(temporary), schema) as writer,
    ):
        for number, chunk in enumerate(_chunks(rows)):
            flat = pyarrow.array(chunk.ravel())
            lists = pyarrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])
            ids = list(names[number * ROWS : (number + 1) * ROWS])
            writer.write_table(pyarrow.table([ids, lists], schema=schema))


def _chunks(rows: StoredRows) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), ROWS):
        yield rows[slice(start, start + ROWS)]
