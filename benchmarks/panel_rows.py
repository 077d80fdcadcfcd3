"""The rows of the panel: what a person would try first, and what this library offers.

Every row gets the same samples and the same labels of a problem and returns scores of P, of U and
of the test part, with its own decisions. A row that takes U for negatives (scikit-learn's and
pulearn's) scores each item by a model that was not trained on it, or every item of U would have
been taught to be negative.

The cut of Elkan and Noto (KDD 2008). Let s = 1 for P and g(x) = P(s = 1 | x) in P and U together.

    single-set     one sample of the population, of whose positives a share c is labelled. Then
                   g(x) = c P(y = 1 | x), and c = E[g(x) | P] where positives are surely positive.
    case-control   n_p positives and n_u of the population with prior pi. P and U together are a
                   single-set sample of another population, with c = n_p / (n_p + pi n_u).

So in both P(y = 1 | x) = g(x) / c among *all* items, and the published cut is g(x) / c > 1/2. But
what is called are the items of U, from which the labelled positives have been taken out. For them

    P(y = 1 | x, s = 0) = (1 - c) / c * g(x) / (1 - g(x))                   (their Equation 3)

in both, which is below g / c, the more so the larger c is: the published cut calls too many of U
where P is large beside the positives in U. Where positives are not surely positive the mean over P
is smaller than c, and both cuts call more. The rows here use the published cut, because that is
what people do; benchmarks.threshold_rules compares both.

The forest is scored out of bag rather than out of fold: each item by the trees that did not see it.
That is the same guarantee at a sixth of the cost.
"""

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks.panel_data import Form, Problem
from onesided import PUClassifier
from onesided.core.errors import ConfigError, DataError
from onesided.methods import METHODS
from onesided.priors import bbe

FOLDS = 5
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
TREES = 500
Fitted = Callable[[Any], np.ndarray]
"""Scores of samples by a trained model."""
Fit = Callable[[Any, np.ndarray], Fitted]


@dataclass(frozen=True)
class Scored:
    """What a row says of one problem.

    Attributes:
        positive: Scores of P, by models that were not trained on them; None if there are none.
        pool: Scores of U.
        called: Which items of U are called positive.
        test: Scores of the test part.
        test_called: Which of its items are called positive.
        chosen: What the row chose by itself.
        unscaled: Scores of P and U as the model gave them, for the study of threshold rules.
    """

    positive: np.ndarray | None
    pool: np.ndarray
    called: np.ndarray
    test: np.ndarray | None
    test_called: np.ndarray | None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    unscaled: np.ndarray | None = None


@dataclass(frozen=True)
class Row:
    """A row: its title, what it does in a sentence, its settings, and what it takes."""

    title: str
    words: str
    settings: Mapping[str, Any]
    run: Callable[[Problem, int], Scored]


