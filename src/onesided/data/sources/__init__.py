"""Data sets that come with the library, or that it can fetch, in one table.

A new data set is a reader in a file of this folder and one entry in `SOURCES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from onesided.core.config import nearest
from onesided.core.errors import ConfigError
from onesided.data.problem.samples import Source
from onesided.data.problem.split import POOLED
from onesided.data.sources import abcd, cifar, digits, idx, stl10, tabular, toy
from onesided.data.sources.download import Archive, ByHand, Layout
from onesided.data.sources.xbd import load as xbd


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A data set, and its default PU problem; the sizes are those of CIFAR-10 in the paper.

    Attributes:
        load: Reads it from a root folder; embedded sets ignore the root.
        summary: What is in it, and what counts as positive.
        licence: On which terms it comes, and whom to cite.
        positives: Labelled positives.
        prior: Share of positives among the unlabelled; None where it is unknown.
        held_out_unlabelled: Further unlabelled samples, held out.
        mean: Per channel, of values from 0 to 1; per feature of vectors.
        std: Standard deviation, likewise.
        layouts: How it lies on disk; the first is what is fetched. Empty if it is embedded, or
            if people have to fetch it.
        by_hand: How people get it, where they must accept a licence.
        paper_grouping: How the paper divides it, where the publisher divides it otherwise.
        listed: Whether people see it; sets for tests are not listed.
    """

    load: Callable[[Path | None], Source]
    title: str
    summary: str
    licence: str
    positive_classes: tuple[int, ...]
    positives: int = 1000
    unlabelled: int = 40000
    prior: float | None = 0.4
    held_out_unlabelled: int = 4000
    held_out_positives: int = 100
    mean: tuple[float, ...]
    std: tuple[float, ...]
    layouts: tuple[Layout, ...] = ()
    by_hand: ByHand | None = None
    paper_grouping: str | None = None
    listed: bool = True

    @property
    def archives(self) -> tuple[Archive, ...]:
        """What `onesided data get` fetches; nothing if the set is embedded."""
        return self.layouts[0].archives if self.layouts else ()

    @property
    def embedded(self) -> bool:
        """Whether it needs no files."""
        return not self.layouts and self.by_hand is None


def _of_255(*values: float) -> tuple[float, ...]:
    """Return statistics of bytes, as published, on the scale from 0 to 1."""
    return tuple(value / 255 for value in values)


_DIGITS = SourceEntry(
    load=digits.load_digits,
    title="Handwritten digits",
    summary="1797 grey images of 8x8, embedded; positive: even digits",
    licence="CC BY 4.0. Alpaydin and Kaynak 1998, UCI Machine Learning Repository.",
    positive_classes=(0, 2, 4, 6, 8),
    positives=40,
    unlabelled=800,
    held_out_unlabelled=100,
    held_out_positives=20,
    mean=(0.3048,),
    std=(0.3757,),
)

