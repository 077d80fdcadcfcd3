"""Miniatures of the published data sets, and a server that hands files out.

Real file names, real byte formats, few images. Written from the publishers' descriptions,
and not from our readers, so that a reader that misunderstands a format fails.
"""

import gzip
import hashlib
import io
import struct
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import numpy as np

from onesided.data.sources.xbd.prepare import prepare_xbd
from tests.geo.fakes import write_abcd, write_xbd_event

CIFAR10_NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()  # noqa: SIM905
BATCH = 20

PickledValue = str | Sequence[int] | Sequence[str] | np.ndarray


def fake_images(count: int, shape: tuple[int, int, int], seed: int) -> np.ndarray:
    """Return noise (count, channels, rows, columns), the same for the same seed."""
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def fake_classes(count: int, classes: int) -> np.ndarray:
    """Return 0, 1, 2, ... and again from 0: every class is there."""
    return np.arange(count, dtype=np.int64) % classes


def write_nothing(root: Path) -> None:
    """Do nothing: an embedded data set needs no files."""


def write_fashion_mnist(
    root: Path, *, folder: str = "fashion-mnist", zipped: bool = True, side: int = 28
) -> None:
    """Write 100 training and 20 test images as idx files."""
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    for seed, (part, count) in enumerate((("train", 100), ("t10k", 20))):
        images = fake_images(count, (1, side, side), seed)
        labels = fake_classes(count, 10).astype(np.uint8)
        for name, contents in (
            (f"{part}-images-idx3-ubyte", struct.pack(">iiii", 0x803, count, side, side)),
            (f"{part}-labels-idx1-ubyte", struct.pack(">ii", 0x801, count)),
        ):
            data = contents + (images if "images" in name else labels).tobytes()
            path = place / (f"{name}.gz" if zipped else name)
            path.write_bytes(gzip.compress(data) if zipped else data)


def write_cifar10_binary(root: Path) -> None:
    """Write five training batches and a test batch of 20 records each."""
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        images, labels = fake_images(BATCH, (3, 32, 32), seed), fake_classes(BATCH, 10)
        records = (
            bytes([label]) + image.tobytes() for label, image in zip(labels, images, strict=True)
        )
        (folder / f"{name}.bin").write_bytes(b"".join(records))
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR10_NAMES) + "\n\n")


