"""The story of speed and small budgets, told from the result files.

    python -m benchmarks.performance     write docs/performance.md

Measures nothing itself: what a result file does not hold, the page says is not measured.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import step_page
from benchmarks.budget import STUDIES
from benchmarks.command import REPOSITORY, paper_figures
from benchmarks.records import Record
from benchmarks.tables import finished, markdown, percents, section, spread
from onesided.run.folder import RunFolder, read_json

Content = Mapping[str, Any]
PAGE = "performance.md"


@dataclass(frozen=True)
class Goal:
    """What was aimed at on CIFAR-10 before anything was measured."""

    accuracy: float
    minutes: int

    def verdict(self, measured: Mapping[str, "Reached"]) -> str:
        """Return whether a preset that took no longer reached it, and which."""
        # Goals are whole minutes, and so is what is held against them.
        in_time = {n: one for n, one in measured.items() if round(one.minutes) <= self.minutes}
        if not in_time:
            return "no preset took so little"
        name, best = max(in_time.items(), key=lambda item: item[1].accuracy)
        short = self.accuracy - best.accuracy
        return f"`{name}` is {short:.1f} points short" if short > 0 else f"reached by `{name}`"


@dataclass(frozen=True)
class Reached:
    """What a preset reached on CIFAR-10: mean accuracy in percent, mean minutes, and both told.

    Attributes:
        accuracy: In percent, the mean of the seeds.
        minutes: Of training, the mean of the seeds.
        words: Both, as the table says them.
        threads: How many cores took part, as the runs noted it.
    """

    accuracy: float
    minutes: float
    words: str
    threads: str

    @classmethod
    def by(cls, content: Content) -> "Reached | None":
        """Return what NcPU's finished runs reached; None where there are none."""
        runs = _on_cifar10(content, "NcPU")
        if not runs:
            return None
        accuracy = percents(runs, "oa")
        minutes = [run["seconds"] / 60 for run in runs]
        words = f"{spread(accuracy, '.1f')} % in {spread(minutes, '.1f')}"
        used = sorted({origin["threads"] for run in runs for origin in run["origins"]})
        threads = " or ".join(map(str, used)) + (" thread" if used == [1] else " threads")
        return cls(sum(accuracy) / len(runs), sum(minutes) / len(runs), words, threads)


GOALS = (Goal(92, 20), Goal(95, 60), Goal(97.36, 180))

HEAD = """# Speed, and what small budgets buy

<!-- python -m benchmarks.performance wrote this from the files in benchmarks/results -->

The paper spends 1300 epochs on a run. This page says what a step costs here, how few steps
are useful, what was tried to need fewer, and what did not work. Every number comes from a
result file, with its machine, commit and seeds.
"""

BUDGET_WORDS = """NcPU runs as `onesided fit --data NAME --preset quick` runs it (or `standard`, or
`evening`), without a class prior and without negatives. The goals were set before: they are the
paper's accuracy, and two steps towards it.
"""

LIMITS = """What limits it: a thousand labelled positives say what the class looks like only to
features that have formed, and features form with steps. `Supervised`, which sees every true
class, is the ceiling of the same number of steps; on features that have formed already (the
section on pretrained networks) the same method loses far less to it.
"""

CHOICE = """The preset's values, the network and the switches of the variant `budget` were chosen on
4,000 training images of CIFAR-10 that are neither in P nor in U, one seed each. What was learned
there, the largest gains first:

- **Views.** The published views show a window of a fifth to the whole of an image; in a few epochs
  even a classifier that sees every true class learns little through them. Images that are only
  moved by an eighth and mirrored gained most of all, for every method. Not so where a few
  positives are passed over hundreds of times: on a scene with twenty marked buildings they were
  learned by heart, and the published views ranked better. So they stay where passes are many.
- **The first layer** is computed from patches of training images (their principal patterns, scaled
  to unit variance) and not learned. It gained more than twice the width did, and costs nothing.
- **Halving by the largest of four neighbours** instead of by strides: a point at the same cost.
- **Positives in every batch.** At its natural share, a batch of 128 holds three labelled positives,
  and the mean over three is mostly noise. A fixed quarter ended that. Half the batch ranked a
  little better for half as many steps again; a sixteenth, once votes had begun, clearly worse. The
  labelled positives are what is known, and votes only repeat what is believed.
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
- A little, and not taken up yet: mixing pairs of images and their targets (mixup) once votes have
  begun; a second network that starts anew from the votes of a first.
- No gain, or too little to tell: votes that weigh as much as the judge is sure, soft instead of
  hard votes, the gate beside the judge's votes, twice the rate, orthogonalised steps (Muon), four
  times the weight of the alignment, a term that goes on calling all of U negative beside the votes,
  scores averaged over an image and its mirror image.
- Worse: images of 24 pixels in the first half of a run, which saves a third of its time (the
  ranking was still behind an epoch later, where the trial was stopped); a third stage and no early
  halving, at the same cost per step (one epoch seen).
- Not tried: self-supervised starts.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    if argv or (argv is None and sys.argv[1:]):
        print("python -m benchmarks.performance takes no options.", file=sys.stderr)
        return 2
    RunFolder(REPOSITORY / "docs", "").write_text(PAGE, page())
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
        _part("Which switches matter", "ablation", _grid, "benchmarks/ablation.md"),
        _part("With a pretrained network", "pretrained", _grid, "benchmarks/pretrained.md"),
        _part("Memory of a run on CIFAR-10", "memory", _memory, None),
        _part("Folders larger than memory", "folders", _folders, None),
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
    return step_page.tables(content).replace("\n## ", "\n### ")


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


def _memory(content: Content) -> str:
    rows = [(f"`{row['preset']}`", f"{row['peak_mb']:.0f} MB") for row in content["rows"]]
    return markdown(("preset", "peak memory"), rows)


def _folders(content: Content) -> str:
    rows = [
        (
            str(row["images"]),
            f"{row[kind]['peak_mb']:.0f} MB",
            f"{row[kind]['files_per_second']:.0f}",
            kind,
        )
        for row in content["rows"]
        for kind in ("fit", "rank")
    ]
    return markdown(("images", "peak memory", "files per second", "command"), rows)


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
    return f"{words}\n\n" + markdown(("buildings", "crops per second", "peak memory"), rows)


if __name__ == "__main__":
    sys.exit(main())
