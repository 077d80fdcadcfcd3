"""Three pages from the result files: what presets reach, what they cost, what was tried.

    python -m benchmarks.performance     write docs/results.md, docs/cost.md, docs/laboratory.md

It measures nothing itself. A part without a result file is printed as not measured.
"""

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import folders, step
from benchmarks.budget import PRESETS, STUDIES
from benchmarks.command import REPOSITORY, paper_figures
from benchmarks.frozen_features import frozen_features
from benchmarks.names import read_content
from benchmarks.runs import Record
from benchmarks.tables import (
    between,
    commit_words,
    evaluated_on,
    finished,
    machine_words,
    markdown,
    percents,
    section,
    spread,
    threads_of,
)
from onesided.core.former import TITLE
from onesided.storage.atomic import write_text

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Goal:
    """A goal on CIFAR-10, set before anything was measured."""

    accuracy: float
    minutes: int

    def verdict(self, measured: Mapping[str, "Reached"]) -> str:
        """Return which preset reached it within these minutes, or how far the best is below."""
        in_time = {name: one.within(self.minutes) for name, one in measured.items()}
        accuracy = {name: statistics.fmean(runs) for name, runs in in_time.items() if runs}
        if not accuracy:
            return "no preset is fast enough"
        best = max(accuracy, key=accuracy.__getitem__)
        short = self.accuracy - accuracy[best]
        spent = max(taken for _, taken in measured[best].runs if taken <= self.minutes)
        words = f"reached by `{best}`"
        if short > 0:
            left = f"{self.minutes - spent:.0f} minutes unspent"
            words = f"`{best}` is {short:.1f} points short, {left}"
        counted, all_runs = len(in_time[best]), len(measured[best].runs)
        return words if counted == all_runs else f"{words} in {counted} of {all_runs} runs"


@dataclass(frozen=True)
class Reached:
    """What a preset reached on CIFAR-10.

    Attributes:
        runs: Accuracy in percent and minutes of training, for each seed.
        threads: How many threads the runs had.
    """

    runs: Sequence[tuple[float, float]]
    threads: str = ""

    @classmethod
    def by(cls, content: Content) -> "Reached | None":
        """Return what Teacher's finished runs reached; None if there are none."""
        runs = _on_cifar10(content, TITLE)
        if not runs:
            return None
        minutes = [run["seconds"] / 60 for run in runs]
        used = threads_of(runs)
        threads = f"{used} thread" if used == "1" else f"{used} threads"
        return cls(list(zip(percents(runs, "oa"), minutes, strict=True)), threads)

    def within(self, minutes: float) -> list[float]:
        """Return the accuracy of the runs that took at most so many minutes."""
        return [accuracy for accuracy, taken in self.runs if taken <= minutes]

    @property
    def words(self) -> str:
        """Accuracy and minutes, as a cell of the table."""
        accuracy, minutes = zip(*self.runs, strict=True)
        return f"{spread(accuracy, '.1f')} % in {between(minutes, '.1f')}"


GOALS = (Goal(92, 20), Goal(95, 60), Goal(97.36, 180))

WROTE = "<!-- python -m benchmarks.performance wrote this from the files in benchmarks/results -->"

RESULTS_HEAD = f"""# What minutes and hours buy

{WROTE}

The paper spends 1300 epochs on a run. This page shows what the presets reach with far fewer. Every
number comes from a result file in benchmarks/results, with machine, commit and seeds. What a step
costs is on [a page of its own](cost.md), and so is [what was tried](laboratory.md).
"""

COST_HEAD = f"""# What a step costs

{WROTE}

Time and memory: of a training step beside the same mathematics written plainly, of whole runs, of
large folders and images. What the results of such runs are is on [another page](results.md).
"""

LABORATORY_HEAD = f"""# Laboratory notes

{WROTE}

What was tried to need fewer steps and cheaper ones, and what did not work. Numbers in tables come
from result files; trials without a table were one run each, and their files were not kept.
"""

