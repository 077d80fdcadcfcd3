"""Somebody looks at the curve: which epoch is delivered, and whether an earlier one was better."""

from pathlib import Path

import pytest

import onesided
from tests.cli.pictures import draw_data

KEPT = "was kept, because held-out items preferred it"


@pytest.mark.parametrize(("keep", "by"), [("best", "AUC"), ("best-accuracy", "accuracy")])
def test_a_kept_epoch_is_named_and_stays_named_at_another_threshold(
    keep: str, by: str, tmp_path: Path
) -> None:
    data, run = draw_data(tmp_path / "data"), tmp_path / "run"
    found = onesided.fit(
        data / "P",
        data / "U",
        output=run,
        method="ce",
        epochs=2,
        backbone="small",
        settings={
            "backbone": {"width": 0.125},
            "train": {"batch_size": 16, "keep": keep},
            "prior": 0.3,
        },
    )
    assert found.result["pu"] is not None
    (said,) = [text for text in found.result["warnings"] if KEPT in text]
    assert "of 2 was kept" in said
    assert f"proxy {by}" in said
    moved = onesided.evaluate(run, threshold="top-k=20").result
    assert said in moved["warnings"]
    assert said in (run / "report.html").read_text(encoding="utf-8")
