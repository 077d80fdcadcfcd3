"""`onesided serve`: a trained model behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from onesided.cli.options import Json, Quiet


def serve(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Finished run, or .onnx file of onesided export.")
    ],
    host: Annotated[str, typer.Option("--host", help="Address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the bearer token.")
    ] = None,
    largest_mb: Annotated[
        float, typer.Option("--largest-mb", help="Largest body of a request, in MB.")
    ] = 16.0,
    seconds: Annotated[
        float, typer.Option("--timeout", help="Seconds for a head, a body, and its scores.")
    ] = 30.0,
    batch: Annotated[int, typer.Option("--batch", help="Samples that are scored at once.")] = 64,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer requests with scores: POST an image or rows to /score.

    Also /health, /metrics (Prometheus) and /openapi.json. Beyond this machine it asks for a token.

    Example: onesided serve runs/quake --port 8000
    """
    from onesided.cli.show import print_json
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_run

    check_run(run)
    from onesided.jobs.serve import serve as run_job

    def tell(url: str) -> None:
        if as_json:
            print_json({"url": url, "run": str(run)})

    run_job(
        run,
        host=host,
        port=port,
        token_file=token_file,
        largest_mb=largest_mb,
        seconds=seconds,
        batch=batch,
        started=tell,
        monitor=Terminal(quiet=quiet or as_json),
    )
