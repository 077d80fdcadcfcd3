"""The server of the review page: who may ask, what is answered, what hostile input does."""

import html
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from onesided.core.errors import DataError, MissingLibrary
from onesided.core.monitor import Monitor
from onesided.review.features import Features
from onesided.review.server import MOST_BYTES, Page, application, check_libraries, serve
from onesided.review.session import Session
from onesided.storage.answer_journal import FILE
from tests.review.fake_run import image_run, text_run

TOKEN, PORT = "t0ken", 4321
HOME = f"http://127.0.0.1:{PORT}"
NAMES = ["a.png", "b.png", "<img src=x onerror=alert(1)>.png", "line\nfeed.png", "=1+1.png"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return image_run(tmp_path, NAMES)


@pytest.fixture
def page(run: Path) -> Page:
    return Page(Session(run, reviewer="Anna"))


@pytest.fixture
def client(page: Page) -> TestClient:
    app = application(page, token=TOKEN, port=PORT)
    return TestClient(app, base_url=f"{HOME}/{TOKEN}/", headers={"origin": HOME})


def test_an_answer_is_saved_and_the_next_item_comes(client: TestClient, run: Path) -> None:
    (first, *_) = client.get("next", params={"strategy": "likely"}).json()["items"]
    body = {"row": first["row"], "answer": "positive", "strategy": "likely", "reviewer": "Ben"}
    saved = client.post("answer", json=body).json()
    assert saved["answered"] == 1
    assert '"reviewer": "Ben"' in (run / FILE).read_text()
    (second, *_) = client.get("next", params={"strategy": "likely"}).json()["items"]
    assert second["row"] == 1
    undone = client.post("undo", json={"reviewer": "Ben"}).json()
    assert (undone["item"]["row"], undone["was"], undone["answered"]) == (0, "positive", 0)
    assert client.post("undo", json={"reviewer": "Ben"}).json()["item"] is None


def test_pictures_come_by_number(client: TestClient) -> None:
    reply = client.get("picture/0/0")
    assert reply.headers["content-type"] == "image/png"
    for address in ("picture/0/1", "picture/99/0", "picture/-1/0", "picture/x/0", "picture/0/"):
        assert client.get(address).status_code == 404, address


REFUSED = [
    ("without the token", f"{HOME}/", {}),
    ("with another token", f"{HOME}/other/", {}),
    ("with a part of it", f"{HOME}/{TOKEN[:-1]}/", {}),
    ("with a longer one", f"{HOME}/{TOKEN}x/state", {}),
    ("from another origin", f"{HOME}/{TOKEN}/state", {"origin": "http://evil.example"}),
    ("from another port", f"{HOME}/{TOKEN}/state", {"origin": "http://127.0.0.1:1"}),
    ("from nowhere", f"{HOME}/{TOKEN}/state", {"origin": "null"}),
    ("under another name", f"{HOME}/{TOKEN}/state", {"host": f"evil.example:{PORT}"}),
    ("under another port", f"{HOME}/{TOKEN}/state", {"host": "127.0.0.1:1"}),
]


@pytest.mark.parametrize(("why", "address", "headers"), REFUSED, ids=[case[0] for case in REFUSED])
def test_requests_of_others_are_refused(
    page: Page, why: str, address: str, headers: dict[str, str]
) -> None:
    client = TestClient(application(page, token=TOKEN, port=PORT))
    for method in ("GET", "POST"):
        reply = client.request(method, address, headers={"origin": HOME, **headers})
        assert reply.status_code == 403
        assert "U/" not in reply.text


def test_a_page_of_another_site_cannot_read_or_write(page: Page, run: Path) -> None:
    client = TestClient(application(page, token=TOKEN, port=PORT), base_url=f"{HOME}/{TOKEN}/")
    # A picture in a foreign page sends no origin, but says where it comes from.
    for site in ("cross-site", "same-site"):
        assert client.get("picture/0/0", headers={"sec-fetch-site": site}).status_code == 403
    # A form of a foreign page, and any program that does not know its origin.
    body = json.dumps({"row": 0, "answer": "positive"})
    assert client.post("answer", content=body).status_code == 403
    assert not (run / FILE).exists()
    assert client.get("state").status_code == 200  # typed into the address bar


@pytest.mark.parametrize(
    "path",
    [
        "picture/../../run/result.json",
        "picture/0/../../../result.json",
        "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "picture/0%2f..%2f..%2fresult.json",
        "/etc/passwd",
        "//etc/passwd",
        "static/../result.json",
        "item?row=../../etc/passwd",
        "answers.csv/../result.json",
    ],
)
def test_no_path_reaches_the_file_system(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert reply.status_code in (400, 403, 404)
    assert "threshold" not in reply.text
    assert "root:" not in reply.text


@pytest.mark.parametrize(
    ("verb", "body", "said"),
    [
        ("answer", {"row": 99, "answer": "positive"}, "no item number 99"),
        ("answer", {"row": -1, "answer": "positive"}, "no item number -1"),
        ("answer", {"row": "0", "answer": "positive"}, "no item number 0"),
        ("answer", {"row": True, "answer": "positive"}, "no item number True"),
        ("answer", {"row": 0, "answer": "maybe"}, "none of positive"),
        ("answer", {"row": 0, "answer": ["positive"]}, "none of positive"),
        ("answer", {"row": 0, "answer": "positive", "reviewer": "\x00"}, "reviewer's name"),
        ("answer", [], "Expected a JSON object"),
        ("undo", "x", "Expected a JSON object"),
        ("apply", {}, "trained by a command"),
    ],
)
def test_wrong_requests_get_one_sentence(
    client: TestClient, run: Path, verb: str, body: object, said: str
) -> None:
    reply = client.post(verb, json=body)
    assert reply.status_code == 400
    assert said in reply.json()["error"]
    assert not (run / FILE).exists()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"strategy": "nonsense"}, "no strategy 'nonsense'"),
        ({"low": "x"}, "'x' is no number"),
        ({"high": "nan"}, "'nan' is no number"),
        ({"answered": "whatever"}, "'whatever' is none of"),
        ({"reviewer": "x" * 70}, "reviewer's name"),
    ],
)
def test_wrong_questions_get_one_sentence(
    client: TestClient, query: dict[str, str], said: str
) -> None:
    reply = client.get("next", params=query)
    assert reply.status_code == 400
    assert said in reply.json()["error"]


