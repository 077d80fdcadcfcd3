"""A PU problem as one method is trained on it and judged by it: built once, then passed on."""

import hashlib
from dataclasses import dataclass

from onesided.core.dist import world
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import UNKNOWN
from onesided.data.problem.dataset import LabelledDataset, PUDataset, PUSplit
from onesided.data.problem.negatives import add_negatives, clean_from_negatives, joined
from onesided.methods.base import MethodConfig
from onesided.run.config import RunConfig
from onesided.run.decisions import check_rule
from onesided.run.load import LoadedData


@dataclass(frozen=True)
class Hashes:
    """What a run is known by: another run's folder is refused.

    Attributes:
        settings: Of every setting that changes results.
        split: Of every name and role.
        content: Of every value trained on.
        held_out: Of every value that the run is judged by.
    """

    settings: str
    split: str
    content: str
    held_out: str

    @property
    def identity(self) -> str:
        """All that makes it this run and no other."""
        return f"{self.settings[:24]}-{self.split[:24]}-{self.content[:24]}"


@dataclass(frozen=True)
class Problem:
    """Settings and data of one run.

    Attributes:
        config: The settings.
        data: P, U, held-out and test parts, the same for every method; pixels, or features
            where a frozen network stands before the one that learns (see `embed`).
        training: The split as this method trains on it: with the known negatives it uses.
        unseen_negatives: Known negatives that this method is not trained on; None if there
            are none.
    """

    config: RunConfig
    data: LoadedData
    training: PUSplit
    unseen_negatives: LabelledDataset | None = None

    @property
    def split(self) -> PUSplit:
        """P and U as they came, whatever the method is."""
        return self.data.split

    def hashes(self) -> Hashes:
        """Return what the run is known by. Reads all values: a second for each gigabyte."""
        return Hashes(
            settings=self.config.fingerprint(),
            split=self._split_hash(),
            content=self.training.content_hash(),
            held_out=self.training.held_out_hash(self.unseen_negatives),
        )

    def roles(self) -> list[tuple[str, str]]:
        """Return (role, name) of every sample: the content of split.csv."""
        unseen = self.unseen_negatives
        names = () if unseen is None else unseen.names
        return self.training.roles() + [("held-out-negative", name) for name in names]

    def _split_hash(self) -> str:
        own, unseen = self.training.fingerprint(), self.unseen_negatives
        if unseen is None:
            return own
        words = "\x1e".join((own, *unseen.names))
        return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()


def build_problem(config: RunConfig, data: LoadedData) -> Problem:
    """Return the problem, or say why this method cannot be trained on this data."""
    training = training_split(data, config.method)
    check_needs(config, training)
    return Problem(config, data, training, negatives_for_evaluation(data, config.method))


def training_split(data: LoadedData, method: MethodConfig) -> PUSplit:
    """Return the split as this method trains on it: with known negatives where it uses them.

    A method that needs a clean set and has none gets it from the known negatives first.
    """
    split, negatives = data.split, data.known_negatives
    if negatives is None or not method.uses_negatives:
        return split
    taught = negatives.train
    if method.needs.clean and split.clean is None:
        split, taught = clean_from_negatives(split, taught)
    return add_negatives(split, taught)


def negatives_for_evaluation(data: LoadedData, method: MethodConfig) -> LabelledDataset | None:
    """Return the known negatives that this method is not trained on, None if there are none."""
    negatives = data.known_negatives
    if negatives is None:
        return None
    unseen = negatives.held_out
    if not method.uses_negatives:
        unseen = joined(negatives.train, unseen)
    return unseen if len(unseen) else None


def check_needs(config: RunConfig, split: PUSplit) -> None:
    """Refuse a method whose needs this data cannot meet, before anything is written."""
    needs, title = config.method.needs, config.method.card.title
    if needs.truth and (split.train.truth == UNKNOWN).any():
        raise DataError(
            f"{title} needs the true class of every training sample, and this data has no labels "
            "for the unlabelled. Choose a method without 'truth' in onesided methods."
        )
    if needs.held_out and split.held_out is None:
        raise DataError(
            f"{title} needs held-out positives and unlabelled samples, and this split has none. "
            "Set data.held_out_positives and data.held_out_unlabelled, or data.held_out."
        )
    if needs.clean and split.clean is None:
        raise DataError(
            f"{title} needs a small clean set with negatives, and this split has none. "
            "Give known negatives with -n, or add data.clean = 100 to a published data set, or "
            "choose a method without 'clean' in onesided methods."
        )
    check_rule(
        config.threshold,
        unlabelled=int(split.train.unlabelled.sum()) + _unlabelled(split.held_out),
        held_out=split.held_out is not None,
    )
    rows, batch = len(split.train), config.train.batch_size
    if batch > rows:
        raise ConfigError(
            f"train.batch_size is {batch}, but there are only {rows} training samples. "
            f"Use at most {rows}."
        )
    if batch % world():
        raise ConfigError(
            f"train.batch_size is {batch}, which {world()} processes cannot share equally."
        )


def _unlabelled(data: PUDataset | None) -> int:
    return 0 if data is None else int(data.unlabelled.sum())
