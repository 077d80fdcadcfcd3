"""Bad requests: what is sent, how answers are judged, and what the claims and the page say."""

import socket
import threading
from pathlib import Path

import pytest

from benchmarks.hostile import OUTCOMES, Attack, Target, attacks, judged, send
from benchmarks.origin import Row
from benchmarks.serve import TOKENS, claims, counted, page, write_table

IMAGES = Target(1, "a-token", b"an image", "image/png")
ROWS = Target(1, "a-token", b"{}", "application/json")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"results": []}', "answered"),
        (b'HTTP/1.1 400 Bad\r\na: b\r\n\r\n{"error": "One sentence."}', "refused"),
        (b'HTTP/1.1 400 Bad\r\n\r\n{"error": "Two\\nlines."}', "plain"),
        (b'HTTP/1.1 400 Bad\r\n\r\n{"error": "One sentence.", "trace": "x"}', "plain"),
        (b"HTTP/1.1 404 Not Found\r\n\r\nNot Found", "plain"),
        (b'HTTP/1.1 307 Moved\r\n\r\n{"error": "One sentence."}', "plain"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "busy"),
        (b'HTTP/1.1 500 Oh\r\n\r\n{"error": "One sentence."}', "fault"),
        (b'HTTP/1.1 504 Late\r\n\r\n{"error": "One sentence."}', "fault"),
        (b"", "ended"),
        (b"rubbish", "ended"),
    ],
)
def test_an_answer_is_judged_by_its_status_and_its_one_sentence(
    answer: bytes, outcome: str
) -> None:
    assert judged(answer) == outcome


def test_a_server_that_fails_and_one_that_says_nothing_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        assert send(Attack("x", (b"GET / HTTP/1.1\r\n\r\n",)), port)[0] == "fault"
        thread.join()
        monkeypatch.setattr("benchmarks.hostile.HANG", 0.2)
        assert send(Attack("x", (b"GET / HTTP/1.1\r\n\r\n",)), port)[0] == "hang"


def test_all_kinds_of_bad_requests_are_sent_to_both_models() -> None:
    both = {"wrong types", "huge bodies", "wrong content type", TOKENS, "path tricks"}
    both |= {"malformed HTTP", "slow clients", "clients that leave"}
    assert {one.kind for one in attacks(ROWS)} == both
    pictures = {"truncated images", "damaged images", "decompression bombs"}
    assert {one.kind for one in attacks(IMAGES)} == both | pictures


def test_a_request_without_the_right_token_has_it_nowhere() -> None:
    for attack in attacks(ROWS):
        if attack.kind == TOKENS:
            assert b"authorization: Bearer a-token\r\n" not in attack.parts[0]


def row(**changes: object) -> Row:
    found = {"model": "rows", "kind": "x", **counted([("refused", 0.5), ("ended", 2.0)])}
    return {**found, "peak_mb": 300, "good_request_after": True, **changes}


def test_each_claim_can_fail() -> None:
    assert all(one["held"] for one in claims([row(), row(kind=TOKENS)]))
    broken: list[dict[str, object]] = [{"fault": 1}, {"hang": 1}, {"kind": TOKENS, "answered": 1}]
    broken += [{"good_request_after": False}, {"peak_mb": 9999}]
    for place, changes in enumerate(broken):
        held = [one["held"] for one in claims([row(), row(**changes)])]
        assert held == [number != place for number in range(5)]


def test_the_page_sums_outcomes_and_says_which_claims_did_not_hold() -> None:
    began = {"machine": {"cpu": "x", "cores": 2}, "commit": "0123456789"}
    rows = [row(), row(hang=1, requests=3, peak_mb=400)]
    bad = {"origin": began, "timeout": 10, "at_once": 8, "examples": 5, "held": 600, "rows": rows}
    bad["claims"] = claims(rows)
    text = page({"origin": began, "seconds": 1, "rows": [], "bad_input": bad})
    assert "| both | all | 5 | 0 | 2 | 0 | 0 | 2 | 0 | 1 | 2 | 400 |" in text
    assert "- No hang. **It did not hold.**" in text
    assert all(words in text for words in OUTCOMES.values())


def test_the_table_of_rows_has_positives_and_unlabelled(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv")
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert (len(lines), sum("unlabelled" in line for line in lines)) == (401, 320)
