"""One HTML page of a suite: claims, tables, figures, where they were measured, what was not run."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from onesided.bench.claims import by_scale, judge, told
from onesided.bench.drawings import (
    Line,
    averaged,
    chosen_pairs,
    feature_map,
    gradient_lines,
    lines,
)
from onesided.bench.facts import read_examples, read_facts
from onesided.bench.results import FINISHED, Record, all_records, read_records
from onesided.bench.suite import MEASURED, Suite, Table, read_suite, swept_name
from onesided.bench.tables import TITLES, scale_summary, shown, values
from onesided.pages.document import document
from onesided.pages.render import render


@dataclass(frozen=True)
class Part:
    """A drawing with its words."""

    title: str
    words: str
    svg: Markup


@dataclass(frozen=True)
class Context:
    """What a section is made of."""

    output: Path
    suite_name: str
    suite: Suite
    name: str
    table: Table

    def records(self) -> list[Record]:
        """Return the records of this table."""
        return read_records(self.output, self.suite_name, self.name)

    def finished(self) -> list[Record]:
        """Return those of finished cells."""
        return [one for one in self.records() if one["status"] == FINISHED]


def suite_page(output: Path, suite_name: str) -> str:
    """Return the page as HTML, the same text for the same result files."""
    suite = read_suite(suite_name)
    records = all_records(output, suite_name)
    sections = [
        (name, table.title, _section(Context(output, suite_name, suite, name, table)))
        for name, table in suite.tables.items()
    ]
    return document(
        "bench/web/page.html",
        title=f"{suite.title}: published and measured",
        style="bench/web/style.css",
        style_attributes=True,
        suite=suite,
        claims=told(judge(suite, records)),
        scales=_scales(records.values()),
        machines=_machines(records.values()),
        sections=sections,
    )


def _section(context: Context) -> Markup:
    """Return the body of one table or figure."""
    made = SECTIONS[context.table.kind](context)
    note = context.table.note
    return render("bench/web/section.html", body=made, note=note, commands=_commands(context))


def _commands(context: Context) -> list[tuple[str, str]]:
    """Return the commands that measured a section, each with its cells and hours."""
    if context.table.kind not in (*MEASURED, "data", "examples"):
        return []
    finished = context.finished()
    hours: dict[str, list[float]] = {}
    for one in sorted(finished, key=lambda one: str(one["scale"])):
        hours.setdefault(one["scale"], []).append(one.get("seconds", 0.0) / 3600)
    command = f"onesided bench run {context.suite_name}/{context.name} -o RESULTS --root DATA"
    if not hours:
        return [(f"{command} --scale SCALE", "not run")]
    return [
        (f"{command} --scale {scale}", f"cells: {len(each)}, hours: {sum(each):.1f}")
        for scale, each in hours.items()
    ]


def _table(context: Context) -> Markup:
    parts = shown(context.suite_name, context.name, context.records())
    return render("bench/web/table.html", parts=parts, titles=TITLES)


def _places(records: Sequence[Record]) -> list[tuple[str, str]]:
    return sorted({(one["scale"], one["data"]) for one in records})


def _at(records: Sequence[Record], scale: str, data: str, row: str) -> list[Record]:
    place = (scale, data, row)
    return [one for one in records if (one["scale"], one["data"], one["row"]) == place]


def _drawings(context: Context, parts: Sequence[Part], words: str = "") -> Markup:
    return render("bench/web/drawings.html", parts=parts, words=words)


def _maps(context: Context) -> Markup:
    found = context.finished()
    parts = []
    for scale, data in _places(found):
        for row in context.table.rows:
            for one in _at(found, scale, data, row)[:1]:
                points = one.get("points", [])
                if points:
                    title = context.suite.rows[row].title
                    words = f"{data}, {scale}, seed {one['seed']}"
                    svg = feature_map(
                        points,
                        name=f"{context.name}-{scale}-{data}-{row}",
                        description=f"Features of {title} on {data}: {len(points)} training "
                        "samples in a plane, by true class.",
                    )
                    parts.append(Part(title, words, svg))
    key = "Training samples by true class (t-SNE): triangles are positive, dots negative."
    return _drawings(context, parts, key)


def _curves(context: Context) -> Markup:
    which, found, parts = context.table.curve or "test_oa", context.finished(), []
    for scale, data in _places(found):
        drawn = []
        for row in context.table.rows:
            curves = [one["curve"] for one in _at(found, scale, data, row) if one["curve"]["epoch"]]
            if curves:
                drawn.append(Line(context.suite.rows[row].title, *averaged(curves, which)))
        if drawn:
            ends = "; ".join(f"{line.title} ends at {line.y[-1]:.1f}" for line in drawn)
            svg = lines(
                drawn,
                name=f"{context.name}-{scale}-{data}",
                description=f"Accuracy by epoch on {data}: {ends}.",
                across="epoch",
                up="true accuracy, %",
            )
            of = "test data" if which == "test_oa" else "the unlabelled pool"
            parts.append(Part(f"{data}, {scale}", f"On {of}. {ends}.", svg))
    return _drawings(context, parts)


def _sweeps(context: Context) -> Markup:
    found, parts = context.finished(), []
    for scale, data in _places(found):
        for sweep in context.table.sweeps:
            for row in context.table.rows:
                points = []
                for value in sorted((sweep.at, *sweep.values)):
                    cells = _at(found, scale, data, swept_name(row, sweep, value))
                    if numbers := values(cells, "oa"):
                        points.append((value, sum(numbers) / len(numbers)))
                if len(points) > 1:
                    parts.append(_sweep_part(context, scale, data, sweep.name, points))
    return _drawings(context, parts)


def _sweep_part(
    context: Context, scale: str, data: str, name: str, points: Sequence[tuple[float, float]]
) -> Part:
    said = ", ".join(f"{value:g}: {height:.1f}" for value, height in points)
    svg = lines(
        [Line(name, [value for value, _ in points], [height for _, height in points])],
        name=f"{context.name}-{scale}-{data}-{name}",
        description=f"OA on {data} by {name}: {said}.",
        across=name,
        up="OA, %",
        marked=True,
        even=True,
    )
    return Part(name, f"{data}, {scale}. {said}.", svg)


def _schedule(context: Context) -> Markup:
    judged = by_scale(context.suite, context.table, all_records(context.output, context.suite_name))
    scales = [(name, scale_summary(name)) for name in context.table.scales]
    matrix = render("bench/web/schedule.html", judged=judged, scales=scales)
    return matrix + _table(context)


def _data(context: Context) -> Markup:
    facts = {one["data"]: one for one in read_facts(context.output)}
    published = context.suite.published_data
    return render("bench/web/data.html", names=context.table.data, facts=facts, published=published)


def _examples(context: Context) -> Markup:
    found = read_examples(context.output, context.table.data)
    return render("bench/web/examples.html", names=context.table.data, found=found)


def _pairs(context: Context) -> Markup:
    words = "Two samples are a pair if f f' + (1 - f)(1 - f') is at least the threshold."
    return _drawings(context, [Part("Borders of the pairs", words, chosen_pairs(name="pairs"))])


def _gradients(context: Context) -> Markup:
    svg = lines(
        gradient_lines(),
        name="gradients",
        description="Squared gradient by similarity: of L_r it falls from 4 to 0, of L~_r it "
        "rises from 1 to 2.",
        across="similarity of query and key",
        up="squared gradient",
    )
    words = "By automatic differentiation, for unit vectors: distant pairs pull hardest in L_r."
    return _drawings(context, [Part("Gradient and similarity", words, svg)])


def _drawing(context: Context) -> Markup:
    return render("bench/web/drawing.html")


SECTIONS: Mapping[str, Callable[[Context], Markup]] = {
    "table": _table,
    "cost": _table,
    "tsne": _maps,
    "curve": _curves,
    "sweep": _sweeps,
    "schedule": _schedule,
    "data": _data,
    "examples": _examples,
    "pairs": _pairs,
    "gradients": _gradients,
    "drawing": _drawing,
}


def _scales(records: Sequence[Record] | Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return what each scale is, and how many cells of it ended how."""
    counted = Counter((one["scale"], one["status"]) for one in records)
    names = sorted({scale for scale, _ in counted})
    return [
        {
            "name": name,
            "summary": scale_summary(name),
            "counts": {
                status: counted[scale, status] for scale, status in counted if scale == name
            },
        }
        for name in names
    ]


def _machines(records: Sequence[Record] | Any) -> list[tuple[str, int]]:  # noqa: ANN401
    """Return machine, threads, commit and day of the runs, with the number of cells each."""
    words: Counter[str] = Counter()
    for one in records:
        for place in one.get("origins", [])[-1:]:
            commit = (place["commit"] or "unknown")[:12] + (" (changed)" if place["dirty"] else "")
            words[f"{place['cpu']}, threads: {place['threads']}, commit {commit}"] += 1
    return words.most_common()