def test_a_request_that_is_too_long_is_refused_unread(client: TestClient) -> None:
    assert client.post("answer", content=b"x" * (MOST_BYTES + 1)).status_code == 413
    chunks = iter([b"{}"])
    assert client.post("answer", content=chunks).status_code == 413


def test_the_page_runs_no_script_but_its_own_and_asks_nobody_else(client: TestClient) -> None:
    reply = client.get("")
    assert reply.status_code == 200
    policy = reply.text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    policy = html.unescape(policy)
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in policy
    for header, value in (
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ):
        assert reply.headers[header] == value


def test_hostile_names_and_texts_arrive_as_data(client: TestClient, tmp_path: Path) -> None:
    items = client.get("next", params={"count": "50"}).json()["items"]
    names = {item["item"] for item in items}
    assert "U/<img src=x onerror=alert(1)>.png" in names
    assert "U/line\\nfeed.png" in names
    run = text_run(tmp_path / "texts", {"a.txt": "</script><script>alert(1)</script>"})
    page = Page(Session(run, reviewer="</script><b>"))
    assert "</script><b>" not in page.html()
    assert "<script>alert" not in page.html()


def test_saved_answers_are_a_file_that_no_spreadsheet_runs(client: TestClient) -> None:
    client.post("answer", json={"row": 4, "answer": "positive", "reviewer": "=cmd()"})
    reply = client.get("answers.csv")
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.text.splitlines()[1].startswith("U/=1+1.png,positive,'=cmd()")


def test_training_runs_beside_the_page_and_once_at_a_time(page: Page, client: TestClient) -> None:
    go_on, begun = threading.Event(), []

    def train(told: Monitor) -> str:
        begun.append(1)
        told.warn("Look out.")
        with told.phase("training X") as phase:
            phase(1, 2)
            go_on.wait(20)
        return "Round 2 is trained."

    page.train = train
    client.post("apply", json={})
    client.post("apply", json={})
    while not (state := client.get("state").json()["applying"])["done"]:
        time.sleep(0.02)
    assert (state["running"], state["sentence"], state["done"]) == (True, "Training X.", 0.5)
    go_on.set()
    while (state := client.get("state").json()["applying"])["running"]:
        time.sleep(0.02)
    assert (state["sentence"], state["warnings"]) == ("Round 2 is trained.", ["Look out."])
    assert begun == [1]


def test_a_training_that_is_refused_tells_why(page: Page, client: TestClient) -> None:
    def train(told: Monitor) -> str:
        raise DataError("Nobody has called an item positive.")

    page.train = train
    client.post("apply", json={})
    while (state := client.get("state").json()["applying"])["running"]:
        time.sleep(0.02)
    assert state["error"] == "Nobody has called an item positive."


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingLibrary, match=r"onesided\[review\]"):
        check_libraries()


def test_a_port_that_is_taken_is_told(page: Page) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Exception, match=f"Port {port} of this machine cannot be used"):
            serve(page, port=port, announce=print)


class SlowToRead(Session):
    """A review whose features take as long as a test wants."""

    free: threading.Event

    @property
    def features(self) -> Features | None:
        assert self.free.wait(30)
        return np.arange(len(self.items), dtype=np.float32)[:, None]


def alike_of_next(page: Page) -> list[object]:
    """Return the items that look like the next one."""
    items = page.next({"count": "1"})["items"]
    assert isinstance(items, list)
    alike: list[object] = items[0]["alike"]
    return alike


def test_the_first_item_does_not_wait_for_features(run: Path) -> None:
    session = SlowToRead(run, reviewer="Anna")
    session.free = threading.Event()
    page = Page(session)
    page.read_features()
    assert "diverse" in page.html()
    assert alike_of_next(page) == []
    session.free.set()
    assert page._reading is not None
    page._reading.join()
    assert len(alike_of_next(page)) == len(NAMES) - 1


def test_the_end_says_what_to_do_next(run: Path) -> None:
    assert "onesided review" in Page(Session(run, reviewer="Anna")).html()
    drawn = Page(Session(run, reviewer="Anna", drawn=["U/a.png"]))
    assert f"onesided audit {run} estimate" in drawn.html()
