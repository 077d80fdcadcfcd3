"""`onesided fit`: train, or go on training, and leave a run folder behind."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import (
    Assignments,
    Backbone,
    Data,
    Epochs,
    Freeze,
    Json,
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
    data_name,
    without_strangers,
)

if TYPE_CHECKING:
    from onesided.core.config import Settings
    from onesided.run.config import RunConfig
    from onesided.run.execute import RunResult
    from onesided.run.load import LoadedData


def fit(
    output: Annotated[Path, typer.Option("-o", "--output", help="Run folder to write.")],
    positives: Positives = None,
    unlabelled: Unlabelled = None,
    negatives: Annotated[
        Path | None,
        typer.Option("-n", "--negatives", help="Folder of known negatives, to learn from too."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="Folder with positive/ and negative/, to report.")
    ] = None,
    table: Table = None,
    data: Data = None,
    root: Root = None,
    method: Method = None,
    compare: Annotated[
        str | None, typer.Option("--compare", help="Methods to train beside it, as in ce,nnpu.")
    ] = None,
    preset: Preset = None,
    epochs: Epochs = None,
    seed: RunSeed = None,
    backbone: Backbone = None,
    weights: Weights = None,
    freeze: Freeze = False,
    prior: Annotated[
        str | None,
        typer.Option("--prior", help="auto, or the share of positives among the unlabelled."),
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
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Folder for decoded images; several runs share.")
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
    others = {"--root": root, "--test": test, "--tolerate": tolerate, "--cache": cache}
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
            "network.weights": weights,
            "network.trained": "head" if freeze else None,
            "train.epochs": epochs,
            "train.device": device,
            "train.precision": precision,
            "prior": prior,
            "threshold": threshold,
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
        cache=cache,
        compare=compare,
    )
    conclude(
        result,
        as_json=as_json,
        allow_degenerate=allow_degenerate,
        compared=compare is not None,
    )


def fit_settings(
    given: "Settings",
    output: Path,
    *,
    preset: str | None,
    overwrite: bool,
    quiet: bool,
    cache: Path | None = None,
    compare: str | None = None,
) -> "RunResult":
    """Check the settings, load the data, train, and write the report."""
    from onesided.cli.show import chosen_lines, counting, note, skipped_lines
    from onesided.core.dist import rank
    from onesided.data.read.cache import MappedImages
    from onesided.engine.train_config import choose_device
    from onesided.run.compare import baseline_settings, compared_names
    from onesided.run.execute import check_needs
    from onesided.run.folder import CACHE, check_place
    from onesided.run.load import load_data, training_split
    from onesided.run.presets import resolve

    quiet = quiet or rank() > 0
    # What is wrong is told at once, not after an hour of reading images.
    checked = resolve(given, preset)
    names = compared_names(compare, checked.method_name) if compare is not None else []
    wanted = [given, *(baseline_settings(given, name) for name in names)]
    for settings in wanted[1:]:
        resolve(settings, preset)
    choose_device(checked.train.device)
    checked.network.weights_file()
    check_place(output, overwrite=overwrite)
    with counting("reading", quiet=quiet) as counter:
        loaded = load_data(checked.data, counter, cache or output / CACHE)
    if isinstance(loaded.split.train.values.pool, MappedImages):
        note(f"Decoded images are kept in {cache or output / CACHE}.", quiet=quiet)
    configs = [resolve(one, preset, loaded.split) for one in wanted]
    # A recipe may add to the data of its method; what is compared has one split for all.
    configs = [replace(one, data=configs[0].data) for one in configs]
    for one in configs:
        check_needs(one, training_split(loaded, one.method))
    chosen = chosen_lines(configs[0], loaded, preset)
    for sentence in (*skipped_lines(loaded.skipped), *loaded.notices, *chosen):
        note(sentence, quiet=quiet)
    return train_all(configs, loaded, output, overwrite=overwrite, quiet=quiet)


def train_all(
    configs: "Sequence[RunConfig]",
    loaded: "LoadedData",
    output: Path,
    *,
    overwrite: bool,
    quiet: bool,
) -> "RunResult":
    """Do the first run in the output folder and the others below it; write the report."""
    from onesided.cli.show import counting
    from onesided.core.dist import rank
    from onesided.engine.fit import Watcher
    from onesided.report import write_report
    from onesided.run.compare import COMPARED, write_comparison
    from onesided.run.execute import run
    from onesided.run.folder import COMPARISON, REPORT, RESULT, working_in

    results = []
    with working_in(output):
        for number, config in enumerate(configs):
            place = output / COMPARED / config.method_name if number else output
            with counting(f"training {config.method.card.title}", quiet=quiet) as counter:
                watcher = Watcher(step=counter.step, epoch=counter.epoch, embed=counter)
                results.append(run(config, loaded, place, overwrite=overwrite, watcher=watcher))
        if rank() == 0:
            if len(results) > 1:
                write_comparison(output, [result.content for result in results])
            if any(_is_older(output / REPORT, output / name) for name in (RESULT, COMPARISON)):
                write_report(output)
    return results[0]


def _is_older(page: Path, source: Path) -> bool:
    """Whether the page has to be written: never again for a run that was finished before."""
    if not source.exists():
        return False
    return not page.exists() or page.stat().st_mtime_ns < source.stat().st_mtime_ns


def conclude(
    result: "RunResult", *, as_json: bool, allow_degenerate: bool, compared: bool = False
) -> None:
    """Print what the run found; exit with 3 where the model is degenerate.

    Args:
        result: What the run found.
        as_json: Print one JSON object instead of tables.
        allow_degenerate: Exit with 0 all the same.
        compared: Print the runs that were made beside it, too.
    """
    from onesided.cli.show import comparison_table, console, print_json, result_tables, say, warn_of
    from onesided.core.dist import rank
    from onesided.core.errors import DegenerateModel
    from onesided.run.compare import read_comparison

    if rank() > 0:
        return
    rows = read_comparison(result.folder) if compared else []
    if as_json:
        print_json({**result.content, "comparison": rows} if compared else result.content)
    else:
        for table in result_tables(result.content):
            console.print(table)
        if rows:
            console.print(comparison_table(rows))
        chosen = result.content.get("threshold_rule")  # older runs have none
        # Also where another rule came to a half, or could not be followed.
        if chosen and chosen["rule"] != "0.5":
            say(chosen["explained"])
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
