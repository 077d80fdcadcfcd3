"""Options that several commands share, each declared once."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.run.preset_files import preset_words

if TYPE_CHECKING:
    from onesided.core.config import Settings

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]
Names = Annotated[bool, typer.Option("--quiet", "-q", help="Print names only, one per line.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of weights, batches and views.")]

Positives = Annotated[Path | None, typer.Option("-p", "--positives", help="Folder of positives.")]
Unlabelled = Annotated[
    Path | None, typer.Option("-u", "--unlabelled", help="Folder of everything else.")
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--table", help="CSV: label (positive, unlabelled, negative), and path or numbers."
    ),
]
Data = Annotated[str | None, typer.Option("--data", help="Data set by name.")]
Root = Annotated[Path | None, typer.Option("--root", help="Folder of the data set.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE, for example data.held_out=0.3.")
]
Threshold = Annotated[
    str | None,
    typer.Option("--threshold", help="prior, max-f1, recall=0.9, top-k=500 or a number like 0.7."),
]

Method = Annotated[str | None, typer.Option("--method", help="See onesided methods.")]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help=preset_words()),
]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Passes over the data.")]
RunSeed = Annotated[int | None, typer.Option("--seed", help="Seed of the run.")]
Backbone = Annotated[
    str | None,
    typer.Option(
        "--backbone",
        help="auto, small, resnet18, resnet34, mlp, or efficientnet_lite0 (pretrained).",
    ),
]
Weights = Annotated[
    Path | None, typer.Option("--weights", help="First weights, a .safetensors file.")
]
Freeze = Annotated[
    bool, typer.Option("--freeze", help="Train only a head on features: fast without a GPU.")
]

GOES_WITH = {
    "--data": ("--root",),
    "--table": ("--test", "--tolerate", "--cache"),
    "-p and -u": ("-p", "-u", "-n", "--test", "--tolerate", "--cache"),
}
"""Which flags say something about which kind of data."""


def data_name(
    data: str | None,
    table: Path | None,
    folders: Mapping[str, Path | None],
    others: Mapping[str, object],
) -> str | None:
    """Return the name of the data that the flags give, or say which do not go together."""
    from onesided.core.errors import ConfigError

    given = [flag for flag, value in {**folders, **others}.items() if value is not None]
    kinds = {"--data": data, "--table": table, "-p and -u": folders["-p"] or folders["-u"]}
    named = [kind for kind, value in kinds.items() if value is not None]
    if len(named) > 1:
        raise ConfigError(
            "Give one kind of data: --data, or --table, or -p with -u; "
            f"got {' beside '.join(named)}."
        )
    if not named:
        return None
    allowed = GOES_WITH[named[0]]
    for flag in given:
        if flag not in allowed:
            fitting = " or ".join(kind for kind, flags in GOES_WITH.items() if flag in flags)
            raise ConfigError(f"{flag} goes with {fitting}, not with {named[0]}. Leave it out.")
    if named[0] != "-p and -u":
        return data or "table"
    for flag, what in (("-p", "positives"), ("-u", "unlabelled items")):
        if folders[flag] is None:
            raise ConfigError(f"Two folders are needed; {flag} FOLDER of {what} is missing.")
    return "folders"


def without_strangers(from_file: "Settings", said: "Settings") -> "Settings":
    """Return a file's settings without those of a data set or method that is not meant.

    The positive classes of CIFAR-10 mean nothing in CIFAR-100, and NcPU's settings are
    unknown to nnPU.
    """
    kept = dict(from_file)
    for part in ("data", "method", "network"):
        old, new = from_file.get(part), said.get(part)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            name = new.get("name", old.get("name"))
            if name != old.get("name"):
                del kept[part]
    return kept
