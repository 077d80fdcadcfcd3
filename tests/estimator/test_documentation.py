"""What docs/python.md shows works as it is printed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.filterwarnings("ignore::onesided.estimator.DegenerateModelWarning")
def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), PAGE.name, "exec"), {"__name__": "page"})
    assert (tmp_path / "tumours" / "model.safetensors").exists()


def test_every_parameter_that_the_page_names_exists() -> None:
    from onesided import PUClassifier

    named = set(re.findall(r"`(\w+)=", PAGE.read_text(encoding="utf-8")))
    assert named <= PUClassifier().get_params().keys()
    assert named >= {"preset", "channels", "labels_mean", "kind", "held_out", "method", "prior"}
