"""What is fuzzed: every reader of files, and every command that takes one.

A target names one file. The campaign puts a damaged one in its place and lets the target act. It
may refuse, by an error of ours; it may accept, and then `act` asserts that what was accepted keeps
the reader's promises. Everything else is a fault.
"""

import contextlib
import gzip
import io
import json
import pickle
import random
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from onesided.core.errors import OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from tests.campaigns.mutation import mutated, mutated_json, mutated_text
from tests.cli.command import call
from tests.cli.pictures import draw

Mutation = Callable[[Sequence[bytes], random.Random], bytes]

RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(24, 3)).astype(np.float32)
WORDS = ["positive"] * 12 + ["unlabelled"] * 12


@dataclass(frozen=True)
class Target:
    """One file, the sound contents it may have, and what is done with it.

    Attributes:
        path: The file that is damaged.
        corpus: Sound contents.
        act: Reads it; raises, or asserts that what came is sound.
        mutate: How contents are damaged.
        after: Called after each input, to restore what a command changed.
    """

    path: Path
    corpus: tuple[bytes, ...]
    act: Callable[[], object]
    mutate: Mutation = mutated
    after: Callable[[], object] = lambda: None


Maker = Callable[[Path], Target]


# Images -------------------------------------------------------------------------------------


def _picture(mode: str, kind: str, **options: object) -> bytes:
    pixels = np.random.default_rng(1).integers(0, 255, (9, 7, 4), dtype=np.uint8)
    image = (
        Image.fromarray(pixels, "RGBA").convert(mode)
        if mode != "I;16"
        else Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    )
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _images() -> dict[str, tuple[bytes, ...]]:
    exif = Image.Exif()
    exif[0x0112] = 6
    return {
        "png": tuple(
            _picture(mode, "PNG") for mode in ("L", "RGB", "RGBA", "P", "1", "LA", "I;16")
        ),
        "jpeg": (
            *(_picture(mode, "JPEG") for mode in ("L", "RGB", "CMYK")),
            _picture("RGB", "JPEG", exif=exif, progressive=True),
        ),
        "bmp": (_picture("L", "BMP"), _picture("RGB", "BMP"), _picture("P", "BMP")),
        "gif": (_picture("P", "GIF"), _picture("L", "GIF")),
        "webp": (_picture("RGB", "WEBP"), _picture("RGBA", "WEBP", lossless=True)),
        "ppm": (_picture("L", "PPM"), _picture("RGB", "PPM"), b"P3\n2 1\n255\n1 2 3 4 5 6\n"),
        "tiff": (
            *(_picture(mode, "TIFF") for mode in ("L", "RGB", "RGBA", "CMYK", "I;16")),
            _picture("RGB", "TIFF", compression="tiff_lzw"),
            _picture("RGB", "TIFF", compression="jpeg"),
        ),
        "tiff of bands": tuple(_bands(count, kind) for count in (2, 5, 6) for kind in ("u1", "u2")),
    }


def _bands(count: int, kind: str) -> bytes:
    import tifffile

    file = io.BytesIO()
    pixels = np.random.default_rng(2).integers(0, 255, (8, 6, count)).astype(kind)
    tifffile.imwrite(file, pixels, photometric="minisblack", planarconfig="contig")
    return file.getvalue()


def _image(kind: str, folder: Path) -> Target:
    from onesided.data.read.picture import decode, opaque_parts, read_header

    ending = {"jpeg": "jpg", "tiff": "tif", "tiff of bands": "tif"}.get(kind, kind)
    path = folder / f"image.{ending}"

    def act() -> None:
        header = read_header(path)
        pixels = decode(path)
        assert pixels.dtype == np.uint8
        assert pixels.shape == (header.channels, header.height, header.width)
        assert pixels.size
        assert decode(path, size=(4, 4)).shape == (header.channels, 4, 4)
        opaque_parts(path)

    return Target(path, _images()[kind], act)


def _geo_image(folder: Path) -> Target:
    from onesided.geo.input.image import choose_stretch, edge_in_degrees, open_image, overview
    from tests.geo.rasters import noise, write_tiff

    path = folder / "scene.tif"
    skewed = (1, 0.2, 500_000, 0.1, -1, 3_300_000)
    corpus = []
    for options in (
        {},
        {"crs": "EPSG:4326", "transform": (1e-4, 0, 13, 0, -1e-4, 52)},
        {"transform": skewed},
        {"nodata": 0},
        {"compress": "lzw"},
    ):
        corpus.append(write_tiff(path, noise(1, height=20, width=30), **options).read_bytes())

    def act() -> None:
        with open_image(path) as image:
            west, south, east, north = edge_in_degrees(image)
            assert -360 <= west <= east <= 720
            assert -90 <= south <= north <= 90
            choose_stretch(image, overview(image, 16))

    return Target(path, tuple(corpus), act)


