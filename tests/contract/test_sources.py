"""What every data set promises, checked for every entry of the table on a miniature of it."""

from pathlib import Path

import numpy as np
import pytest

from onesided.core.batch import Augment
from onesided.core.errors import DataNotFound
from onesided.core.labels import UNKNOWN
from onesided.core.rng import generator
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.samples import Samples, Source
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.data.views.augment import augment
from tests.data.sources.fakes import FAKES

every_source = pytest.mark.parametrize("name", list(SOURCES))


def load(name: str, root: Path) -> Source:
    FAKES[name](root)
    return SOURCES[name].load(root)


def parts(source: Source) -> list[Samples]:
    return [part for part in (source.train, source.test, source.unlabelled) if part is not None]


def small_split(name: str, source: Source) -> PUSplit:
    entry = SOURCES[name]
    positives = int(np.isin(source.train.classes, entry.positive_classes).sum())
    pool = source.train if source.unlabelled is None else source.unlabelled
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=10,
        unlabelled=min(10, len(pool)),
        prior=None if entry.prior is None else min(0.4, (positives - 10) / 10),
    )
    return split_source(source, recipe)


def test_every_data_set_has_a_miniature() -> None:
    assert set(FAKES) == set(SOURCES)


@every_source
def test_samples_have_values_classes_names_and_a_kind(name: str, tmp_path: Path) -> None:
    source = load(name, tmp_path)
    for part in parts(source):
        assert len(part) == len(part.classes) == len(part.names) > 0
        assert part.sample_shape == source.train.sample_shape
        assert part.values.dtype == (np.float32 if part.kind == "vector" else np.uint8)
        assert part.kind == source.train.kind


@every_source
def test_names_are_unique_and_the_same_in_every_reading(name: str, tmp_path: Path) -> None:
    first, second = load(name, tmp_path), SOURCES[name].load(tmp_path)
    names = [item for part in parts(first) for item in part.names]
    assert len(set(names)) == len(names)
    assert names == [item for part in parts(second) for item in part.names]


@every_source
def test_positive_classes_are_classes_of_the_set(name: str, tmp_path: Path) -> None:
    source = load(name, tmp_path)
    assert set(SOURCES[name].positive_classes) < set(range(len(source.train.class_names)))


@every_source
def test_statistics_have_one_number_per_channel(name: str, tmp_path: Path) -> None:
    channels = load(name, tmp_path).train.sample_shape[0]
    entry = SOURCES[name]
    assert len(entry.mean) == len(entry.std) == channels
    assert min(entry.std) > 0


@every_source
def test_a_split_can_be_made_and_made_again(name: str, tmp_path: Path) -> None:
    source = load(name, tmp_path)
    split = small_split(name, source)
    assert int(split.train.labelled.sum()) == 10
    assert split.fingerprint() == small_split(name, source).fingerprint()
    if SOURCES[name].prior is None:
        assert (split.train.truth[~split.train.labelled] == UNKNOWN).all()


@every_source
@pytest.mark.parametrize("strength", list(Augment))
def test_every_view_suits_the_samples(name: str, strength: Augment, tmp_path: Path) -> None:
    import torch

    split = small_split(name, load(name, tmp_path))
    values = torch.from_numpy(split.train.values.take(slice(0, 8)))
    view = augment(values, split.kind, strength, generator(0, "view"))
    assert view.shape == values.shape
    assert torch.isfinite(view).all()


@every_source
def test_missing_files_are_named_with_where_to_get_them(name: str, tmp_path: Path) -> None:
    entry = SOURCES[name]
    if entry.embedded:
        assert len(entry.load(None).train) > 0, "an embedded set needs no files"
        return
    with pytest.raises(DataNotFound) as missing:
        entry.load(tmp_path / "nothing here")
    address = entry.by_hand.address if entry.by_hand else entry.archives[0].address
    assert address in str(missing.value)


@every_source
def test_every_data_set_has_a_title_a_summary_and_a_licence(name: str) -> None:
    entry = SOURCES[name]
    assert entry.title
    assert entry.summary
    assert entry.licence
