"""A few of the 89 variants of the claims campaign; `make campaigns` runs them all."""

from pathlib import Path

import pytest

from tests.campaigns.claims import judged, variants

EVERY = variants()
SHORT = (
    "noise 0",
    "8 contents ten times in P, png",
    "16 contents ten times in PU, png and jpg",
    "tested on training files as jpg, linear",
    "positives in the pool as bmp, case-control",
    "swapped 0",
    "constant, 2 greys",
    "masks of 0 and 1",
    "rows of noise, 10 times each",
    "rows of noise, 10 times each with noise of 1e-6",
    "8 contents changed ten times in P",
    "tested on changed copies as jpg, linear",
    "a column of the number of the row, linear",
    "a column of a gap in two thirds of P, linear",
    "rows of noise, 10 times each with noise of 0.02, linear",
    "texts retyped with 2 other words",
    "P as bmp files",
    "P with a bar of one row",
    "in Python, ten times each with noise of 0.02",
)


def test_every_variant_has_a_name_of_its_own() -> None:
    assert len({variant.name for variant in EVERY}) == len(EVERY) == 89


@pytest.mark.parametrize("name", SHORT)
def test_no_report_claims_a_working_model(name: str, tmp_path: Path) -> None:
    variant = next(each for each in EVERY if each.name == name)
    verdict = judged(variant, tmp_path)
    assert verdict.claims == (), verdict
