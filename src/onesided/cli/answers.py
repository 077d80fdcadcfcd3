"""`onesided answers`: what several people answered on the map page, as one file."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet

MOST_CONFLICTS = 20


def answers(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of answers (CSV), or a saved map (GeoJSON)."),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: .csv, .geojson or .gpkg.")
    ],
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="Map whose buildings get the answers, for .geojson and .gpkg."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Merge what several people answered on the map page, and tell where they disagree.

    The latest answer of each person counts. Buildings on which people disagree are written as
    unsure into a map; a CSV file keeps every answer, and --positives leaves such buildings out.

    Example: onesided answers anna.csv ben.csv --map damage.gpkg -o checked.gpkg
    """
    from onesided.cli.show import note, print_json, say, warn
    from onesided.jobs.answers import merge_files

    found = merge_files(files, output=output, map_file=map_file)
    merged = found.merged
    if as_json:
        print_json(
            {
                "file": str(found.file),
                "answers": len(merged.answers),
                "conflicts": [str(conflict) for conflict in merged.conflicts],
                "unknown": found.unknown,
            }
        )
        return
    for conflict in merged.conflicts[:MOST_CONFLICTS]:
        warn(f"People disagree on {conflict}.")
    if len(merged.conflicts) > MOST_CONFLICTS:
        warn(f"And on {len(merged.conflicts) - MOST_CONFLICTS} more buildings.")
    if found.unknown:
        warn(f"{found.unknown} answers are about buildings that the map does not have.")
    note(
        f"{len(merged.answers)} answers on {len(merged.settled())} buildings, "
        f"{len(merged.conflicts)} contested.",
        quiet=quiet,
    )
    say(f"Wrote {found.file}")
