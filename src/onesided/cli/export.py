"""`onesided export`: a trained model as one file for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: .onnx, or .pt2 for torch.")
    ],
    format: Annotated[str, typer.Option("--format", help="onnx or torch.")] = "onnx",
    int8: Annotated[
        bool, typer.Option("--int8", help="Eight-bit integers inside networks; needs --sample.")
    ] = False,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", help="Items that calibrate int8 and measure its loss."),
    ] = None,
    deepness: Annotated[
        bool, typer.Option("--deepness", help="For the QGIS plug-in Deepness: one map out.")
    ] = False,
    resolution: Annotated[
        float | None, typer.Option("--resolution", help="Centimetres per pixel, for Deepness.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a trained model as one file that other programs run.

    Preprocessing, frozen backbone, score, probability, threshold and decision are inside. The file
    is run once, and kept only if its scores are the model's.

    Example: onesided export runs/quake -o quake.onnx
    """
    from onesided.cli.show import print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_run

    check_run(run)
    from onesided.jobs.export import export as run_job

    found = run_job(
        run,
        output,
        format=format,  # type: ignore[arg-type]  # the job checks it
        int8=int8,
        sample=sample,
        deepness=deepness,
        resolution=resolution,
        monitor=Terminal(quiet=quiet or as_json),
    )
    if as_json:
        loss = None if found.loss is None else vars(found.loss)
        about = {"output": str(found.output), "bytes": found.bytes, "loss": loss}
        about |= {"difference": found.difference, "notes": list(found.notes)}
        print_json(about | {"probability": found.probability})
        return
    checked = ""
    if found.difference is not None:
        checked = f", scores equal to the model's within {max(found.difference, 1e-9):.1g}"
    likely = ", with probabilities" if found.probability else ""
    say(f"{found.bytes / 1e6:.2g} MB{likely}{checked}: {output}")
