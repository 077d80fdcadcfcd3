"""The story of speed and small budgets, told from the result files.

    python -m benchmarks.performance     write docs/performance.md

Measures nothing itself: what a result file does not hold, the page says is not measured.
"""

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import folders, step_page
from benchmarks.budget import PRESETS, STUDIES
from benchmarks.command import REPOSITORY, paper_figures
from benchmarks.records import Record
from benchmarks.tables import (
    between,
    commit_words,
    finished,
    judged_on,
    machine_words,
    markdown,
    percents,
    section,
    spread,
    threads_of,
)
from onesided.storage.atomic import read_json, write_text

Content = Mapping[str, Any]
PAGE = "performance.md"


@dataclass(frozen=True)
class Goal:
    """What was aimed at on CIFAR-10 before anything was measured."""

    accuracy: float
    minutes: int

    def verdict(self, measured: Mapping[str, "Reached"]) -> str:
        """Return whether runs of a preset that took no longer reached it, and which."""
        in_time = {name: one.within(self.minutes) for name, one in measured.items()}
        accuracy = {name: statistics.fmean(runs) for name, runs in in_time.items() if runs}
        if not accuracy:
            return "no preset took so little"
        best = max(accuracy, key=accuracy.__getitem__)
        short = self.accuracy - accuracy[best]
        spent = max(taken for _, taken in measured[best].runs if taken <= self.minutes)
        told = f"reached by `{best}`"
        if short > 0:
            left = f"{self.minutes - spent:.0f} minutes unspent"
            told = f"`{best}` is {short:.1f} points short, {left}"
        counted, all_runs = len(in_time[best]), len(measured[best].runs)
        return told if counted == all_runs else f"{told} in {counted} of {all_runs} runs"


@dataclass(frozen=True)
class Reached:
    """What a preset reached on CIFAR-10.

    Attributes:
        runs: Accuracy in percent and minutes of training, of each seed.
        threads: How many threads they had, as the runs noted it.
    """

    runs: Sequence[tuple[float, float]]
    threads: str = ""

    @classmethod
    def by(cls, content: Content) -> "Reached | None":
        """Return what NcPU's finished runs reached; None where there are none."""
        runs = _on_cifar10(content, "NcPU")
        if not runs:
            return None
        minutes = [run["seconds"] / 60 for run in runs]
        used = threads_of(runs)
        threads = f"{used} thread" if used == "1" else f"{used} threads"
        return cls(list(zip(percents(runs, "oa"), minutes, strict=True)), threads)

    def within(self, minutes: float) -> list[float]:
        """Return the accuracy of the runs that took no longer."""
        return [accuracy for accuracy, taken in self.runs if taken <= minutes]

    @property
    def words(self) -> str:
        """Accuracy and minutes as the table says them."""
        accuracy, minutes = zip(*self.runs, strict=True)
        return f"{spread(accuracy, '.1f')} % in {between(minutes, '.1f')}"


GOALS = (Goal(92, 20), Goal(95, 60), Goal(97.36, 180))

HEAD = """# Speed, and what small budgets buy

<!-- python -m benchmarks.performance wrote this from the files in benchmarks/results -->

The paper spends 1300 epochs on a run. This page says what a step costs here, how few steps
are useful, what was tried to need fewer, and what did not work. Every number in a table comes from
a result file in benchmarks/results, which holds machine, commit and seeds. Trials are told in words
alone, where no table is named: one run each, and no file of theirs was kept.
"""

STEP_LEARNED = """- On a processor without half precision the products are the step, so only fewer
  of them make it much faster. Winograd's form of a 3x3 convolution over tiles of 4x4 places takes a
  quarter; tiles of 2x2 take less than half, and their products alone took longer in every layer
  tried.
- It pays from some fifty channels on. Narrow layers, those of the preset `quick` among them, spend
  more on the sums before and after than they save, and stay with torch.
- The sums: a first form laid numbers out product by product and summed sixteen channels at a time.
  Tile by tile, one sum per loop over all channels, took mostly less than half the time.
- Some tiles at a time, into memory that is kept: whole batches fell out of the cache.
- Memory that a step frees stays with the process, where the C library can be told so. It went back
  to the system, and came again page by page filled with zeros; of a narrow network's step that took
  more than a tenth. Only commands do so, this benchmark not: it is no merit of one side.
- The first layer's negative filters are the negatives of its answers, and its bias is added apart:
  torch goes back through a whole convolution for a bias.
- What is left of a wide network's step is mostly torch's product of small matrices, which runs
  below the rate of its convolutions here. A faster one would be the next gain.
"""

BUDGET_WORDS = f"""NcPU runs as `onesided fit --data NAME --preset quick` runs it (or `standard`, or
`evening`), without a class prior and without negatives. `night` is a preset in a file of its own,
`{STUDIES["night"].flags}`. The goals were set before: they are the paper's
accuracy, and two steps towards it.
"""

