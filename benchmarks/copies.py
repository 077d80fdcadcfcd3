"""Which changed copies of real images are found, and how many different images are joined?

    python -m benchmarks.copies --root DATA      measure; needs cifar10, fashion-mnist and harvey
    python -m benchmarks.copies --docs           write the page

Each set is searched for images that look nearly alike, as a split does. Then the first images are
added again, changed in one way, and it is counted how many are found.
"""

import argparse
import gzip
import io
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from sklearn.datasets import load_digits

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.tables import markdown
from onesided.core.errors import OnesidedError
from onesided.data.problem.content import contents_of
from onesided.data.problem.dataset import Selection
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "copies.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "copies.md"
TITLE = "Changed copies of images that are found"
CHANGED = 100
"""Images of each set that are added again, changed."""
POOL = 1000
"""First images of a set among which the changed ones are searched."""
SEED = 0
SEARCHES = {"before": "Thumbnails as they are", "after": "Turned, moved and scaled to fit"}
"""Before: measured by this script with the package of commit c81f428 on PYTHONPATH."""
WORDS = (
    "**Joined**: items of the set, as it is published, that were taken for another one; CIFAR-10 "
    "and Harvey do hold photographs twice, and windows that overlap. Other columns: share of "
    "changed copies that were found, of the first images of the set. **Crop**, **shift**: up to a "
    "sixteenth of the side at each edge; a shift fills the rest with black. **All**: a quarter "
    "turn, a crop, darker by a tenth, JPEG of quality 80."
)

Change = Callable[[Image.Image, np.random.Generator], Image.Image]


