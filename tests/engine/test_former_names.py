"""A model that an earlier version saved as a variant of NcPU opens as Teacher, with its scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided import PUClassifier
from onesided.core.errors import ConfigError
from onesided.core.former import first_names
from onesided.engine.model_file import load_model
from onesided.run.config import RunConfig, with_new_names
from onesided.storage.own_file import CHECKSUMS
from tests.estimator.clouds import TINY, two_clouds

pytestmark = pytest.mark.filterwarnings("ignore::onesided.estimator.DegenerateModelWarning")
VARIANTS = {"plain": "budget", "features": "features"}


def as_earlier(folder: Path) -> None:
    """Rewrite the files of an estimator as the version before wrote them."""
    for name, key in (("model.json", "settings"), ("estimator.json", None)):
        content: dict[str, Any] = json.loads((folder / name).read_text())
        if key is None:
            content["parameters"]["method"] = "ncpu"
            own = content["parameters"]["settings"]["method"]
            own["variant"] = VARIANTS[own["variant"]]
        else:
            content |= {"method": "ncpu", key: first_names("teacher", content[key])}
            del content[key]["name"]
        (folder / name).write_text(json.dumps(content))
    (folder / CHECKSUMS).unlink()


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_a_saved_estimator_of_an_earlier_version_loads_and_scores_the_same(
    variant: str, tmp_path: Path
) -> None:
    problem = two_clouds()
    settings = {**TINY, "method": {"variant": variant, "projector_width": 8}}
    fitted = PUClassifier("teacher", epochs=1, settings=settings).fit(problem.X, problem.y)
    fitted.save(tmp_path / "run")
    as_earlier(tmp_path / "run")
    loaded = PUClassifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict_proba(problem.X), fitted.predict_proba(problem.X))
    assert loaded.get_params() == fitted.get_params()
    _, description = load_model(tmp_path / "run")
    assert (description.method, description.settings["variant"]) == ("teacher", variant)


@pytest.mark.parametrize(("variant", "before"), list(VARIANTS.items()))
def test_a_configuration_of_an_earlier_version_gets_one_sentence_and_can_be_renamed(
    variant: str, before: str
) -> None:
    data = {"data": {"name": "digits"}}
    today = RunConfig.from_settings({**data, "method": {"name": "teacher", "variant": variant}})
    settings = today.to_settings()
    old = {**settings, "method": first_names("teacher", today.method.model_dump(mode="json"))}
    with pytest.raises(ConfigError, match=f"'{before}' is now a method of its own") as refused:
        RunConfig.from_settings(old, "config.toml")
    assert "\n" not in str(refused.value)
    renamed = RunConfig.from_settings(with_new_names(old))
    assert renamed == today
    assert renamed.fingerprint() == today.fingerprint()