def elkan_noto(positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return which scores g the published cut calls: g / c > 1/2, c the mean over P."""
    called: np.ndarray = scores > positive.mean() / 2
    return called


def elkan_noto_in_pool(positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return which items of U are called: (1 - c) / c * g / (1 - g) > 1/2."""
    c = positive.mean()
    called: np.ndarray = 2 * (1 - c) * scores > c * (1 - scores)
    return called


# P against U, out of fold


def out_of_fold(samples: Any, labels: np.ndarray, seed: int, fit: Fit) -> np.ndarray:  # noqa: ANN401
    """Return the score of each sample by the model of the folds that do not hold it."""
    scores = np.empty(len(labels))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for train, held_out in folds.split(np.zeros(len(labels)), labels):
        scores[held_out] = fit(samples[train], labels[train])(samples[held_out])
    return scores


def numeric(problem: Problem) -> tuple[Any, Any]:
    """Return samples and test part as numbers: pixels of images in a line, counts of words."""
    if problem.form == "texts":
        # All words: scikit-learn's models take sparse matrices.
        counter = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
        samples = counter.fit_transform(problem.samples)
        return samples, None if problem.test is None else counter.transform(problem.test)
    flat = [
        None if part is None else part.reshape(len(part), -1).astype(np.float32)
        for part in (problem.samples, problem.test)
    ]
    return flat[0], flat[1]


def _scaler(form: Form) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Return a scaler; TF-IDF has a scale of its own, which it keeps."""
    return FunctionTransformer() if form in ("tf-idf", "texts") else StandardScaler()


def _logistic(form: Form, strength: float) -> Fit:
    def fit(samples: Any, labels: np.ndarray) -> Fitted:  # noqa: ANN401
        learner = LogisticRegression(C=strength, max_iter=300, tol=1e-3)
        model = make_pipeline(_scaler(form), learner)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps are enough to rank
            model.fit(samples, labels)
        return _probability(model)

    return fit


def _probability(model: Any) -> Fitted:  # noqa: ANN401
    def score(samples: Any) -> np.ndarray:  # noqa: ANN401
        return np.asarray(model.predict_proba(samples), dtype=np.float64)[:, 1]

    return score


def best_logistic(
    form: Form,
    samples: Any,  # noqa: ANN401
    labels: np.ndarray,
    seed: int,
) -> tuple[np.ndarray, float]:
    """Return out-of-fold scores with the C that tells these labels apart best, and that C."""
    tried = {}
    for strength in STRENGTHS:
        scores = out_of_fold(samples, labels, seed, _logistic(form, strength))
        tried[strength] = (roc_auc_score(labels, scores), scores)
    best = max(tried, key=lambda strength: tried[strength][0])
    return tried[best][1], best


def platt(labels: np.ndarray, scores: np.ndarray) -> Fitted:
    """Return the map from out-of-fold scores to P(s = 1 | score), by Platt's scaling.

    The C that ranks best shrinks scores towards the share of P, often so far that all of them lie
    above half of their mean over P. The cut of Elkan and Noto needs probabilities.
    """
    low, high = _inside(scores), 1 - _inside(1 - scores)

    def logits(some: np.ndarray) -> np.ndarray:
        kept = np.clip(some, low, high)
        return np.asarray(np.log(kept) - np.log1p(-kept))[:, None]

    model = LogisticRegression(C=1e6, max_iter=1000).fit(logits(scores), labels)
    if model.coef_[0, 0] <= 0:  # ranked the wrong way round: there is nothing to scale
        return lambda other: other
    return lambda other: _probability(model)(logits(other))


def _inside(scores: np.ndarray) -> float:
    """Return what a score of zero counts as: half of the smallest other, where forests say zero."""
    above = scores[scores > 0]
    return float(above.min() / 2) if 0 < len(above) < len(scores) else 1e-12


def _with_cut(
    labels: np.ndarray, scores: np.ndarray, test: np.ndarray | None, chosen: Mapping[str, Any]
) -> Scored:
    """Return scores of P and U with Elkan and Noto's cut, and those of the test part."""
    positive, pool = scores[labels == 1], scores[labels == 0]
    return Scored(
        positive=positive,
        pool=pool,
        called=elkan_noto(positive, pool),
        test=test,
        test_called=None if test is None else elkan_noto(positive, test),
        chosen={**chosen, "c": float(positive.mean())},
    )


def logistic_regression(problem: Problem, seed: int) -> Scored:
    """Logistic regression of P against U."""
    samples, test = numeric(problem)
    scores, strength = best_logistic(problem.form, samples, problem.labels, seed)
    scaled, tested = platt(problem.labels, scores), None
    if test is not None:
        tested = scaled(_logistic(problem.form, strength)(samples, problem.labels)(test))
    found = _with_cut(problem.labels, scaled(scores), tested, {"C": strength})
    return replace(found, unscaled=scores)


def random_forest(problem: Problem, seed: int) -> Scored:
    """A random forest of P against U: each item is scored by the trees that did not see it."""
    samples, test = numeric(problem)
    model = RandomForestClassifier(TREES, oob_score=True, random_state=seed)
    model.fit(samples, problem.labels)
    tested = None if test is None else _probability(model)(test)
    scores = np.asarray(model.oob_decision_function_, dtype=np.float64)[:, 1]
    return replace(_with_cut(problem.labels, scores, tested, {}), unscaled=scores)


def supervised(problem: Problem, seed: int) -> Scored:
    """Logistic regression with all true labels: a ceiling, not a competitor."""
    samples, test = numeric(problem)
    scores, strength = best_logistic(problem.form, samples, problem.classes, seed)
    # One half is a cut of probabilities, and the C that ranks best shrinks them.
    scaled, tested = platt(problem.classes, scores), None
    if test is not None:
        tested = scaled(_logistic(problem.form, strength)(samples, problem.classes)(test))
    scores = scaled(scores)
    pool = scores[problem.labels == 0]
    return Scored(
        positive=scores[problem.labels == 1],
        pool=pool,
        called=pool > 0.5,
        test=tested,
        test_called=None if tested is None else tested > 0.5,
        chosen={"C": strength},
    )


# pulearn


def _pulearn() -> Any:  # noqa: ANN401 - a module without types
    try:
        return importlib.import_module("pulearn")
    except ImportError:
        raise ConfigError(
            "This row takes the library pulearn, which is not installed. Install what "
            "benchmarks/panel-requirements.txt names."
        ) from None


def _scaled(problem: Problem) -> tuple[np.ndarray, np.ndarray | None]:
    """Return dense samples on one scale: pulearn's linear model takes one step size for all."""
    samples, test = numeric(problem)
    scaler = _scaler(problem.form).fit(samples)
    return _dense(scaler.transform(samples)), None if test is None else _dense(
        scaler.transform(test)
    )


def _dense(samples: Any) -> np.ndarray:  # noqa: ANN401 - an array or a sparse matrix
    return np.asarray(samples.toarray() if hasattr(samples, "toarray") else samples)


def _own_cut(problem: Problem, seed: int, fit: Fit, chosen: Mapping[str, Any]) -> Scored:
    """Return out-of-fold scores of a model whose own cut is one half."""
    samples, test = _scaled(problem)
    scores = out_of_fold(samples, problem.labels, seed, fit)
    pool = scores[problem.labels == 0]
    tested = None if test is None else fit(samples, problem.labels)(test)
    return Scored(
        positive=scores[problem.labels == 1],
        pool=pool,
        called=pool > 0.5,
        test=tested,
        test_called=None if tested is None else tested > 0.5,
        chosen=chosen,
    )


def pulearn_elkan_noto(problem: Problem, seed: int) -> Scored:
    """The ElkanotoPuClassifier around logistic regression; its cut is 0.5."""
    library = _pulearn()

    def fit(samples: Any, labels: np.ndarray) -> Fitted:  # noqa: ANN401
        inside = LogisticRegression(max_iter=300, tol=1e-3)
        model = library.ElkanotoPuClassifier(inside, random_state=seed)
        return _probability(model.fit(samples, labels))

    return _own_cut(problem, seed, fit, {})


def pulearn_bagging(problem: Problem, seed: int) -> Scored:
    """The BaggingPuClassifier of trees; its cut is 0.5."""
    library = _pulearn()

    def fit(samples: Any, labels: np.ndarray) -> Fitted:  # noqa: ANN401
        model = library.BaggingPuClassifier(
            DecisionTreeClassifier(),
            n_estimators=100,
            max_samples=int(labels.sum()),
            oob_score=False,
            random_state=seed,
        )
        return _probability(model.fit(samples, labels))

    return _own_cut(problem, seed, fit, {})


def pulearn_nnpu(problem: Problem, seed: int) -> Scored:
    """The NNPUClassifier, a linear model; BBE on logistic regression gives its prior."""
    library = _pulearn()
    scores, _ = best_logistic(problem.form, numeric(problem)[0], problem.labels, seed)
    labelled = problem.labels == 1
    prior = bbe(scores[labelled], scores[~labelled], resamples=1).value
    prior = float(np.clip(prior, 0.01, 0.99))

    def fit(samples: Any, labels: np.ndarray) -> Fitted:  # noqa: ANN401
        return _probability(library.NNPUClassifier(prior, random_state=seed).fit(samples, labels))

    return _own_cut(problem, seed, fit, {"prior": prior})


# Ours


def ours(parameters: Mapping[str, Any], problem: Problem, seed: int) -> Scored:
    """PUClassifier with these parameters, else as it comes."""
    estimator = PUClassifier(**parameters, random_state=seed)
    estimator.fit(_given(problem.samples), problem.labels)
    threshold = float(estimator.result_["threshold"])
    # Scores that the estimator kept of its pool are out of fold; others are of trained items.
    kept = getattr(estimator, "pool_scores_", None)
    pool = estimator.predict_proba(_given(problem.pool))[:, 1] if kept is None else np.asarray(kept)
    if len(pool) != len(problem.truth):
        raise DataError(
            f"pool_scores_ holds {len(pool)} scores and U {len(problem.truth)} items; expected one "
            "for each. Adapt `ours` in panel_rows.py."
        )
    test = None
    if problem.test is not None:
        test = estimator.decision_function(_given(problem.test))
    return Scored(
        positive=None,
        pool=pool,
        called=pool > threshold,
        test=test,
        test_called=None if test is None else test > 0,
        chosen={
            "method": estimator.result_.get("method"),
            "threshold": threshold,
            "words": estimator.result_.get("words"),
            "out_of_fold": "leaderboard" in estimator.result_,
            "claimed": _claimed(estimator),
        },
    )


def _claimed(estimator: PUClassifier) -> dict[str, list[float | None]]:
    """Return what the estimator says without the truth: value, low and high of each figure."""
    if estimator.evaluation_ is None:
        return {}
    figures = estimator.evaluation_.figures
    names = ("recall", "precision", "f1", "prior", "auc")
    return {name: [figures[name].value, figures[name].low, figures[name].high] for name in names}


def _given(samples: np.ndarray) -> Any:  # noqa: ANN401
    """Return samples as a person has them: texts are a list."""
    return list(samples) if samples.dtype == object else samples


def _method(name: str) -> Row:
    card = METHODS[name].card
    words = f"`PUClassifier(method='{name}')`"
    return Row(card.title, words, {"method": name}, partial(ours, {"method": name}))


_FOLDED: Mapping[str, Any] = {"folds": FOLDS}
_LOGISTIC: Mapping[str, Any] = {"folds": FOLDS, "C": list(STRENGTHS)}
_SCALED: Mapping[str, Any] = {**_LOGISTIC, "scaling": "Platt"}

ROWS: Mapping[str, Row] = {
    "auto": Row("auto", "`PUClassifier()`, as it comes", {}, partial(ours, {})),
    "lr": Row(
        "LR",
        "logistic regression of P against U, out of fold; C by the AUC of P against U; Platt's "
        "scaling; cut of Elkan and Noto",
        _SCALED,
        logistic_regression,
    ),
    "rf": Row(
        "RF",
        f"random forest of {TREES} trees, P against U, out of bag; cut of Elkan and Noto",
        {"trees": TREES},
        random_forest,
    ),
    "pulearn-elkan-noto": Row(
        "pulearn EN",
        "pulearn's `ElkanotoPuClassifier` around logistic regression, out of fold",
        _FOLDED,
        pulearn_elkan_noto,
    ),
    "pulearn-bagging": Row(
        "pulearn bagging",
        "pulearn's `BaggingPuClassifier`, 100 trees, samples as large as P, out of fold",
        {**_FOLDED, "trees": 100},
        pulearn_bagging,
    ),
    "pulearn-nnpu": Row(
        "pulearn nnPU",
        "pulearn's linear `NNPUClassifier`, out of fold; its prior by BBE on the scores of LR",
        _LOGISTIC,
        pulearn_nnpu,
    ),
    **{name: _method(name) for name in ("nnpu", "upu", "vpu", "tedn", "puet", "distpu", "ncpu")},
    "supervised": Row(
        "supervised",
        "logistic regression with all true labels, out of fold, Platt's scaling: a ceiling, not a "
        "competitor",
        _SCALED,
        supervised,
    ),
}
