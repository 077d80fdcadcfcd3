"""What `result.json` and the rows of `compare.json` must hold; commands and the report ask here.

A file that passes can be shown: whatever the terminal or a page formats as a number is one.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onesided.core.errors import first_line
from onesided.metrics.figure import Scenario
from onesided.metrics.selection import SHARES
from onesided.storage.names import without_surrogates

# Files of later versions may hold further entries; the known ones must be right.
_STRICT = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Seconds = Annotated[float, Field(ge=0, le=1e12)]


class _Figure(BaseModel):
    model_config = _STRICT
    assumes: list[str] | str  # ids; a sentence in older files
    value: float | None
    low: float | None
    high: float | None
    bias: Literal["high", "low"] | None = None
    missing: str | None = None


class _KnownNegatives(BaseModel):
    model_config = _STRICT
    count: _Count
    value: float | None = None
    called_positive: float | None = None  # the value in older files
    low: float
    high: float


class _Estimates(BaseModel):
    model_config = _STRICT
    figures: dict[str, _Figure]
    degenerate: str | None


class _Prior(BaseModel):
    model_config = ConfigDict(**{**_STRICT, "extra": "forbid"})
    value: float
    low: float | None
    high: float | None
    origin: str
    notes: list[str]


class _Tried(BaseModel):
    model_config = _STRICT
    words: str
    proxy_auc: float
    low: float
    high: float
    folds: _Count
    seconds: _Seconds
    tried: _Count
    won: bool


class _Bin(BaseModel):
    model_config = _STRICT
    probability: _Share
    share: _Share
    low: _Share
    high: _Share
    items: _Count


class _Reliability(BaseModel):
    model_config = _STRICT
    error: _Share
    low: _Share
    high: _Share
    by_chance: _Share
    items: _Count
    bins: list[_Bin]


class _Calibrated(BaseModel):
    model_config = _STRICT
    basis: Literal["prior", "answers"] | None
    explained: str
    reliability: _Reliability | None = None


class _Typical(BaseModel):
    model_config = _STRICT
    p: _Share
    rejected: bool
    power: dict[str, _Share]
    explained: str


class _Rule(BaseModel):
    model_config = _STRICT
    rule: str
    explained: str


class _Logged(BaseModel):
    model_config = _STRICT
    title: str
    note: str = ""


class _Compared(BaseModel):
    """One row of `compare.json`."""

    model_config = _STRICT
    method: str
    seed: int
    test: dict[str, float | None] | None
    pu: _Estimates | None
    seconds: _Seconds | None = None  # early versions did not write it
    variant: str | None = None
    chosen_by: str | None = None


class _Result(_Compared):
    threshold: _Share
    warnings: list[str]
    scenario: Scenario
    prior: _Prior | None = None
    known_negatives: _KnownNegatives | None = None
    notices: list[str] = []
    threshold_rule: _Rule | None = None
    calibration: _Calibrated | None = None
    typical: _Typical | None = None
    leaderboard: list[_Tried] = []  # these five after a search only
    folds: _Count = 0
    optimism: _Share = 0.0
    recall_optimism: list[_Share] = Field(default=[], max_length=len(SHARES))
    words: str = ""
    search_seconds: _Seconds = 0.0
    title: str = ""
    summary: str = ""
    citation: str = ""
    logs: dict[str, _Logged] = {}
    data: str = ""
    epochs: _Count = 0
    device: str = ""
    precision: str = ""
    n_positive: _Count = 0
    n_unlabelled: _Count = 0
    skipped: list[list[str]] = []


def fault_in(result: object, *, may_lack: bool = False) -> str | None:
    """Return what is wrong with the content of a `result.json`, as the end of a sentence.

    With `may_lack` only wrong values count: a report can be made from less than a threshold
    can be moved by.
    """
    return _fault(_Result, result, may_lack=may_lack)


def is_compared(row: object) -> bool:
    """Return whether this can be shown as a row of a comparison."""
    return _fault(_Compared, row, may_lack=False) is None


def _readable(content: object) -> object:
    """Return the content with names of files that are no UTF-8 in letters that pydantic takes."""
    if isinstance(content, str):
        return without_surrogates(content)
    if isinstance(content, dict):
        return {_readable(key): _readable(value) for key, value in content.items()}
    return [_readable(value) for value in content] if isinstance(content, list) else content


def _fault(schema: type[BaseModel], content: object, *, may_lack: bool) -> str | None:
    try:
        schema.model_validate(_readable(content))
    except ValidationError as error:
        wrong = [fault for fault in error.errors(include_url=False) if fault["type"] != "missing"]
        faults: list[Any] = wrong if may_lack else error.errors(include_url=False)
        if not faults:
            return None
        entry = ".".join(map(str, faults[0]["loc"]))
        if faults[0]["type"] == "missing":
            return f"lacks '{entry}'"
        return f"holds a wrong value in '{entry}' ({faults[0]['msg']})"
    except (OverflowError, RecursionError) as error:
        return f"holds a value that no number can be ({first_line(error)})"
    return None
