from dataclasses import replace
from pathlib import Path

import numpy as np

from onesided.run.config import OwnConfig, RunConfig
from onesided.run.encode import encode, encode_data
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import build_problem
from tests.run.mixed_tables import mixed_rows, write_table


def settings() -> RunConfig:
    return RunConfig.from_settings(
        {"data": {"name": "table"}, "method": {"name": "ce"}, "train": {"batch_size": 16}}
    )


def loaded(folder: Path, rows: list[list[str]]) -> LoadedData:
    table = write_table(folder / "houses.csv", rows)
    return load_data(OwnConfig(name="table", table=str(table)))


def test_every_part_is_encoded_and_the_raw_rows_are_kept_for_the_model(tmp_path: Path) -> None:
    problem = build_problem(settings(), loaded(tmp_path, mixed_rows()))
    encoded = encode(problem)
    assert encoded.data.encoder is not None
    width = encoded.data.encoder.description.width
    held_out = encoded.split.held_out
    assert held_out is not None
    for part in (encoded.split.train, held_out, encoded.training.train):
        assert part.values.sample_shape == (width,)
        assert part.values.take(slice(None)).dtype == np.float32
    assert len(encoded.data.mean) == len(encoded.data.std) == width
    assert len(encoded.data.feature_names) == width
    assert encoded.data.source is problem.data
    assert encoded.split.train.names == problem.split.train.names


def test_what_is_held_out_decides_nothing_about_the_encoder(tmp_path: Path) -> None:
    rows = mixed_rows()
    before = encode(build_problem(settings(), loaded(tmp_path, rows)))
    assert before.split.held_out is not None
    held_out = set(before.split.held_out.names)
    for number, row in enumerate(rows):
        if row[1] in held_out:  # no two alike: copies would be held out together
            row[2], row[3], row[6] = "Atlantis", f"{1000 + number}", "roof storm " * 9
    after = encode(build_problem(settings(), loaded(tmp_path, rows)))
    assert before.data.encoder is not None
    assert after.data.encoder is not None
    assert after.data.encoder.description == before.data.encoder.description
    for name, array in before.data.encoder.arrays.items():
        np.testing.assert_array_equal(after.data.encoder.arrays[name], array)


def test_a_problem_of_vectors_stays_the_same_object(tmp_path: Path) -> None:
    rows = [[row[0], f"{number}.5"] for number, row in enumerate(mixed_rows(60))]
    table = write_table(tmp_path / "numbers.csv", rows, ("label", "x"))
    data = load_data(OwnConfig(name="table", table=str(table)))
    problem = build_problem(settings(), data)
    assert encode(problem) is problem
    assert encode_data(data, 0) is data


def test_the_directions_of_a_text_share_one_scale(tmp_path: Path) -> None:
    data = encode_data(loaded(tmp_path, mixed_rows()), 0)
    assert data.encoder is not None
    note = np.array(["direction" in name for name in data.feature_names])
    scales, own = np.array(data.std), data.split.train.values.take(slice(None)).std(axis=0)
    assert note.sum() > 2
    assert len(set(scales[note])) == 1
    np.testing.assert_allclose(scales[note][0] ** 2, np.mean(own[note] ** 2), rtol=1e-4)
    np.testing.assert_allclose(scales[~note], own[~note], rtol=1e-4)


def test_another_text_is_another_run(tmp_path: Path) -> None:
    rows = mixed_rows()
    problem = build_problem(settings(), loaded(tmp_path, rows))
    content = problem.hashes().content
    assert build_problem(settings(), loaded(tmp_path, rows)).hashes().content == content
    name = problem.training.train.names[0]
    for row in rows:
        if row[1] == name:
            row[6] += "!"
    assert build_problem(settings(), loaded(tmp_path, rows)).hashes().content != content


def test_a_fold_fits_its_own_encoder(tmp_path: Path) -> None:
    problem = build_problem(settings(), loaded(tmp_path, mixed_rows()))
    train = problem.training.train
    half = np.arange(0, len(train), 2)
    values = replace(train.values, index=train.values.index[half])
    part = replace(
        train,
        values=values,
        labelled=train.labelled[half],
        truth=train.truth[half],
        names=tuple(train.names[row] for row in half),
    )
    fold = encode(replace(problem, training=replace(problem.training, train=part)))
    whole = encode(problem)
    assert fold.data.encoder is not None
    assert whole.data.encoder is not None
    assert fold.data.encoder.arrays["fill"].tolist() != whole.data.encoder.arrays["fill"].tolist()
