"""`onesided prior`: the answer of `fit`, on features of images, with progress and doubts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import onesided
from onesided.core.monitor import Monitor, Phase
from onesided.metrics.registry import OWN_SCORES_MEDIAN, assumption
from tests.cli.pictures import draw_data
from tests.estimator.clouds import two_clouds


class Listener(Monitor):
    """Remembers phases, and how often each moved."""

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        moved = self.moved
        moved.setdefault(title, 0)

        class Counting(Phase):
            def __call__(self, done: int, total: int | None) -> None:
                moved[title] += 1

        yield Counting()


@pytest.mark.slow
def test_it_says_what_fit_says_and_is_doubted_by_another_estimator(tmp_path: Path) -> None:
    listener, table, problem = Listener(), tmp_path / "items.csv", two_clouds()
    words = np.where(problem.y == 1, "positive", "unlabelled")
    columns = [f"x{number}" for number in range(problem.X.shape[1])]
    lines = [
        ",".join([word, *(f"{value:.6f}" for value in row)])
        for word, row in zip(words, problem.X, strict=True)
    ]
    table.write_text("\n".join([",".join(["label", *columns]), *lines, ""]))
    found = onesided.estimate_prior(table=table, monitor=listener)
    fitted = onesided.fit(table=table, output=tmp_path / "run").result["prior"]
    first, second = found.estimates
    assert (first.value, first.low, first.high) == (fitted["value"], fitted["low"], fitted["high"])
    assert fitted["origin"] == OWN_SCORES_MEDIAN
    assert any(assumption(OWN_SCORES_MEDIAN).text in note for note in first.notes)
    assert (first.method, second.method) == ("auto", "KM2")
    assert listener.moved["estimating by auto"] > 10, "a search that takes minutes shows progress"


def test_images_are_embedded_first_and_that_shows(tmp_path: Path) -> None:
    draw_data(tmp_path)
    listener = Listener()
    found = onesided.estimate_prior(
        tmp_path / "P", tmp_path / "U", estimators="km2", monitor=listener
    )
    assert [estimate.method for estimate in found.estimates] == ["KM2"]
    assert listener.moved["embedding"] > 0
