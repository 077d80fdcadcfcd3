"""Where published data sets come from, how they are fetched, and whether they are complete.

A file counts only when its size and checksums are those of the published one. Until then
its name ends in `.part`, and an older file of its name stays. Addresses are https, and no
redirect leads away from it.

MD5 is what the publishers, or the libraries that read their files, tell. The SHA-256 of archives
are those that tensorflow-datasets and Keras publish for the same sizes; those of single files were
computed from files with the published MD5. Where none is known, MD5 and https must do.
"""

import gzip
import hashlib
import http.client
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Literal

from onesided.core.errors import DataError, DataNotFound
from onesided.storage.atomic import publish
from onesided.storage.progress import Progress

_BLOCK = 1 << 20
_PATIENCE = 30  # seconds of silence from a server


@dataclass(frozen=True)
class Archive:
    """A file on its publisher's server.

    Attributes:
        md5: Checksum: guards against broken transfers, not against forgers.
        sha256: Guards against both; empty where it is not known.
        folder: Where under the root it is put. A .tar.gz is unpacked in the root.
    """

    address: str
    size: int
    md5: str
    sha256: str = ""
    folder: str = "."

    def path(self, root: Path) -> Path:
        """Return the path of the fetched file."""
        return root / self.folder / self.address.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class ExpectedFile:
    """A file that a reader opens, with the size and checksum of the published one.

    With `may_be_gzipped`, NAME.gz is accepted too, and size and checksum are those of its
    contents: distributions compress again, and only the pixels count.
    """

    name: str
    size: int
    md5: str
    sha256: str = ""
    may_be_gzipped: bool = False

    def find(self, folder: Path) -> Path | None:
        """Return the file in this folder, or None."""
        names = (self.name, f"{self.name}.gz") if self.may_be_gzipped else (self.name,)
        return next((folder / name for name in names if (folder / name).is_file()), None)


@dataclass(frozen=True)
class Layout:
    """One way in which a data set lies on disk.

    Attributes:
        folders: Folders under the root that are tried; the first is the usual one.
        archives: What to fetch to get there.
        files: What must then be in the folder.
    """

    folders: tuple[str, ...]
    archives: tuple[Archive, ...]
    files: tuple[ExpectedFile, ...]

    def missing_from(self, folder: Path) -> tuple[str, ...]:
        """Return the names of the files that this folder lacks."""
        return tuple(file.name for file in self.files if file.find(folder) is None)


def one_archive(
    folder: str,
    archive: tuple[str, int, str, str],
    *files: tuple[str, int, str] | tuple[str, int, str, str],
) -> Layout:
    """Return the layout of one archive: address, size and checksums of it, and each file in it."""
    expected = tuple(ExpectedFile(*file) for file in files)
    return Layout((folder, "."), (Archive(*archive),), expected)


@dataclass(frozen=True)
class FileStatus:
    """What `check` found of one file; sizes are those of the unpacked contents."""

    path: Path
    state: Literal["good", "missing", "wrong size", "wrong contents"]
    expected_size: int
    found_size: int | None = None


@dataclass(frozen=True)
class PreparedFiles:
    """The result of preparing files that a person fetched.

    Attributes:
        counts: How many were kept, by kind.
        left_out: How many were not kept, by reason.
        skipped: Files that could not be read, with the reason.
    """

    folder: Path
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    skipped: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ByHand:
    """A data set that people fetch themselves, because its publisher asks for consent.

    It is never fetched without their knowledge, and never passed on. The library says where
    it is, prepares the files, and checks that they are complete.

    Attributes:
        address: Where people get it.
        inspect: Returns which of its files are there and complete.
        prepare: Makes the files that the reader opens; None if it opens the publisher's own.
    """

    address: str
    inspect: Callable[[Path], tuple[FileStatus, ...]]
    prepare: Callable[[Path, Progress], PreparedFiles] | None = None

    def way(self, name: str, root: Path | None) -> str:
        """Return what a person must do, as a sentence."""
        folder = "DATA" if root is None else str(root)
        fetch = f"Get it from {self.address}, whose terms are for you to accept"
        if self.prepare is None:
            return f"{fetch}, and unpack it in {folder}."
        prepare = f"onesided data prepare {name} --root {folder} --accept-licence"
        return f"{fetch}, unpack it in {folder}, and run: {prepare}"


