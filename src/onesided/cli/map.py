"""`onesided map`: from a few marked buildings to a score for every building of a place."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import (
    Backbone,
    Epochs,
    Freeze,
    Json,
    Method,
    Preset,
    Quiet,
    RunSeed,
    Weights,
)


def map(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: .gpkg, or .geojson.")
    ],
    image: Annotated[
        Path | None, typer.Option("--image", help="Image after the event (GeoTIFF, PNG, JPEG).")
    ] = None,
    pre: Annotated[
        Path | None, typer.Option("--pre", help="Image of the same place before the event.")
    ] = None,
    footprints: Annotated[
        Path | None,
        typer.Option("--footprints", help="Buildings: GeoPackage, GeoJSON, Shapefile, xBD labels."),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option("--points", help="Instead: folder of crops LON_LAT, or CSV: lon, lat, path."),
    ] = None,
    positives: Annotated[
        Path | None,
        typer.Option("--positives", help="Damaged buildings: CSV of ids, layer, folder of crops."),
    ] = None,
    positives_column: Annotated[
        str | None,
        typer.Option("--positives-column", help="COLUMN=VALUE of the footprints, as damaged=1."),
    ] = None,
    positives_layer: Annotated[
        str | None,
        typer.Option("--positives-layer", help="Layer of a --positives file of several."),
    ] = None,
    layer: Annotated[
        str | None, typer.Option("--layer", help="Layer of a footprints file of several.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column with the id of each building.")
    ] = None,
    footprints_crs: Annotated[
        str | None, typer.Option("--footprints-crs", help="Where the file names none: EPSG:4326.")
    ] = None,
    image_crs: Annotated[
        str | None, typer.Option("--image-crs", help="Where the image names none: EPSG:32615.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="CSV: id and label, to report; never trained on.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Run whose model scores; trains nothing.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder to write; beside the output if none.")
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", min=8, max=512, help="Side of a chip. [default: 64]")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option("--margin", min=0, max=8, help="Surroundings in sizes. [default: 0.5]"),
    ] = None,
    method: Method = None,
    preset: Preset = None,
    epochs: Epochs = None,
    seed: RunSeed = None,
    backbone: Backbone = None,
    weights: Weights = None,
    freeze: Freeze = False,
    prior: Annotated[
        str | None, typer.Option("--prior", help="auto, or the share of damaged among the rest.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, for example train.batch_size=64.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another run in the run folder.")
    ] = False,
    allow_degenerate: Annotated[
        bool,
        typer.Option("--allow-degenerate", help="Exit 0 even if all or nothing is called damaged."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every building of a place from a few that are marked as damaged.

    Writes a GeoPackage and GeoJSON, a style, summary.csv and map.html. The same command
    goes on where it was stopped.

    Example: onesided map --image post.tif --footprints buildings.gpkg --positives ids.csv
    -o damage.gpkg
    """
    from onesided.cli.drawing import (
        Job,
        check_goes_with_model,
        conclude,
        draw_by_model,
        train_and_draw,
    )
    from onesided.cli.fit import flag_settings
    from onesided.core.config import merge, parse_assignment
    from onesided.geo.input.positives import read_truth
    from onesided.geo.input.request import Request
    from onesided.geo.output.mapping import MapFiles

    given = merge(
        flag_settings(
            {
                "data.name": "chips",
                "data.size": size,
                "data.margin": margin,
                "method.name": method,
                "network.name": backbone,
                "network.weights": weights,
                "network.trained": "head" if freeze else None,
                "train.epochs": epochs,
                "prior": prior,
                "seed": seed,
            }
        ),
        *[parse_assignment(text) for text in assignments or []],
    )
    request = Request(
        image=image,
        pre=pre,
        footprints=footprints,
        points=points,
        positives=positives,
        positives_column=positives_column,
        positives_layer=positives_layer,
        layer=layer,
        id_column=id_column,
        footprints_crs=footprints_crs,
        image_crs=image_crs,
        margin=0.5 if margin is None else margin,
    )
    request.check(has_model=model is not None)
    files = MapFiles.beside(output)
    read = {"image": image, "pre": pre, "footprints": footprints, "points": points}
    read |= {"positives": positives, "test": test}
    files.check_apart({f"--{name}": path for name, path in read.items() if path and path.exists()})
    with ExitStack() as stack:
        job = Job(
            request=request,
            files=files,
            folder=run or output.with_name(f"{output.stem}-run"),
            truth=read_truth(test) if test else None,
            stack=stack,
            quiet=quiet or as_json,
        )
        if model is None:
            drawn = train_and_draw(job, given, preset or "quick", overwrite=overwrite)
        else:
            check_goes_with_model(given, preset)
            drawn = draw_by_model(job, model, prior)
    conclude(drawn, files, as_json=as_json, allow_degenerate=allow_degenerate)