def _world_file(folder: Path) -> Target:
    from onesided.geo.input.image import edge_in_degrees, open_image

    image, path = folder / "scene.png", folder / "scene.pgw"
    draw(image, 1)
    (folder / "scene.prj").write_text("EPSG:32615")

    def act() -> None:
        with open_image(image) as opened:
            assert np.isfinite(edge_in_degrees(opened)).all()

    return Target(path, (b"1\n0\n0\n-1\n500000\n3300000\n",), act, mutated_text)


# Vectors of places --------------------------------------------------------------------------


def _square(x: float, y: float, side: float = 0.001) -> list[list[list[float]]]:
    return [[[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]]


def _geojson() -> bytes:
    properties = {"id": 7, "height": 2.5, "street": "Main", "seen": None, "tags": ["a"]}
    shapes: list[object] = [
        {"type": "Polygon", "coordinates": _square(13.0 + 0.01 * row, 52.0)} for row in range(4)
    ]
    shapes += [
        {"type": "MultiPolygon", "coordinates": [_square(13.1, 52.1), _square(13.2, 52.1)]},
        {"type": "Point", "coordinates": [13.3, 52.3]},
        {"type": "GeometryCollection", "geometries": []},
        None,
    ]
    features = [
        {"type": "Feature", "id": row, "geometry": shape, "properties": {**properties, "id": row}}
        for row, shape in enumerate(shapes)
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    return json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}).encode()


def _writes_a_map(path: Path, out: Path) -> None:
    """Assert that accepted footprints can be written as a map: after training it is too late."""
    from onesided.geo.input.footprints import read_footprints
    from onesided.geo.output.layers import write_geojson, write_geopackage
    from onesided.geo.output.table import MapTable

    buildings = read_footprints(path)
    count = len(buildings)
    assert len(set(buildings.names)) == count
    scores = np.linspace(0, 1, count)
    marked = np.arange(count) % 2 == 0
    table = MapTable(buildings, scores, marked, ~marked, {}, 0.5)
    write_geojson(table, out / "map.geojson")
    write_geopackage(table, out / "map.gpkg")
    json.loads((out / "map.geojson").read_text())


def _footprints_geojson(folder: Path) -> Target:
    path = folder / "footprints.geojson"
    return Target(path, (_geojson(),), partial(_writes_a_map, path, folder), mutated_json)


def _footprints_by_gdal(ending: str, folder: Path) -> Target:
    import pyogrio  # type: ignore[import-untyped, unused-ignore]
    import shapely  # type: ignore[import-untyped, unused-ignore]

    path = folder / f"footprints.{ending}"
    boxes = [shapely.box(row, 0, row + 0.5, 1) for row in range(5)]
    shapes = np.array([shapely.to_wkb(box) for box in boxes], dtype=object)
    pyogrio.raw.write(
        path,
        shapes,
        [np.arange(5), np.array(list("abcde"), object)],
        fields=["id", "street"],
        geometry_type="Polygon",
        crs="EPSG:4326",
    )
    return Target(path, (path.read_bytes(),), partial(_writes_a_map, path, folder))


def _marks(folder: Path) -> Target:
    from onesided.geo.input.footprints import read_footprints
    from onesided.geo.input.positives import marks_of_ids, read_truth

    places, path = folder / "places.geojson", folder / "marks.csv"
    places.write_bytes(_geojson())
    buildings = read_footprints(places)

    def act() -> None:
        marks = marks_of_ids(buildings, path)
        assert marks.marked.shape == (len(buildings),)
        assert set(read_truth(path).values()) <= {POSITIVE, NEGATIVE, UNKNOWN}

    corpus = b"id,label\n0,positive\n1,negative\n2,positive\n", b"id\n1\n2\n"
    return Target(path, corpus, act, mutated_text)


# Tables, vectors, texts ---------------------------------------------------------------------


