import html
import re
import shlex
from typing import Any

import pytest

from onesided.core.duration import duration
from onesided.report.runfiles import RunFiles
from onesided.report.smallprint import MOST_ROWS, about, skipped
from tests.report.fake_run import HOSTILE, fake_manifest, fake_result

RESULT = fake_result(0.093)


def about_manifest(**changes: Any) -> str:  # noqa: ANN401
    return about(RunFiles("quake", RESULT, fake_manifest() | changes))


def skipping(entries: list[Any]) -> str:
    return skipped(RunFiles("quake", RESULT | {"skipped": entries}))


def test_the_facts_hold_what_repeats_the_run() -> None:
    page = about_manifest()
    for text in ("ncpu", "23 min 53 s", "6,000", "onesided fit -p damaged/", "9c1185a5", "2.13.0"):
        assert text in page
    assert page.count(">Seed<") == 1
    assert "onesided fit --config" in page


def test_the_command_can_be_pasted_into_a_shell() -> None:
    words = ["/venv/lib/onesided/__main__.py", "fit", "-p", "my folder/", "-u", "it's", "-o", "x"]
    commands = re.findall(r"<code>(.*?)</code></pre>", about_manifest(command=words))
    assert shlex.split(html.unescape(commands[0])) == ["onesided", *words[1:]]


def test_a_run_without_a_command_does_not_invent_one() -> None:
    nothing: list[Any] = [None, [], "", 7]
    for command in nothing:
        assert "Repeat it" not in about_manifest(command=command)


def test_without_facts_there_is_nothing_to_unfold() -> None:
    assert about(RunFiles("quake", {"method": None}, {"versions": {"torch": None}})) == ""


def test_the_scenario_is_explained() -> None:
    page = about(RunFiles("quake", RESULT | {"scenario": "single-set"}))
    assert "labelled inside one set" in page


def test_the_rule_of_the_threshold_is_shown_by_its_sentence() -> None:
    rule = {"rule": "recall=0.9", "explained": "Threshold 0.4 by the rule recall=0.9: why."}
    page = about(RunFiles("quake", RESULT | {"threshold_rule": rule}))
    assert "<td>Threshold 0.4 by the rule recall=0.9: why.</td>" in page


def test_every_skipped_file_is_listed_with_its_reason() -> None:
    page = skipping([["a.png", "is truncated"], ["b.png", "is empty"], "c.png"])
    assert re.findall(r"<bdi>(.*?)</bdi></th><td>(.*?)</td>", page) == [
        ("a.png", "It is truncated."),
        ("b.png", "It is empty."),
        ("c.png", "It was skipped."),
    ]
    assert "3 files could not be read" in page
    assert skipping([]) == ""


def test_a_flood_of_skipped_files_is_cut_and_counted() -> None:
    page = skipping([["a.png", "is empty"]] * (MOST_ROWS + 1034))
    assert page.count("<bdi>") == MOST_ROWS
    assert "And 1,034 more, in result.json." in page


def test_hostile_names_stay_text() -> None:
    assert "<script" not in skipping([[HOSTILE, HOSTILE], HOSTILE, [HOSTILE], {HOSTILE: 1}])
    assert "<script" not in about_manifest(command=[HOSTILE, HOSTILE])


def test_all_heads_say_what_they_are_for() -> None:
    heads = re.findall(r"<th\b[^>]*>", skipping([["a.png", "is empty"]]) + about_manifest())
    assert heads
    assert all("scope=" in head for head in heads)


def test_a_run_of_a_map_is_not_said_to_be_repeated_by_its_settings() -> None:
    page = about(RunFiles("quake", RESULT | {"data": "chips"}, fake_manifest()))
    assert "Repeat it" in page
    assert "--config" not in page


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(3.21, "3.2 s"), (59.99, "1 min 0 s"), (1432.7, "23 min 53 s"), (7999.0, "2 h 13 min")],
)
def test_time_is_written_as_people_say_it(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
