"""The server: answers, limits, tokens, and bad requests by the hundred."""

import asyncio
import io
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from PIL import Image
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

from onesided.core.errors import ConfigError, DataNotFound
from onesided.data.columns.cells import Column, cell_value, plain
from onesided.jobs.serve import is_loopback, read_token
from onesided.metrics.calibration import Calibration
from onesided.run.opened import Opened
from onesided.serve.app import Limits, Room, build_app
from onesided.serve.batching import Batcher, Busy
from tests.cli.command import assert_refused, call

TOKEN = "a-token-that-nobody-guesses"


def mean_of(samples: np.ndarray) -> np.ndarray:
    means = samples.reshape(len(samples), -1).mean(axis=1)
    scores: np.ndarray = 1 / (1 + np.exp(-np.clip(means.astype(np.float64), -30, 30)))
    return scores


def model(shape: tuple[int, ...], names: tuple[str, ...] = ()) -> Opened:
    return Opened("A test", "linear", mean_of, 0.5, shape, names, (), "an-id")


ROWS, IMAGES = model((2,), ("a", "b")), model((3, 8, 8))
CURVE = Calibration(scores=(0.4, 0.6, 0.9), probabilities=(0.1, 0.1, 0.8), basis="prior")
LIKELY = replace(ROWS, calibration=CURVE)


@pytest.fixture
def rows() -> Iterator[TestClient]:
    with TestClient(build_app(ROWS, Limits())) as client:
        yield client


@pytest.fixture
def images() -> Iterator[TestClient]:
    with TestClient(build_app(IMAGES, Limits(bytes=100_000))) as client:
        yield client


def png(colour: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (20, 10), colour).save(file, "PNG")
    return file.getvalue()


def test_rows_get_score_decision_threshold_and_the_models_id(rows: TestClient) -> None:
    found = rows.post("/score", json={"rows": [[1, 2], [-3, 0], {"b": 2, "a": 1}]}).json()
    assert found["model_id"] == "an-id"
    assert found["threshold"] == 0.5
    scores = [one["score"] for one in found["results"]]
    assert scores == pytest.approx(mean_of(np.array([[1, 2], [-3, 0], [1, 2]])))
    decisions = [one["decision"] for one in found["results"]]
    assert decisions == ["positive", "negative", "positive"]


def test_a_model_with_a_curve_gives_probabilities_and_others_give_none(rows: TestClient) -> None:
    body = {"rows": [[1, 2], [-3, 0], [0, 0]]}
    plain = rows.post("/score", json=body).json()["results"]
    with TestClient(build_app(LIKELY, Limits())) as client:
        results = client.post("/score", json=body).json()["results"]
    scores = np.array([one["score"] for one in plain])
    np.testing.assert_allclose([one["probability"] for one in results], CURVE.of(scores))
    for one in results:
        del one["probability"]
    assert results == plain


def test_an_image_is_read_as_rank_reads_it(images: TestClient) -> None:
    headers = {"content-type": "image/png"}
    found = images.post("/score", content=png((3, 0, 0)), headers=headers).json()
    assert found["results"][0]["score"] == pytest.approx(1 / (1 + np.exp(-1.0)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "no JSON"),
        (b"[" * 9_000, "no JSON"),
        (b"[" * 100_000, "1 to 10000 rows"),
        (b"[]", 'Expected {"rows"'),
        (b'{"rows": []}', "1 to 10000 rows"),
        (b'{"rows": [[1]]}', "a list of 2 numbers"),
        (b'{"rows": [[1, true]]}', "something else"),
        (b'{"rows": [[1, "2"]]}', "something else"),
        (b'{"rows": [[1, NaN]]}', "NaN, infinity"),
        (b'{"rows": [[1, 1e39]]}', "beyond 3.4e38"),
        (b'{"rows": [{"a": 1}]}', "see 'b'"),
        (b'{"rows": [[1, 2]], "more": 1}', "nothing else"),
    ],
)
def test_rows_that_are_none_get_one_sentence(rows: TestClient, body: bytes, words: str) -> None:
    answer = rows.post("/score", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_millions_of_empty_lists_are_refused_before_they_are_made(rows: TestClient) -> None:
    def parsed(body: bytes) -> object:
        raise AssertionError("it was parsed")

    headers = {"content-type": "application/json"}
    with patch("json.loads", parsed):
        for filling in (b"[],", b"{},", b"1,"):
            body = b'{"rows": [' + filling * 30_000 + b"0]}"
            answer = rows.post("/score", content=body, headers=headers)
            assert (answer.status_code, "1 to 10000 rows" in answer.text) == (400, True)


def test_as_many_rows_as_are_allowed_are_answered_with_any_names_of_columns() -> None:
    odd = model((2,), ("a[0],{", "b,b"))
    with TestClient(build_app(odd, Limits())) as client:
        for row in ([1, 2], {"a[0],{": 1, "b,b": 2}):
            answer = client.post("/score", json={"rows": [row] * 10_000})
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["results"]) == 10_000