SOURCES: Mapping[str, SourceEntry] = MappingProxyType(
    {
        "digits": _DIGITS,
        idx.NAME: SourceEntry(
            load=idx.load_fashion_mnist,
            title="Fashion-MNIST",
            summary="70000 grey images of 28x28; positive: tops (T-shirt, pullover, coat, shirt)",
            licence="MIT. Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747.",
            positive_classes=(0, 2, 4, 6),
            mean=(0.2860,),
            std=(0.3530,),
            layouts=idx.LAYOUTS,
        ),
        cifar.CIFAR10.name: SourceEntry(
            load=cifar.load_cifar10,
            title="CIFAR-10",
            summary="60000 colour photographs of 32x32; positive: vehicles",
            licence="No licence stated. Krizhevsky 2009, Learning Multiple Layers of Features.",
            positive_classes=cifar.CIFAR10_POSITIVES,
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.247, 0.243, 0.261),
            layouts=cifar.CIFAR10.layouts,
        ),
        cifar.CIFAR100.name: SourceEntry(
            load=cifar.load_cifar100,
            title="CIFAR-100",
            summary="60000 colour photographs of 32x32; positive: animals and people",
            licence="No licence stated. Krizhevsky 2009, Learning Multiple Layers of Features.",
            positive_classes=cifar.CIFAR100_POSITIVES,
            prior=0.5,
            mean=(0.5071, 0.4867, 0.4408),
            std=(0.2675, 0.2565, 0.2761),
            layouts=cifar.CIFAR100.layouts,
        ),
        stl10.NAME: SourceEntry(
            load=stl10.load_stl10,
            title="STL-10",
            summary="113000 colour photographs of 96x96; positive: airplane, car, cat, ship, truck",
            licence="No licence stated; from ImageNet. Coates, Lee and Ng, AISTATS 2011.",
            positive_classes=stl10.POSITIVE_CLASSES,
            unlabelled=90000,
            prior=None,
            held_out_unlabelled=9000,
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            layouts=stl10.LAYOUTS,
        ),
        abcd.NAME: SourceEntry(
            load=abcd.load_abcd,
            title="ABCD",
            summary="8444 buildings from the air before and after a tsunami, 6 channels of "
            "128x128; positive: washed away",
            licence="Non-commercial use only; images (c) PASCO corporation. Fujita et al., MVA "
            "2017, https://github.com/gistairc/ABCDdataset",
            positive_classes=abcd.POSITIVE_CLASSES,
            positives=300,
            unlabelled=4000,
            prior=0.5,
            held_out_unlabelled=400,
            held_out_positives=30,
            mean=_of_255(119.9391, 114.9877, 103.1147, 140.6345, 142.3115, 130.3468),
            std=_of_255(69.6637, 66.0012, 65.2355, 35.8397, 32.8773, 33.7203),
            by_hand=abcd.BY_HAND,
        ),
        xbd.NAME: SourceEntry(
            load=xbd.load_xbd,
            title="xBD",
            summary="buildings in satellite images after disasters, cut out, colour of 64x64; "
            "positive: major damage, destroyed",
            licence="CC BY-NC-SA 4.0, non-commercial. Gupta et al. 2019, arXiv:1911.09296.",
            positive_classes=xbd.POSITIVE_CLASSES,
            positives=500,
            unlabelled=20000,
            held_out_unlabelled=2000,
            held_out_positives=50,
            mean=_of_255(82.5567, 103.9388, 98.9924),
            std=_of_255(35.2087, 33.5893, 38.6644),
            by_hand=xbd.BY_HAND,
            paper_grouping=POOLED,
        ),
        tabular.BREAST_CANCER: SourceEntry(
            load=tabular.load_breast_cancer,
            title="Breast cancer Wisconsin (diagnostic)",
            summary="569 tumours by 30 numbers, embedded; positive: malignant",
            licence="CC BY 4.0. Wolberg, Mangasarian, Street and Street 1993, UCI Machine Learning "
            "Repository.",
            positive_classes=(tabular.MALIGNANT,),
            positives=30,
            unlabelled=200,
            prior=0.3,
            held_out_unlabelled=60,
            held_out_positives=15,
            mean=(0.0,) * tabular.BREAST_CANCER_FEATURES,
            std=(1.0,) * tabular.BREAST_CANCER_FEATURES,
        ),
        tabular.DIGIT_VECTORS: replace(
            _DIGITS,
            load=tabular.load_digit_vectors,
            title="Handwritten digits, as vectors",
            summary="1797 digits by 64 numbers, embedded; positive: even digits",
            mean=(0.0,) * tabular.DIGIT_FEATURES,
            std=(1.0,) * tabular.DIGIT_FEATURES,
        ),
        "toy-vectors": SourceEntry(
            load=toy.load_toy_vectors,
            title="Two clouds, as points",
            summary="13200 points of the plane from two normal distributions",
            licence="Made by this library, Apache-2.0.",
            positive_classes=toy.POSITIVE_CLASSES,
            positives=200,
            unlabelled=2000,
            held_out_unlabelled=400,
            mean=(0.0, 0.0),
            std=(1.0, 1.0),
            listed=False,
        ),
        "toy-images": SourceEntry(
            load=toy.load_toy_images,
            title="Two clouds, as images",
            summary="750 colour images of 8x8 that show a point of one of two clouds",
            licence="Made by this library, Apache-2.0.",
            positive_classes=toy.POSITIVE_CLASSES,
            positives=40,
            unlabelled=240,
            held_out_unlabelled=60,
            held_out_positives=20,
            mean=(0.5, 0.5, 0.5),
            std=(0.15, 0.12, 0.15),
            listed=False,
        ),
    }
)


def source_named(name: str) -> SourceEntry:
    """Return the entry of this name, or name the nearest one."""
    if name not in SOURCES:
        listed = [known for known, entry in SOURCES.items() if entry.listed]
        raise ConfigError(f"There is no data set called {name!r}.{nearest(name, listed)}")
    return SOURCES[name]
