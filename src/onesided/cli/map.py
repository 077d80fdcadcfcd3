"""`onesided map`: from a few marked buildings to a score for every building of a place."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import (
    Address,
    Backbone,
    Engine,
    Epochs,
    Freeze,
    Json,
    Method,
    Preset,
    Quiet,
    RunSeed,
    Weights,
    Workers,
)

if TYPE_CHECKING:
    from onesided.jobs.map import MapResult
    from onesided.jobs.region import RegionResult

TOLD = ("recall", "precision")
"""Figures that the terminal shows; summary.csv has all."""


def map(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="File to write: .gpkg, .geojson, .parquet, .fgb."),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[merge RUN...]", help="Make one map of parts scored in several run folders."
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            "--image",
            help="Image after the event: GeoTIFF, PNG, JPEG, VRT, folder of tiles, .zip, URL of "
            "a GeoTIFF, STAC file. May be repeated.",
        ),
    ] = None,
    pre: Annotated[
        list[str] | None,
        typer.Option("--pre", help="Image of the same place before the event, likewise."),
    ] = None,
    footprints: Annotated[
        Path | None,
        typer.Option(
            "--footprints",
            help="Buildings: GeoPackage, GeoJSON, FlatGeobuf, GeoParquet, Shapefile, xBD labels.",
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            "--points", help="Instead of both: folder of crops LON_LAT, or CSV: lon, lat, path."
        ),
    ] = None,
    positives: Annotated[
        Path | None,
        typer.Option("--positives", help="Damaged buildings: CSV of ids, layer, folder of crops."),
    ] = None,
    positives_column: Annotated[
        str | None,
        typer.Option(
            "--positives-column", help="Damaged where COLUMN=VALUE in the footprints: damaged=1."
        ),
    ] = None,
    positives_layer: Annotated[
        str | None,
        typer.Option(
            "--positives-layer", help="Layer to read, if the --positives file has several."
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", help="Layer to read, if the footprints file has several."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column with the id of each building.")
    ] = None,
    footprints_crs: Annotated[
        str | None,
        typer.Option(
            "--footprints-crs", help="Coordinate system, if the file names none: EPSG:4326."
        ),
    ] = None,
    image_crs: Annotated[
        str | None,
        typer.Option("--image-crs", help="Coordinate system, if the image names none: EPSG:32615."),
    ] = None,
    shift: Annotated[
        str | None,
        typer.Option("--shift", help="Move footprints by metres east,north: --shift 3.5,-2."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="CSV: id and true label, only for the report.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Finished run whose model is used; nothing is trained."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run folder to write. [default: beside the output]")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            "--size", min=8, max=512, help="Side of a building's image in pixels. [default: 64]"
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin", min=0, max=8, help="Surroundings shown, in building sizes. [default: 0.5]"
        ),
    ] = None,
    method: Method = None,
    preset: Preset = None,
    epochs: Epochs = None,
    seed: RunSeed = None,
    backbone: Backbone = None,
    weights: Weights = None,
    freeze: Freeze = False,
    prior: Annotated[
        str | None, typer.Option("--prior", help="Share of damaged among the unmarked, or auto.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="Part of a region to score with --model, such as 3/64."),
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option("--formats", help="Further files to write: parquet,fgb,pmtiles."),
    ] = None,
    cells: Annotated[
        float | None,
        typer.Option("--cells", help="Count buildings in cells of so many metres: cells.csv."),
    ] = None,
    areas: Annotated[
        Path | None,
        typer.Option("--areas", help="Count buildings in the polygons of a file: areas.csv."),
    ] = None,
    region: Annotated[
        bool | None,
        typer.Option(
            "--region/--no-region",
            help="Work in pieces. [default: from 100,000 buildings on]",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, for example train.batch_size=64.")
    ] = None,
    basemap: Annotated[
        str | None,
        typer.Option("--basemap", help="Online map that the page offers, off at first: osm, URL."),
    ] = None,
    page_megabytes: Annotated[
        float,
        typer.Option("--page-megabytes", min=0, help="Room for sharp images beside map.html."),
    ] = 500.0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another run in the run folder.")
    ] = False,
    engine: Engine = "local",
    workers: Workers = 2,
    address: Address = None,
    allow_degenerate: Annotated[
        bool,
        typer.Option("--allow-degenerate", help="Exit 0 even if all or nothing is called damaged."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every building of a place from a few that are marked as damaged.

    Writes a GeoPackage and GeoJSON, a style, summary.csv and map.html. The same command
    resumes a stopped map. Large regions are scored in pieces, also on several machines
    (--part), and "onesided map merge RUN..." makes one map of them.

    Example: onesided map --image post.tif --footprints buildings.gpkg --positives ids.csv
    -o damage.gpkg
    """
    from onesided.cli.fit import check_usable
    from onesided.cli.options import settings_of
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_training

    check_training(method=method, preset=preset)
    from onesided.jobs.map import map_buildings
    from onesided.jobs.region import merge_parts

    if words:
        merged = merge_parts(
            words, output=output, formats=formats, cells=cells, areas=areas, test=test,
            image=image or None, pre=pre or None, image_crs=image_crs,
            shift=shift, page_megabytes=page_megabytes, monitor=Terminal(quiet=quiet or as_json),
        )  # fmt: skip
        _show(merged, as_json=as_json)
        check_usable(merged.degenerate, allow_degenerate=allow_degenerate)
        return
    found: MapResult | RegionResult = map_buildings(
        output=output,
        image=image or None,
        pre=pre or None,
        footprints=footprints,
        points=points,
        positives=positives,
        positives_column=positives_column,
        positives_layer=positives_layer,
        layer=layer,
        id_column=id_column,
        footprints_crs=footprints_crs,
        image_crs=image_crs,
        shift=shift,
        test=test,
        model=model,
        run=run,
        size=size,
        margin=margin,
        method=method,
        preset=preset,
        epochs=epochs,
        seed=seed,
        backbone=backbone,
        weights=weights,
        freeze=freeze,
        prior=prior,
        part=part,
        formats=formats,
        cells=cells,
        areas=areas,
        region=region,
        settings=settings_of(assignments),
        basemap=basemap,
        page_megabytes=page_megabytes,
        overwrite=overwrite,
        engine=engine,
        workers=workers,
        address=address,
        monitor=Terminal(quiet=quiet or as_json),
    )
    _show(found, as_json=as_json)
    check_usable(found.degenerate, allow_degenerate=allow_degenerate)


