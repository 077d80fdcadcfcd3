import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from onesided.kernels.compiled import compiled


def made_of(source: str) -> Any:  # noqa: ANN401 - a function of whatever the source says
    """Return the function `it` of a source that is in no file."""
    names: dict[str, Any] = {}
    exec(source, names)
    return names["it"]


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same() -> None:
    double = compiled(made_of("def it(number): return 2 * number"))
    assert double(21) == 42
    assert double.nopython_signatures


def test_other_compiled_code_keeps_its_own_cache(tmp_path: Path) -> None:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(tmp_path)
    try:
        compiled(made_of("def it(number): return number"))
        assert str(tmp_path) == settings.CACHE_DIR
    finally:
        settings.CACHE_DIR = before


@pytest.mark.parametrize("writable", [True, False])
def test_an_edit_of_a_called_function_is_noticed_for_every_cache_folder(
    tmp_path: Path, writable: bool
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    head = "from onesided.kernels.compiled import compiled\n"
    (package / "__init__.py").touch()
    (package / "outer.py").write_text(
        f"{head}from package.inner import add\n@compiled\ndef it(x): return add(x)\n"
    )
    if not writable:
        (package / "__pycache__").touch()  # a file, where the folder would be

    def result_after(edit: str) -> int:
        (package / "inner.py").write_text(f"{head}@compiled\ndef add(x): return x + {edit}\n")
        command = [sys.executable, "-c", "from package.outer import it; print(it(1))"]
        places = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "people")}
        done = subprocess.run(
            command, env={**os.environ, **places}, check=True, capture_output=True, text=True
        )
        return int(done.stdout)

    assert result_after("1") == 2
    cached = tmp_path / ("people" if not writable else "package/__pycache__")
    assert list(cached.rglob("*.nbc"))
    assert result_after("100") == 101
