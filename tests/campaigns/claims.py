"""Data from which nothing can be learned, or which tests nothing: does a report claim otherwise?

    python -m tests.campaigns.claims             # all variants, into benchmarks/results

Every variant is fitted by the job behind `onesided fit`. It claims a working model if the run ends
without an alarm or warning and a figure is better than chance would make it once in a thousand
times. A refusal with one sentence is no claim.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from sklearn.datasets import load_digits

import onesided
from onesided.bench.origin import origin
from onesided.core.errors import OnesidedError
from onesided.storage.atomic import write_json
from onesided.storage.table import csv_lines

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "claims_campaign.json"
ONE_IN_A_THOUSAND = 3.29 / 1.96
"""How much wider an interval of 99.9 % is than one of 95 %."""
SIDE = 16
OUTSIDE = "Estimated shares outside 0 to 1"
"""Begins a remark on rounding, which warns nobody that a model is none."""
SWAPPED = "are the two swapped"

Images = np.ndarray
Fit = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """Data that allows no claim: its name, and what writes it and returns the arguments of fit."""

    name: str
    write: Callable[[Path], Fit]
    method: str = "linear"
    in_python: bool = False  # through PUClassifier, where the data is two arrays


@dataclass(frozen=True)
class Verdict:
    """What a run said about a variant; `claims` is empty if it claimed nothing."""

    name: str
    outcome: str
    claims: tuple[str, ...]


def noise(count: int, seed: int, side: int = SIDE) -> Images:
    """Return images of noise with some coarse structure, as photographs have."""
    random = np.random.default_rng(seed)
    coarse = np.repeat(np.repeat(random.integers(0, 200, (count, 4, 4, 3)), 4, 1), 4, 2)
    fine = random.integers(0, 56, (count, SIDE, SIDE, 3))
    return (coarse + fine).astype(np.uint8)[:, :side, :side]


def write_images(folder: Path, images: Images, ending: str = "png", first: int = 0) -> Path:
    """Write images as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images, start=first):
        # Only JPEG knows a quality; other formats ignore it.
        Image.fromarray(image).save(folder / f"{number:04}.{ending}", quality=85)
    return folder


def plain(images: Images, other: Images, folder: Path) -> Fit:
    """Return two folders as they are."""
    return {
        "positives": write_images(folder / "P", images),
        "unlabelled": write_images(folder / "U", other),
    }


def only_noise(seed: int, folder: Path) -> Fit:
    """P and U are of one kind."""
    return plain(noise(40, seed), noise(160, seed + 500), folder)


def copied(seed: int, folder: Path, *, contents: int, endings: tuple[str, ...], where: str) -> Fit:
    """P, or both, are copies of few images, encoded in several ways."""
    fit = plain(noise(40, seed), noise(160, seed + 500), folder)
    for name, count in (("P", contents), ("U", 4 * contents)):
        if name in where:
            for file in (folder / name).iterdir():
                file.unlink()
            images = noise(count, seed + ord(name))
            for repeat in range(10):
                ending = endings[repeat % len(endings)]
                write_images(folder / name, images, ending, first=1000 * repeat)
    return fit


def tested_on_training_data(seed: int, folder: Path, *, ending: str) -> Fit:
    """The test part holds copies of P as positives, and of U as negatives."""
    one, other = noise(40, seed), noise(160, seed + 500)
    fit = plain(one, other, folder)
    write_images(folder / "test" / "positive", one, ending)
    write_images(folder / "test" / "negative", other[:40], ending)
    return {**fit, "test": folder / "test"}


