"""Simple mistakes are told before torch is imported, which takes seconds."""

import json
import subprocess
import sys
from pathlib import Path

SLOW = ("torch", "sklearn", "scipy.stats", "matplotlib", "pandas")
PROGRAM = """
import contextlib, io, json, sys
from onesided.cli import main

told = []
for words in json.loads(sys.stdin.read()):
    sys.argv, said = ["onesided", *words.split()], io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        main()
    told.append([said.getvalue(), [name for name in SLOW if name in sys.modules]])
print(json.dumps(told))
"""
MISTAKES = {
    "fit -p nowhere -u U -o run": "The folder nowhere does not exist.",
    "fit -p P -u nowhere -o run": "The folder nowhere does not exist.",
    "fit -p P -o run": "-u FOLDER of unlabelled items is missing",
    "fit --table none.csv -o run": "There is no table none.csv.",
    "fit --data cifar11 -o run": "no data set called 'cifar11'. Did you mean 'cifar10'?",
    "fit -p P -u U -o run --method nnpuu": "Did you mean 'nnpu'?",
    "fit -p P -u U -o run --compare ce,nnpuu": "Did you mean 'nnpu'?",
    "fit -p P -u U -o run --preset quik": "Did you mean 'quick'?",
    "fit -p P -u U -o run --budget soon": "expected a time",
    "fit -p P -u U -o run --threshold most": "most",
    "fit --config none.toml -o run": "none.toml",
    "rank nowhere P": "There is no run folder nowhere.",
    "rank P nowhere": "There is no folder nowhere.",
    "evaluate nowhere": "There is no folder nowhere",
    "report nowhere": "There is no run folder nowhere.",
    "embed nowhere -o f.npz": "There is no folder nowhere.",
    "prior -p P -u nowhere": "The folder nowhere does not exist.",
    "map --image i.tif --footprints f.gpkg -o m.gpkg --method nnpuu": "Did you mean",
}


def test_a_simple_mistake_is_told_before_torch_is_loaded(tmp_path: Path) -> None:
    for name in ("P", "U"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", f"SLOW = {SLOW}\n{PROGRAM}"],
        input=json.dumps([*MISTAKES]),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    answers = json.loads(done.stdout)
    for (words, said), (told, loaded) in zip(MISTAKES.items(), answers, strict=True):
        assert said in told, words
        assert told.startswith("onesided: "), words
        assert told.count("\n") == 1, told
        assert loaded == [], words
