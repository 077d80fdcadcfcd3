import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import DataNotFound, OnesidedError
from onesided.report import write_report
from tests.report.fake_run import HOSTILE, change_json, make_hostile, write_fake_run, write_json

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """What a browser would make of the page, as far as the tests want to know."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text("utf-8")
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), f"an attribute of {tag} appears twice"
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.tags if re.fullmatch(r"h[1-6]", tag)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_run(tmp_path_factory.mktemp("runs") / "quake")


@pytest.fixture(scope="module")
def whole(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a run that has everything."""
    run = Path(shutil.copytree(template, tmp_path_factory.mktemp("whole") / "quake"))
    return Page(write_report(run))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a run in whose files every text attacks the page."""
    run = write_fake_run(tmp_path_factory.mktemp("runs") / "quake")
    make_hostile(run)
    return Page(write_report(run))


@pytest.fixture
def run(template: Path, tmp_path: Path) -> Path:
    """A whole run to change."""
    return Path(shutil.copytree(template, tmp_path / "quake"))


@pytest.fixture
def plain(run: Path) -> Path:
    """A run without pictures and curves, which is quick to render."""
    for name in ("log.jsonl", "report.npz", "scores.csv"):
        (run / name).unlink()
    return run


def test_the_page_is_well_formed(whole: Page) -> None:
    assert whole.open == []
    assert whole.text.startswith("<!doctype html>")
    assert whole.all("html") == [{"lang": "en"}]
    assert "<title>quake: onesided report</title>" in whole.text


def test_headings_go_down_one_step_at_a_time(whole: Page, hostile: Page) -> None:
    for page in (whole, hostile):
        levels = page.headings()
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_loads_nothing(hostile: Page) -> None:
    for tag, attributes in hostile.tags:
        for name in ("src", "href", "xlink:href", "data", "srcset", "action", "poster"):
            address = attributes.get(name)
            if tag == "a" and address == "scores.csv":
                continue  # a link is followed by a person, and lies beside the page
            assert address is None or address.startswith(("data:image/png;base64,", "#"))
    assert not {tag for tag, _ in hostile.tags} & {"script", "link", "iframe", "object", "base"}
    style = hostile.text.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_lets_the_browser_load_and_run_nothing(whole: Page) -> None:
    (policy,) = [tag for tag in whole.all("meta") if "http-equiv" in tag]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert str(policy["content"]).startswith("default-src 'none'; img-src data:;")


def test_every_picture_has_words(whole: Page) -> None:
    thumbnails = whole.all("img")
    assert len(thumbnails) == 60
    assert all(re.fullmatch(r".+\.png, score \d\.\d{3}", tag["alt"] or "") for tag in thumbnails)
    plots = [tag for tag in whole.all("svg") if tag.get("aria-hidden") != "true"]
    assert len(plots) == 11
    assert all(tag["role"] == "img" and tag["aria-label"] for tag in plots)


def test_ids_are_unique_and_links_lead_somewhere(whole: Page) -> None:
    ids = [attributes["id"] for _, attributes in whole.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pointers = [value for _, tag in whole.tags for key, value in tag.items() if key == "href"]
    pointers.remove("scores.csv")
    pointers += [f"#{tag['aria-labelledby']}" for _, tag in whole.tags if "aria-labelledby" in tag]
    assert {str(pointer)[1:] for pointer in pointers} <= set(ids)


def test_what_scrolls_can_be_reached_by_keyboard(whole: Page) -> None:
    scrolling = [tag for tag in whole.all("div") if tag.get("class") == "scroll"]
    assert scrolling
    assert all(tag["tabindex"] == "0" and tag["role"] == "region" for tag in scrolling)


def test_hostile_text_stays_text(whole: Page, hostile: Page) -> None:
    assert hostile.open == []
    alarm_only = {"strong"}
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in whole.tags} | alarm_only
    known = {name for _, attributes in whole.tags for name in attributes}
    assert {name for _, attributes in hostile.tags for name in attributes} <= known
    assert "".join(hostile.words).count("<script>alert(1)</script>") > 10
    assert not any(letter in hostile.text for letter in "\x00\u202e\udcff")


def test_a_hostile_name_can_be_read_in_full(hostile: Page) -> None:
    spelled = HOSTILE.replace("\n", r"\n").replace("\u202e", r"\u202e").replace("\x00", r"\x00")
    spelled = spelled.replace("\udcff", r"\xff")
    assert all(str(tag["alt"]).startswith(f"{spelled}, score ") for tag in hostile.all("img"))


def test_a_hostile_folder_name_stays_text(plain: Path) -> None:
    run = plain.rename(plain.parent / "<img src=x>'\" $style\udcff")
    page = Page(write_report(run))
    assert page.all("img") == []
    assert "<img src=x>'\" $style\\xff" in "".join(page.words)


def sections(page: str) -> list[str]:
    return re.findall(r'<h2 id="([^"]+)"', page)


def test_a_whole_run_shows_every_section(whole: Page) -> None:
    expected = "warnings next items trust truth comparison scores training skipped run"
    assert sections(whole.text) == expected.split()
    assert "stages of training: warm-up, train." in whole.text


def test_a_bare_result_shows_nothing_but_itself(tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", {"method": "puet"})
    page = Page(write_report(tmp_path))
    assert sections(page.text) == ["run"]
    assert page.all("img") == page.all("svg") == []


@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        ("manifest.json", ["9c1185a5", "Repeat it"]),
        ("compare.json", ['id="comparison"']),
        ("log.jsonl", ['id="training"']),
        ("scores.csv", ["558 of 6,000", ">Scores<"]),
        ("report.npz", ['id="items"', "positives not trained on</li>", "t-SNE"]),
    ],
)
def test_what_a_file_does_not_give_does_not_appear(
    run: Path, whole: Page, missing: str, gone: list[str]
) -> None:
    (run / missing).unlink()
    page = write_report(run).read_text()
    assert all(text in whole.text and text not in page for text in gone)


def test_the_page_says_what_to_do_next(plain: Path, whole: Page) -> None:
    text = " ".join(whole.words)
    assert "scores.csv" in text
    links = [tag["href"] for tag in whole.all("a")][:3]
    assert links == ["#items-top", "#items-threshold", "scores.csv"]
    assert "onesided rank RUN FOLDER" in text
    assert "onesided audit" not in text  # precision was estimated with a known prior
    assert 'id="next"' not in write_report(plain).read_text()  # it has no scores


def test_a_precision_that_may_be_too_high_asks_for_a_check(run: Path) -> None:
    def bias(result: dict[str, Any]) -> None:
        result["pu"]["figures"]["precision"] |= {"bias": "high", "assumes": ["own_scores"]}

    change_json(run / "result.json", bias)
    assert "onesided audit RUN draw" in write_report(run).read_text()


def test_an_unusable_model_is_not_recommended(run: Path) -> None:
    change_json(run / "result.json", lambda result: result["pu"].update(degenerate="Everything."))
    page = write_report(run).read_text()
    assert 'id="alarm"' in page
    assert 'id="next"' not in page


def test_the_alarm_stands_before_everything_else(plain: Path, whole: Page) -> None:
    assert 'class="alarm"' not in whole.text
    reason = "The model calls 99.9% of the unlabelled items positive."
    change_json(plain / "result.json", lambda result: result["pu"].update(degenerate=reason))
    page = write_report(plain).read_text()
    assert page.index("Do not rely on this run") < page.index(reason)
    assert page.index(reason) < page.index("Worth knowing") < page.index("How far to trust it")


def test_warnings_and_unreadable_files_are_listed(plain: Path) -> None:
    (plain / "compare.json").write_text("{")
    page = write_report(plain).read_text()
    assert "The prior was estimated from few items." in page
    assert "compare.json could not be read" in page


def test_a_flood_of_warnings_is_cut_and_counted(plain: Path) -> None:
    flood = [f"file {place} is corrupt" for place in range(1234)]
    change_json(plain / "result.json", lambda result: result.update(warnings=flood))
    assert "and 1,034 more, in result.json" in write_report(plain).read_text()


def test_the_same_run_gives_the_same_bytes(run: Path, whole: Page) -> None:
    assert write_report(run).read_text("utf-8") == whole.text


def test_even_an_absurd_run_stays_under_five_megabytes(run: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {"embedding": rng.normal(size=(50_000, 2))}
    arrays["embedding_role"] = rng.integers(0, 3, 50_000)
    for group in ("top", "threshold", "bottom", "doubted"):
        arrays[f"{group}_images"] = rng.integers(0, 256, (40, 120, 120, 3), np.uint8)
        arrays[f"{group}_scores"] = rng.random(40)
        arrays[f"{group}_names"] = np.array(['"' * 2000] * 40)
    np.savez(run / "report.npz", **arrays)
    with (run / "log.jsonl").open("w") as log:
        for epoch, values in enumerate(rng.random((2000, 20)).tolist()):
            terms = {f"term {place}": value for place, value in enumerate(values)}
            row = {"stage": "train", "epoch": epoch, "loss": terms, "watched": terms}
            log.write(json.dumps(row) + "\n")
    flood = ['"' * 9000] * 500
    change_json(run / "result.json", lambda result: result.update(warnings=flood))
    write_json(run / "manifest.json", {f"key {place}": '"' * 9000 for place in range(500)})
    page = write_report(run)
    assert page.stat().st_size < 5_000_000
    assert page.read_text().count("<img") == 64


def test_an_unfinished_run_gets_no_page(plain: Path) -> None:
    (plain / "result.json").unlink()
    with pytest.raises(DataNotFound, match="not finished"):
        write_report(plain)
    assert not (plain / "report.html").exists()


def test_a_page_that_cannot_be_written_leaves_nothing_behind(plain: Path) -> None:
    (plain / "report.html").mkdir()
    before = sorted(plain.iterdir())
    with pytest.raises(OnesidedError, match=r"Cannot write .*report\.html"):
        write_report(plain)
    assert sorted(plain.iterdir()) == before


def test_the_page_replaces_the_old_one_and_leaves_no_other_file(plain: Path) -> None:
    before = {path.name for path in plain.iterdir()}
    (plain / "report.html").write_text("old")
    assert write_report(plain) == plain / "report.html"
    assert (plain / "report.html").read_text() != "old"
    assert {path.name for path in plain.iterdir()} == before | {"report.html"}


def test_a_page_needs_neither_torch_nor_pyplot() -> None:
    heavy = "{'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    code = f"import sys, onesided.report; sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_positives_that_were_trained_on_are_not_called_held_out(run: Path) -> None:
    change_json(run / "result.json", lambda result: result.update(pu=None))
    page = write_report(run).read_text()
    assert "positives trained on</li>" in page
    assert "positives not trained on</li>" not in page


def test_the_items_to_look_at_next_stand_open_and_before_the_figures(whole: Page) -> None:
    places = [
        whole.text.index(f'id="{name}"')
        for name in ("items-top", "items-threshold", "items-bottom", "items-doubted", "trust")
    ]
    assert places == sorted(places)
    assert whole.text.index("<details><summary>More items") > places[1]


def test_the_way_to_a_threshold_is_a_fact_and_no_warning(plain: Path) -> None:
    rule = {"rule": "prior", "explained": "Threshold 0.2 by the rule prior: BBE said so."}

    def add(result: dict[str, Any]) -> None:
        result.update(threshold_rule=rule, notices=[rule["explained"], "Three files are grey."])

    change_json(plain / "result.json", add)
    page = write_report(plain).read_text()
    known = page.partition("Worth knowing")[2].partition("</section>")[0]
    assert "Three files are grey." in known
    assert "BBE" not in known
    assert page.count("BBE said so.") == 1


def test_a_damaged_picture_file_is_told_without_words_of_programmers(run: Path) -> None:
    np.savez(run / "report.npz", top_images=np.zeros(3), top_scores=np.zeros(2), top_names=["a"])
    page = write_report(run).read_text()
    known = page.partition("Worth knowing")[2].partition("</section>")[0]
    assert "report.npz is damaged" in known
    assert not re.search(r"uint8|float64|\(n, H", known)
