"""Options that several commands share, each declared once."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]
Names = Annotated[bool, typer.Option("--quiet", "-q", help="Print names only, one per line.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of weights, batches and views.")]
