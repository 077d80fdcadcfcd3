"""`onesided fit`: train, or go on training, and leave a run folder behind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from onesided.core.config import Settings
    from onesided.run.config import RunConfig
    from onesided.run.execute import RunResult
    from onesided.run.load import LoadedData


def fit(
    output: Annotated[Path, typer.Option("-o", "--output", help="Run folder to write.")],
    positives: Annotated[
        Path | None, typer.Option("-p", "--positives", help="Folder of positives.")
    ] = None,
    unlabelled: Annotated[
        Path | None, typer.Option("-u", "--unlabelled", help="Folder of everything else.")
    ] = None,
    negatives: Annotated[
        Path | None, typer.Option("-n", "--negatives", help="Folder of known negatives.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="Folder with positive/ and negative/, to report.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="CSV: path and label (positive, unlabelled, negative)."),
    ] = None,
    data: Annotated[str | None, typer.Option("--data", help="Data set by name.")] = None,
    root: Annotated[Path | None, typer.Option("--root", help="Folder of the data set.")] = None,
    method: Annotated[str | None, typer.Option("--method", help="See onesided methods.")] = None,
    preset: Annotated[
        str, typer.Option("--preset", help="quick (minutes), standard (an hour) or paper.")
    ] = "quick",
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over the data.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the run.")] = None,
    backbone: Annotated[
        str | None, typer.Option("--backbone", help="auto, small, resnet18, resnet34 or mlp.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option("--prior", help="auto, or the share of positives among the unlabelled."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="TOML file, for example a run's config.toml.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, for example train.batch_size=64.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda.")] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32 or bf16.")
    ] = None,
    tolerate: Annotated[
        float | None, typer.Option("--tolerate", help="Share of unreadable files to accept.")
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
    from onesided.core.config import merge, parse_assignment, read_toml
    from onesided.core.dist import join_if_launched

    flags = flag_settings(
        {
            "data.name": _data_name(data, table, positives, unlabelled),
            "data.root": root,
            "data.positive_folder": positives,
            "data.unlabelled_folder": unlabelled,
            "data.negative_folder": negatives,
            "data.test_folder": test,
            "data.table": table,
            "data.tolerate": tolerate,
            "method.name": method,
            "network.name": backbone,
            "train.epochs": epochs,
            "train.device": device,
            "train.precision": precision,
            "prior": prior,
            "seed": seed,
        }
    )
    from_file = read_toml(config) if config else {}
    given = merge(from_file, flags, *map(parse_assignment, assignments or []))
    join_if_launched()
    result = fit_settings(
        given,
        output,
        preset=None if config else preset,
        overwrite=overwrite,
        quiet=quiet or as_json,
    )
    conclude(result, as_json=as_json, allow_degenerate=allow_degenerate)


def fit_settings(
    given: "Settings", output: Path, *, preset: str | None, overwrite: bool, quiet: bool
) -> "RunResult":
    """Load the data, resolve the settings, train, and write the report."""
    from onesided.cli.show import counting, note
    from onesided.core.dist import rank
    from onesided.engine.fit import Watcher
    from onesided.report import write_report
    from onesided.run.config import data_config
    from onesided.run.execute import run
    from onesided.run.load import load_data

    quiet = quiet or rank() > 0
    with counting("reading", quiet=quiet) as counter:
        loaded = load_data(data_config(given.get("data", {}), "configuration"), counter)
    config = resolve(given, loaded, preset)
    for sentence in (*loaded.notices, *_chosen(config, loaded)):
        note(sentence, quiet=quiet)
    with counting(f"training {config.method.card.title}", quiet=quiet) as counter:
        watcher = Watcher(step=counter.step, epoch=counter.epoch)
        result = run(config, loaded, output, overwrite=overwrite, watcher=watcher)
    if rank() == 0:
        write_report(output)
    return result


def resolve(given: "Settings", loaded: "LoadedData", preset: str | None) -> "RunConfig":
    """Return the configuration: the preset's numbers for this data, under what was given."""
    from onesided.core.config import merge
    from onesided.run.config import RunConfig
    from onesided.run.presets import preset_settings

    rows = len(loaded.split.train)
    if preset is None:
        return RunConfig.from_settings(given)
    planned = preset_settings(
        preset,
        data_name=str(given["data"]["name"]),
        method_name=str(given.get("method", {}).get("name", "ncpu")),
        rows=rows,
        given=given,
    )
    return RunConfig.from_settings(merge(planned, given))


def conclude(result: "RunResult", *, as_json: bool, allow_degenerate: bool) -> None:
    """Print what the run found; exit with 3 where the model is degenerate."""
    from onesided.cli.show import console, print_json, result_tables, warn
    from onesided.core.dist import rank
    from onesided.core.errors import DegenerateModel

    if rank() > 0:
        return
    if as_json:
        print_json(result.content)
    else:
        for table in result_tables(result.content):
            console.print(table)
        for sentence in result.content["warnings"]:
            warn(sentence)
        console.print(f"Report: {result.folder / 'report.html'}", markup=False, highlight=False)
    if result.degenerate and not allow_degenerate:
        raise DegenerateModel(
            f"{result.degenerate} (--allow-degenerate accepts this; all files are written.)"
        )


def flag_settings(flags: dict[str, Any]) -> "Settings":
    """Return nested settings for the flags that were given."""
    from onesided.core.config import merge

    layers = []
    for key, value in flags.items():
        if value is None:
            continue
        setting: Any = str(value) if isinstance(value, Path) else value
        for part in reversed(key.split(".")):
            setting = {part: setting}
        layers.append(setting)
    return merge(*layers)


def _data_name(
    data: str | None, table: Path | None, positives: Path | None, unlabelled: Path | None
) -> str | None:
    from onesided.core.errors import ConfigError

    folders = positives is not None or unlabelled is not None
    if sum((data is not None, table is not None, folders)) > 1:
        raise ConfigError("Give one kind of data: --data, or --table, or -p with -u.")
    if folders and (positives is None or unlabelled is None):
        missing = (
            "-u FOLDER of unlabelled items" if unlabelled is None else "-p FOLDER of positives"
        )
        raise ConfigError(f"Two folders are needed; {missing} is missing.")
    if table is not None:
        return "table"
    return "folders" if folders else data


def _chosen(config: "RunConfig", loaded: "LoadedData") -> Sequence[str]:
    """Return in one line each what was chosen for this data."""
    split = loaded.split
    labelled = int(split.train.labelled.sum())
    held_out = "" if split.validation is None else f", {len(split.validation)} held out"
    shape = "x".join(map(str, split.sample_shape))
    return (
        f"Data: {labelled} positives, {len(split.train) - labelled} unlabelled{held_out}; "
        f"samples of {shape}.",
        f"Method: {config.method.card.title}, network {config.network.name}, "
        f"{config.train.epochs} epochs of batches of {config.train.batch_size}, "
        f"learning rate {config.train.learning_rate:g}.",
    )
