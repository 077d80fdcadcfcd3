"""Names and sentences of figures and assumptions, in the order in which they are shown.

The terminal, the report, the map, JSON and the comparison of methods all read them here, so a
new figure is its mathematics and one entry in this file.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["percent", "number", "count"]
Place = Literal["run", "comparison", "map", "truth"]
Bias = Literal["high", "low"]
"""On which side of the truth a figure may lie, beyond what its interval says."""


@dataclass(frozen=True)
class Entry:
    """How a figure is shown.

    Attributes:
        sentence: What it means; {value} is replaced.
        places: Where it is shown: with a run, in a comparison of methods, on a map, and among
            the figures that true labels give.
        on_map: Its title on a map, where that differs.
        truth: Name of the figure that true labels give for it, if they do.
    """

    label: str
    sentence: str = ""
    unit: Unit = "percent"
    places: tuple[Place, ...] = ("run", "comparison", "map")
    on_map: str = ""
    truth: str = ""


FIGURES: dict[str, Entry] = {
    "oa": Entry("Accuracy", "The model is right on {value} of all items.", places=("truth",)),
    "recall": Entry(
        "Recall",
        "The model finds {value} of the known positives that it was not trained on.",
        places=("run", "comparison", "map", "truth"),
        on_map="recall on held-out marked buildings",
        truth="recall",
    ),
    "precision": Entry(
        "Precision",
        "Of the items called positive, {value} are positive.",
        places=("run", "map", "truth"),
        on_map="precision",
        truth="precision",
    ),
    "f1": Entry(
        "F1",
        "Recall and precision in one number: {value}.",
        places=("run", "comparison", "map", "truth"),
        truth="f1",
    ),
    "share_positive": Entry(
        "Share of unlabelled items called positive",
        "The model calls {value} of the unlabelled items positive.",
        on_map="unmarked called damaged, share",
        truth="share_positive",
    ),
    "prior": Entry(
        "Share of unlabelled items that are positive (prior)",
        "Of the unlabelled items, {value} are really positive, whatever the model calls them.",
        places=("run", "map"),
        on_map="damaged among the unmarked, share",
        truth="prior",
    ),
    "false_alarms": Entry(
        "Known negatives called positive",
        "Of the items known to be negative, the model wrongly calls {value} positive.",
        places=("run",),
    ),
    "proxy_auc": Entry(
        "Proxy AUC",
        "A known positive scores higher than an unlabelled item in {value} of all pairs. 50% is "
        "chance; positives among the unlabelled items keep it below 100%.",
        on_map="proxy AUC",
    ),
    "auc": Entry(
        "AUC",
        "A positive scores higher than a negative in {value} of all pairs. 50% is chance.",
        places=("run", "map", "truth"),
        truth="auc",
    ),
    "proxy_accuracy": Entry(
        "Accuracy", "The model is right on {value} of all items.", places=("run",), truth="oa"
    ),
    "lee_liu": Entry(
        "Lee-Liu criterion",
        "Recall squared over the share called positive: {value}. For comparing models on the same "
        "data, without a prior; higher is better.",
        unit="number",
        places=("run", "comparison"),
    ),
    "buildings": Entry("buildings", unit="count", places=("map",)),
    "marked": Entry("marked", unit="count", places=("map",)),
    "marked_held_out": Entry("marked, held out", unit="count", places=("map",)),
    "rejected": Entry("called undamaged by reviewers", unit="count", places=("map",)),
    "called_positive": Entry("unmarked, called damaged", unit="count", places=("map",)),
    "called_negative": Entry("unmarked, called undamaged", unit="count", places=("map",)),
    "threshold": Entry("threshold", unit="number", places=("map",)),
    "skipped": Entry("skipped", unit="count", places=("map",)),
    "positive_all": Entry("damaged among all, share", places=("map",)),
    "known_class": Entry("buildings of known class", unit="count", places=("map",)),
}
"""Name to words, in the order in which figures are shown."""


@dataclass(frozen=True)
class Assumption:
    """What must be true for a figure to mean anything.

    Attributes:
        label: The same in a few words.
        text: A sentence.
        prior_bias: For an origin of a prior: on which side of the truth it may lie.
    """

    label: str
    text: str
    prior_bias: Bias | None = None


OWN_SCORES = "own_scores"
"""Origin of a prior that was estimated on the scores whose precision it gives."""
OWN_SCORES_TWICE = "own_scores_twice"
"""The same by two estimators, in runs of earlier versions."""
OWN_SCORES_MEDIAN = "own_scores_median"
"""The same by three estimators, which err in different directions."""
FROM_OWN_SCORES = (OWN_SCORES, OWN_SCORES_TWICE, OWN_SCORES_MEDIAN)

ASSUMPTIONS: dict[str, Assumption] = {
    "scar": Assumption(
        "typical positives", "The labelled positives are typical of all positives (SCAR)."
    ),
    "easy_first": Assumption(
        "review found easy ones",
        "A review took positives out of the pool, the easy ones first. Those that are left are "
        "harder to find than P, so recall and AUC of what is left are lower than P says; an audit "
        "tells by how much.",
    ),
    "held_out": Assumption(
        "items not trained on",
        "The items counted are a random part of the data, or all of it, and were scored by a model "
        "that was not trained on them.",
    ),
    "given": Assumption(
        "given prior", "The given prior is exact: an error in it is not part of the interval."
    ),
    "truth": Assumption(
        "true prior", "The prior is the true one, an oracle that only experiments have."
    ),
    "estimated": Assumption(
        "estimated prior",
        "The prior lies in its interval and was estimated independently of these scores.",
    ),
    **{
        name: Assumption(
            f"prior by {name}",
            f"The prior lies in its interval; {name} estimated it independently of these scores.",
        )
        for name in ("KM1", "KM2")
    },
    OWN_SCORES: Assumption(
        "prior from these scores",
        "The prior was estimated from the highest held-out scores of this model (by BBE), as if "
        "only positives had them. If negatives have them too, it is too high; its interval reaches "
        "down to where it may then be, if scores of positives and negatives are spread alike.",
        prior_bias="high",
    ),
    OWN_SCORES_TWICE: Assumption(
        "prior from these scores",
        "The prior was estimated from this model's own scores in two ways, and is the geometric "
        "mean of both: by the highest scores (BBE), and by the share that Elkan and Noto's rule "
        "calls positive. Where positives and negatives look alike, both are too high; the interval "
        "reaches down to where it may then be, if scores of both classes are spread alike.",
        prior_bias="high",
    ),
    OWN_SCORES_MEDIAN: Assumption(
        "prior from these scores",
        "The prior was estimated from this model's own scores in three ways and is the middle one: "
        "by the highest scores (BBE), by the share that Elkan and Noto's rule calls positive, by "
        "two bell curves. Where positives and negatives look alike, it is too high; the interval "
        "reaches down to where it may then be, if scores of both classes are spread alike.",
        prior_bias="high",
    ),
    "like_unlabelled": Assumption(
        "items like the unlabelled", "Accuracy is about items like the unlabelled ones."
    ),
    "like_all": Assumption(
        "items like all of the data",
        "Accuracy is about labelled and unlabelled items together, mixed as in the whole set.",
    ),
    "same_rate": Assumption(
        "all held out at one rate",
        "Accuracy is about labelled and unlabelled items together, held out at the same rate.",
    ),
    "not_negatives": Assumption(
        "not against negatives",
        "Proxy AUC compares positives with unlabelled items, not with negatives, so even a perfect "
        "model stays below 100%.",
    ),
    "no_share": Assumption(
        "only for comparing",
        "The Lee-Liu criterion compares models on the same data. It is no share and may exceed 1.",
    ),
    "typical_negatives": Assumption(
        "typical negatives", "The known negatives are like those among the unlabelled items."
    ),
    "marked_positive": Assumption("marked are damaged", "Every marked building is damaged."),
    "listed_held_out": Assumption(
        "listed, held out", "Listed buildings in neighbourhoods that were not trained on."
    ),
}
"""Id to words."""


def entry(name: str) -> Entry:
    """Return how a figure is put into words; one that is not registered goes by its name."""
    words = name.replace("_", " ")
    return FIGURES.get(name) or Entry(words[:1].upper() + words[1:])


def shown(place: Place) -> list[str]:
    """Return the names of figures that are shown in a place, in order."""
    return [name for name, each in FIGURES.items() if place in each.places]


def assumption(key: str) -> Assumption:
    """Return an assumption by its id; one that is not registered is its own sentence."""
    return ASSUMPTIONS.get(key) or Assumption(key, key)
