"""What `result.json` looks like, so that a damaged one is refused and not half believed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onesided.core.errors import OnesidedError
from onesided.data.problem.dataset import Scenario

Share = Annotated[float, Field(ge=0, le=1)]
# Later versions may add entries; those that are known are what they were.
_STRICT = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


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
    count: int
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


class _Result(BaseModel):
    model_config = _STRICT
    method: str
    seed: int
    threshold: Share
    test: dict[str, float | None] | None
    pu: _Estimates | None
    warnings: list[str]
    scenario: Scenario
    prior: _Prior | None = None
    known_negatives: _KnownNegatives | None = None
    notices: list[str] = []
    threshold_rule: dict[str, str] | None = None


def check_result(content: Mapping[str, Any], path: Path) -> None:
    """Refuse a result whose entries are not what `onesided fit` writes, by the first of them."""
    try:
        _Result.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = ".".join(map(str, first["loc"]))
        problem = f"lacks '{entry}'"
        if first["type"] != "missing":
            problem = f"holds something else than it should in '{entry}' ({first['msg']})"
        raise OnesidedError(
            f"{path} {problem}, so onesided fit did not write it as it is. Restore it from a "
            "copy, or train again with --overwrite."
        ) from None
