"""The review page in a real browser, with a real server that is killed in the middle."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import onesided
from onesided.storage.answer_journal import AnswerJournal, standing
from tests.browser import complaints, opened
from tests.review.fake_run import image_run, text_run

pytestmark = pytest.mark.slow
HOSTILE = [
    "<img src=x onerror=document.title='hacked'>.png",
    "'\"><script>document.title='hacked'</script>.png".replace("/", "\u2215"),
    "\u202egnp.exe.png",
    "=HYPERLINK(1).png",
    "a\\..\\b.png",
    "%2e%2e%2f.png",
]


@contextmanager
def served(run: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the command in a process of its own; yield the address that it shows."""
    source = str(Path(onesided.__file__).parents[1])
    command = [sys.executable, "-m", "onesided", "review", str(run), "--reviewer", "Anna", *words]
    environment = {**os.environ, "PYTHONPATH": source}
    # A shell that starts the tests in the background lets them, and us, ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout is not None
        found = (re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", line) for line in process.stdout)
        address = next(filter(None, found))
        yield address[0], process
    finally:
        process.kill()
        process.communicate()


def press(chrome: webdriver.Chrome, key: str) -> None:
    ActionChains(chrome).send_keys(key).perform()


def text(chrome: webdriver.Chrome, name: str) -> str:
    return str(chrome.find_element(By.ID, name).get_attribute("textContent"))


def wait(chrome: webdriver.Chrome, until: Callable[[], bool]) -> None:
    WebDriverWait(chrome, 30, 0.02).until(lambda _: until())


def shown(chrome: webdriver.Chrome) -> str | None:
    """Return the name of the item that waits for an answer; None while the page is at work."""
    name = chrome.execute_script(
        "return document.body.classList.contains('busy') ? '' :"
        " document.getElementById('name').textContent"
    )
    return str(name) or None


def ready(chrome: webdriver.Chrome) -> str:
    """Wait for an item, and return its name."""
    return str(WebDriverWait(chrome, 30, 0.02).until(lambda _: shown(chrome)))


def answer(chrome: webdriver.Chrome, key: str) -> str:
    """Answer as a person does, wait for the next item; return the name of the answered one."""
    item = ready(chrome)
    press(chrome, key)
    wait(chrome, lambda: shown(chrome) not in (None, item))
    return item


WORDS = {"1": "positive", "2": "negative", "3": "unsure", "4": "skip"}


def test_fifty_answers_by_keyboard_survive_a_kill_of_the_server(tmp_path: Path) -> None:
    run = image_run(tmp_path, [f"{number:02}.png" for number in range(60)])
    given: dict[str, str] = {}
    with served(run) as (address, process), opened(address) as chrome:
        for number in range(25):
            key = "1234"[number % 4]
            given[answer(chrome, key)] = WORDS[key]
        process.send_signal(signal.SIGKILL)
        process.wait()
        waiting = ready(chrome)
        press(chrome, "1")
        wait(chrome, lambda: "does not answer" in text(chrome, "failed"))
        assert ready(chrome) == waiting  # it is not taken for answered
    with served(run) as (address, _), opened(address) as chrome:
        wait(chrome, lambda: "25 of 60" in text(chrome, "done"))
        for number in range(25):
            key = "12"[number % 2]
            item = answer(chrome, key)
            assert item not in given
            given[item] = WORDS[key]
        assert "50 of 60" in text(chrome, "done")
        assert complaints(chrome) == []
    kept = standing(AnswerJournal(run).entries())
    assert {each.item: each.answer for each in kept} == given
    assert len(given) == 50
    assert {each.reviewer for each in kept} == {"Anna"}
    assert {each.strategy for each in kept} == {"likely", "uncertain"}


def test_undo_help_filters_and_two_windows(tmp_path: Path) -> None:
    run = image_run(tmp_path, [f"{number:02}.png" for number in range(30)])
    with served(run) as (address, _), opened(address) as chrome:
        first = answer(chrome, "1")
        press(chrome, "u")
        wait(chrome, lambda: text(chrome, "name") == first)
        assert "you had said positive" in text(chrome, "before")
        assert "0 of 30" in text(chrome, "done")
        answer(chrome, "2")
        press(chrome, "?")
        assert chrome.find_element(By.ID, "help").is_displayed()
        press(chrome, "1")  # answers nothing behind the help
        chrome.find_element(By.ID, "close-help").click()
        assert "1 of 30" in text(chrome, "done")
        press(chrome, "/")
        ActionChains(chrome).send_keys("27.png\n").perform()
        wait(chrome, lambda: text(chrome, "name") == "U/27.png")
        press(chrome, "1")
        wait(chrome, lambda: "No item fits" in text(chrome, "empty"))
        chrome.find_element(By.ID, "clear").click()
        mine = ready(chrome)
        chrome.switch_to.new_window("tab")
        chrome.get(address)
        ready(chrome)
        field = chrome.find_element(By.ID, "reviewer")
        field.clear()
        field.send_keys("Ben\n")
        wait(chrome, lambda: shown(chrome) not in (None, mine))
        chrome.execute_script("document.activeElement.blur()")
        answer(chrome, "1")
        assert complaints(chrome) == []
    assert {each.reviewer for each in standing(AnswerJournal(run).entries())} == {"Anna", "Ben"}


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    run = image_run(tmp_path, HOSTILE)
    with served(run) as (address, _), opened(address) as chrome:
        seen = {answer(chrome, "1") for _ in range(len(HOSTILE) - 1)}
        seen.add(ready(chrome))
        assert "U/" + HOSTILE[0] in seen
        assert "U/\\u202egnp.exe.png" in seen  # nothing is written from right to left
        assert chrome.title == "run: onesided review"
        assert chrome.find_elements(By.CSS_SELECTOR, "bdi > *") == []
        assert complaints(chrome) == []
    assert len(standing(AnswerJournal(run).entries())) == len(HOSTILE) - 1


def test_texts_are_read_as_texts(tmp_path: Path) -> None:
    hostile = "<b>bold</b> <script>document.title='hacked'</script>\nsecond line"
    run = text_run(tmp_path, {"a.txt": hostile})
    with served(run) as (address, _), opened(address, width=390, height=844) as chrome:
        ready(chrome)
        assert text(chrome, "text") == hostile
        assert chrome.title == "run: onesided review"
        assert not chrome.find_element(By.ID, "zoom").is_displayed()
        width = chrome.execute_script("return document.documentElement.scrollWidth")
        assert width == 390  # nothing sticks out of a phone's screen


def test_pictures_zoom_and_move_by_keys(tmp_path: Path) -> None:
    run = image_run(tmp_path, ["a.png", "b.png"])

    def transform() -> str:
        return str(chrome.find_element(By.CSS_SELECTOR, ".pictures img").get_attribute("style"))

    with served(run) as (address, _), opened(address) as chrome:
        ready(chrome)
        press(chrome, "+")
        assert "scale(1.3)" in transform()
        press(chrome, "\ue014")  # arrow to the right
        assert "translate(-60px, 0px)" in transform()
        press(chrome, "0")
        assert "scale(1)" in transform()
        answer(chrome, "1")
        assert "scale(1)" in transform()  # the next one begins whole


def test_ctrl_c_stops_in_order_and_tells_what_was_done(tmp_path: Path) -> None:
    run = image_run(tmp_path, ["a.png", "b.png"])
    with served(run) as (_, process):
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "0 of 2 items answered." in out
