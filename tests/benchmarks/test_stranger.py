from pathlib import Path

from benchmarks.stranger import way


def test_a_stranger_walks_what_the_pages_say(tmp_path: Path) -> None:
    stretches = {one.name: one for one in way(tmp_path, demo=True)}
    assert list(stretches) == [
        *("clone", "install", "demonstration"),
        *("first report on own folders", "first own method"),
    ]
    assert stretches["install"].commands[-1][1:5] == ("-m", "pip", "install", "-c")
    *practice, fit = stretches["first report on own folders"].commands
    assert len(practice) == 1
    assert fit[1:] == tuple(
        ["fit", "-p", "practice/positives", "-u", "practice/pool", "-o", "runs/first"]
    )
    (method,) = stretches["first own method"].commands
    assert "class Smoothed(GradientMethod)" in method[2]
    assert 'output="runs/smoothed"' in method[2]
