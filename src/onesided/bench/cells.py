"""Cells: one run for one row, data set, scale and seed; its settings, and how it was reduced."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onesided.bench.scale import Scale, read_scale
from onesided.bench.suite import MEASURED, Row, read_suite
from onesided.core.config import Settings, merge
from onesided.data.sources import source_named
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS
from onesided.run.config import RunConfig, data_config
from onesided.run.presets import at_pace, prior_of_recipe, recipe_settings

PAPER_SCALE = "run at the paper's scale"


@dataclass(frozen=True, order=True)
class Cell:
    """One run in one table."""

    suite: str
    table: str
    row: str
    data: str
    scale: str
    seed: int

    @property
    def what(self) -> Row:
        """The row."""
        return _rows(self.suite)[self.row]

    @property
    def words(self) -> str:
        """The cell as people name it."""
        return f"{self.data}, {self.row}, {self.scale}, seed {self.seed}"

    def config(self, root: Path | None = None) -> RunConfig:
        """Return the settings of the run; its folder has them as `config.toml`."""
        place = {"data": {"root": str(root)}} if root else {}
        where = f"benchmark '{self.what.title}'"
        config = RunConfig.from_settings(merge(self.settings(), place), where)
        if not (read_suite(self.suite).adapt or read_scale(self.scale).adapt):
            return config
        return _adapted(config, read_scale(self.scale), self.what)

    def settings(self) -> Settings:
        """Return what is set for this cell: recipe, scale and row, without any default."""
        return _settings(self.suite, self.row, self.data, self.scale, self.seed)

    def key(self) -> str:
        """Return 8 hex digits that change with what is set.

        Defaults do not count: a setting that a method gains later must not make old cells
        unknown. A record holds the commit that it was measured at.
        """
        text = json.dumps(self.settings(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def folder(self, output: Path) -> Path:
        """Return the run folder; tables that share a run share it."""
        name = f"{self.data}-{self.what.method}-{self.key()}-{self.seed}"
        return output / "runs" / self.scale / name


def planned(
    tables: Sequence[tuple[str, str]],
    scale: str,
    seeds: Sequence[int],
    *,
    data: Sequence[str] = (),
    only: Sequence[str] = (),
) -> list[Cell]:
    """Return the cells of some tables, seed after seed; `only` names rows, in their order.

    A table that names its scales has no cells at others.
    """
    cells = []
    for suite_name, table_name in tables:
        suite = read_suite(suite_name)
        table = suite.tables[table_name]
        if table.kind not in MEASURED or (table.scales and scale not in table.scales):
            continue
        for seed in seeds:
            for row in suite.rows_of(table_name):
                for one in read_scale(scale).data_of(table):
                    cells.append(Cell(suite_name, table_name, row, one, scale, seed))
    chosen = [
        cell for cell in cells if (not data or cell.data in data) and (not only or cell.row in only)
    ]
    if only:
        chosen.sort(key=lambda cell: (cell.seed, only.index(cell.row)))
    return chosen


def scale_words(suite: str, scale: str) -> str:
    """Return whether a scale is the paper's, or how it is reduced and differs otherwise."""
    reduced, differs = read_scale(scale).reduced, read_suite(suite).differs
    if not reduced:
        return f"{PAPER_SCALE}, but for: {differs}" if differs else PAPER_SCALE
    return f"reduced ({'; '.join(filter(None, (reduced, differs)))})"


@cache
def _rows(suite: str) -> dict[str, Row]:
    return read_suite(suite).all_rows()


@cache
def _settings(suite: str, row_name: str, data: str, scale_name: str, seed: int) -> Settings:
    row, scale, plan = _rows(suite)[row_name], read_scale(scale_name), read_suite(suite)
    recipe = recipe_settings(scale.recipe_of(data), row.method) if plan.recipes else {}
    split = scale.data_settings(data, row.counts, plan.draws.get(data))
    if (grouping := source_named(data).paper_grouping) is not None:
        split["grouping"] = grouping
    if METHODS[row.method].needs.clean:
        split["clean"] = scale.clean_of(data, int(recipe.get("data", {}).get("clean", 100)))
    prior = None
    if scale.recipe_of(data) == data:  # a prior that was estimated on another set means nothing
        prior = prior_of_recipe(recipe, data_config(split, f"benchmark '{row.title}'"))
    settings = merge(
        {"seed": seed, "prior": prior or "auto"},
        {"train": recipe.get("train", {}), "method": recipe.get("method", {})},
        {"data": split, "method": {"name": row.method}},
        plan.protocol,
        {"backbone": scale.backbone, "train": scale.train},
        {"method": scale.method.get(row.method, {})},
        row.settings,
    )
    if scale.most_epochs is not None:
        epochs = settings["train"].get("epochs", TrainConfig().epochs)
        settings["train"]["epochs"] = min(epochs, scale.most_epochs)
    return settings


def _adapted(config: RunConfig, scale: Scale, row: Row) -> RunConfig:
    """Return the run with warm-ups that fit into fewer epochs."""
    asked = frozenset((*row.settings.get("method", {}), *scale.method.get(row.method, {})))
    method = at_pace(config.method, config.train.epochs, asked, config.backbone)
    settings = config.to_settings()
    settings["method"] = {"name": row.method, **method.model_dump(mode="json")}
    return RunConfig.from_settings(settings, f"benchmark '{row.title}'")
