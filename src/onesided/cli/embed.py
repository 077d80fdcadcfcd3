"""`onesided embed`: images to feature vectors in a file."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Address, Engine, Json, LargestImage, Quiet, Workers


def embed(
    images: Annotated[
        Path,
        typer.Argument(metavar="IMAGES", help="Folder of images, or CSV file with a column path."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: .parquet, .npz or .npy.")
    ],
    backbone: Annotated[
        str,
        typer.Option("--backbone", help="Frozen network; also hf:FOLDER, timm:NAME or onnx:FILE."),
    ] = "efficientnet_lite0",
    weights: Annotated[
        Path | None, typer.Option("--weights", help="A .safetensors file for the backbone.")
    ] = None,
    layers: Annotated[
        str,
        typer.Option("--layers", help="last or several; auto: as fit takes them."),
    ] = "auto",
    image_size: Annotated[
        int, typer.Option("--image-size", min=0, max=1024, help="Side to read; 0 chooses.")
    ] = 0,
    tolerate: Annotated[
        float, typer.Option("--tolerate", min=0, max=1, help="Share of unreadable files to accept.")
    ] = 0.05,
    largest_image: LargestImage = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Folder to share with fit --cache.")
    ] = None,
    engine: Engine = "local",
    workers: Workers = 2,
    address: Address = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute a feature vector for every image. The same command resumes.

    Writes ids (names of the items) and vectors of numbers.

    Example: onesided embed buildings/ -o features.parquet
    """
    from onesided.cli.show import print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_items

    check_items(images)
    from onesided.jobs.embed import embed as run_job

    found = run_job(
        images,
        output,
        backbone=backbone,
        weights=weights,
        layers=layers,
        image_size=image_size,
        tolerate=tolerate,
        largest_image=largest_image,
        device=device,
        cache=cache,
        engine=engine,
        workers=workers,
        address=address,
        monitor=Terminal(quiet=quiet or as_json),
    )
    items, skipped = len(found.names), len(found.skipped)
    if as_json:
        about = {"output": str(output), "items": items, "width": found.width}
        print_json(about | {"skipped_count": skipped, "backbone": found.backbone})
    else:
        say(f"{items} items of {found.width} numbers, {skipped} skipped: {output}")