STEP_LEARNED = """\
- On a CPU without half precision nearly all of a step is matrix products, so only fewer
  products make it much faster. Winograd's form of a 3x3 convolution with 4x4 tiles needs a quarter
  of them. Tiles of 2x2 need less than half, and their products took longer in every layer
  tried.
- Winograd's form is faster from about fifty channels on. Narrow layers, such as those of the preset
  `quick`, would spend more on the sums before and after than they save. Torch computes them.
- The sums before and after: a first version stored numbers product by product and summed sixteen
  channels at a time. Tile by tile, with one sum per loop over all channels, took mostly less than
  half the time.
- Only some tiles are computed at a time, into memory that is reused. Whole batches did not fit into
  the cache.
- The process keeps the memory that a step frees, where the C library allows it. Otherwise the
  memory goes back to the system and returns page by page, filled with zeros. That took more than a
  tenth of a narrow network's step. Only the commands of `onesided` do this. This benchmark does
  not, because it would help both sides.
- Outputs of the first layer's negative filters are negated outputs of the others, and its bias is
  added separately: for a bias, torch's backward pass runs a whole convolution.
- The rest of a wide network's step is mostly torch's product of small matrices, which runs slower
  than its convolutions here. A faster product would be the next gain.
- A step on 1,280 features and a head spent more time on its three views than on any other part:
  remainders and a gather of every feature, and a standard deviation along the first dimension,
  which torch computes slowly. Now only exchanged features are computed, and half of what is left
  is the drawing of random numbers.
- Prototypes that are normalised after every sample were a fixed point of all lengths at once, to
  avoid a loop over rows. The loop in numpy takes less time, at 256 rows as at 4,096.
- Not done, because every recorded result would change in its last bits for a small gain: torch's
  fused optimizer step, which rounds some numbers otherwise than the plain one.
"""

TABLE_2 = """\
Two claims of the paper's Table 2 did not hold on digits with the whole schedule and one seed
([claims](benchmarks/claims.md)): that votes which the threshold erases end with a recall near
zero, and that robust alignment without disambiguation stays near CE.

The reading was checked again, and kept. `prototype+threshold` votes first; where f of negative is
then at least the threshold, the stored s' becomes (0, 1), and the next vote starts from there. The
paper says that without PhantomGate a target is "resetting to [0, 1]", and the authors' code has
this as a disabled block. There is no memory under it.

A likely reason, which no run has shown yet: a row becomes positive after 69 votes in a row (1 -
0.99^69 > 1/2), and an erased one starts again. So none does where the network memorises U as
negative, because f of negative is then as high for hidden positives as for all others. The paper's
ResNet-18 does that: its CE finds almost no positive. The small network on 800 digits does it less,
and alignment at the weight 50 holds it back further. Then f of hidden positives stays below the
threshold, which follows the mean confidence, pass after pass, and their votes add up. The same
explains the second claim: what is not memorised is found without any votes. CIFAR-10 from scratch
or features of a large network would decide; the logged share `gated` of a run with
`prototype+threshold` shows it.
"""

BUDGET_WORDS = f"""[Teacher](methods.md#teacher), a method of ours, runs from scratch as
`onesided fit --data NAME --method teacher --preset quick` runs it (or `standard`, or `evening`),
without a class prior and without negatives. What the default does, a search on features of a
pretrained network, is on [its own page](benchmarks/cifar.md). `night` is a preset in a file of its
own, `{STUDIES["night"].flags}`. The goals were set before the runs: the paper's accuracy, and two
steps towards it.
"""

LIMITS = """\
What limits it: `Supervised` sees every true class, so it is the upper bound for the same
network and number of steps. The points between Teacher and `Supervised` are lost because the
classes of U are unknown. The points between `Supervised` and 100 % are lost because features have
not formed yet.
"""

