import json
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, DataError, DataNotFound
from onesided.data.files import find_images
from onesided.data.images import decode_all
from onesided.engine.model_file import ModelDescription, load_model, save_model
from onesided.nets.build import NetworkConfig
from onesided.run import rank
from onesided.run.rank import alarm_of, rank_folder
from tests.data.image_files import write_png


def describe(shape: tuple[int, ...] = (3, 8, 8)) -> ModelDescription:
    numbers = (0.5,) * shape[0]
    return ModelDescription(
        method="ce",
        settings={},
        network=NetworkConfig(width=0.125),
        sample_shape=shape,
        mean=numbers,
        std=numbers,
        kind="photograph" if len(shape) == 3 else "vector",
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The files of a model whose weights are as drawn."""
    folder = tmp_path / "run"
    folder.mkdir()
    description = describe()
    save_model(folder, description.build(), description)
    return folder


@pytest.fixture
def items(tmp_path: Path) -> Path:
    for number in range(10):
        write_png(tmp_path / "items" / f"{number}.png", seed=number)
    return tmp_path / "items"


def test_scores_are_those_of_the_model_for_the_images(run: Path, items: Path) -> None:
    ranking = rank_folder(run, items, tolerate=0)
    found = find_images(items)
    predictor, _ = load_model(run)
    scores = predictor.scores(decode_all(found, channels=3, size=(8, 8)).values)
    order = np.argsort(-scores)
    assert [name for name, *_ in ranking.rows] == [found[row].name for row in order]
    np.testing.assert_allclose(
        [float(score) for _, score, *_ in ranking.rows], scores[order], rtol=1e-8
    )


def test_pieces_change_nothing_but_memory(
    run: Path, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rank_folder(run, items, tolerate=0)
    heard: list[tuple[int, int]] = []
    monkeypatch.setattr(rank, "PIECE", 4)
    parts = rank_folder(run, items, tolerate=0, progress=lambda *done: heard.append(done))
    assert [row[0] for row in parts.rows] == [row[0] for row in whole.rows]
    np.testing.assert_allclose(
        [float(row[1]) for row in parts.rows], [float(row[1]) for row in whole.rows], rtol=1e-6
    )
    assert heard == [(4, 10), (8, 10), (10, 10)]


def test_a_piece_without_one_readable_image_does_not_end_the_ranking(
    run: Path, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "PIECE", 4)
    for number in range(4, 8):  # exactly the second piece
        (items / f"{number}.png").write_bytes(b"")
    ranking = rank_folder(run, items, tolerate=0.4)
    assert len(ranking.rows) == 6
    assert [name for name, _ in ranking.skipped] == ["4.png", "5.png", "6.png", "7.png"]
    assert all("empty" in reason for _, reason in ranking.skipped)
    with pytest.raises(DataError, match="4 of 10 images"):
        rank_folder(run, items, tolerate=0.3)


def test_not_one_readable_image_is_told_whatever_is_tolerated(run: Path, items: Path) -> None:
    for path in items.iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataNotFound, match="none of 10 files can be read"):
        rank_folder(run, items, tolerate=1)


def test_weights_that_give_no_numbers_are_told(run: Path, items: Path) -> None:
    description = describe()
    method = description.build()
    assert isinstance(method, torch.nn.Module)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.fill_(torch.nan)
    save_model(run, method, description)
    with pytest.raises(CheckpointError, match="no numbers"):
        rank_folder(run, items, tolerate=0)


def test_a_model_of_vectors_ranks_no_images(tmp_path: Path, items: Path) -> None:
    description = describe((5,))
    (tmp_path / "vectors").mkdir()
    save_model(tmp_path / "vectors", description.build(), description)
    with pytest.raises(DataError, match="vectors of 5 numbers"):
        rank_folder(tmp_path / "vectors", items, tolerate=0)


def test_what_is_no_run_is_told(items: Path) -> None:
    for folder in (items / "no", items / "0.png"):
        with pytest.raises(DataNotFound, match="no run folder"):
            rank_folder(folder, items, tolerate=0)


def test_the_alarm_of_a_run_is_known_where_its_result_is(run: Path) -> None:
    assert alarm_of(run) is None
    result = {"method": "ce", "seed": 0, "threshold": 0.5, "test": None, "warnings": []}
    for pu, alarm in ((None, None), ({"degenerate": None}, None), ({"degenerate": "!"}, "!")):
        (run / "result.json").write_text(json.dumps({**result, "pu": pu}))
        assert alarm_of(run) == alarm
