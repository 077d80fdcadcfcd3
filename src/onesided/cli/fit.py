"""`onesided fit`: train a model, or resume its training, in a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onesided.cli.options import (
    Assignments,
    Backbone,
    Data,
    Epochs,
    Freeze,
    Json,
    LargestImage,
    Method,
    Positives,
    Preset,
    Quiet,
    Root,
    RunSeed,
    Table,
    Threshold,
    Unlabelled,
    Weights,
)

if TYPE_CHECKING:
    from onesided.jobs.fit import FitResult


def fit(
    output: Annotated[Path, typer.Option("-o", "--output", help="Run folder to write.")],
    positives: Positives = None,
    unlabelled: Unlabelled = None,
    negatives: Annotated[
        Path | None,
        typer.Option("-n", "--negatives", help="Folder of known negatives; some are trained on."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", help="Folder with positive/ and negative/: only for the report."),
    ] = None,
    table: Table = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Column of the table to read as text.")
    ] = None,
    text_encoder: Annotated[
        str | None,
        typer.Option(
            "--text-encoder", help="Pretrained encoder of texts: hf:FOLDER, of transformers."
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            help="Column whose rows of one value stay together when some are held out; "
            "for folders: parent.",
        ),
    ] = None,
    sample_weight: Annotated[
        str | None,
        typer.Option(
            "--sample-weight", help="Column that says how much each row counts in training."
        ),
    ] = None,
    data: Data = None,
    root: Root = None,
    method: Method = None,
    compare: Annotated[
        str | None,
        typer.Option("--compare", help="Other methods to train on the same split: ce,nnpu."),
    ] = None,
    preset: Preset = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Time for auto: 90s, 2min, 20min or 2h.")
    ] = None,
    epochs: Epochs = None,
    seed: RunSeed = None,
    backbone: Backbone = None,
    weights: Weights = None,
    freeze: Freeze = False,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            help="Share of positives among the unlabelled, or auto; truth where --data knows it.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="TOML file, for example a run's config.toml.")
    ] = None,
    threshold: Threshold = None,
    assignments: Assignments = None,
    device: Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda.")] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32 or bf16.")
    ] = None,
    tolerate: Annotated[
        float | None, typer.Option("--tolerate", help="Share of unreadable files to accept.")
    ] = None,
    largest_image: LargestImage = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="Folder for decoded images and features, shared by runs."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another run in the output folder.")
    ] = False,
    allow_degenerate: Annotated[
        bool,
        typer.Option(
            "--allow-degenerate", help="Exit 0 even if all or nothing is called positive."
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model from a few positives and an unlabelled pool. The same command resumes.

    Example: onesided fit -p damaged/ -u buildings/ -o runs/quake
    """
    from onesided.cli.options import settings_of
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_data, check_training

    given = settings_of(assignments)
    check_data(
        data,
        table,
        {"-p": positives, "-u": unlabelled, "-n": negatives},
        {
            **{"--root": root, "--test": test, "--tolerate": tolerate, "--cache": cache},
            **{"--text": text, "--group": group},
        },
        output=output,
    )
    check_training(
        method=method,
        compare=compare,
        preset=preset,
        budget=budget,
        threshold=threshold,
        config=config,
    )
    from onesided.core.dist import join_if_launched, rank
    from onesided.jobs.fit import fit as run_job

    join_if_launched()
    found = run_job(
        positives,
        unlabelled,
        output=output,
        negatives=negatives,
        test=test,
        table=table,
        text=text,
        text_encoder=text_encoder,
        group=group,
        sample_weight=sample_weight,
        data=data,
        root=root,
        method=method,
        compare=compare,
        preset=preset,
        budget=budget,
        epochs=epochs,
        seed=seed,
        backbone=backbone,
        weights=weights,
        freeze=freeze,
        prior=prior,
        threshold=threshold,
        config=config,
        settings=given,
        device=device,
        precision=precision,
        tolerate=tolerate,
        largest_image=largest_image,
        cache=cache,
        overwrite=overwrite,
        monitor=Terminal(quiet=quiet or as_json or rank() > 0),
    )
    if rank() == 0:
        _show(found, as_json=as_json)
        check_usable(found.degenerate, allow_degenerate=allow_degenerate)


def _show(found: "FitResult", *, as_json: bool) -> None:
    """Print what the run found, and what was trained beside it."""
    from onesided.cli.show import (
        comparison_table,
        console,
        leaderboard_table,
        print_json,
        result_tables,
        say,
        warn_of,
        what_next,
    )

    result, rows = found.result, found.comparison
    if as_json:
        print_json({**result, "comparison": rows} if rows else result)
        return
    if result.get("leaderboard"):
        console.print(leaderboard_table(result))
    for table in result_tables(result, first_only=True):
        console.print(table)
    if rows:
        console.print(comparison_table(rows))
    chosen = result.get("threshold_rule")  # older runs have none
    # Also where another rule came to a half, or could not be followed.
    if chosen and chosen["rule"] != "0.5":
        say(chosen["explained"])
    warn_of(result)
    for line in what_next(result, found.folder):
        say(line)


def check_usable(degenerate: str | None, *, allow_degenerate: bool) -> None:
    """Exit with 3 where the model calls everything or nothing positive, unless that is allowed."""
    from onesided.core.errors import DegenerateModel

    if degenerate and not allow_degenerate:
        raise DegenerateModel(
            f"Degenerate model: {degenerate} All files are written, to find the cause; "
            "--allow-degenerate accepts the model."
        )