def test_what_is_no_image_too_large_or_of_another_type_is_refused(images: TestClient) -> None:
    headers = {"content-type": "image/png"}
    assert images.post("/score", content=b"none", headers=headers).status_code == 400
    large = images.post("/score", content=bytes(200_000), headers=headers)
    assert (large.status_code, large.json()["error"]) == (413, "The body is too large.")
    assert images.post("/score", json={"rows": []}).status_code == 415
    assert images.get("/score").status_code == 405
    assert images.get("/nothing").status_code == 404


def test_a_token_is_asked_for_everywhere_but_at_health() -> None:
    with TestClient(build_app(ROWS, Limits(), token=TOKEN)) as client:
        body = {"rows": [[1, 2]]}
        assert client.get("/health").json()["status"] == "ok"
        for path in ("/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401
        missing = client.post("/score", json=body)
        assert missing.status_code == 401
        assert missing.headers["www-authenticate"] == "Bearer"
        swapped = f"Bearer {TOKEN.swapcase()}"
        for wrong in (f"Bearer {TOKEN}x", TOKEN, "Bearer ", f"Basic {TOKEN}", swapped):
            headers = {"authorization": wrong}
            assert client.post("/score", json=body, headers=headers).status_code == 401
        for scheme in ("Bearer", "bearer", "BEARER"):
            right = {"authorization": f"{scheme} {TOKEN}"}
            assert client.post("/score", json=body, headers=right).status_code == 200


def test_another_sites_page_cannot_call_a_server_of_this_machine() -> None:
    app = build_app(ROWS, Limits(), hosts=("127.0.0.1", "localhost"))
    with TestClient(app, base_url="http://evil.example") as client:
        assert client.get("/health").status_code == 400
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert client.get("/health").status_code == 200


def test_metrics_count_requests_items_and_batches(rows: TestClient) -> None:
    rows.post("/score", json={"rows": [[1, 2], [3, 4]]})
    rows.post("/score", content=b"")
    text = rows.get("/metrics").text
    assert 'onesided_requests_total{path="/score",status="200"} 1.0' in text
    assert 'onesided_requests_total{path="/score",status="415"} 1.0' in text
    assert "onesided_items_total 2.0" in text
    assert re.search(r'onesided_batch_items_bucket\{le="2.0"\} 1\.0', text)
    assert "onesided_waiting_items 0.0" in text


def test_requests_of_the_same_moment_are_one_batch_and_get_their_own_scores() -> None:
    sizes: list[int] = []

    async def several() -> list[np.ndarray]:
        batcher = Batcher(mean_of, most=64, waiting=1000, observe=sizes.append)
        await batcher.start()
        given = [np.full((1 + number % 3, 2), number / 10) for number in range(9)]
        found = await asyncio.gather(*map(batcher.score, given))
        await batcher.stop()
        return [one - mean_of(samples) for one, samples in zip(found, given, strict=True)]

    assert all(np.abs(one).max() == 0 for one in asyncio.run(several()))
    assert sum(sizes) == 18
    assert len(sizes) <= 2


def test_a_full_queue_and_a_slow_model_are_told() -> None:
    def slow(samples: np.ndarray) -> np.ndarray:
        time.sleep(0.3)
        return mean_of(samples)

    async def crowded() -> None:
        batcher = Batcher(slow, most=64, waiting=3)
        await batcher.start()
        first = asyncio.create_task(batcher.score(np.zeros((2, 2))))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await batcher.score(np.zeros((2, 2)))
        assert len(await first) == 2
        await batcher.stop()

    asyncio.run(crowded())
    lazy = Opened("A test", "linear", slow, 0.5, (2,), (), (), "an-id")
    with TestClient(build_app(lazy, Limits(seconds=0.05))) as client:
        answer = client.post("/score", json={"rows": [[1, 2]]})
        assert (answer.status_code, answer.json()["error"]) == (504, "Scoring took too long.")


def test_a_model_that_fails_fails_one_request_and_not_the_next() -> None:
    def fails(samples: np.ndarray) -> np.ndarray:
        if samples[0, 0] < 0:
            raise RuntimeError("a bug")
        return mean_of(samples)

    app = build_app(Opened("A test", "linear", fails, 0.5, (2,), (), (), "an-id"), Limits())
    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.post("/score", json={"rows": [[-1, 2]]}).status_code == 500
        assert client.post("/score", json={"rows": [[1, 2]]}).status_code == 200


HOUSES = (
    Column(name="area", kind="number"),
    Column(name="town", kind="category"),
    Column(name="pool", kind="boolean"),
    Column(name="built", kind="date"),
    Column(name="notes", kind="text"),
)


def seen(rows: np.ndarray) -> np.ndarray:
    """Score a raw row by its area and the length of its words."""
    found = [
        (0.0 if np.isnan(area) else min(abs(area), 50)) + len(town or "") + len(notes or "")
        for area, town, _, _, notes in rows
    ]
    return 1 - 1 / (1 + np.array(found, np.float64))


MIXED = Opened(
    "A test", "linear", seen, 0.5, (9,), tuple(one.name for one in HOUSES), HOUSES, "an-id"
)


def house(**changes: object) -> dict[str, object]:
    ordinary = {"area": 20, "town": "Rome", "pool": True, "built": "1999-12-31", "notes": "old"}
    return {**ordinary, **changes}


def test_rows_of_several_kinds_are_read_as_rank_reads_them() -> None:
    given = [house(), house(area=None, town=None, notes="na"), house(town=3, pool=None)]
    with TestClient(build_app(MIXED, Limits())) as client:
        answer = client.post("/score", json={"rows": given})
    assert answer.status_code == 200, answer.text
    expected = [[cell_value(column, plain(row[column.name])) for column in HOUSES] for row in given]
    scores = [one["score"] for one in answer.json()["results"]]
    np.testing.assert_array_equal(scores, seen(np.array(expected, object)))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([20, "Rome", True, "1999-12-31", "old"], "expected an object with the columns area, town"),
        ({"area": 1}, "its columns are not the model's; see 'built'"),
        (house(area="20"), "column 'area' takes a number, or null for a gap"),
        (house(area=True), "column 'area' takes a number"),
        (house(area=1e39), "only finite numbers"),
        (house(pool="yes"), "takes true or false"),
        (house(built="yesterday"), "not a date in the form 2024-12-31"),
        (house(built="na"), "column 'built' takes a date, or null"),
        (house(notes=["x"]), "takes a string"),
        (house(town={}), "takes a string or a number"),
    ],
)
def test_cells_of_another_kind_get_one_sentence(row: object, words: str) -> None:
    with TestClient(build_app(MIXED, Limits())) as client:
        answer = client.post("/score", json={"rows": [house(), row]})
    assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text