def locate(name: str, layouts: Sequence[Layout], root: Path | None) -> tuple[Layout, Path]:
    """Return the first complete layout and its folder, or say what to fetch from where."""
    if root is None:
        raise DataNotFound(
            f"{name} is read from files. Say where they are with --root DATA, "
            f"or fetch them first: onesided data get {name} --root DATA"
        )
    layout, folder = _most_complete(layouts, root)
    missing = layout.missing_from(folder)
    if not missing:
        return layout, folder
    problem = f"{folder} lacks {', '.join(missing)}"
    if len(missing) == len(layout.files):
        usual = {root / it.folders[0]: it for it in layouts}
        expected = [f"{', '.join(it.missing_from(path))} in {path}" for path, it in usual.items()]
        problem = f"{name} is not in {root}: expected {', or '.join(expected)}"
    raise DataNotFound(
        f"{problem}. Run: onesided data get {name} --root {root}\n"
        f"{_by_hand(layouts[0].archives, root)}"
    )


def _most_complete(layouts: Sequence[Layout], root: Path) -> tuple[Layout, Path]:
    known = [(layout, root / folder) for layout in layouts for folder in layout.folders]
    return min(known, key=lambda one: len(one[0].missing_from(one[1])) / len(one[0].files))


def _by_hand(archives: Sequence[Archive], root: Path) -> str:
    addresses = " ".join(archive.address for archive in archives)
    folder = archives[0].path(root).parent
    return (
        f"Without a network: fetch {addresses} elsewhere, put it into {folder} and give the same "
        "command; it then checks and unpacks what is there."
    )


def _layouts_of(name: str) -> tuple[Layout, ...]:
    from onesided.data import sources  # here: the readers listed there import this module

    return sources.source_named(name).layouts


def check(name: str, root: Path) -> tuple[FileStatus, ...]:
    """Compare every file of a data set, to the bit, with the published one.

    The layout with the most files is compared; an embedded set has none. All files are read:
    STL-10's 3.1 GB take about ten seconds.
    """
    layouts = _layouts_of(name)
    if not layouts:
        return ()
    layout, folder = _most_complete(layouts, root)
    paths = [file.find(folder) or folder / file.name for file in layout.files]
    return tuple(
        compare(path, file.size, *_strongest(file), unzip=path.name == f"{file.name}.gz")
        for path, file in zip(paths, layout.files, strict=True)
    )


def _strongest(file: Archive | ExpectedFile) -> tuple[str, str]:
    """Return the best checksum that is known of a file, and its algorithm."""
    return (file.sha256, "sha256") if file.sha256 else (file.md5, "md5")


def _is_published(path: Path, archive: Archive) -> bool:
    """Return whether a file has the size and all known checksums of an archive."""
    known = {"md5": archive.md5, "sha256": archive.sha256}
    return all(
        measure(path, algorithm) == (archive.size, checksum)
        for algorithm, checksum in known.items()
        if checksum
    )


def compare(
    path: Path, size: int, checksum: str, algorithm: str = "md5", *, unzip: bool = False
) -> FileStatus:
    """Compare a file, or its unzipped contents, with the size and checksum it should have."""
    if not path.is_file():
        return FileStatus(path, "missing", size)
    try:
        found_size, found = measure(path, algorithm, unzip=unzip)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return FileStatus(path, "wrong contents", size)
    if found_size != size:
        return FileStatus(path, "wrong size", size, found_size)
    return FileStatus(path, "good" if found == checksum else "wrong contents", size, size)


def measure(path: Path, algorithm: str = "md5", *, unzip: bool = False) -> tuple[int, str]:
    """Return size and checksum of a file or of its unzipped contents."""
    with gzip.open(path) if unzip else path.open("rb") as file:
        digest = hashlib.file_digest(file, partial(hashlib.new, algorithm, usedforsecurity=False))
        return file.tell(), digest.hexdigest()


def fetch(name: str, root: Path, progress: Progress) -> tuple[FileStatus, ...]:
    """Complete a data set under the root; return the result of `check`.

    Nothing is fetched if it is complete already, or if its archives are there; they are
    kept. `progress` counts one archive after the other.
    """
    layouts, statuses = _layouts_of(name), check(name, root)
    if all(status.state == "good" for status in statuses):
        return statuses
    in_place = (it for it in layouts if all(file.path(root).is_file() for file in it.archives))
    for archive in next(in_place, layouts[0]).archives:
        unpack(download(archive, root, progress), root)
    return check(name, root)