CHOICE = """\
The values of the presets, the network and the switches of Teacher were chosen on
4,000 training images of CIFAR-10 that are neither in P (the labelled positives) nor in U (the
unlabelled pool), with one seed each. The start of votes was chosen on held-out P and U. A vote is
the class that the method assigns to an unlabelled image, once per pass. The network that votes is
the setting `judge`.

What helped and what did not, roughly the largest gains first. Switches and settings are measured
again [below](#which-switches-matter), on such images and with seeds:

- **Views.** The published views show a window of a fifth to the whole of an image. In a few epochs
  even a classifier that sees every true class learns little from them. The gentle views shift an
  image by up to an eighth and mirror it; the strong view also changes colours and hides a patch.
  This was the largest gain, for every method. It does not hold where a few positives are repeated
  hundreds of times: on a scene with twenty marked buildings the network memorised them, and the
  published views ranked better. So the published views stay where there are many passes.
- **The first layer** is computed from patches of training images (their principal components,
  scaled to unit variance) and not trained. It gained more than doubling the width, and costs
  nothing.
- **Max-pooling** instead of strides, at the same cost.
- **Positives in every batch.** At their natural share, a batch of 128 holds three labelled
  positives, and the mean over three is mostly noise. A fixed quarter of the batch solved that. Half
  the batch ranked better still, also with the same number of steps and so fewer passes over U. A
  sixteenth, once votes had started, was clearly worse. The labels of P are known; votes only repeat
  what the network predicts. In long runs it is the other way round, see below.
- **Votes.** Before features had formed, prototypes voted worse than the classifier itself, and the
  ranking was worse than without votes. Votes of the classifier (of the network named by `judge`)
  made it better on all 40,000 images. With the computed first layer the three are close on a part
  of the images: see the switches below.
- **The share of votes.** A network that trains on its own votes calls more and more positive. So
  the share of positives at the start of votes is kept: the threshold moves, the share does not.
- **When votes start.** After three passes. A wide network that kept separating P from U called
  fewer and fewer of the held-out positives positive: it had memorised the labelled ones.
- **Weights.** With equal weights for P and U, as in the paper, the positives found in U outweigh
  the negatives. Equal weights for the classes prevent that.
- **Class pairs** (the paper's NoiSNCL), switched on after a short warm-up, made the ranking worse
  in every trial, also when only confident pairs counted. Pairs of an image with itself helped a
  little. On frozen ImageNet features it is the other way round: there class pairs were the largest
  gain.
- **The target network**, an average of weights, makes the predictions. That removed jumps of many
  points between epochs.
- **Learning rate.** A large rate that rises and falls to zero step by step needs a small weight of
  the alignment. The paper's weight of 50 needs a rate fifty times smaller.
- **Half a batch of positives in a long run** was an attempt at the third goal: twice the learning
  rate, a network a quarter wider than that of `evening`, and 28 passes. Two runs on all 40,000
  images were both stopped. With votes after three passes, the share at the start was too low: each
  positive had been seen a hundred times, and fewer and fewer of the held-out ones were called
  positive. With votes after one pass, the share of U stayed at two fifths, but the network called
  less and less of the held-out U positive and found fewer of the held-out positives. After 17
  passes it also ranked training images outside P and U worse than `evening` does at its end. The
  threshold had moved far. Memorised positives fill most of the weight of the positive class and
  have no gradient left, so the remaining samples pull towards negative. Decisions at the moved
  threshold would have been right more often than at 0.5.
- **How often a positive is seen** seems to explain these results. Fewer than ten times in a run is
  too few, seventy to three hundred times worked well, a thousand times is too many, whatever the
  share of a batch. So `night`, [measured here](results.md#what-up-to-three-hours-buy), draws half
  as many positives per batch as `evening`, for twice the passes, and votes start when each
  positive was seen as often as there. A first run, in which votes started after half as many, was
  stopped: the share it kept was too large. The second run ranked as well as `evening` and decided
  worse. It had memorised less of P, so it called more of U positive when votes started, and kept
  that share. It finds nearly all positives, and too many others. On training images outside P and
  U, another threshold would have been better, but would not have reached the third goal either. So
  two things limit it: the share is only as good as the classifier of the first passes, and more
  passes hardly improve the ranking.
- **Passes and width.** On a part of the images, with half of every batch positive, twice the passes
  gained about twice as much as twice the width.
- **No gain, or too little to be sure**: votes weighted by confidence, soft instead of hard votes,
  the gate beside the votes of `judge`, orthogonalised steps (Muon), four times the weight of the
  alignment, a term that keeps calling all of U negative beside the votes, scores averaged over an
  image and its mirror image. With half a batch of positives and twice the rate: mixing pairs of
  images and their targets (mixup) once votes have started, a third layer with a shortcut in each
  stage, and a second network trained from scratch on the votes of a first, compared with as many
  passes of one.
- **Several networks.** Networks trained separately fail on the same images, above all on aeroplanes
  and birds: the average of four was hardly better than the best of them. What is missing is
  knowledge of the classes, and votes do not add any.
- **Worse**: strong views in their original colours; windows of half to the whole of an image
  instead of shifts; images of 24 pixels in the first half of a run (the ranking was still behind an
  epoch later, when the trial was stopped); a third stage without early halving, at the same cost
  per step (one epoch only), and also as wide as `evening` at the same cost per run, so with half as
  many passes: a point below on a part of the images.
- **More passes are not always better.** Digits, passed over two hundred times by `standard`, were
  below `quick` on all three seeds (it finds fewer of the positives). The longer CE trains, the more
  of the unlabelled it calls negative.
- **Self-supervised pretraining**: as many passes again before training, with pairs of an image with
  itself only. Better than training alone, and worse than training twice as long, which costs the
  same. With the published views the gain was smaller than with the gentle ones.
"""