def write_cifar10_python(root: Path) -> None:
    """Write the same batches as pickles of Python 2."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for seed, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        images = fake_images(BATCH, (3, 32, 32), seed).reshape(BATCH, 3072)
        batch: dict[str, PickledValue] = {
            "batch_label": "training batch 1 of 5",
            "labels": fake_classes(BATCH, 10).tolist(),
            "data": images,
            "filenames": [f"file_{row}.png" for row in range(BATCH)],
        }
        (folder / name).write_bytes(python2_pickle(batch))
    (folder / "batches.meta").write_bytes(python2_pickle({"label_names": CIFAR10_NAMES}))


def write_cifar100_binary(root: Path) -> None:
    """Write 200 training and 100 test records with a coarse and a fine label byte."""
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate((("train", 200), ("test", 100))):
        images, fine = fake_images(count, (3, 32, 32), seed), fake_classes(count, 100)
        records = (
            bytes([label // 5, label]) + image.tobytes()
            for label, image in zip(fine, images, strict=True)
        )
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_cifar100_python(root: Path) -> None:
    """Write the same images as pickles of Python 2."""
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate((("train", 200), ("test", 100))):
        fine = fake_classes(count, 100)
        batch: dict[str, PickledValue] = {
            "filenames": [f"file_{row}.png" for row in range(count)],
            "batch_label": "training batch 1 of 1",
            "fine_labels": fine.tolist(),
            "coarse_labels": (fine // 5).tolist(),
            "data": fake_images(count, (3, 32, 32), seed).reshape(count, 3072),
        }
        (folder / name).write_bytes(python2_pickle(batch))


def write_stl10(root: Path) -> None:
    """Write 40 training, 20 test and 60 unlabelled images, planes column by column."""
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    for seed, (name, count) in enumerate((("train", 40), ("test", 20), ("unlabeled", 60))):
        images = fake_images(count, (3, 96, 96), seed)
        by_column = np.swapaxes(images, 2, 3)
        (folder / f"{name}_X.bin").write_bytes(by_column.tobytes())
        if name != "unlabeled":
            labels = fake_classes(count, 10).astype(np.uint8) + 1
            (folder / f"{name}_y.bin").write_bytes(labels.tobytes())


def write_abcd_pairs(root: Path) -> None:
    """Write 60 pairs of patches, half of them washed away."""
    write_abcd(root, seed=0, pairs=60)


def write_prepared_xbd(root: Path) -> None:
    """Write two small events of xBD, and cut the buildings out."""
    for seed, event in enumerate(("volcano-miniature", "flood-miniature")):
        write_xbd_event(root, seed=seed, tiles=2, buildings_per_tile=25, size=160, event=event)
    prepare_xbd(root, lambda done, total: None)


def python2_pickle(values: Mapping[str, PickledValue]) -> bytes:
    """Pickle as Python 2 and numpy 1 did, which Python 3 cannot be asked to do."""
    entries = b"".join(_string(key.encode()) + _pickled(value) for key, value in values.items())
    return b"\x80\x02}(" + entries + b"u."


def _pickled(value: PickledValue) -> bytes:
    if isinstance(value, str):
        return _string(value.encode())
    if isinstance(value, np.ndarray):
        return _array(value)
    items = (_string(i.encode()) if isinstance(i, str) else b"K" + bytes([i]) for i in value)
    return b"](" + b"".join(items) + b"e"


def _string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text


def _array(array: np.ndarray) -> bytes:
    rows, columns = array.shape
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    shape = struct.pack("<cHcH", b"M", rows, b"M", columns) + b"\x86"
    minus_one = b"J\xff\xff\xff\xff"
    state = b"(K\x03U\x01|NNN" + minus_one + minus_one + b"K\x00tb"
    numbers = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R" + state
    contents = b"T" + struct.pack("<i", array.nbytes) + array.tobytes()
    return empty + b"(K\x01" + shape + numbers + b"\x89" + contents + b"tb"


def md5(contents: bytes) -> str:
    """Return the checksum as publishers write it."""
    return hashlib.md5(contents).hexdigest()


def tarball(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """Return a .tar.gz of these files and symbolic links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, contents in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            archive.addfile(member, io.BytesIO(contents))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return buffer.getvalue()


@dataclass
class Site:
    """What a server on this machine holds and how it behaves, and what it was asked."""

    contents: bytes
    honours_ranges: bool = True
    says_length: bool = True
    breaks_off_after: int | None = None
    status: int = 200
    leads_to: str | None = None
    asked: list[str | None] = field(default_factory=list)
    port: int = 0


def _handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.asked.append(asked)
            start = int(asked[len("bytes=") : -1]) if asked and site.honours_ranges else 0
            if site.leads_to is not None:
                self.send_response(302)
                self.send_header("Location", site.leads_to)
                return self.end_headers()
            if site.status != 200:
                return self.send_error(site.status)
            if start >= len(site.contents):
                return self.send_error(416)
            body = site.contents[start:]
            self.send_response(206 if start else 200)
            if start:
                whole = len(site.contents)
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            if site.says_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: site.breaks_off_after])

        def log_message(self, format: str, *arguments: object) -> None:
            """Keep the test's output clean."""

    return Handler


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve a site by real HTTP for as long as the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(site))
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


FAKES: Mapping[str, Callable[[Path], None]] = MappingProxyType(
    {
        "digits": write_nothing,
        "fashion-mnist": write_fashion_mnist,
        "cifar10": write_cifar10_binary,
        "cifar100": write_cifar100_python,
        "stl10": write_stl10,
        "abcd": write_abcd_pairs,
        "xbd": write_prepared_xbd,
        "breast-cancer": write_nothing,
        "digit-vectors": write_nothing,
        "toy-vectors": write_nothing,
        "toy-images": write_nothing,
    }
)
"""Data set name to the function that writes its miniature under a root."""
