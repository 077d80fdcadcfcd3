"""What was chosen for this data, one line each, printed before training starts."""

from collections.abc import Sequence

from onesided.jobs.words import count
from onesided.methods.auto import AutoConfig
from onesided.run.config import RunConfig
from onesided.run.problem import Problem

OF_EVERY_RUN = {"device", "precision", "threads", "save_minutes", "tensorboard"}
"""Settings of training that say where a run takes place, not how a network learns."""


def choices(problem: Problem, preset: str | None) -> list[str]:
    """Return what a run will do, so that a person can stop it in time."""
    config, split = problem.config, problem.split
    labelled = int(split.train.labelled.sum())
    held_out = "" if split.held_out is None else f", {len(split.held_out)} held out"
    rows = len(split.train)
    return [
        f"Data: {count(labelled, 'positive')}, {rows - labelled} unlabelled{held_out}.",
        _size_line(config, split.sample_shape, raw=bool(problem.data.columns)),
        *_text_lines(problem),
        *method_lines(config),
        _time_line(config, preset),
        *_unused_lines(config),
        _backbone_line(config, split.sample_shape),
        *_prior_lines(config),
        *_negative_lines(problem),
        *_weight_lines(problem),
    ]


def _time_line(config: RunConfig, preset: str | None) -> str:
    chosen, train = f"Preset: {preset or 'none, all settings are given'}", config.train
    if isinstance(config.method, AutoConfig):
        minutes = config.method.minutes
        time = count(round(60 * minutes), "second")
        if minutes >= 1:
            time = "1 minute" if minutes == 1 else f"{minutes:g} minutes"
        return f"{chosen}; candidates that take {time} together on two idle cores."
    return (
        f"{chosen}; {count(train.epochs, 'epoch')} of batches of {train.batch_size}, learning rate "
        f"{train.learning_rate:g}."
    )


def _unused_lines(config: RunConfig) -> list[str]:
    """Return which settings have no effect unless the search comes to networks."""
    asked = sorted(config.train.model_dump(exclude_defaults=True).keys() - OF_EVERY_RUN)
    if not isinstance(config.method, AutoConfig) or not asked:
        return []
    names = ", ".join(f"train.{name}" for name in asked)
    return [f"Of the candidates only networks train in epochs; others take no notice of {names}."]


def method_lines(config: RunConfig) -> list[str]:
    """Return which method runs, in plain words, and what this number of epochs means for it."""
    card, notice = config.method.card, config.method.notice(config.train.epochs)
    more = f"onesided methods {config.method_name} tells more"
    return [f"Method: {card.title} ({more}). {card.summary}", *([notice] if notice else [])]


def _prior_lines(config: RunConfig) -> list[str]:
    title, prior = config.method.card.title, config.prior
    if prior == "auto" or config.method.needs.prior:
        return []
    if not isinstance(prior, float):
        return [f"{title} needs no prior, so {prior} is not looked for; a number would be used."]
    cut = "threshold and " if config.threshold.name == "prior" else ""
    return [f"{title} needs no prior; {prior} serves the {cut}estimates only."]


def _backbone_line(config: RunConfig, shape: Sequence[int]) -> str:
    if config.backbone.name != "auto":
        return f"Backbone: {config.backbone.in_words(shape)}."
    name, kind = ("small", "images") if len(shape) == 3 else ("mlp", "vectors")
    chosen = config.backbone.model_copy(update={"name": name})
    if isinstance(config.method, AutoConfig):
        return (
            f"Backbone: {chosen.in_words(shape)}, where time allows networks among the candidates."
        )
    return f"Backbone: {chosen.in_words(shape)}, chosen for {kind}."


def _size_line(config: RunConfig, shape: Sequence[int], *, raw: bool) -> str:
    if raw:
        return f"Samples: rows of {count(shape[0], 'column')}."
    if len(shape) == 1:
        return f"Samples: vectors of {count(shape[0], 'number')}."
    channels, height, width = shape
    given = getattr(config.data, "image_size", None)
    origin = {None: "", 0: ", chosen from the data"}.get(given, ", as given")
    return f"Image size: {height}x{width} with {count(channels, 'channel')}{origin}."


def _text_lines(problem: Problem) -> list[str]:
    """Return how texts become numbers."""
    if not any(column.kind == "text" for column in problem.data.columns):
        return []
    encoder = getattr(problem.config.data, "text_encoder", None)
    if encoder:
        return [f"Texts: vectors of {encoder}."]
    return [
        "Texts: counts of words (TF-IDF) and their main directions (SVD), learnt from this table; "
        "--text-encoder takes a pretrained encoder."
    ]


def _negative_lines(problem: Problem) -> list[str]:
    known, method, training = problem.data.known_negatives, problem.config.method, problem.training
    if known is None:
        return []
    if not method.uses_negatives:
        return [
            f"Known negatives: {method.card.title} does not learn from them; all {len(known)} are "
            "used in evaluation only."
        ]
    if isinstance(method, AutoConfig):
        return [
            f"Known negatives: {len(known.train)} taught to the candidates that can use them, each "
            f"scored by models that did not see it; {len(known.held_out)} held out."
        ]
    mask = training.train.negative
    parts = [f"{0 if mask is None else int(mask.sum())} taught as sure negatives"]
    if problem.split.clean is None and training.clean is not None:
        each = len(training.clean) // 2
        parts.append(f"{each} beside {count(each, 'positive')} as clean set")
    return [f"Known negatives: {', '.join(parts)}, {len(known.held_out)} held out."]


def _weight_lines(problem: Problem) -> list[str]:
    if problem.split.train.weights is None:
        return []
    return ["Weights: samples count by them in training; figures count every sample once."]