PLUGGED = """\
CE, uPU and nnPU alone and with NcPU's robust alignment at the paper's weight of 50, in 60 epochs of
digits and 10 of a part of CIFAR-10, at two and five times the paper's rate. The script that
measured this is gone: `onesided bench run ncpu/table3` asks the question at the paper's own rate,
and `ncpu/schedule` at compressed schedules ([claims](benchmarks/claims.md))."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages."""
    if argv or (argv is None and sys.argv[1:]):
        print("python -m benchmarks.performance takes no options.", file=sys.stderr)
        return 2
    for name, page in PAGES.items():
        write_text(REPOSITORY / "docs" / name, page())
        print(f"Wrote docs/{name}")
    return 0


def results() -> str:
    """Return the page on what each preset reaches: one table first."""
    parts = [
        RESULTS_HEAD,
        _part("The goals", "budget", _goals, None),
        _part("What minutes buy", "budget", _grid, "benchmarks/budget.md"),
        _part("What an hour buys", "standard", _grid, "benchmarks/standard.md"),
        _part("What an evening buys", "evening", _grid, "benchmarks/evening.md"),
        _part("What up to three hours buy", "night", _grid, "benchmarks/night.md"),
        _part("With a pretrained network", "pretrained", _grid, "benchmarks/pretrained.md"),
    ]
    return "\n".join(parts)


def cost() -> str:
    """Return the page on time and memory."""
    parts = [
        COST_HEAD,
        _part("A training step", "step", _step, "benchmarks/step.md"),
        _part("Memory of a run on CIFAR-10", "memory", memory, None),
        _part("Large folders", "folders", _folders, None),
        _part("Buildings cropped from a large image", "mapping", _mapping, None),
    ]
    return "\n".join(parts)


def laboratory() -> str:
    """Return the page on what was tried."""
    parts = [
        LABORATORY_HEAD,
        f"## Fewer steps\n\n{CHOICE}",
        _part("Which switches matter", "ablation", _switches, "benchmarks/ablation.md"),
        _part("Alignment as a plug-in, in minutes", "plugins", _plugged, None),
        f"## Claims of Table 2 that do not hold on digits\n\n{TABLE_2}",
        f"## NcPU on frozen features\n\n{frozen_features()}",
        f"## Cheaper steps\n\n{STEP_LEARNED}",
    ]
    return "\n".join(parts)


PAGES = {"results.md": results, "cost.md": cost, "laboratory.md": laboratory}


def _part(title: str, name: str, words: Any, more: str | None) -> str:  # noqa: ANN401
    content = _measured(name)
    if content is None:
        return f"## {title}\n\nNot measured yet.\n"
    link = f"\nIn full: [{more}]({more}).\n" if more else ""
    return f"## {title}\n\n{words(content)}\n{link}"


def _measured(name: str) -> Content | None:
    path = REPOSITORY / "benchmarks" / "results" / f"{name}.json"
    return read_content(path) if path.exists() else None


def _step(content: Content) -> str:
    return step.tables(content).replace("\n## ", "\n### ")


def _goals(content: Content) -> str:
    by_preset = {preset: _measured(study.name) for preset, study in STUDIES.items()}
    known = {preset: one for preset, one in by_preset.items() if one is not None}
    return "\n".join([goals(known), BUDGET_WORDS, LIMITS, upper_bounds(known)])


def _grid(content: Content) -> str:
    """Return the tables of the data sets on which anything has finished."""
    paper = paper_figures(content["name"])
    names = dict.fromkeys(run["data"] for run in finished(content["runs"]))
    return "\n\n".join(section(content, name, paper).replace("## ", "### ", 1) for name in names)


