from pathlib import Path
from typing import Any

import numba

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