def encoded(image: Image.Image, quality: int) -> Image.Image:
    """Return an image after JPEG."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def cropped(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return an image without up to a sixteenth at each edge, at its old size."""
    left, top, right, bottom = random.integers(0, max(1, image.width // 16) + 1, 4)
    inner = image.crop((left, top, image.width - right, image.height - bottom))
    return inner.resize(image.size)


def moved(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return an image moved by up to a sixteenth."""
    most = max(1, image.width // 16)
    across, down = random.integers(-most, most + 1, 2)
    return image.crop((across, down, across + image.width, down + image.height))


def halved(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return an image of three quarters of the size, enlarged again."""
    size = image.width * 3 // 4, image.height * 3 // 4
    return image.resize(size).resize(image.size)


def framed(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return an image in a black frame, at its old size."""
    width = max(1, image.width // 16)
    inner = image.resize((image.width - 2 * width, image.height - 2 * width))
    return ImageOps.expand(inner, width, 0)


def all_at_once(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Return an image turned, cropped, darker and encoded again."""
    turned = cropped(image.transpose(Image.Transpose.ROTATE_90), random)
    return encoded(ImageEnhance.Brightness(turned).enhance(0.9), 80)


CHANGES: dict[str, Change] = {
    "JPEG 75": lambda image, random: encoded(image, 75),
    "JPEG 40": lambda image, random: encoded(image, 40),
    "resized": halved,
    "mirrored": lambda image, random: encoded(ImageOps.mirror(image), 85),
    "turned": lambda image, random: encoded(image.transpose(Image.Transpose.ROTATE_90), 85),
    "brighter": lambda image, random: ImageEnhance.Brightness(image).enhance(1.15),
    "darker": lambda image, random: ImageEnhance.Brightness(image).enhance(0.85),
    "contrast": lambda image, random: ImageEnhance.Contrast(image).enhance(1.25),
    "grey": lambda image, random: image.convert("L").convert(image.mode),
    "framed": framed,
    "crop": cropped,
    "shift": moved,
    "all": all_at_once,
}


def changed(images: np.ndarray, change: Change) -> np.ndarray:
    """Return images (N, C, H, W), each changed."""
    random = np.random.default_rng(SEED)
    pictures = [Image.fromarray(np.squeeze(image.transpose(1, 2, 0))) for image in images]
    done = [np.asarray(change(picture, random)) for picture in pictures]
    return np.stack([np.atleast_3d(image).transpose(2, 0, 1) for image in done])


def sets(root: Path) -> dict[str, Callable[[], np.ndarray]]:
    """Return what reads the images of each set."""

    def cifar(count: int) -> np.ndarray:
        files = sorted((root / "cifar-10-batches-bin").glob("data_batch_*.bin"))
        rows = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
        return rows[:count, 1:].reshape(-1, 3, 32, 32)

    def fashion(count: int) -> np.ndarray:
        with gzip.open(root / "fashion-mnist" / "train-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16)
        return pixels.reshape(-1, 1, 28, 28)[:count]

    def harvey(count: int) -> np.ndarray:
        files = sorted((root / "harvey" / "train").rglob("*.jpeg"))
        chosen = files[:: max(1, len(files) // count)][:count]
        return np.stack([np.asarray(Image.open(file)).transpose(2, 0, 1) for file in chosen])

    return {
        "digits": lambda: np.rint(load_digits().images * 255 / 16).astype(np.uint8)[:, None],
        "Harvey": lambda: harvey(1500),
        "Fashion-MNIST": lambda: fashion(5000),
        "CIFAR-10": lambda: cifar(5000),
        "CIFAR-10, 40 000": lambda: cifar(40_000),
    }


def measured_on(images: np.ndarray) -> dict[str, Any]:
    """Return what is joined in a set, what is found of its changed copies, and seconds."""
    everything = Selection(images, np.arange(len(images)))
    start = time.process_time()
    found = contents_of([everything])
    seconds = time.process_time() - start
    sizes = np.bincount(found.number)
    shares: dict[str, float] = {}
    pool = Selection(images, np.arange(min(POOL, len(images))))
    for name, change in CHANGES.items():
        again = changed(images[:CHANGED], change)
        copies = Selection(again, np.arange(len(again)))
        number = contents_of([pool, copies]).number
        shares[name] = float((number[: len(again)] == number[len(pool) :]).mean())
    return {
        "images": len(images),
        "copies": found.copies,
        "joined": found.near,
        "largest": int(sizes.max()),
        "seconds": seconds,
        "found": shares,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or write the page; return the exit code."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.copies")
    options.add_argument("--root", type=Path, default=Path("data"))
    options.add_argument("--only", nargs="*", help="names of sets")
    options.add_argument("--search", choices=SEARCHES, default="after", help="what is measured")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    try:
        if not given.docs:
            measure(given.root, given.only, given.search)
        text = page(read_json(RESULT))
    except OnesidedError as error:
        print(f"benchmarks.copies: {error}", file=sys.stderr)
        return error.exit_code
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measure(root: Path, only: Sequence[str] | None, search: str) -> None:
    """Add a search to the result file, set after set."""
    content: dict[str, Any] = {"name": "copies", "title": TITLE, "searches": {}}
    if RESULT.exists():
        content = read_json(RESULT)
    rows: dict[str, Any] = {}
    for name, read in sets(root).items():
        if only and name not in only:
            continue
        rows[name] = measured_on(read())
        content["searches"][search] = {**origin(), "seed": SEED, "sets": rows}
        write_json(RESULT, content)


def page(result: Mapping[str, Any]) -> str:
    """Return the page of a result file."""
    parts = [f"# {TITLE}", WORDS]
    for search, measured in result["searches"].items():
        header = ["set", "images", "joined", "largest", "seconds", *CHANGES]
        rows = []
        for name, row in measured["sets"].items():
            joined = f"{row['joined']} ({100 * row['joined'] / row['images']:.2f} %)"
            shares = [f"{100 * row['found'][change]:.0f}" for change in CHANGES]
            facts = [f"{row['images']}", joined, f"{row['largest']}", f"{row['seconds']:.1f}"]
            rows.append([name, *facts, *shares])
        dirty = ", with changes" if measured["dirty"] else ""
        machine = measured["machine"]
        made = f"Commit {measured['commit']}{dirty}; {machine['cpu']}, one core, busy otherwise."
        parts += [f"## {SEARCHES[search]}", markdown(header, rows), made]
    return "\n\n".join([*parts, "Made by `python -m benchmarks.copies --docs`."]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