def _switches(content: Content) -> str:
    words = f"Each changed alone; figures are of {evaluated_on(content)}."
    return f"{words}\n\n{_grid(content)}\n\n{what_matters(content)}"


def _plugged(content: Content) -> str:
    return f"{PLUGGED}\n\n{_grid(content)}"


def what_matters(content: Content) -> str:
    """Return which rows differ by a point of accuracy or more from the first, and which do not."""
    labels = dict.fromkeys(run["label"] for run in finished(content["runs"]))
    accuracy = {label: statistics.fmean(_by_seed(content, label).values()) for label in labels}
    base, *others = accuracy
    change = {label: accuracy[label] - accuracy[base] for label in others}
    large = [f"{label} ({by:+.1f})" for label, by in change.items() if abs(by) >= 1]
    small = [label for label, by in change.items() if abs(by) < 1]
    return (
        f"A point of accuracy or more from `{base}`: {', '.join(large) or 'none'}. Less than a "
        f"point, too little for so few seeds: {', '.join(small) or 'none'}."
    )


def goals(presets: Mapping[str, Content]) -> str:
    """Return the goals on CIFAR-10 beside what the presets reached."""
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


def upper_bounds(presets: Mapping[str, Content]) -> str:
    """Return how far Teacher is below a network that sees every true class, for each preset."""
    rows = []
    for name, content in presets.items():
        found, most = (_by_seed(content, label) for label in (TITLE, "Supervised"))
        seeds = sorted(found.keys() & most.keys())
        if seeds:
            pairs = [(found[seed], most[seed], most[seed] - found[seed]) for seed in seeds]
            columns = zip(*pairs, strict=True)
            rows.append((f"`{name}`", str(len(seeds)), *(spread(one, ".1f") for one in columns)))
    if not rows:
        return "On CIFAR-10 no seed has finished both for Teacher and for `Supervised`.\n"
    return markdown(("CIFAR-10", "seeds", TITLE, "Supervised", "points between"), rows) + "\n"


def _by_seed(content: Content, label: str) -> dict[int, float]:
    runs = _on_cifar10(content, label)
    return {run["seed"]: one for run, one in zip(runs, percents(runs, "oa"), strict=True)}


def _on_cifar10(content: Content, label: str) -> list[Record]:
    asked = ("cifar10", label)
    return [run for run in finished(content["runs"]) if (run["data"], run["label"]) == asked]


def memory(content: Content) -> str:
    """Return the peak memory of every preset, compared with the bound."""
    bound = content["bound_mb"]
    measured = {row["preset"]: within(row["peak_mb"], bound) for row in content["rows"]}
    rows = [(f"`{preset}`", measured.get(preset, "not measured")) for preset in PRESETS]
    words = f"Program, 60,000 images and training together; the bound is {bound} MB."
    return f"{words}\n\n{markdown(('preset', 'peak memory'), rows)}\n\n{_measured_on(content)}"


def within(peak: float, bound: float) -> str:
    """Return a peak of memory, and whether it is above the bound."""
    return f"{peak:.0f} MB{'' if peak <= bound else ': too much'}"


def _folders(content: Content) -> str:
    bound = content.get("bound_mb", folders.BOUND_MB)  # early files have none
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
        "decoded into a file and not into memory. `fit` trains CE for one epoch; its time includes "
        f"decoding. The bound is {bound} MB."
    )
    table = markdown(("images", "peak memory", "files per second", "command"), rows)
    return f"{words}\n\n{table}\n\n{growth(content)}\n\n{_measured_on(content)}"


def growth(content: Content) -> str:
    """Return what one more image costs in memory, and the size of its pixels."""
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
    return f"One more image takes {' and '.join(costs)}; its pixels are {pixels:.0f} KB."


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
    words = f"A tiled GeoTIFF of {side} x {side} pixels, footprints in another coordinate system."
    table = markdown(("buildings", "crops per second", "peak memory"), rows)
    return f"{words}\n\n{table}\n\n{_measured_on(content)}"


def _measured_on(content: Content) -> str:
    place = content["origin"]
    return f"Measured on {machine_words(place['machine'])}, at commit {commit_words(place)}."


if __name__ == "__main__":
    sys.exit(main())
