"""Scales: how much of a publication's budget is spent, as data."""

from collections.abc import Mapping

from pydantic import Field

from onesided.bench.named_files import NamedFiles
from onesided.bench.suite import Counts, Draw, Table
from onesided.core.config import Config, Settings
from onesided.data.problem.split import MINIMUM_POSITIVES
from onesided.data.sources import SOURCES, source_named

COUNTED = ("positives", "unlabelled", "held_out_positives", "held_out_unlabelled")


class DataSet(Config):
    """How one data set is used at a scale."""

    share: float | None = Field(default=None, gt=0, le=1)
    """Share of the data; None takes the scale's."""
    recipe: str | None = None
    """The data set whose recipes are followed, where nobody published any for this one."""
    positives: int | None = None
    unlabelled: int | None = None
    held_out_positives: int | None = None
    held_out_unlabelled: int | None = None
    clean: int | None = None
    """Samples of each class for methods that need clean ones."""


class Scale(Config):
    """How much is spent on every cell."""

    summary: str
    """What it is, in a few words."""
    reduced: str
    """How it differs from the publication; empty where it does not."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Share of the data."""
    log_truth: int = Field(default=0, ge=0)
    """After how many epochs true accuracy is logged, for curves; 0 never. No method sees it."""
    most_epochs: int | None = Field(default=None, ge=1)
    """Longer schedules are compressed to so many epochs; None leaves them as they are."""
    adapt: bool = False
    """Whether methods adapt warm-ups and momentum to fewer epochs."""
    also: tuple[str, ...] = ()
    """Data sets beside those of the publication, where a run takes minutes."""
    instead: tuple[str, ...] = ()
    """Data sets in place of those of the publication."""
    backbone: Settings = Field(default_factory=dict)
    train: Settings = Field(default_factory=dict)
    """Training settings over those of the recipe."""
    method: Mapping[str, Settings] = Field(default_factory=dict)
    """Settings of methods, each under the method's name."""
    sets: Mapping[str, DataSet] = Field(default_factory=dict)

    def data_of(self, table: Table) -> tuple[str, ...]:
        """Return the data sets that a table is measured on."""
        if not table.data:
            return ()
        return self.instead or tuple(dict.fromkeys((*table.data, *self.also)))

    def recipe_of(self, data: str) -> str:
        """Return the data set whose recipes are followed."""
        return self._set(data).recipe or data

    def data_settings(self, data: str, counts: Counts, draw: Draw | None = None) -> Settings:
        """Return the split of a data set, with the shares that a row's own counts mean.

        A row counts as the paper does on its own data set: 500 positives where the set has
        1000 are half of the positives here. `draw` is the suite's own, if it has one.
        """
        own, entry, home = self._set(data), source_named(data), SOURCES[self.recipe_of(data)]
        share = self.share if own.share is None else own.share
        settings: Settings = {"name": data, **(draw.settings() if draw else {})}
        for name in COUNTED:
            given = getattr(own, name)
            # What a suite holds out is little already: a tenth of it would choose nothing.
            whole = draw is not None and name.startswith("held_out")
            drawn = getattr(entry if draw is None else draw, name)
            base = drawn * (1.0 if whole else share) if given is None else given
            row = getattr(counts, name, None)
            part = 1.0 if row is None else row / getattr(home, name)
            settings[name] = max(1, round(base * part))
        settings["positives"] = max(MINIMUM_POSITIVES, settings["positives"])
        if counts.prior is not None:
            settings["prior"] = counts.prior
        return settings

    def clean_of(self, data: str, published: int) -> int:
        """Return how many clean samples of each class a method gets that the paper gives some."""
        own = self._set(data)
        if own.clean is not None:
            return own.clean
        return max(10, round(published * (self.share if own.share is None else own.share)))

    def _set(self, data: str) -> DataSet:
        return self.sets.get(data, DataSet())


SCALES = NamedFiles.of_package("scale", Scale, "scales")


def scale_names() -> list[str]:
    """Return the names of all scales."""
    return SCALES.names()


def read_scale(name: str) -> Scale:
    """Return a scale by its name; all of it is checked."""
    return SCALES.read(name)


def base_of_scale(name: str) -> str | None:
    """Return the scale that this one changes, None if it stands alone."""
    return SCALES.base_of(name)