LIMITS = """What limits it: `Supervised`, which sees every true class, is the ceiling of the same
network and number of steps. What lies below it is lost to not knowing the classes of U; what lies
above it, to features that have not formed yet.
"""

CHOICE = """The preset's values, the network and the switches of the variant `budget` were chosen on
4,000 training images of CIFAR-10 that are neither in P (the labelled positives) nor in U (the
unlabelled), one seed each; when votes begin, on held-out P and U. A vote is what the method
believes of an unlabelled image, once per pass, and the judge is the network whose belief it is.
What was learned, roughly the largest gains first; what can be switched or set is measured again
[below](#which-switches-matter), on such images and with seeds:

- **Views.** The published views show a window of a fifth to the whole of an image; in a few epochs
  even a classifier that sees every true class learns little through them. Images that are only
  moved by an eighth and mirrored, and for the strong view recoloured with a patch hidden, gained
  most of all, for every method. Not so where a few
  positives are passed over hundreds of times: on a scene with twenty marked buildings they were
  learned by heart, and the published views ranked better. So they stay where passes are many.
- **The first layer** is computed from patches of training images (their principal patterns, scaled
  to unit variance) and not learned. It gained more than a network of twice the width did, and
  costs nothing.
- **Max-pooling** instead of strides, at the same cost.
- **Positives in every batch.** At its natural share, a batch of 128 holds three labelled positives,
  and the mean over three is mostly noise. A fixed quarter ended that. Half the batch ranked better
  still, also with no more steps and so fewer passes over U; a sixteenth, once votes had begun,
  clearly worse. The labelled positives are what is known, and votes only repeat what is believed.
  In long runs it is the other way round, as told next.
- **Votes.** While features hardly formed, prototypes voted worse than the classifier itself, and
  made the ranking worse than no votes; the judge's own votes made it better on all 40,000 images.
  With the first layer computed the three are close on a part of them: see the switches below.
- **The share of votes.** A network that learns from its own votes calls more and more positive. Its
  share of positives as votes began is kept: the line between the classes moves, the share does not.
- **When votes begin.** After three passes. A wide network that went on telling P from U called
  fewer and fewer of the held-out positives positive: it knew the labelled ones by heart.
- P and U weighing alike, as in the paper, lets the positives found in U outweigh the negatives.
  Classes weighing alike stops that.
- Class pairs (the paper's NoiSNCL), switched on after a short warm-up, made the ranking worse in
  every trial, also when only confident pairs counted. Pairs of an image with itself helped a
  little. On frozen ImageNet features it is the other way round: there class pairs were the largest
  gain.
- Judging by the target network, an average of weights, removed jumps of many points between
  epochs.
- A large rate that rises and falls to nothing by the step goes with a small weight of the
  alignment; the paper's weight of 50 needs a rate fifty times smaller.
- **Half a batch of positives in a long run** was the try for the third goal: with twice the rate,
  a network a quarter wider than that of `evening` and 28 passes, two runs on all 40,000 images,
  both stopped. Votes after three passes began with too low a share: each positive had been seen a
  hundred times, and fewer and fewer of those held out were called positive. Votes after one pass
  kept the share of U at two fifths, but the network called less and less of the held-out U
  positive, and found fewer of the held-out positives; after 17 passes it also ranked training
  images outside P and U worse than `evening` ends with. The line between the classes had moved
  far: labelled positives known by heart fill most of the positive class's weight and teach
  nothing, so what is left weighs for negative. Decisions by that line would have been right more
  often than by a half.
- **How often a positive is seen** seems to explain these: fewer than ten times in a run is too
  seldom, seventy to three hundred times went well, a thousand times is too often, whatever the
  share of a batch. So `night`, [below](#what-up-to-three-hours-buy), draws half as many into a
  batch as `evening` for twice the passes, and votes begin when each was seen as often as there. A
  first run in which they began after half as many was stopped: the share it kept was too large.
  The second one ranked as well as `evening` and decided worse. Less of P known by heart, it called
  more of U positive as votes began, and kept that share: it finds nearly all positives, and too
  many others. Its ranking would have allowed a better line, on training images outside P and U,
  but not the third goal either. So two things limit it: a share that is only as good as the
  classifier of the first passes, and a ranking that more passes hardly improve any more.
- Passes and width: on a part of the images, with half of every batch positive, twice the passes
  gained about twice as much as twice the width.
- No gain, or too little to tell: votes that weigh as much as the judge is sure, soft instead of
  hard votes, the gate beside the judge's votes, orthogonalised steps (Muon), four times the weight
  of the alignment, a term that goes on calling all of U negative beside the votes, scores averaged
  over an image and its mirror image; and beside half a batch of positives and twice the rate,
  mixing pairs of images and their targets (mixup) once votes have begun, a third layer with a
  shortcut in each stage, and a second network that starts anew from the votes of a first, against
  as many passes of one.
- Networks trained apart err on the same images, above all on aeroplanes and birds: the average of
  four was hardly better than the best of them. What is missing is knowledge of the classes, which
  no vote adds.
- Worse: strong views in their own colours; windows of half to the whole of an image instead of
  moved ones; images of 24 pixels in the first half of a run (the ranking was still behind an epoch
  later, where the trial was stopped); a third stage and no early halving, at the same cost per
  step (one epoch seen), and as wide as `evening` at the same cost per run, so with half as many
  passes: a point below on a part of the images.
- More passes are not always better: digits, passed over two hundred times by `standard`, came out
  below `quick` on all three seeds (it finds fewer of the positives), and CE, the longer it trains,
  only learns better to call the unlabelled negative.
- Self-supervised starts: as many passes again, before training, in which only pairs of an image
  with itself taught the network. Better than training alone, and worse than training twice as long,
  which costs the same; through the published views less than through the gentle ones.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    if argv or (argv is None and sys.argv[1:]):
        print("python -m benchmarks.performance takes no options.", file=sys.stderr)
        return 2
    write_text(REPOSITORY / "docs" / PAGE, page())
    print(f"Wrote docs/{PAGE}")
    return 0


def page() -> str:
    """Return the page as the result files are now."""
    parts = [
        HEAD,
        _part("What a step costs", "step", _step, "benchmarks/step.md"),
        _part("What minutes buy", "budget", _budget, "benchmarks/budget.md"),
        _part("What an hour buys", "standard", _grid, "benchmarks/standard.md"),
        _part("What an evening buys", "evening", _grid, "benchmarks/evening.md"),
        _part("What up to three hours buy", "night", _grid, "benchmarks/night.md"),
        _part("Which switches matter", "ablation", _switches, "benchmarks/ablation.md"),
        _part("With a pretrained network", "pretrained", _grid, "benchmarks/pretrained.md"),
        _part("Memory of a run on CIFAR-10", "memory", memory, None),
        _part("Large folders", "folders", _folders, None),
        _part("Buildings cut out of a large image", "mapping", _mapping, None),
    ]
    return "\n".join(parts)


def _part(title: str, name: str, words: Any, more: str | None) -> str:  # noqa: ANN401
    content = _measured(name)
    if content is None:
        return f"## {title}\n\nNot measured yet.\n"
    link = f"\nIn full: [{more}]({more}).\n" if more else ""
    return f"## {title}\n\n{words(content)}\n{link}"


def _measured(name: str) -> Content | None:
    path = REPOSITORY / "benchmarks" / "results" / f"{name}.json"
    return read_json(path) if path.exists() else None


def _step(content: Content) -> str:
    tables = step_page.tables(content).replace("\n## ", "\n### ")
    return f"{tables}\n### What helped\n\n{STEP_LEARNED}"


def _budget(content: Content) -> str:
    by_preset = {preset: _measured(study.name) for preset, study in STUDIES.items()}
    known = {preset: one for preset, one in by_preset.items() if one is not None}
    parts = [BUDGET_WORDS, goals(known), _grid(content), "", LIMITS, ceilings(known), CHOICE]
    return "\n".join(parts)


def _grid(content: Content) -> str:
    """Return the tables of the data sets on which anything has finished."""
    paper = paper_figures(content["name"])
    names = dict.fromkeys(run["data"] for run in finished(content["runs"]))
    return "\n\n".join(section(content, name, paper).replace("## ", "### ", 1) for name in names)


def _switches(content: Content) -> str:
    judged = f"Each changed alone; judged on {judged_on(content)}."
    return f"{judged}\n\n{_grid(content)}\n\n{what_matters(content)}"


def what_matters(content: Content) -> str:
    """Return which rows are more than a point of accuracy from the first, and which are not."""
    labels = dict.fromkeys(run["label"] for run in finished(content["runs"]))
    accuracy = {label: statistics.fmean(_by_seed(content, label).values()) for label in labels}
    base, *others = accuracy
    change = {label: accuracy[label] - accuracy[base] for label in others}
    large = [f"{label} ({by:+.1f})" for label, by in change.items() if abs(by) >= 1]
    small = [label for label, by in change.items() if abs(by) < 1]
    return (
        f"A point of accuracy or more from `{base}`: {', '.join(large) or 'none'}. Less than a "
        f"point, which so few seeds can hardly tell from none: {', '.join(small) or 'none'}."
    )


def goals(presets: Mapping[str, Content]) -> str:
    """Return what was aimed at on CIFAR-10 beside what the presets reached."""
    reached = {name: Reached.by(content) for name, content in presets.items()}
    measured = {name: one for name, one in reached.items() if one is not None}
    if not measured:
        return "On CIFAR-10 nothing has finished yet.\n"
    rows = [
        (
            f"{goal.accuracy:g} % in {goal.minutes} minutes",
            *(one.words for one in measured.values()),
            goal.verdict(measured),
        )
        for goal in GOALS
    ]
    columns = (f"`{name}`, minutes on {one.threads}" for name, one in measured.items())
    return markdown(("goal on two cores", *columns, "verdict"), rows) + "\n"


def ceilings(presets: Mapping[str, Content]) -> str:
    """Return how far NcPU stays below a network that sees every true class, for each preset."""
    rows = []
    for name, content in presets.items():
        found, most = (_by_seed(content, label) for label in ("NcPU", "Supervised"))
        seeds = sorted(found.keys() & most.keys())
        if seeds:
            pairs = [(found[seed], most[seed], most[seed] - found[seed]) for seed in seeds]
            columns = zip(*pairs, strict=True)
            rows.append((f"`{name}`", str(len(seeds)), *(spread(one, ".1f") for one in columns)))
    if not rows:
        return "On CIFAR-10 no seed has finished both for NcPU and for `Supervised`.\n"
    return markdown(("CIFAR-10", "seeds", "NcPU", "Supervised", "points between"), rows) + "\n"


def _by_seed(content: Content, label: str) -> dict[int, float]:
    runs = _on_cifar10(content, label)
    return {run["seed"]: one for run, one in zip(runs, percents(runs, "oa"), strict=True)}


def _on_cifar10(content: Content, label: str) -> list[Record]:
    asked = ("cifar10", label)
    return [run for run in finished(content["runs"]) if (run["data"], run["label"]) == asked]


def memory(content: Content) -> str:
    """Return the peak of every preset, held against the bound of all."""
    bound = content["bound_mb"]
    measured = {row["preset"]: within(row["peak_mb"], bound) for row in content["rows"]}
    rows = [(f"`{preset}`", measured.get(preset, "not measured")) for preset in PRESETS]
    words = f"The program itself, 60,000 images, and the training; the bound is {bound} MB."
    return f"{words}\n\n{markdown(('preset', 'peak memory'), rows)}\n\n{_measured_on(content)}"


def within(peak: float, bound: float) -> str:
    """Return a peak of memory, and whether it is above its bound."""
    return f"{peak:.0f} MB{'' if peak <= bound else ': too much'}"


def _folders(content: Content) -> str:
    bound = content.get("bound_mb", folders.BOUND_MB)  # files from before there was one
    rows = [
        (
            str(row["images"]),
            within(row[kind]["peak_mb"], bound),
            f"{row[kind]['files_per_second']:.0f}",
            kind,
        )
        for row in content["rows"]
        for kind in ("fit", "rank")
    ]
    words = (
        f"Generated images of {content['side']} x {content['side']} pixels without compression, "
        "decoded into a file and not into memory; `fit` trains CE for one epoch, and its seconds "
        f"hold decoding and training. The bound is {bound} MB."
    )
    table = markdown(("images", "peak memory", "files per second", "command"), rows)
    return f"{words}\n\n{table}\n\n{growth(content)}\n\n{_measured_on(content)}"


def growth(content: Content) -> str:
    """Return what one more image costs in memory, beside its pixels, which stay in the file."""
    if len(content["rows"]) == 1:
        return "The larger folder is not measured yet."
    few, many = content["rows"]
    further = many["images"] - few["images"]
    costs = [
        f"{max(0.0, many[kind]['peak_mb'] - few[kind]['peak_mb']) * 1024 / further:.1f} KB "
        f"with `{kind}`"
        for kind in ("fit", "rank")
    ]
    pixels = 3 * content["side"] ** 2 / 1024
    return f"A further image takes {' and '.join(costs)}; its pixels are {pixels:.0f} KB."


def _mapping(content: Content) -> str:
    rows = [
        (
            str(record["buildings"]),
            f"{record['crops_per_second']:.0f}",
            f"{record['peak_megabytes']:.0f} MB",
        )
        for record in content["records"]
    ]
    side = content["side"]
    words = (
        f"A tiled GeoTIFF of {side} x {side} pixels, footprints in another system of coordinates."
    )
    table = markdown(("buildings", "crops per second", "peak memory"), rows)
    return f"{words}\n\n{table}\n\n{_measured_on(content)}"


def _measured_on(content: Content) -> str:
    place = content["origin"]
    return f"Measured on {machine_words(place['machine'])}, at commit {commit_words(place)}."


if __name__ == "__main__":
    sys.exit(main())
