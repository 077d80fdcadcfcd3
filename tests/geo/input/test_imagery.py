"""Images as they come: several files, folders, archives, addresses, STAC files."""

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, OnesidedError
from onesided.geo.input import imagery
from onesided.geo.input.image import open_image
from onesided.geo.input.imagery import Imagery, find_imagery
from tests.geo.rasters import NORTH, WEST, noise, write_tiff


def tile(path: Path, value: int, left: int = 0, top: int = 0, **profile: float) -> Path:
    """Write twenty by twenty pixels of one value, so many metres from the corner."""
    place = (1, 0, WEST + left, 0, -1, NORTH - top)
    pixels = np.full((3, 20, 20), value, np.uint8)
    return write_tiff(path, pixels, crs="EPSG:32615", transform=place, **profile)


def all_of(image: Path | Imagery) -> tuple[np.ndarray, np.ndarray]:
    with open_image(image) as opened:
        window = opened.read(0, 0, opened.width, opened.height)
    return window.values, window.valid


def test_tiles_are_read_as_one_image_and_gaps_hold_no_data(tmp_path: Path) -> None:
    tile(tmp_path / "a.tif", 50)
    tile(tmp_path / "b.tif", 90, left=30, top=10)
    values, valid = all_of(find_imagery([tmp_path], "--image"))
    assert values.shape == (3, 30, 50)
    assert (values[:, :20, :20] == 50).all()
    assert (values[:, 10:, 30:] == 90).all()
    assert valid.sum() == 800
    assert not valid[:, 20:30].any()


def test_the_last_given_lies_on_top_and_that_is_told(tmp_path: Path) -> None:
    files = [tile(tmp_path / "a.tif", 50), tile(tmp_path / "b.tif", 90, left=10)]
    for given, top in ((files, 90), (files[::-1], 50)):
        found = find_imagery(given, "--image")
        assert isinstance(found, Imagery)
        assert "the last in the given order counts" in found.warnings[0]
        values, _ = all_of(found)
        assert (values[:, :, 10:20] == top).all()


def test_a_hole_in_the_upper_image_shows_the_lower(tmp_path: Path) -> None:
    lower = tile(tmp_path / "a.tif", 50, nodata=0)
    upper = write_tiff(tmp_path / "b.tif", np.zeros((3, 20, 20), np.uint8), nodata=0)
    values, valid = all_of(find_imagery([lower, upper], "--image"))
    assert (values == 50).all()
    assert valid.all()


def stac_item(name: str, href: str, date: str) -> dict[str, object]:
    assets = {"thumbnail": {"href": "t.png"}, "visual": {"href": href, "roles": ["visual"]}}
    return {"type": "Feature", "id": name, "properties": {"datetime": date}, "assets": assets}


def test_a_stac_search_puts_the_latest_on_top(tmp_path: Path) -> None:
    tile(tmp_path / "new.tif", 90)
    tile(tmp_path / "old.tif", 50)
    items = [
        stac_item("b", "new.tif", "2026-02-01T00:00:00Z"),
        stac_item("a", "old.tif", "2026-01-01T00:00:00Z"),
    ]
    path = tmp_path / "search.json"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": items}))
    found = find_imagery([path], "--image")
    assert isinstance(found, Imagery)
    assert "the latest date counts" in found.warnings[0]
    assert (all_of(found)[0] == 90).all()
    path.write_text(json.dumps(items[1]))
    assert (all_of(find_imagery([path], "--image"))[0] == 50).all()


def test_images_in_an_archive_are_read_where_they_are(tmp_path: Path) -> None:
    tile(tmp_path / "a.tif", 50)
    with zipfile.ZipFile(tmp_path / "tiles.zip", "w") as archive:
        archive.write(tmp_path / "a.tif", "deep/a.tif")
        archive.writestr("readme.txt", "no image")
    assert (all_of(find_imagery([tmp_path / "tiles.zip"], "--image"))[0] == 50).all()


class Ranges(SimpleHTTPRequestHandler):
    """A file server that answers ranges of bytes, and fails as often as it is told."""

    failures = 0

    def do_GET(self) -> None:
        if type(self).failures:
            type(self).failures -= 1
            self.send_error(503)
            return
        path, wanted = Path(self.translate_path(self.path)), self.headers.get("Range")
        if not path.is_file() or wanted is None:
            super().do_GET()
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        content = path.read_bytes()
        part = content[int(first) : int(last or len(content)) + 1]
        self.send_response(206)
        start = int(first)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_geotiff_is_read_from_a_server_that_fails_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiff(tmp_path / "post.tif", noise(1), tiled=True, blockxsize=16, blockysize=16)
    expected, _ = all_of(tmp_path / "post.tif")
    monkeypatch.setitem(imagery.NETWORK, "GDAL_HTTP_RETRY_DELAY", "0.05")
    with served(tmp_path) as address:
        found = find_imagery([f"{address}/post.tif"], "--image")
        assert isinstance(found, Imagery)
        assert "30 seconds for an answer, 3 more attempts" in found.warnings[0]
        Ranges.failures = 2
        np.testing.assert_array_equal(all_of(found)[0], expected)
    assert Ranges.failures == 0


def test_a_server_without_the_image_is_told_with_the_attempts(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        found = find_imagery([f"{address}/missing.tif"], "--image")
        with pytest.raises(DataError, match="cannot be read over the network, after 3 more"):
            all_of(found)


def test_images_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    plain = tile(tmp_path / "a.tif", 50)
    other = {
        "coordinate systems": write_tiff(tmp_path / "s.tif", noise(1), crs="EPSG:32616"),
        "bands": write_tiff(tmp_path / "b.tif", noise(1, bands=1)),
        "kinds of numbers": write_tiff(tmp_path / "k.tif", noise(1).astype(np.uint16)),
    }
    for what, path in other.items():
        with pytest.raises(DataError, match=f"different {what}"):
            all_of(find_imagery([plain, path], "--image"))
    turned = write_tiff(tmp_path / "t.tif", noise(1), transform=(1, 0, WEST, 0, 1, NORTH))
    with pytest.raises(DataError, match="is turned"):
        all_of(find_imagery([plain, turned], "--image"))


NOT_STAC = (
    *("", "{", "[]", "{}", '{"features": []}', '{"features": [1]}', '{"assets": {}}'),
    '{"assets": {"visual": {"href": 5}}}',
    '{"assets": {"visual": {"href": "no.tif"}}}',
)


@pytest.mark.parametrize("content", NOT_STAC)
def test_files_that_are_no_stac_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "item.json"
    path.write_text(content)
    with pytest.raises(OnesidedError):
        find_imagery([path], "--image")


def test_folders_and_archives_without_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_text("no archive")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("readme.txt", "")
    for name in ("empty", "bad.zip", "empty.zip", "nothing.tif"):
        with pytest.raises(OnesidedError, match=name.split(".")[0]):
            find_imagery([tmp_path / name], "--image")