def changed(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return an image turned, mirrored, cropped, brightened, made grey, or framed, and resized."""
    picture = Image.fromarray(np.ascontiguousarray(np.rot90(image, int(random.integers(4)))))
    if random.integers(2):
        picture = ImageOps.mirror(picture)
    left, top, right, bottom = random.integers(0, 2, 4)
    picture = picture.crop((left, top, SIDE - right, SIDE - bottom))
    picture = ImageEnhance.Brightness(picture).enhance(random.uniform(0.85, 1.15))
    picture = ImageEnhance.Contrast(picture).enhance(random.uniform(0.85, 1.15))
    kind = random.integers(4)
    if kind == 0:
        picture = picture.convert("L").convert("RGB")
    if kind == 1:
        picture = ImageOps.expand(picture.resize((SIDE - 2, SIDE - 2)), 1, "black")
    return np.asarray(picture.resize((SIDE, SIDE)))


def variants_of(images: Images, repeat: int, seed: int) -> Images:
    """Return so many changed copies of each image."""
    random = np.random.default_rng(seed)
    return np.stack([changed(image, random) for image in np.repeat(images, repeat, axis=0)])


def changed_copies(seed: int, folder: Path, *, contents: int, where: str) -> Fit:
    """P, or both, are changed copies of few images."""
    one, other = noise(40, seed), noise(160, seed + 500)
    if "P" in where:
        one = variants_of(noise(contents, seed + 1), 10, seed)
    if "U" in where:
        other = variants_of(noise(4 * contents, seed + 501), 10, seed + 1)
    return plain(one, other, folder)


def tested_on_changed_copies(seed: int, folder: Path, *, ending: str) -> Fit:
    """The test part holds changed copies of P as positives, and of U as negatives."""
    one, other = noise(40, seed), noise(160, seed + 500)
    fit = plain(one, other, folder)
    write_images(folder / "test" / "positive", variants_of(one, 1, seed), ending)
    write_images(folder / "test" / "negative", variants_of(other[:40], 1, seed), ending)
    return {**fit, "test": folder / "test"}


def positives_in_the_pool(seed: int, folder: Path, *, ending: str, scenario: str) -> Fit:
    """Every positive is in U too, encoded again."""
    one, other = noise(40, seed), noise(120, seed + 500)
    fit = plain(one, other, folder)
    write_images(folder / "U", one, ending, first=5000)
    return {**fit, "settings": {"data": {"scenario": scenario}}}


def negatives_in_the_pool(seed: int, folder: Path) -> Fit:
    """Known negatives are copies of U, from which the model learned that they are not P."""
    fit = positives_in_the_pool(seed, folder, ending="png", scenario="case-control")
    write_images(folder / "N", noise(120, seed + 500)[:60], "bmp")
    return {**fit, "negatives": folder / "N"}


def swapped(seed: int, folder: Path) -> Fit:
    """The pool is given as positives, and the positives as pool."""
    images, truth = digits()
    random = np.random.default_rng(seed)
    positive = random.permutation(np.flatnonzero(truth < 5))
    negative = random.permutation(np.flatnonzero(truth >= 5))
    pool = np.concatenate([positive[48:144], negative[:144]])
    return plain(images[pool], images[positive[:48]], folder)


def constant(seed: int, folder: Path, *, levels: int) -> Fit:
    """Every image has one colour; of `levels` greys."""
    random = np.random.default_rng(seed)
    grey = random.integers(0, levels, 200) * (255 // levels) + 20
    images = np.broadcast_to(grey[:, None, None, None], (200, SIDE, SIDE, 3)).astype(np.uint8)
    return plain(images[:40], images[40:], folder)


def masks(seed: int, folder: Path) -> Fit:
    """Images of 0 and 1, which are nearly black."""
    images = (noise(200, seed) > 128).astype(np.uint8)
    return plain(images[:40], images[40:], folder)


def shuffled(seed: int, folder: Path) -> Fit:
    """Real images, but who is positive was drawn at random."""
    images, _ = digits()
    rows = np.random.default_rng(seed).permutation(len(images))
    return plain(images[rows[:60]], images[rows[60:300]], folder)


def rows_of_noise(seed: int, folder: Path, *, repeat: int, noise: float = 0.0) -> Fit:
    """Vectors of noise; each positive `repeat` times, with a little further noise."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    positives = np.repeat(random.normal(size=(120 // repeat, 20)), repeat, axis=0)
    positives *= 1 + noise * random.normal(size=positives.shape)
    np.save(folder / "P.npy", positives)
    np.save(folder / "U.npy", random.normal(size=(400, 20)))
    return {"positives": folder / "P.npy", "unlabelled": folder / "U.npy"}


def marked_rows(seed: int, folder: Path, *, mark: Callable[[int], object]) -> Fit:
    """Rows of noise with a column that says how they were collected; the first sixty are P."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(seed).normal(size=(360, 5)).round(4).tolist()
    rows = [
        ["positive" if row < 60 else "unlabelled", mark(row), *each]
        for row, each in enumerate(numbers)
    ]
    lines = csv_lines([["label", "mark", *"abcde"], *rows])
    (folder / "table.csv").write_text(lines, encoding="utf-8")
    return {"table": folder / "table.csv"}


MARKS: dict[str, Callable[[int], object]] = {
    "the number of the row": lambda row: 1000 + row,
    "a date that rises": lambda row: str(date(2024, 1, 1) + timedelta(days=row)),
    "a laboratory of two thirds of P": lambda row: (
        "one" if row < 60 and row % 3 else "two" if row % 2 else "three"
    ),
    "a gap in two thirds of P": lambda row: "" if row < 60 and row % 3 else (37 * row) % 91,
}


def retyped_texts(seed: int, folder: Path, *, changed: int, tag: str = "") -> Fit:
    """P are ten texts of random words, each typed eight times with some words changed."""
    random = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(800)])
    rows = [["unlabelled", " ".join(random.choice(words, 25))] for _ in range(300)]
    for _ in range(10):
        said = random.choice(words, 25)
        for _ in range(8):
            again = random.choice(words, 25) if tag else said.copy()
            again[random.integers(0, 25, changed)] = random.choice(words, changed)
            rows.append(["positive", " ".join([*again, tag]).strip()])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.csv").write_text(csv_lines([["label", "said"], *rows]), encoding="utf-8")
    return {"table": folder / "table.csv", "text": "said"}


def other_files(seed: int, folder: Path, *, ending: str = "png", side: int = SIDE) -> Fit:
    """P and U are of one kind, but P has another format or size."""
    fit = plain(noise(1, seed), noise(160, seed + 500), folder)
    (folder / "P" / "0000.png").unlink()
    images = [Image.fromarray(image).resize((side, side)) for image in noise(40, seed)]
    write_images(folder / "P", np.stack([np.asarray(image) for image in images]), ending)
    return fit


def stamped(seed: int, folder: Path, *, rows: int) -> Fit:
    """P and U are of one kind, but P has a white bar of so many rows at the bottom."""
    images = noise(60, seed)
    images[:, SIDE - rows :] = 255
    return plain(images, noise(240, seed + 500), folder)


def film(seed: int, folder: Path) -> Fit:
    """P are eight scenes, each filmed ten times by a hand that moves."""
    random = np.random.default_rng(seed)

    def scene() -> np.ndarray:
        coarse = random.integers(0, 200, (6, 6, 3)).astype(np.uint8)
        return np.asarray(Image.fromarray(coarse).resize((44, 44), Image.Resampling.BICUBIC))

    def frame(seen: np.ndarray) -> np.ndarray:
        top, left = random.integers(0, 13, 2)
        moved = seen[top : top + 32, left : left + 32] * random.uniform(0.8, 1.1)
        return np.clip(moved + random.normal(0, 8, moved.shape), 0, 255).astype(np.uint8)

    scenes = [scene() for _ in range(8)]
    return plain(
        np.stack([frame(each) for each in scenes for _ in range(10)]),
        np.stack([frame(scene()) for _ in range(160)]),
        folder,
    )


def digits() -> tuple[Images, np.ndarray]:
    """Return handwritten digits as colour images, and which they are."""
    found = load_digits()
    grey = np.rint(found.images * 255 / 16).astype(np.uint8)
    grey = np.repeat(np.repeat(grey, 2, 1), 2, 2)
    return np.repeat(grey[..., None], 3, axis=3), found.target


def variants() -> list[Variant]:
    """Return all of them."""
    found = [Variant(f"noise {seed}", partial(only_noise, seed)) for seed in range(4)]
    found += [
        Variant(f"noise, forest {seed}", partial(only_noise, seed), "forest") for seed in (7, 8)
    ]
    for seed, (contents, endings, where) in enumerate(
        (
            *((8, ("png",), "P"), (8, ("png", "bmp"), "P"), (8, ("png", "jpg"), "P")),
            *((12, ("png",), "P"), (16, ("png",), "PU"), (12, ("png", "jpg"), "P")),
            *((16, ("png", "bmp"), "PU"), (16, ("png", "jpg"), "PU"), (40, ("png",), "U")),
            *((20, ("png", "jpg", "bmp"), "P"), (12, ("bmp", "jpg"), "PU"), (30, ("jpg",), "P")),
        )
    ):
        write = partial(copied, seed, contents=contents, endings=endings, where=where)
        name = f"{contents} contents ten times in {where}, {' and '.join(endings)}"
        found.append(Variant(name, write, "forest" if seed % 2 else "linear"))
    for seed, ending in enumerate(("png", "bmp", "jpg") * 2):
        method = "linear" if seed < 3 else "forest"
        write = partial(tested_on_training_data, seed, ending=ending)
        found.append(Variant(f"tested on training files as {ending}, {method}", write, method))
    for seed, (ending, scenario) in enumerate(
        (
            ("png", "single-set"),
            ("bmp", "single-set"),
            ("jpg", "single-set"),
            ("bmp", "case-control"),
        )
    ):
        write = partial(positives_in_the_pool, seed, ending=ending, scenario=scenario)
        found.append(Variant(f"positives in the pool as {ending}, {scenario}", write))
    found += [
        Variant(f"negatives in the pool {seed}", partial(negatives_in_the_pool, seed))
        for seed in (0, 1)
    ]
    found += [Variant(f"swapped {seed}", partial(swapped, seed)) for seed in range(5)]
    found += [
        Variant(f"constant, {levels} greys", partial(constant, levels, levels=levels))
        for levels in (1, 2, 12, 200)
    ]
    found += [Variant("masks of 0 and 1", partial(masks, 0))]
    found += [Variant(f"shuffled labels {seed}", partial(shuffled, seed)) for seed in range(4)]
    found += [
        Variant(f"shuffled labels, forest {seed}", partial(shuffled, seed), "forest")
        for seed in (8, 9)
    ]
    found += [
        Variant(
            f"rows of noise, {repeat} times each",
            partial(rows_of_noise, repeat, repeat=repeat),
            method,
        )
        for repeat, method in ((1, "linear"), (4, "forest"), (10, "linear"), (20, "forest"))
    ]
    found += [
        Variant(
            f"rows of noise, {repeat} times each with noise of 1e-6",
            partial(rows_of_noise, repeat, repeat=repeat, noise=1e-6),
            method,
        )
        for repeat, method in ((4, "forest"), (10, "linear"))
    ]
    for seed, (contents, where) in enumerate(((8, "P"), (12, "P"), (16, "PU"), (30, "P"))):
        method = "forest" if seed % 2 else "linear"
        write = partial(changed_copies, seed, contents=contents, where=where)
        found.append(Variant(f"{contents} contents changed ten times in {where}", write, method))
    for seed, ending in enumerate(("png", "jpg") * 2):
        method = "linear" if seed < 2 else "forest"
        write = partial(tested_on_changed_copies, seed, ending=ending)
        found.append(Variant(f"tested on changed copies as {ending}, {method}", write, method))
    return found + marked_variants()


def marked_variants() -> list[Variant]:
    """Return variants in which P differs from U in how it was collected, or was seen often."""
    found = [
        Variant(f"a column of {name}, {method}", partial(marked_rows, seed, mark=mark), method)
        for seed, (name, mark) in enumerate(MARKS.items())
        for method in ("linear", "forest")
    ]
    found += [
        Variant(
            f"rows of noise, {repeat} times each with noise of {noise:g}, {method}",
            partial(rows_of_noise, repeat, repeat=repeat, noise=noise),
            method,
        )
        for repeat, noise in ((10, 1e-3), (10, 0.02), (15, 0.05))
        for method in ("linear", "forest")
    ]
    found += [
        Variant(f"texts retyped with {changed} other words", write)
        for changed in (1, 2, 3)
        for write in [partial(retyped_texts, changed, changed=changed)]
    ]
    found.append(Variant("texts with a tag", partial(retyped_texts, 9, changed=0, tag="ref7")))
    found += [
        Variant("P as bmp files", partial(other_files, 0, ending="bmp")),
        Variant("P as jpg files, forest", partial(other_files, 1, ending="jpg"), "forest"),
        Variant("P of another size", partial(other_files, 2, side=24)),
        Variant("P with a bar of one row", partial(stamped, 3, rows=1)),
        Variant("P with a bar of three rows, forest", partial(stamped, 4, rows=3), "forest"),
        Variant("P from a film", partial(film, 5)),
        Variant("P from a film, forest", partial(film, 6), "forest"),
    ]
    # The same through the door of scikit-learn.
    for seed, noise in enumerate((0.0, 1e-3, 0.02)):
        write = partial(rows_of_noise, seed, repeat=10, noise=noise)
        found.append(
            Variant(f"in Python, ten times each with noise of {noise:g}", write, in_python=True)
        )
    found.append(Variant("in Python, noise", partial(rows_of_noise, 5, repeat=1), in_python=True))
    return found


def judged(variant: Variant, folder: Path) -> Verdict:
    """Fit the variant and return what the run says."""
    if variant.in_python:
        return judged_in_python(variant, folder)
    try:
        given = variant.write(folder / "data")
        fitted = onesided.fit(**given, method=variant.method, output=folder / "run")
    except OnesidedError as error:
        return Verdict(variant.name, f"refused: {error}", ())
    if fitted.degenerate:
        return Verdict(variant.name, f"alarm: {fitted.degenerate}", ())
    claims = claims_of(fitted.result)
    sentences = [one for one in fitted.result["warnings"] if not one.startswith(OUTSIDE)]
    sentences += [notice for notice in fitted.result["notices"] if SWAPPED in notice]
    if claims and sentences:
        return Verdict(variant.name, f"warned: {sentences[0]}", ())
    return Verdict(variant.name, "claims" if claims else "no claim", claims)


def judged_in_python(variant: Variant, folder: Path) -> Verdict:
    """Fit the variant by PUClassifier and return what it warns of: nobody reads attributes."""
    given = variant.write(folder / "data")
    arrays = [np.load(given[side]) for side in ("positives", "unlabelled")]
    labels = np.repeat([1, 0], [len(each) for each in arrays])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = onesided.PUClassifier(variant.method).fit(np.concatenate(arrays), labels)
    claims = claims_of(fitted.result_)
    if claims and caught:
        return Verdict(variant.name, f"warned: {caught[0].message}", ())
    return Verdict(variant.name, "claims" if claims else "no claim", claims)


def claims_of(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a result says that a model without use would say once in a thousand times."""
    figures = (result["pu"] or {}).get("figures", {})
    found = []
    auc, recall, share = (figures.get(name) for name in ("proxy_auc", "recall", "share_positive"))
    if (
        auc
        and auc["value"] is not None
        and auc["value"] - 0.5 > ONE_IN_A_THOUSAND * (auc["value"] - auc["low"])
    ):
        found.append(f"proxy AUC {auc['value']:.3f}, at least {auc['low']:.3f}")
    if recall and share and recall["low"] > share["high"]:
        found.append(f"finds at least {recall['low']:.3f}, calls at most {share['high']:.3f} of U")
    test, known = result["test"], result["known_negatives"]
    if test and (test["auc"] or 0) > 0.75:
        found.append(f"AUC {test['auc']:.3f} on the test part")
    if known and recall and recall["low"] > known["high"]:
        found.append(f"calls at most {known['high']:.3f} of the known negatives")
    return tuple(found)


def main() -> int:
    """Judge all variants and write the result; return 1 if any claims a working model."""
    head = {"title": "Claims about data that allows none", "origin": origin()}
    rows: list[dict[str, Any]] = []
    for variant in variants():
        with TemporaryDirectory() as folder:
            verdict = judged(variant, Path(folder))
        print(
            f"{verdict.name}: {verdict.outcome[:100]} {' '.join(verdict.claims)}", file=sys.stderr
        )
        rows.append({"name": verdict.name, "outcome": verdict.outcome, "claims": verdict.claims})
    outcomes = Counter(row["outcome"].partition(":")[0] for row in rows)
    write_json(RESULT, {**head, "variants": len(rows), "outcomes": outcomes, "rows": rows})
    return int(any(row["claims"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
