"""The page on maps says itself where the default is not the best row of one image."""

from typing import Any

from benchmarks.maps import SAME_IMAGE, first


def row(name: str, auc: float, f1: float) -> dict[str, Any]:
    return {"name": name, "auc": auc, "f1": f1}


def test_the_page_says_where_the_default_is_below_a_row_of_the_same_image() -> None:
    rows = [row("fire: default", 0.9, 0.7), row(f"fire: {SAME_IMAGE}", 0.8, 0.75)]
    expected = "not below the other row that sees the same image, but for fire (F1 0.700 against "
    assert expected + "0.750)." in first(rows)


def test_a_row_with_another_image_and_one_of_another_place_do_not_count() -> None:
    rows = [
        row("fire: default", 0.9, 0.7),
        row("fire: with the image before", 1.0, 1.0),
        row(f"flood: {SAME_IMAGE}", 1.0, 1.0),
    ]
    assert first(rows).endswith("the same image.")