def _table_rows() -> bytes:
    rows = [
        f"{word},{a:.3f},{b:.3f},{'red' if row % 2 else 'blue'},2024-01-{row + 1:02d}"
        for row, (word, (a, b, _)) in enumerate(zip(WORDS, VECTORS.tolist(), strict=True))
    ]
    return "\n".join(["label,size,weight,colour,day", *rows, ""]).encode()


def _numbers_table() -> bytes:
    rows = [f"{w};{a:.3f};{b:.3f}" for w, (a, b, _) in zip(WORDS, VECTORS.tolist(), strict=True)]
    return "\n".join(["label;size;weight", *rows, ""]).encode()


def _sound(found: object) -> None:
    from onesided.data.read.folder import OneSided

    assert isinstance(found, OneSided)
    samples = found.samples
    assert len(samples.values) == len(samples.classes) == len(samples.names) == len(found.labelled)
    assert set(np.unique(samples.classes).tolist()) <= {POSITIVE, NEGATIVE, UNKNOWN}
    if samples.values.dtype.kind == "f" and not samples.columns:  # a raw table may have gaps
        assert np.isfinite(samples.values).all()


def _csv(folder: Path) -> Target:
    from onesided.data.read.table import read_table

    path = folder / "table.csv"
    corpus = _table_rows(), _numbers_table()
    return Target(path, corpus, lambda: _sound(read_table(path)), mutated_text)


def _csv_of_files(folder: Path) -> Target:
    from onesided.data.read.table import read_table

    for number in range(6):
        draw(folder / f"{number}.png", number)
    path = folder / "files.csv"
    rows = "".join(f"{n}.png,{'positive' if n < 3 else 'unlabelled'}\n" for n in range(6))
    corpus = (f"path,label\n{rows}".encode(),)
    return Target(path, corpus, lambda: _sound(read_table(path)), mutated_text)


def _vector_bytes(kind: str) -> tuple[bytes, ...]:
    file = io.BytesIO()
    if kind == "npy":
        np.save(file, VECTORS)
        return (file.getvalue(), _header_bomb(), _objects())
    if kind == "npz":
        np.savez_compressed(file, features=VECTORS, id=np.arange(24).astype(str), label=WORDS)
        plain = io.BytesIO()
        np.savez(plain, features=VECTORS)
        return file.getvalue(), plain.getvalue()
    import pyarrow
    import pyarrow.parquet

    columns = {"id": list(range(24)), "label": WORDS, "features": VECTORS.tolist()}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return (file.getvalue(),)


