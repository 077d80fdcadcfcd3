"""`onesided fit`: train, or go on training, and leave a run folder behind."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from onesided.core.config import Settings
    from onesided.run.config import RunConfig
    from onesided.run.execute import RunResult
    from onesided.run.load import LoadedData

GOES_WITH = {
    "--data": ("--root",),
    "--table": ("--test", "--tolerate"),
    "-p and -u": ("-p", "-u", "-n", "--test", "--tolerate"),
}
"""Which flags say something about which kind of data."""


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
        str | None,
        typer.Option("--preset", help="quick (minutes, the default), standard (an hour) or paper."),
    ] = None,
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

    folders = {"-p": positives, "-u": unlabelled, "-n": negatives}
    others = {"--root": root, "--test": test, "--tolerate": tolerate}
    flags = flag_settings(
        {
            "data.name": data_name(data, table, folders, others),
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
    said = merge(flags, *map(parse_assignment, assignments or []))
    from_file = without_strangers(read_toml(config), said) if config else {}
    join_if_launched()
    result = fit_settings(
        merge(from_file, said),
        output,
        # A run's config.toml says everything itself; a preset goes beneath it if asked for.
        preset=preset or (None if config else "quick"),
        overwrite=overwrite,
        quiet=quiet or as_json,
    )
    conclude(result, as_json=as_json, allow_degenerate=allow_degenerate)


def fit_settings(
    given: "Settings", output: Path, *, preset: str | None, overwrite: bool, quiet: bool
) -> "RunResult":
    """Check the settings, load the data, train, and write the report."""
    from onesided.cli.show import counting, note, skipped_lines
    from onesided.core.dist import rank
    from onesided.engine.fit import Watcher
    from onesided.engine.train_config import choose_device
    from onesided.report import write_report
    from onesided.run.execute import run
    from onesided.run.folder import REPORT, RESULT, check_place
    from onesided.run.load import load_data

    quiet = quiet or rank() > 0
    # What is wrong is told at once, not after an hour of reading images.
    checked = resolve(given, preset, rows=1)
    choose_device(checked.train.device)
    check_place(output, overwrite=overwrite)
    with counting("reading", quiet=quiet) as counter:
        loaded = load_data(checked.data, counter)
    config = resolve(given, preset, rows=len(loaded.split.train))
    for sentence in (*skipped_lines(loaded.skipped), *loaded.notices, *_chosen(config, loaded)):
        note(sentence, quiet=quiet)
    with counting(f"training {config.method.card.title}", quiet=quiet) as counter:
        watcher = Watcher(step=counter.step, epoch=counter.epoch)
        result = run(config, loaded, output, overwrite=overwrite, watcher=watcher)
    if rank() == 0 and _is_older(output / REPORT, output / RESULT):
        write_report(output)
    return result


def _is_older(page: Path, source: Path) -> bool:
    """Whether the page has to be written: never again for a run that was finished before."""
    return not page.exists() or page.stat().st_mtime_ns < source.stat().st_mtime_ns


def resolve(given: "Settings", preset: str | None, *, rows: int) -> "RunConfig":
    """Return the configuration: the preset's numbers for this data, under what was given."""
    from onesided.core.config import merge
    from onesided.run.config import RunConfig
    from onesided.run.presets import preset_settings

    own = RunConfig.from_settings(given)
    if preset is None:
        return own
    planned = preset_settings(
        preset, data_name=own.data.name, method_name=own.method_name, rows=rows, given=given
    )
    return RunConfig.from_settings(merge(planned, given))


def conclude(result: "RunResult", *, as_json: bool, allow_degenerate: bool) -> None:
    """Print what the run found; exit with 3 where the model is degenerate."""
    from onesided.cli.show import console, print_json, result_tables, say, warn_of
    from onesided.core.dist import rank
    from onesided.core.errors import DegenerateModel

    if rank() > 0:
        return
    if as_json:
        print_json(result.content)
    else:
        for table in result_tables(result.content):
            console.print(table)
        warn_of(result.content)
        say(f"Report: {result.folder / 'report.html'}")
    if result.degenerate and not allow_degenerate:
        raise DegenerateModel(
            f"Degenerate model: {result.degenerate} All files are written, to find the cause; "
            "--allow-degenerate accepts the model."
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


def data_name(
    data: str | None,
    table: Path | None,
    folders: Mapping[str, Path | None],
    others: Mapping[str, object],
) -> str | None:
    """Return the name of the data that the flags give, or say which do not go together."""
    from onesided.core.errors import ConfigError

    given = [flag for flag, value in {**folders, **others}.items() if value is not None]
    kinds = {"--data": data, "--table": table, "-p and -u": folders["-p"] or folders["-u"]}
    named = [kind for kind, value in kinds.items() if value is not None]
    if len(named) > 1:
        raise ConfigError(
            "Give one kind of data: --data, or --table, or -p with -u; "
            f"got {' beside '.join(named)}."
        )
    if not named:
        return None
    allowed = GOES_WITH[named[0]]
    for flag in given:
        if flag not in allowed:
            fitting = " or ".join(kind for kind, flags in GOES_WITH.items() if flag in flags)
            raise ConfigError(f"{flag} goes with {fitting}, not with {named[0]}. Leave it out.")
    if named[0] != "-p and -u":
        return data or "table"
    for flag, what in (("-p", "positives"), ("-u", "unlabelled items")):
        if folders[flag] is None:
            raise ConfigError(f"Two folders are needed; {flag} FOLDER of {what} is missing.")
    return "folders"


def without_strangers(from_file: "Settings", said: "Settings") -> "Settings":
    """Return a file's settings without those of a data set or method that is not meant.

    The positive classes of CIFAR-10 mean nothing in CIFAR-100, and NcPU's settings are
    unknown to nnPU.
    """
    kept = dict(from_file)
    for part in ("data", "method", "network"):
        old, new = from_file.get(part), said.get(part)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            name = new.get("name", old.get("name"))
            if name != old.get("name"):
                del kept[part]
    return kept


def _chosen(config: "RunConfig", loaded: "LoadedData") -> Sequence[str]:
    """Return in one line each what was chosen for this data."""
    from onesided.cli.show import count

    split, card = loaded.split, config.method.card
    labelled = int(split.train.labelled.sum())
    held_out = "" if split.validation is None else f", {len(split.validation)} held out"
    shape = "x".join(map(str, split.sample_shape))
    idle = config.prior != "auto" and not config.method.needs.prior
    unused = (f"{card.title} needs no prior; {config.prior} is not used.",) if idle else ()
    return (
        f"Data: {count(labelled, 'positive')}, {len(split.train) - labelled} unlabelled{held_out}; "
        f"samples of {shape}.",
        f"Method: {card.title}, network {config.network.name}, "
        f"{count(config.train.epochs, 'epoch')} of batches of {config.train.batch_size}, "
        f"learning rate {config.train.learning_rate:g}.",
        *unused,
    )