def download(archive: Archive, root: Path, progress: Progress) -> Path:
    """Fetch one archive and return its path; continues where an earlier call stopped.

    Bytes arrive in NAME.part, which survives every interruption. It is renamed when size
    and checksum are right, and removed when it is complete but wrong, since nothing can
    be continued there. A NAME that is there already and right is not fetched again.
    """
    target = archive.path(root)
    if target.is_file() and _is_published(target, archive):
        progress(archive.size, archive.size)
        return target
    part = target.with_name(f"{target.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        _complete(archive, part, root, progress)
        if not _is_published(part, archive):
            part.unlink()
            raise DataError(
                f"What came from {archive.address} does not have the published checksum "
                f"{_strongest(archive)[0]} and was discarded. Run the same command to fetch it "
                "again."
            )
        publish(part, target)
    except OSError as error:
        raise DataError(
            f"{target} cannot be written ({error}). Make room or choose another --root; "
            "what has arrived is kept, and the same command continues."
        ) from error
    return target


def _complete(archive: Archive, part: Path, root: Path, progress: Progress) -> None:
    """Fetch the bytes that the partial file lacks."""
    have = part.stat().st_size if part.exists() else 0
    if have == archive.size:
        return
    response, done = _open(archive, root, have if have < archive.size else 0)
    with response, part.open("ab" if done else "wb") as file:
        for block in _blocks(response, archive, root):
            done += len(block)
            if done > archive.size:
                raise DataError(f"{archive.address} sends more than {archive.size} bytes.")
            file.write(block)
            progress(done, archive.size)
    if done != archive.size:
        raise DataNotFound(
            f"The connection to {archive.address} ended after {done} of {archive.size} bytes. "
            f"They are kept in {part}; the same command continues."
        )


def _open(archive: Archive, root: Path, start: int) -> tuple[http.client.HTTPResponse, int]:
    """Return the response and the byte at which it starts: 0 if the server ignores ranges."""
    if not _is_private(archive.address):
        raise DataError(f"{archive.address} is not fetched: only https keeps a file unchanged.")
    headers = {"User-Agent": "onesided"} | ({"Range": f"bytes={start}-"} if start else {})
    request = urllib.request.Request(archive.address, headers=headers)
    try:
        opener = urllib.request.build_opener(_NoDowngrade)
        response: http.client.HTTPResponse = opener.open(request, timeout=_PATIENCE)
    except (OSError, http.client.HTTPException) as error:
        if start and isinstance(error, urllib.error.HTTPError) and error.code == 416:
            return _open(archive, root, 0)  # the server has nothing at that byte
        raise _unreachable(archive, root, error) from error
    if not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        start = 0
    if response.length is not None and start + response.length != archive.size:
        response.close()
        raise DataError(
            f"{archive.address} offers {start + response.length} bytes instead of {archive.size}: "
            "another file, or the login page of your network. Nothing was saved."
        )
    return response, start


def _is_private(address: str) -> bool:
    """Return whether nobody on the way can read or change what comes from an address."""
    parts = urllib.parse.urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname == "127.0.0.1")


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address only where that is as private."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not _is_private(newurl):
            raise urllib.error.URLError(f"it leads to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _blocks(response: IO[bytes], archive: Archive, root: Path) -> Iterator[bytes]:
    """Yield the blocks that arrive; a network error must not look like a disk error."""
    while True:
        try:
            block = response.read(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(archive, root, error) from error
        if not block:
            return
        yield block


def _unreachable(archive: Archive, root: Path, error: Exception) -> DataNotFound:
    return DataNotFound(
        f"{archive.address} cannot be reached ({error}).\n{_by_hand([archive], root)}"
    )


def unpack(path: Path, root: Path) -> None:
    """Unpack a .tar.gz in the root; any other file stays as it is.

    Members that would land outside the root are refused. Files get their final name
    only when all of them are unpacked, each in one step.
    """
    if not path.name.endswith(".tar.gz"):
        return
    if not hasattr(tarfile, "data_filter"):
        raise DataError(
            f"This Python cannot unpack {path} safely; 3.11.4 or later can. Update Python, or "
            f"unpack the file by hand in {root}."
        )
    try:
        with tempfile.TemporaryDirectory(dir=root, prefix=".unpacking-") as scratch:
            with tarfile.open(path, "r:gz") as archive:
                archive.extractall(scratch, filter="data")
            for file in sorted(Path(scratch).rglob("*")):
                if file.is_file() and not file.is_symlink():
                    target = root / file.relative_to(scratch)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    publish(file, target)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path} cannot be unpacked in {root} ({error}).") from error
