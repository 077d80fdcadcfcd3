"""A PU problem as one method trains on it and is evaluated on it: built once, then passed on."""

import hashlib
from dataclasses import dataclass, replace

from onesided.core.dist import world
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import UNKNOWN
from onesided.data.problem.dataset import LabelledDataset, PUSplit
from onesided.data.problem.negatives import (
    add_negatives,
    clean_from_negatives,
    joined,
    not_trained_on,
)
from onesided.methods import AUTO, METHODS, method_named
from onesided.methods.auto import AutoConfig
from onesided.methods.base import MethodConfig
from onesided.run.config import RunConfig
from onesided.run.decisions import check_rule
from onesided.run.load import LoadedData


@dataclass(frozen=True)
class Hashes:
    """What identifies a run: another run's folder is refused."""

    settings: str  # of every setting that changes results
    split: str  # of every name and role
    content: str  # of every training sample
    held_out: str  # of every sample that evaluates the run

    @property
    def identity(self) -> str:
        """The parts that decide the model."""
        return f"{self.settings[:24]}-{self.split[:24]}-{self.content[:24]}"


@dataclass(frozen=True)
class Problem:
    """Settings and data of one run.

    Attributes:
        config: The settings.
        data: P, U, held-out and test parts, the same for every method; images, or their
            features where the backbone is frozen (see `embed`).
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
        """P and U as they were read, the same for every method."""
        return self.data.split

    def for_method(self, config: RunConfig) -> "Problem":
        """Return the problem with these settings; known negatives stay for methods that use them.

        For the candidates of a search, which has them all among its training rows.
        """
        training = self.training if config.method.uses_negatives else self.split
        return replace(self, config=config, training=training)

    def hashes(self) -> Hashes:
        """Return the hashes. Reads all values: a second for each gigabyte."""
        return Hashes(
            settings=self.config.fingerprint(),
            split=self._split_hash(),
            content=self._content_hash(),
            held_out=self.training.held_out_hash(self.unseen_negatives),
        )

    def roles(self) -> list[tuple[str, str]]:
        """Return (role, name) of every sample: the content of split.csv."""
        unseen = self.unseen_negatives
        names = () if unseen is None else unseen.names
        return self.training.roles() + [("held-out-negative", name) for name in names]

    def _content_hash(self) -> str:
        """Return the hash of what is trained on, and of the encoder that reads its texts."""
        own, sentences = self.training.content_hash(), self.data.sentences
        if sentences is None:
            return own
        return hashlib.sha256(f"{own} {sentences.content}".encode()).hexdigest()

    def _split_hash(self) -> str:
        own, unseen = self.training.fingerprint(), self.unseen_negatives
        if unseen is None:
            return own
        words = "\x1e".join((own, *unseen.names))
        return hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()


def build_problem(config: RunConfig, data: LoadedData) -> Problem:
    """Return the problem; raise where this method cannot be trained on this data."""
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
    used = negatives.train
    if method.needs.clean and split.clean is None:
        split, used = clean_from_negatives(split, used)
    return add_negatives(split, used)


def negatives_for_evaluation(data: LoadedData, method: MethodConfig) -> LabelledDataset | None:
    """Return the known negatives that this method is not trained on, None if there are none."""
    negatives = data.known_negatives
    if negatives is None:
        return None
    unseen = negatives.held_out
    if not method.uses_negatives:
        unseen = joined(negatives.train, unseen)
    unseen = not_trained_on(unseen, data.split.train)
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
    if split.train.weights is not None:
        _check_weights(config)
    parts = [part for part in (split.train, split.held_out) if part is not None]
    check_rule(
        config.threshold,
        unlabelled=sum(int(part.unlabelled.sum()) for part in parts),
        held_out=split.held_out is not None or isinstance(config.method, AutoConfig),
    )
    chosen = config.train.model_dump(exclude_defaults=True)
    if isinstance(config.method, AutoConfig) and "batch_size" not in chosen:
        return  # each candidate has a batch size of its own
    rows, batch = len(split.train), config.train.batch_size
    if batch > rows:
        raise ConfigError(
            f"train.batch_size is {batch}, but there are only {rows} training samples. "
            f"Use at most {rows}."
        )
    if batch % world():
        raise ConfigError(
            f"train.batch_size is {batch}, which {world()} processes cannot share equally. Use a "
            f"multiple of {world()}."
        )


def _check_weights(config: RunConfig) -> None:
    """Refuse a method that cannot count samples by weights: to ignore them would be silent."""
    asked = [config.method.card.title] if not config.method.uses_weights else []
    if isinstance(config.method, AutoConfig):
        names = (*config.method.candidates, *config.method.also)
        asked += [name for name in names if not method_named(name).uses_weights]
    if asked:
        able = ", ".join([AUTO, *(name for name, each in METHODS.items() if each.uses_weights)])
        raise ConfigError(
            f"{asked[0]} cannot weigh samples, and their weights differ. Leave the weights out, or "
            f"choose a method that can: {able}."
        )
