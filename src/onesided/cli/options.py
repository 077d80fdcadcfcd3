"""Options that several commands share, each declared once."""

from collections.abc import Sequence
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

Positives = Annotated[
    Path | None,
    typer.Option("-p", "--positives", help="Folder of positives, or .npy file of vectors."),
]
Unlabelled = Annotated[
    Path | None,
    typer.Option("-u", "--unlabelled", help="Folder of the unlabelled pool, or .npy file."),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--table",
        help="CSV or Parquet: label (positive, unlabelled, negative), and path, or columns to "
        "learn from.",
    ),
]
LargestImage = Annotated[
    float | None,
    typer.Option("--largest-image", help="Millions of pixels up to which images are read [64]."),
]
Engine = Annotated[
    str, typer.Option("--engine", help="local, or ray for several processes or machines.")
]
Workers = Annotated[int, typer.Option("--workers", help="Processes of Ray.")]
Address = Annotated[
    str | None, typer.Option("--address", help="A Ray cluster that runs already, or auto.")
]
Data = Annotated[str | None, typer.Option("--data", help="Data set by name.")]
Root = Annotated[Path | None, typer.Option("--root", help="Folder of the data set.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE, for example data.held_out=0.3.")
]
Threshold = Annotated[
    str | None,
    typer.Option("--threshold", help="Decision rule: 0.7, prior, max-f1, recall=0.9 or top-k=500."),
]

Method = Annotated[str | None, typer.Option("--method", help="Method, see onesided methods.")]
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
        help="auto, small, resnet18, resnet34, mlp, efficientnet_lite0, hf:FOLDER, timm:NAME, "
        "onnx:FILE.",
    ),
]
Weights = Annotated[
    Path | None, typer.Option("--weights", help="Initial weights, a .safetensors file.")
]
Freeze = Annotated[
    bool, typer.Option("--freeze", help="Train only a head on frozen features: fast without a GPU.")
]


def settings_of(assignments: Sequence[str] | None) -> "Settings":
    """Return the settings that `--set KEY=VALUE` gave, later ones on top."""
    from onesided.core.config import merge, parse_assignment

    return merge(*map(parse_assignment, assignments or []))
