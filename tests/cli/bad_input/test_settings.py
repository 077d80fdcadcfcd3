"""Settings by flag, by `--set` and by file: what cannot be is told before a file is read."""

from pathlib import Path

import pytest

from onesided.methods import METHODS
from tests.cli.bad_input.refusals import assert_refused_untouched, each, write

EMPTY = str(Path(__file__).parent)
"""A folder without images: whoever looks into it says so."""
NOWHERE = ("-p", EMPTY, "-u", EMPTY, "-o", "no-such-run", "--quiet")

ASSIGNMENTS = (
    *("", "=", "=5", "train", ".=5", "train.=5", ".epochs=5", "train..epochs=5", "train epochs=5"),
    *("train.epochs=0", "train.epochs=-1", "train.epochs=1.5", "train.epochs=nan", "train.epochs="),
    *("train.epochs=[1]", "train.epochs={a = 1}", "train.epochs=''", "train.epochs.more=1"),
    *("train.batch_size=1", "train.batch_size=-8", "train.batch_size=x", "train.batch_size=8.5"),
    *("train.learning_rate=0", "train.learning_rate=-1", "train.learning_rate=inf"),
    *("train.learning_rate=nan", "train.learning_rate=x", "train.learning_rate=1e400"),
    *("train.momentum=1", "train.momentum=-1", "train.weight_decay=-1", "train.clip=0"),
    *("train.floor=-1", "train.factor=0", "train.milestones=5", "train.milestones=[2]"),
    *("train.milestones=[x]", "train.optimizer=lion", "train.optimizer=5", "train.schedule="),
    *("train.precision=fp16", "train.device=gpu", "train.nesterov=maybe", "train.decay=none"),
    *("train.batching=random", "train.positives_per_batch=-1", "train.save_minutes=-1"),
    *("train.tensorboard=perhaps", "train.__class__=5", "train.EPOCHS=5", "train.épochs=5"),
    *("data.held_out=-0.1", "data.held_out=0.95", "data.held_out=x", "data.held_out=nan"),
    *("data.tolerate=-1", "data.tolerate=2", "data.image_size=-1", "data.image_size=99999"),
    *("data.image_size=8.5", "data.scenario=5", "data.seed=x", "data.positives=10", "data.seeds=1"),
    *("data.name=5", "data.name=folder", "data.name=", "data.table=5", "data.root=."),
    *("method.name=5", "method.name=", "method.name=NCPU!", "method.name=[ncpu]", "method=5"),
    *("method.pair_threshold=2", "method.projector_width=0", "method.projector_width=x"),
    *("method.warmup_epochs=-1", "method.encoder_momentum=2", "method.entropy_weight=nan"),
    *("method.alignment=strong", "method.alignment_weight=x", "method.prior=0.5"),
    *(
        "backbone=small",
        "backbone.name=5",
        "backbone.name=",
        "backbone.width=0",
        "backbone.width=-1",
    ),
    *("backbone.width=nan", "backbone.width=x", "backbone.width=1e9", "backbone.freeze=some"),
    *("backbone.normalisation=layer", "backbone.resize=-1", "backbone.depth=5"),
    *("seed=-1", "seed=1.5", "seed=x", "seed=true", "seed=[1]", "seed=", "seed.more=1"),
    *("prior=0", "prior=1", "prior=-0.1", "prior=nan", "prior=inf", "prior=x", "prior=[0.5]"),
    *("prior=", "prior.value=0.5", "threshold=2", "threshold=x", "threshold=[0.5]"),
    *("threshold=", "threshold.rule=0.5", "nothing=5", "Train.epochs=5", "0=1", "\x00=1"),
)


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_an_assignment_that_cannot_be_is_refused(tmp_path: Path, assignment: str) -> None:
    outcome = assert_refused_untouched(tmp_path, "fit", *NOWHERE, "--set", assignment)
    assert EMPTY not in outcome.err


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_refuses_a_setting_it_does_not_have(tmp_path: Path, method: str) -> None:
    words = ("--method", method, "--set", "method.weightt=1")
    assert_refused_untouched(tmp_path, "fit", *NOWHERE, *words, said="unknown setting 'weightt'")


FLAGS = (
    *("--method=", "--method=ncpu,ce", "--method=../ncpu", "--preset=", "--preset=fast"),
    *("--epochs=0", "--epochs=-3", "--seed=-1", "--backbone=", "--backbone=vgg16", "--prior="),
    *("--prior=2", "--prior=-1", "--prior=50%", "--prior=0,4", "--device=", "--device=cuda:9"),
    *("--precision=", "--precision=int8", "--tolerate=-0.1", "--tolerate=1.1", "--tolerate=nan"),
    *("--threshold=", "--threshold=best", "--threshold=top-k=0", "--compare=", "--compare=nope"),
    *("--compare=ncpu", "--compare=ce,ce", "--compare=,", "--weights=no.safetensors"),
    *("--config=no.toml", "--config=.", "--root=x", "--data=digits", "--table=x.csv", "--cache="),
)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_cannot_be_is_refused(tmp_path: Path, flag: str) -> None:
    assert_refused_untouched(tmp_path, "fit", *NOWHERE, flag)


FILES: dict[str, str | bytes] = {
    "empty": "",
    "not TOML": "epochs: 5",
    "JSON": '{"train": {"epochs": 5}}',
    "not UTF-8": b'data.name = "\xff"',
    "zero bytes": bytes(30),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(30),
    "a key twice": "seed = 1\nseed = 2\n",
    "a table twice": "[train]\nepochs = 1\n[train]\nclip = 1\n",
    "an open string": 'prior = "au',
    "an unknown table": '[data]\nname = "digits"\n[trains]\nepochs = 1\n',
    "an unknown key": '[data]\nname = "digits"\n[train]\nepoch = 1\n',
    "a list for a table": '[data]\nname = "digits"\n[[train]]\nepochs = 1\n',
    "a number for a table": 'train = 5\n[data]\nname = "digits"\n',
    "a date for a number": '[data]\nname = "digits"\n[train]\nepochs = 2024-01-31\n',
    "a date for a seed": 'seed = 2024-01-31\n[data]\nname = "digits"\n',
    "infinity": '[data]\nname = "digits"\n[train]\nlearning_rate = inf\n',
    "a number without end": 'seed = -9999\n[data]\nname = "digits"\n',
    "nested without end": "a = " + "[" * 5000,
    "no data": "seed = 1\n",
    "an unknown data set": '[data]\nname = "digit"\n',
    "an unknown method": '[data]\nname = "digits"\n[method]\nname = "ncpo"\n',
    "chips, which only a map cuts": '[data]\nname = "chips"\n',
    "folders that are not named": '[data]\nname = "folders"\n',
    "a table that is not named": '[data]\nname = "table"\n',
}


@each(FILES)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, case: str | bytes) -> None:
    write(case)(tmp_path / "recipe.toml")
    words = ("--config", tmp_path / "recipe.toml", "-o", tmp_path / "run", "--quiet")
    assert_refused_untouched(tmp_path, "fit", *words)
