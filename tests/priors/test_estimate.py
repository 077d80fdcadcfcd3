"""When two estimates disagree, and when one is at the end of its range."""

import ast
from pathlib import Path

import pytest

import onesided.priors.estimate as estimate_module
from onesided.priors import PriorEstimate, agreement


def estimate(
    value: float,
    low: float,
    high: float,
    *,
    method: str = "KM2",
    reachable: tuple[float, float] = (0.0, 1.0),
) -> PriorEstimate:
    return PriorEstimate(value, low, high, method, 100, 200, reachable=reachable)


def test_overlapping_intervals_and_close_values_raise_no_warning() -> None:
    assert agreement([estimate(0.4, 0.35, 0.45), estimate(0.42, 0.4, 0.5, method="BBE")]) == []


def test_intervals_apart_are_named_with_both_numbers() -> None:
    (warning,) = agreement([estimate(0.44, 0.43, 0.45), estimate(0.4, 0.38, 0.42, method="BBE")])
    assert "KM2 says 0.440 [0.430, 0.450], BBE says 0.400 [0.380, 0.420]" in warning
    assert "do not overlap" in warning


def test_distant_values_are_named_even_if_their_intervals_overlap() -> None:
    (warning,) = agreement([estimate(0.7, 0.4, 0.9), estimate(0.5, 0.3, 0.8, method="BBE")])
    assert "differ by more than 0.1" in warning


def test_every_pair_is_compared_in_either_order() -> None:
    three = [estimate(0.2, 0.2, 0.2), estimate(0.5, 0.5, 0.5), estimate(0.8, 0.8, 0.8)]
    assert len(agreement(three)) == len(agreement(reversed(three))) == 3


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.8748, "cannot return more than 0.8748"), (0.0135, "cannot return less than 0.0135")],
)
def test_a_value_at_the_end_of_its_range_is_named(value: float, words: str) -> None:
    (warning,) = agreement([estimate(value, 0.0, 1.0, reachable=(0.0135, 0.8748))])
    assert words in warning


def test_zero_and_one_are_no_ends_for_a_method_that_can_return_them() -> None:
    assert agreement([estimate(1.0, 0.9, 1.0, method="BBE")]) == []
    assert agreement([estimate(0.0, 0.0, 0.1, method="BBE")]) == []


def test_a_single_estimate_gives_no_warning() -> None:
    assert agreement([]) == []


def test_an_interval_without_its_value_cannot_be_built() -> None:
    with pytest.raises(AssertionError):
        estimate(0.5, 0.6, 0.7)


def imported_modules(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_priors_need_arrays_only_and_no_torch() -> None:
    files = list(Path(estimate_module.__file__).parent.glob("*.py"))
    assert len(files) > 3
    imported = set().union(*(imported_modules(file.read_text()) for file in files))
    assert not any(name.split(".")[0] == "torch" for name in imported)
    # core.errors is the one module of core that does without torch.
    assert {name for name in imported if name.startswith("onesided.core")} <= {
        "onesided.core.errors"
    }