def _show(found: "MapResult | RegionResult", *, as_json: bool) -> None:
    from onesided.cli.show import print_json, say, warn
    from onesided.geo.output.files import PAGE
    from onesided.geo.output.summary import label
    from onesided.metrics.words import full_value_text

    table, summary = found.table, found.summary
    if table is None or summary is None:
        if as_json:
            print_json({"run": str(found.folder), "warnings": list(found.warnings)})
            return
        for sentence in found.warnings:
            warn(sentence)
        say(f"This part is scored in {found.folder}. When all are: onesided map merge RUN... -o …")
        return
    called = summary.figure("called_positive").value
    if as_json:
        print_json(
            {
                "files": [str(path) for path in found.files],
                "buildings": len(table),
                "scored": int(table.scored.sum()),
                "called_positive": called,
                "skipped": len(table.reasons),
                "summary": summary.to_json(),
                "warnings": list(found.warnings),
            }
        )
        return
    for sentence in found.warnings:
        warn(sentence)
    say(
        f"{len(table)} buildings: {int(table.marked.sum())} marked, {called} of the others "
        f"called damaged, {len(table.reasons)} skipped."
    )
    for figure in summary.figures:
        if figure.name in TOLD and not figure.part:
            say(f"{label(figure).capitalize()}: {full_value_text(figure)}.")
    say("\n".join(f"Wrote {path}" for path in found.files))
    page = next(path for path in found.files if path.name == PAGE)
    say(f"Open {page} in a browser: it lists which buildings to check first.")