def _header_bomb() -> bytes:
    """An .npy file of a few bytes that asks for an exabyte."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 100000000), }\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def _objects() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return file.getvalue()


def _vectors(kind: str, folder: Path) -> Target:
    from onesided.data.read.vectors import read_vector_file

    path = folder / f"vectors.{kind}"

    def act() -> None:
        found = read_vector_file(path)
        assert found.values.ndim == 2
        assert np.isfinite(found.values).all()
        assert len(set(found.names)) == len(found.values)

    return Target(path, _vector_bytes(kind), act)


def _text(folder: Path) -> Target:
    from onesided.data.read.text_folders import read_text_folders

    for side in ("P", "U"):
        for number in range(4):
            file = folder / side / f"{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"words of {side} {number}")
    path = folder / "U" / "3.txt"
    corpus = ("Grüße aus Köln\nzweite Zeile".encode(), b"plain words", "\ufeffmark".encode())
    read = partial(read_text_folders, folder / "P", folder / "U", tolerate=0.5)
    return Target(path, corpus, lambda: _sound(read()), mutated_text)


def _labels(folder: Path) -> Target:
    from onesided.run.evaluate import read_labels

    path = folder / "labels.csv"

    def act() -> None:
        labels = read_labels(path)
        assert labels
        assert set(labels.values()) <= {POSITIVE, NEGATIVE}

    return Target(path, (b"item,label\na.png,positive\nb.png,negative\n",), act, mutated_text)


# Published files ----------------------------------------------------------------------------


def _idx(folder: Path) -> Target:
    from onesided.data.sources.idx import read_idx

    path = folder / "images.gz"
    plain = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3]) + bytes(18)

    def act() -> None:
        assert read_idx(path, dimensions=3).ndim == 3

    return Target(path, (gzip.compress(plain),), act)


def _pickled(folder: Path) -> Target:
    from onesided.data.sources.safe_pickle import read_pickle

    path = folder / "batch"
    content = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 1]}
    return Target(path, tuple(pickle.dumps(content, p) for p in (2, 4)), lambda: read_pickle(path))


def _damage_labels(folder: Path) -> Target:
    from onesided.data.sources.xbd.labels import read_outlined

    path = folder / "tile.json"
    shape = "POLYGON ((1 1, 9 1, 9 9, 1 9, 1 1))"
    feature = {
        "properties": {"feature_type": "building", "subtype": "destroyed", "uid": "a"},
        "wkt": shape,
    }
    content = {
        "features": {"xy": [feature], "lng_lat": []},
        "metadata": {"width": 1024, "height": 1024},
    }
    return Target(path, (json.dumps(content).encode(),), lambda: read_outlined(path), mutated_json)


# Settings and files of ours -----------------------------------------------------------------


def _settings(folder: Path) -> Target:
    from onesided.core.config import read_toml
    from onesided.run.presets import plan_run

    path = folder / "settings.toml"
    text = (
        'prior = 0.3\nseed = 3\n[data]\nname = "table"\ntable = "a.csv"\nheld_out = 0.2\n'
        '[method]\nname = "nnpu"\nalignment_weight = 2.0\n[train]\nepochs = 5\nbatch_size = 64\n'
        'learning_rate = 0.01\n[backbone]\nname = "small"\nwidth = 0.5\n'
    )
    return Target(path, (text.encode(),), lambda: plan_run(read_toml(path), None), mutated_text)


def trained(folder: Path) -> Path:
    """Return a finished run on vectors in this folder, beside its table."""
    return Path(shutil.copytree(_trained_once().name, folder, dirs_exist_ok=True)) / "run"


@lru_cache
def _trained_once() -> TemporaryDirectory[str]:
    """Return a folder with a finished run, with a comparison; it takes two seconds."""
    place = TemporaryDirectory()
    table, run = Path(place.name) / "own.csv", Path(place.name) / "run"
    table.write_bytes(_numbers_table())
    training = ("--method", "ce", "--epochs", "2", "--device", "cpu", "--set", "data.held_out=0.4")
    words = ("fit", "--table", table, "-o", run, *training, "--compare", "nnpu", "--prior", "0.4")
    outcome = call(*words, "--quiet", "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    return place


def prepare() -> None:
    """Load and train what all targets share, so that no input pays for it."""
    import onesided.estimator
    import onesided.geo.output.files
    import onesided.jobs.embed
    import onesided.jobs.map  # noqa: F401

    _trained_once()


def _of_run(name: str, mutation: Mutation, act: Callable[[Path], object], folder: Path) -> Target:
    """Return a target that damages one file of a finished run, which `act` only reads."""
    run = trained(folder)
    return Target(run / name, ((run / name).read_bytes(),), lambda: act(run), mutation)


def _at_run(name: str, mutation: Mutation, act: Callable[[Path], object], folder: Path) -> Target:
    """Return a target that damages one file of a finished run, and puts the run back after."""
    run, kept = trained(folder), folder / "kept"
    shutil.copytree(run, kept)

    def restore() -> None:
        shutil.rmtree(run)
        shutil.copytree(kept, run)

    return Target(run / name, ((run / name).read_bytes(),), lambda: act(run), mutation, restore)


def _read_result(run: Path) -> None:
    from rich.console import Console

    from onesided.cli.show import comparison_table, result_tables, warn_of
    from onesided.run.compare import read_comparison
    from onesided.run.folder import read_result

    result = read_result(run)
    console = Console(file=io.StringIO())
    for table in result_tables(result):
        console.print(table)
    rows = read_comparison(run)
    if rows:
        console.print(comparison_table(rows))
    with contextlib.redirect_stderr(io.StringIO()):
        warn_of(result)


def _read_scored(run: Path) -> None:
    from onesided.run.scored import Scored

    scored = Scored.load(run / "scores.npz")
    assert ((scored.unlabelled >= 0) & (scored.unlabelled <= 1)).all()


def _read_run(run: Path) -> None:
    from onesided.report.runfiles import read_run

    files = read_run(run)
    assert files.ranking is None or np.isfinite(files.ranking.scores).all()


def _read_model(run: Path) -> None:
    from onesided.engine.model_file import load_model

    predictor, description = load_model(run, "cpu")
    shape = description.sample_shape
    scores = predictor.scores(np.zeros((2, *shape), np.float32))
    assert scores.shape == (2,)


def _read_estimator(run: Path) -> None:
    from onesided import PUClassifier

    PUClassifier.load(run, device="cpu")


# Commands -----------------------------------------------------------------------------------


def _command(*words: object) -> None:
    """Run a command; it succeeds, or says why not in one sentence."""
    outcome = call(*words)
    assert outcome.exit_code in (0, 2, 3), outcome
    assert "Traceback" not in outcome.err
    if outcome.exit_code == 2:
        sentence = outcome.err.rstrip("\n").rpartition("\n")[2]
        assert sentence.startswith("onesided: "), outcome.err
        raise OnesidedError(sentence)


def _evaluate(run: Path) -> None:
    labels = run.parent / "labels.csv"
    labels.write_text("item,label\nown.csv:20,positive\nown.csv:21,negative\n")
    try:
        _command("evaluate", run, "--labels", labels)
    finally:  # the other one too, where this one refuses
        _command("evaluate", run, "--threshold", "0.4")


def _rank(run: Path) -> None:
    _command("rank", run, run.parent / "own.csv", "-o", run.parent / "ranked.csv", "--quiet")


def _fit_table(folder: Path) -> Target:
    path, run = folder / "table.csv", folder / "run"
    training = ("--method", "ce", "--epochs", "1", "--device", "cpu", "--quiet")
    act = partial(_command, "fit", "--table", path, "-o", run, *training)
    clean = partial(shutil.rmtree, run, ignore_errors=True)
    return Target(path, (_table_rows(), _numbers_table()), act, mutated_text, clean)


def _fit_vectors(folder: Path) -> Target:
    path, run = folder / "own.npz", folder / "run"
    training = ("--method", "ce", "--epochs", "1", "--device", "cpu", "--quiet")
    act = partial(_command, "fit", "--table", path, "-o", run, *training)
    clean = partial(shutil.rmtree, run, ignore_errors=True)
    return Target(path, _vector_bytes("npz"), act, after=clean)


def _fit_images(folder: Path) -> Target:
    for number in range(24):
        draw(folder / ("P" if number < 12 else "U") / f"{number}.png", number)
    path, run = folder / "U" / "23.png", folder / "run"
    small = ("--set", "backbone.width=0.125", "--set", "train.batch_size=8", "--tolerate", "0.1")
    training = ("--method", "ce", "--epochs", "1", "--device", "cpu", "--quiet", *small)
    act = partial(_command, "fit", "-p", folder / "P", "-u", folder / "U", "-o", run, *training)
    clean = partial(shutil.rmtree, run, ignore_errors=True)
    return Target(path, _images()["png"], act, after=clean)


def _fit_settings(folder: Path) -> Target:
    table, path, run = folder / "own.csv", folder / "settings.toml", folder / "run"
    table.write_bytes(_numbers_table())
    text = '[method]\nname = "ce"\n[train]\nepochs = 1\nbatch_size = 8\nlearning_rate = 0.01\n'
    act = partial(
        _command, "fit", "--table", table, "--config", path, "-o", run, "--quiet", "--epochs", "1"
    )
    clean = partial(shutil.rmtree, run, ignore_errors=True)
    return Target(path, (text.encode(),), act, mutated_text, clean)


def _prior(folder: Path) -> Target:
    path = folder / "table.csv"
    act = partial(_command, "prior", "--table", path, "--quiet")
    return Target(path, (_numbers_table(),), act, mutated_text)


def _rank_items(folder: Path) -> Target:
    run, path = trained(folder), folder / "items.csv"
    act = partial(_command, "rank", run, path, "-o", folder / "ranked.csv", "--quiet")
    rest = folder / "ranked.csv.partial"
    clean = partial(shutil.rmtree, rest, ignore_errors=True)
    return Target(path, (_numbers_table(),), act, mutated_text, clean)


def _embed(folder: Path) -> Target:
    from onesided.nets.pretrained import published_file

    published_file()
    for number in range(3):
        draw(folder / "images" / f"{number}.png", number)
    path = folder / "images" / "3.png"
    words = ("embed", folder / "images", "-o", folder / "features.npz", "--quiet")
    return Target(path, _images()["png"], partial(_command, *words))


def _map_footprints(folder: Path) -> Target:
    from tests.geo.fake_scene import write_geotiff_scene

    scene = write_geotiff_scene(folder / "scene", seed=1, size=128, buildings=24, marked=10)
    run, path = folder / "out", folder / "footprints.geojson"
    training = ("--method", "ce", "--epochs", "1", "--quiet", "--size", "16")
    given = ("--image", scene.post, "--footprints", path, "--positives", scene.positives)
    act = partial(_command, "map", *given, "-o", run / "map.geojson", *training)
    clean = partial(shutil.rmtree, run, ignore_errors=True)
    return Target(path, (scene.geojson.read_bytes(),), act, mutated_json, clean)


def _audit(name: str, mutation: Mutation, folder: Path) -> Target:
    """Return a target that damages a file of an audit, of which some items are answered."""
    run, kept = trained(folder), folder / "kept"
    assert call("audit", run, "draw", "--size", "8").exit_code == 0
    first, *rows = (run / "audit.csv").read_text().splitlines()
    answers = ("positive", "negative", "unsure")
    filled = [row.replace(",,", f",{answers[number % 3]},", 1) for number, row in enumerate(rows)]
    (run / "audit.csv").write_text("\n".join([first, *filled[:6], *rows[6:], ""]))
    shutil.copytree(run, kept)

    def act() -> None:
        try:
            _command("audit", run, "estimate", "--quiet")
        finally:  # drawing refuses what estimating does, or keeps the answers
            _command("audit", run, "draw", "--size", "10", "--quiet")

    def restore() -> None:
        shutil.rmtree(run)
        shutil.copytree(kept, run)

    return Target(run / name, ((run / name).read_bytes(),), act, mutation, restore)


OF_REPORT: dict[str, Mutation] = {
    "result.json": mutated_json,
    "report.npz": mutated,
    "manifest.json": mutated_json,
    "compare.json": mutated_json,
    "scores.csv": mutated_text,
    "log.jsonl": mutated_text,
}
"""Files that a report is made from."""

READERS: dict[str, Maker] = {
    **{f"image {kind}": partial(_image, kind) for kind in _images()},
    "image of a map": _geo_image,
    "world file": _world_file,
    "footprints GeoJSON": _footprints_geojson,
    "footprints GeoPackage": partial(_footprints_by_gdal, "gpkg"),
    "footprints Shapefile": partial(_footprints_by_gdal, "shp"),
    "marks": _marks,
    "table": _csv,
    "table of files": _csv_of_files,
    **{f"vectors {kind}": partial(_vectors, kind) for kind in ("npy", "npz", "parquet")},
    "text": _text,
    "labels": _labels,
    "idx": _idx,
    "pickle": _pickled,
    "xBD labels": _damage_labels,
    "settings": _settings,
    "result.json": partial(_of_run, "result.json", mutated_json, _read_result),
    "compare.json": partial(_of_run, "compare.json", mutated_json, _read_result),
    "scores.npz": partial(_of_run, "scores.npz", mutated, _read_scored),
    "model.json": partial(_of_run, "model.json", mutated_json, _read_model),
    "model.safetensors": partial(_of_run, "model.safetensors", mutated, _read_model),
    "config.toml": partial(_of_run, "config.toml", mutated_text, _read_estimator),
    **{
        f"report of {name}": partial(_of_run, name, how, _read_run)
        for name, how in OF_REPORT.items()
    },
}
"""Readers by name; an input takes milliseconds."""

COMMANDS: dict[str, Maker] = {
    "fit --table": _fit_table,
    "fit on vectors": _fit_vectors,
    "fit on images": _fit_images,
    "fit --config": _fit_settings,
    "prior": _prior,
    "rank items": _rank_items,
    "rank with model.json": partial(_at_run, "model.json", mutated_json, _rank),
    "rank with result.json": partial(_at_run, "result.json", mutated_json, _rank),
    "evaluate result.json": partial(_at_run, "result.json", mutated_json, _evaluate),
    "evaluate scores.csv": partial(_at_run, "scores.csv", mutated_text, _evaluate),
    "evaluate scores.npz": partial(_at_run, "scores.npz", mutated, _evaluate),
    "evaluate model.json": partial(_at_run, "model.json", mutated_json, _evaluate),
    **{
        f"report with {name}": partial(_at_run, name, how, partial(_command, "report"))
        for name, how in OF_REPORT.items()
    },
    "audit audit.csv": partial(_audit, "audit.csv", mutated_text),
    "audit audit_draw.json": partial(_audit, "audit_draw.json", mutated_json),
    "embed": _embed,
    "map": _map_footprints,
}
"""Commands by name; an input takes up to some seconds."""


def quietly() -> contextlib.AbstractContextManager[object]:
    """Libraries warn of damaged files; that is no fault."""
    return warnings.catch_warnings(action="ignore")