def test_half_a_character_and_marks_inside_of_texts_are_no_fault() -> None:
    headers = {"content-type": "application/json"}
    with TestClient(build_app(MIXED, Limits())) as client:
        half = json.dumps({"rows": [house(notes="\ud800")]})
        answer = client.post("/score", content=half, headers=headers)
        assert (answer.status_code, "half a character" in answer.text) == (400, True)
        marks = {"rows": [house(notes='[{,"\\"' * 9) for _ in range(9000)]}
        assert client.post("/score", json=marks).status_code == 200
        quotes = b'{"rows": "' + b'\\"' * 2_000_000
        assert client.post("/score", content=quotes, headers=headers).status_code == 400


mixed_api = schemathesis.openapi.from_asgi("/openapi.json", build_app(MIXED, Limits()))
row_api = schemathesis.openapi.from_asgi("/openapi.json", build_app(LIKELY, Limits()))
image_api = schemathesis.openapi.from_asgi("/openapi.json", build_app(IMAGES, Limits()))
FEW = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@row_api.parametrize()
@FEW
def test_no_request_of_rows_breaks_the_servers_word(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()


@mixed_api.parametrize()
@FEW
def test_no_request_of_mixed_rows_breaks_the_servers_word(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()


@image_api.parametrize()
@FEW
def test_no_request_of_images_breaks_the_servers_word(case: schemathesis.Case[Any]) -> None:
    # A schema cannot say which bytes are an image, so most that fit it are refused.
    case.call_and_validate(excluded_checks=[positive_data_acceptance])


def test_tokens_are_long_words_of_a_file_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONESIDED_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("ONESIDED_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    file = tmp_path / "token"
    with pytest.raises(DataNotFound):
        read_token(file)
    file.write_text(f"{TOKEN}x\n")
    assert read_token(file) == f"{TOKEN}x"
    for bad in ("", "short", "two words that are long"):
        file.write_text(bad)
        with pytest.raises(ConfigError, match="one word of 16 characters"):
            read_token(file)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "x")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_beyond_this_machine_a_token_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONESIDED_TOKEN", raising=False)
    outcome = call("serve", tmp_path, "--host", "0.0.0.0")
    assert_refused(outcome, "--host 0.0.0.0 lets other machines in, so a token is needed")
    assert_refused(call("serve", tmp_path / "none"), "There is no run folder")
    assert_refused(call("serve", tmp_path, "--batch", "0"), "batch from 1 to 10000")


def test_errors_of_paths_methods_and_faults_are_one_sentence_of_json_too() -> None:
    def fails(samples: np.ndarray) -> np.ndarray:
        raise RuntimeError("a bug with a secret in its words")

    app = build_app(Opened("A test", "linear", fails, 0.5, (2,), (), (), "an-id"), Limits())
    with TestClient(app, raise_server_exceptions=False) as client:
        missing, method = client.get("/nothing"), client.get("/score")
        slash = client.get("/metrics/", follow_redirects=False)
        failed = client.post("/score", json={"rows": [[1, 2]]})
        counted = client.get("/metrics").text
    assert (missing.status_code, method.status_code, failed.status_code) == (404, 405, 500)
    assert "no such path" in missing.json()["error"]
    assert slash.status_code == 404
    assert "another method" in method.json()["error"]
    assert method.headers["allow"] == "POST"
    assert failed.json() == {"error": "The server failed; its log says why."}
    assert 'onesided_requests_total{path="other",status="404"} 2.0' in counted
    assert 'onesided_requests_total{path="/score",status="500"} 1.0' in counted


def test_bodies_in_memory_have_a_limit_for_all_of_them_together() -> None:
    room = Room(10)
    with room.body() as take:
        take(6)
        with room.body() as other:
            other(4)
            with pytest.raises(Busy):
                other(1)
        assert room.taken == 6
        take(4)
        with pytest.raises(Busy):
            take(1)
    assert room.taken == 0


def slowly(rows: int, began: asyncio.Event, rest: asyncio.Event) -> AsyncIterator[bytes]:
    """Give a body of rows whose second half waits."""

    async def parts() -> AsyncIterator[bytes]:
        body = json.dumps({"rows": [[1, 2]] * rows}).encode()
        yield body[: len(body) // 2]
        began.set()
        await rest.wait()
        yield body[len(body) // 2 :]

    return parts()


def test_many_large_bodies_at_once_are_told_to_come_later() -> None:
    async def both() -> tuple[int, int, int]:
        app = build_app(ROWS, Limits(bytes=10_000, held=10_000))
        headers = {"content-type": "application/json"}
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                began, rest = asyncio.Event(), asyncio.Event()
                body = slowly(1200, began, rest)
                first = asyncio.create_task(client.post("/score", content=body, headers=headers))
                await began.wait()
                second = await client.post("/score", json={"rows": [[1, 2]] * 1200})
                rest.set()
                found = await first
                third = await client.post("/score", json={"rows": [[1, 2]] * 1200})
        return found.status_code, second.status_code, third.status_code

    assert asyncio.run(both()) == (200, 503, 200)
