import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

import onesided
from onesided.run.cards import TEMPLATES, card_text
from onesided.run.folder import CARDS, WRITTEN, RunFolder
from onesided.storage.own_file import digest_of, read_checksums
from tests.cli.pictures import draw_data

MODEL, DATA = TEMPLATES.values()
SETTINGS = {"backbone": {"width": 0.125}, "train": {"batch_size": 16, "device": "cpu"}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cards")
    data = draw_data(folder / "data")
    onesided.fit(
        data / "P", data / "U", method="ce", epochs=1, output=folder / "run", settings=SETTINGS
    )
    return folder / "run"


def result_of(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "result.json").read_text())
    return content


def front_matter(card: str) -> dict[str, Any]:
    start, head, _ = card.split("---\n", 2)
    assert start == ""
    read: dict[str, Any] = yaml.safe_load(head)
    return read


def test_a_finished_run_has_a_model_card_that_the_hub_can_read(run: Path) -> None:
    card = (run / "README.md").read_text(encoding="utf-8")
    head = front_matter(card)
    assert head["library_name"] == "onesided"
    assert head["pipeline_tag"] == "image-classification"
    assert head["tags"][-1] == "ce"
    assert "model-index" not in head, "nobody knows the true classes of two folders"
    for figure in result_of(run)["pu"]["figures"].values():
        assert (f"| {figure['label']} |" in card) == (figure["value"] is not None)


def test_notes_on_the_data_hold_counts_and_hashes(run: Path) -> None:
    notes, result = (run / "DATA.md").read_text(encoding="utf-8"), result_of(run)
    manifest = json.loads((run / "manifest.json").read_text())
    assert f"| unlabelled items, trained on | {result['n_unlabelled']} |" in notes
    assert manifest["data_hash"] in notes


def test_cards_are_listed_with_their_checksums(run: Path) -> None:
    listed = read_checksums(run)
    assert {name: listed[name] for name in CARDS} == {name: digest_of(run / name) for name in CARDS}


def test_true_figures_are_told_to_the_hub_where_they_are_known(run: Path) -> None:
    result = {**result_of(run), "test": {"oa": 0.75, "auc": 0.5}}
    head = front_matter(card_text(MODEL, "run", result, {}, kind="vector"))
    (told,) = head["model-index"][0]["results"]
    assert told["metrics"] == [{"type": "accuracy", "value": 0.75}]
    assert head["pipeline_tag"] == "tabular-classification"


@pytest.mark.parametrize("template", [MODEL, DATA])
def test_text_of_files_is_shown_and_never_obeyed(run: Path, template: str) -> None:
    hostile = 'a\n---\n# b: [x](y) | `c` *d* <script>e</script> "f" \\ \x1b[31m'
    words = {"warnings": [hostile], "notices": [hostile], "skipped": [[hostile, hostile]]}
    result = {**result_of(run), **words, "data": hostile, "words": hostile, "citation": hostile}
    card = card_text(template, hostile, result, {}, kind="photograph")
    if template == MODEL:
        assert front_matter(card)["tags"] == ["positive-unlabelled-learning", "onesided", "ce"]
    shown = MarkdownIt("commonmark").enable("table").render(card.split("---\n", 2)[-1])
    assert "<script" not in shown
    assert 'href="y"' not in shown
    assert "<em>" not in shown
    assert "\x1b" not in card
    assert "[x](y) | `c` *d* &lt;script&gt;e&lt;/script&gt; &quot;f&quot; \\ \\x1b[31m" in shown


def test_another_threshold_is_in_the_card_at_once(run: Path) -> None:
    onesided.evaluate(run, threshold="0.123")
    assert "0.123 an item is called positive" in (run / "README.md").read_text()
    listed = read_checksums(run)
    assert listed["README.md"] == digest_of(run / "README.md")


def test_a_card_that_a_person_took_over_stays(run: Path) -> None:
    card = run / "README.md"
    mine = card.read_text().replace(WRITTEN, "") + "Mine.\n"
    card.write_text(mine)
    onesided.evaluate(run, threshold="0.321")
    assert card.read_text() == mine
    RunFolder(run, "another").claim(overwrite=True)
    assert card.exists()
    assert not (run / "DATA.md").exists()
