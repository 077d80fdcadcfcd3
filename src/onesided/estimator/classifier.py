# ruff: noqa: N803, N806 - scikit-learn's interface calls the samples X
"""PUClassifier: `onesided fit` behind the interface of scikit-learn.

It does what the command does: arrays or files, a split, a preset, the configuration of a run,
training, a predictor. Attributes hold what a run folder would hold.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from onesided.core.config import nearest
from onesided.core.errors import CheckpointError, ConfigError, DataError, Interrupted
from onesided.core.labels import UNKNOWN, LabelScheme, normalise_pu_labels
from onesided.data.columns.cells import NUMERIC
from onesided.data.columns.encoder import Encoder
from onesided.data.columns.kinds import RawTable
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.samples import ImageKind
from onesided.data.problem.split import MINIMUM_POSITIVES
from onesided.data.read.arrays import ChannelAxis, checked_values, from_arrays, from_table
from onesided.data.read.folder import OneSided
from onesided.engine.fit import Watcher
from onesided.engine.model_file import ModelDescription, load_model
from onesided.engine.predict import Predictor, compared_numbers
from onesided.estimator.inputs import (
    Items,
    RandomState,
    decoded_chunks,
    given_settings,
    has_image_axes,
    holds_paths,
    image_values,
    lists_names,
    names_of,
    read_paths,
    rows_of,
    seed_of,
    some_of_both,
    with_groups,
    with_weights,
)
from onesided.estimator.labels import GivenLabels, Label, read_labels
from onesided.estimator.monitor import (
    DegenerateModelWarning,
    DoubtfulFiguresWarning,
    EstimatorMonitor,
    UnfamiliarDataWarning,
)
from onesided.estimator.saved import (
    Saved,
    packed,
    read_evaluation,
    read_folder,
    unpacked,
    write_folder,
)
from onesided.estimator.tables import (
    dense,
    holds_texts,
    is_frame,
    is_raw,
    raw_rows,
    read_frame,
    read_numbers,
    read_texts,
)
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.pu import proxy_auc
from onesided.metrics.reference import compare
from onesided.run.config import OwnConfig
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.execute import run_in_memory
from onesided.run.load import divide_own
from onesided.run.presets import plan_run
from onesided.run.problem import build_problem
from onesided.run.rank import unknown_values
from onesided.run.scored import NO_FIGURES
from onesided.storage.together import settle

KINDS: tuple[str, ...] = get_args(ImageKind)


def in_given_order(
    split: PUSplit, scores: Float64[np.ndarray, "u"], names: Sequence[str]
) -> Float64[np.ndarray, "m"]:
    """Return scores of U, of the training and then the held-out part, in the order of these names.

    NaN for a file that could not be read, so that the others keep their places.
    """
    parts = [split.train] if split.held_out is None else [split.train, split.held_out]
    given = (part.names[row] for part in parts for row in np.flatnonzero(part.unlabelled))
    score_of = dict(zip(given, scores.tolist(), strict=True))
    return np.array([score_of.get(name, np.nan) for name in names])


class PUClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train on some labelled positives and a pool of unlabelled samples.

    Samples are features (N, D), with gaps (NaN) maybe; a data frame of pandas or polars, whose
    columns may be numbers, categories, booleans, dates and texts; a list of texts; images
    (N, H, W), (N, H, W, C) or (N, C, H, W); or a list of paths of image files. Strings are paths
    if most of them end as image files do, or if the first is a file; other strings are texts.
    Labels are 1 for positive and 0 or -1 for unlabelled, or any values that `positive` and
    `unlabelled` name; gaps (NaN, None) are unlabelled.

    Examples:
        >>> import numpy as np
        >>> from onesided import PUClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, truth = load_breast_cancer(return_X_y=True)
        >>> y = truth * (np.arange(len(truth)) % 3 == 0)  # a third of the positives is labelled
        >>> estimator = PUClassifier(epochs=5).fit(X, y)
        >>> estimator.predict_proba(X).shape
        (569, 2)

    Args:
        method: Name of the method, see `onesided methods`.
        preset: How much to spend: quick, standard, evening (with auto at most 2 minutes, 20
            minutes, 2 hours) or paper.
        prior: Class prior: share of positives among the unlabelled, for methods that need it;
            "auto" estimates it.
        epochs: Passes over the data; None lets the preset choose.
        backbone: auto, small, resnet18, resnet34, efficientnet_lite0 or mlp.
        settings: Further settings by table, as in a recipe, for example
            {"method": {"alignment_weight": 20}, "train": {"batch_size": 64}}. They override
            the other parameters.
        budget: Time that auto may take, such as "2min" or "1h", instead of the preset's.
        threshold: Score above which a sample is called positive, or a rule that finds it by
            scores of samples that were not trained on, as `onesided fit` takes it: "max-f1",
            "prior", "recall=0.9". None means "prior" for auto, and 0.5 for a method by name.
        held_out: Share of P and of U that is not trained on but evaluates the model; 0
            trains on everything. None means 0 for auto, whose figures rest on out-of-fold
            scores, and 0.2 for a method by name.
        labels_mean: "pu" for two kinds of labels; "pnu" for three: 1 positive, 0 unlabelled,
            -1 known negative.
        positive: Value of y that means positive, where it is not 1.
        unlabelled: Value of y that means unlabelled, where it is neither 0, -1 nor a gap. One
            further value is then known to be negative.
        kind: What images are, and so how they may be changed in training: photograph,
            remote (from above) or digit; None means photograph.
        channels: Which axis of four holds the channels, "first" or "last"; None finds out.
        min_positives: Fewer positives, or unlabelled samples, are refused.
        random_state: Seed of the run; None or a RandomState draw one.
        device: auto, cpu or cuda.
        verbose: Above 0, notices and one line per epoch are printed.

    Attributes:
        classes_: The values that `predict` returns for negative and for positive.
        n_features_in_: Numbers per sample.
        feature_names_in_: Names of the features, where X had some.
        evaluation_: Figures from samples that were not trained on; None if there are none.
        pool_scores_: Scores of the unlabelled samples in the order of X, NaN for a file that
            cannot be read; after auto each by a model that was not trained on it.
            `predict_proba(X)` is by the final model, which was taught that these samples are
            unlabelled.
        pool_probabilities_: Probabilities of these scores; None where there are none, and
            `result_["calibration"]` then says why.
        result_: The content of a run's `result.json`; empty where a folder has none.
        feature_importances_: How much the model relies on each column of X, where X is no
            images: what the method itself says (PUET), else by how much the proxy AUC of some
            training samples falls where the column is shuffled. Computed when asked for, and
            not by an estimator that was loaded; `permutation_importances` takes samples of
            your own.
    """

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        preset: str = "quick",
        prior: float | str = "auto",
        epochs: int | None = None,
        backbone: str = "auto",
        settings: Mapping[str, Any] | None = None,
        budget: str | float | None = None,
        threshold: float | str | None = None,
        held_out: float | None = None,
        labels_mean: LabelScheme = "pu",
        positive: Label = None,
        unlabelled: Label = None,
        kind: ImageKind | None = None,
        channels: ChannelAxis | None = None,
        min_positives: int = MINIMUM_POSITIVES,
        random_state: RandomState = 0,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.preset = preset
        self.prior = prior
        self.epochs = epochs
        self.backbone = backbone
        self.settings = settings
        self.budget = budget
        self.threshold = threshold
        self.held_out = held_out
        self.labels_mean = labels_mean
        self.positive = positive
        self.unlabelled = unlabelled
        self.kind = kind
        self.channels = channels
        self.min_positives = min_positives
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Items,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train on samples X with labels y: 1 positive, 0 or -1 unlabelled.

        Samples of one of the `groups` are never both trained on and held out. `sample_weight`
        says how much each sample counts in training, for methods that can weigh (auto, linear,
        forest, boosting, average); figures, and the choice of auto, count every sample once.
        """
        X = dense(X)
        images = holds_paths(X) or has_image_axes(X)
        given = given_settings(self.get_params(), images=images, seed=seed_of(self.random_state))
        # A wrong setting is refused before anything is read.
        plan = plan_run(given, self.preset, where="PUClassifier")
        data_settings = plan.checked.data
        assert isinstance(data_settings, OwnConfig), "`given_settings` names people's own data"
        data, labels = self._read(X, y, data_settings)
        data = with_weights(with_groups(data, groups, X), sample_weight, X)
        loaded = divide_own(data, data_settings, fewest=int(self.min_positives))
        monitor = EstimatorMonitor(self.verbose)
        if loaded.skipped:
            (name, reason), count = loaded.skipped[0], len(loaded.skipped)
            monitor.warn(f"{count} files of X were left out; the first: {name} {reason}.")
        for sentence in loaded.notices:
            monitor.note(sentence)
        problem = build_problem(plan.for_data(loaded.split), loaded)
        try:
            with monitor.phase("training") as phase:
                watcher = Watcher(phase.step, phase.epoch, phase.embed, phase.tried)
                finished = run_in_memory(problem, watcher)
        except Interrupted as error:
            # A run folder would keep a checkpoint; an estimator has no folder.
            raise KeyboardInterrupt("Training was stopped, and nothing of it is kept.") from error
        result = finished.result | {"data": "files" if holds_paths(X) else "arrays"}
        self.classes_ = labels.classes
        if images or holds_texts(X):
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit on a data frame
        self._take(finished.predictor, finished.model, result, finished.evaluation)
        _, known = normalise_pu_labels(labels.values, labels_mean=labels.scheme)
        columns = not (images or holds_texts(X))
        rows = some_of_both(known, seed=problem.config.seed) if columns else None
        self._shown = None if rows is None else (rows_of(X, rows), rows_of(y, rows))
        pool = [name for name, label in zip(names_of(X), known, strict=True) if label == UNKNOWN]
        self.pool_scores_ = in_given_order(problem.split, finished.scored.unlabelled, pool)
        self.pool_probabilities_ = None
        if finished.predictor.calibration is not None:
            self.pool_probabilities_ = self._probabilities(self.pool_scores_)
        if finished.evaluation is not None and finished.evaluation.degenerate:
            monitor.warn(finished.evaluation.degenerate, DegenerateModelWarning)
        for sentence in result["warnings"]:
            if self.held_out != 0 or sentence != NO_FIGURES:  # else nobody wanted any
                monitor.warn(sentence, DoubtfulFiguresWarning)
        return self

    def predict(self, X: Items) -> np.ndarray:
        """Return the class of every sample, one of `classes_`."""
        scores = self._scores(X)
        positive = self._predictor.decisions(scores)
        classes: np.ndarray = self.classes_[positive.astype(np.int64)]
        return classes

    def predict_proba(self, X: Items) -> Float64[np.ndarray, "n 2"]:
        """Return the probabilities of negative and of positive, in the order of the scores.

        They are calibrated after auto, where the prior is known well enough;
        `result_["calibration"]` says what they rest on. Elsewhere they are mere scores, and it
        says why. `predict` decides by the score and its threshold, not at a probability of 0.5.
        """
        positive = self._probabilities(self._scores(X))
        return np.stack([1 - positive, positive], axis=1)

    def decision_function(self, X: Items) -> Float64[np.ndarray, "n"]:
        """Return by how much the score lies above the threshold; above 0 means positive."""
        return self._scores(X) - self._predictor.threshold

    def score(self, X: Items, y: ArrayLike) -> float:
        """Return how often a positive outscores an unlabelled sample: the proxy AUC.

        Never the accuracy: if unlabelled counts as negative, the model that finds nothing new
        is the most accurate, and a parameter search would choose it.
        """
        labels = self._labels(y)
        labelled, known = normalise_pu_labels(labels.values, labels_mean=labels.scheme)
        scores = self._scores(X)
        if len(scores) != len(labelled):
            raise DataError(
                f"X holds {len(scores)} samples and y {len(labelled)} labels; these must be equal."
            )
        return proxy_auc(scores[labelled], scores[known == UNKNOWN])

    def permutation_importances(
        self, X: Items, y: ArrayLike, *, repeats: int = 5
    ) -> Float64[np.ndarray, "columns"]:
        """Return by how much the proxy AUC falls where a column of X is shuffled, for each.

        X and y should be samples that were not trained on. A column without effect has about 0.
        """
        from sklearn.inspection import permutation_importance

        check_is_fitted(self)
        with warnings.catch_warnings():
            # Shuffled samples are unlike any other, on purpose.
            warnings.simplefilter("ignore", UnfamiliarDataWarning)
            found = permutation_importance(
                self, dense(X), y, n_repeats=repeats, random_state=self.result_.get("seed", 0)
            )
        importances: np.ndarray = found.importances_mean
        return importances

    @property
    def feature_importances_(self) -> Float64[np.ndarray, "columns"]:
        """How much the model relies on each column of X."""
        check_is_fitted(self)
        own = getattr(self._predictor.method, "importances", None)
        if callable(own):
            return self._by_column(own())
        shown = getattr(self, "_shown", None)
        if shown is None:
            raise AttributeError(
                "feature_importances_ is known of an estimator that was fitted to columns in this "
                "session. Call permutation_importances(X, y)."
            )
        if "_importances" not in self.__dict__:
            self._importances = self.permutation_importances(*shown)
        importances: np.ndarray = self._importances
        return importances

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model into a folder that `load` and `onesided rank` can read."""
        check_is_fitted(self)
        parameters = self.get_params()
        if isinstance(self.random_state, np.random.RandomState):
            parameters["random_state"] = self.result_["seed"]
        names = getattr(self, "feature_names_in_", None)
        saved = Saved(
            parameters=parameters,
            classes=self.classes_.tolist(),
            feature_names=None if names is None else names.tolist(),
        )
        write_folder(
            Path(folder), self._predictor, self._model, self.result_, saved, overwrite=overwrite
        )

    @classmethod
    def load(cls, folder: str | Path, *, device: Literal["auto", "cpu", "cuda"] = "auto") -> Self:
        """Return the estimator in a folder that `save` or `onesided fit` wrote."""
        path = Path(folder)
        settle(path)
        predictor, model = load_model(path, device)
        saved = read_folder(path, model)
        if unknown := sorted(set(saved.parameters) - set(cls._get_param_names())):
            raise CheckpointError(
                f"{path} holds an estimator with the parameter '{unknown[0]}', which this "
                "version does not know. Load it with the version that saved it, or fit again."
            )
        estimator = cls(**{**saved.parameters, "device": device})
        estimator.classes_ = np.array(saved.classes)
        if saved.feature_names is not None:
            estimator.feature_names_in_ = np.array(saved.feature_names, dtype=object)
        estimator._take(predictor, model, *read_evaluation(path))
        return estimator

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_predictor" in state:
            state["_predictor"] = packed(state["_predictor"], state.pop("_model"))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_predictor" in state:
            # It may have been trained on a GPU that this machine lacks.
            device = "cpu" if self.device == "cpu" else "auto"
            self._predictor, self._model = unpacked(state["_predictor"], device)

    def _labels(self, y: ArrayLike) -> GivenLabels:
        return read_labels(y, self.labels_mean, positive=self.positive, unlabelled=self.unlabelled)

    def _read(
        self, X: Items, y: ArrayLike, data_settings: OwnConfig
    ) -> tuple[OneSided, GivenLabels]:
        """Return the samples with their PU labels, and the labels as they were given."""
        if not isinstance(self.min_positives, int | np.integer) or self.min_positives < 1:
            raise ConfigError(
                f"min_positives is {self.min_positives!r}; expected a whole number from 1 on."
            )
        if self.kind not in (None, *KINDS):
            raise ConfigError(f"There are no {self.kind!r} images.{nearest(str(self.kind), KINDS)}")
        if holds_paths(X):
            labels = self._labels(y)
            kind = self.kind or "photograph"
            return read_paths(X, labels.values, labels.scheme, data_settings, kind), labels
        if (table := self._read_table(X, data_settings)) is not None:
            labels = self._labels(y)
            return from_table(table, labels.values, labels_mean=labels.scheme), labels
        return self._read_array(X, y)

    def _read_array(self, X: Items, y: ArrayLike) -> tuple[OneSided, GivenLabels]:
        """Return images or vectors with their PU labels; vectors with gaps are a table."""
        images = has_image_axes(X)
        if not images:
            # `from_arrays` refuses infinities: its error names row and column.
            X = validate_data(self, X, ensure_all_finite=False)
        array = np.asarray(X)
        labels = self._labels(y)
        names = () if images else getattr(self, "feature_names_in_", ())
        if not images and array.dtype.kind == "f" and np.isnan(array).any():
            table = read_numbers(array, names)
            return from_table(table, labels.values, labels_mean=labels.scheme), labels
        data = from_arrays(
            array,
            labels.values,
            labels_mean=labels.scheme,
            kind=self.kind,
            channels=self.channels,
            feature_names=names,
        )
        return data, labels

    def _read_table(self, X: Items, data_settings: OwnConfig) -> RawTable | None:
        """Return a data frame of several kinds, or texts, as a table; None for other samples."""
        if is_frame(X) and (is_raw(X) or data_settings.kinds):
            validate_data(self, X, skip_check_array=True)  # for its names
            return read_frame(X, data_settings.kinds)
        return read_texts(X) if holds_texts(X) else None

    def _take(
        self,
        predictor: Predictor,
        model: ModelDescription,
        result: dict[str, Any],
        evaluation: PUEvaluation | None,
    ) -> None:
        """Become fitted."""
        self._predictor, self._model = predictor, model
        self.result_, self.evaluation_ = result, evaluation
        # Of a data frame, the columns that were left out count as well.
        names = getattr(self, "feature_names_in_", None)
        self.n_features_in_ = prod(model.sample_shape) if names is None else len(names)
        self.__dict__.pop("_importances", None)  # of an earlier fit

    def _by_column(self, importances: np.ndarray) -> np.ndarray:
        """Return the importance of each column of X, where it was encoded as several numbers."""
        encoder = self._predictor.encoder
        if encoder is None:
            return importances
        sums = np.bincount(encoder.column_of, importances, minlength=len(encoder.columns))
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return sums
        of = dict(zip((column.name for column in encoder.columns), sums, strict=True))
        return np.array([of.get(str(name), 0.0) for name in names])

    def _probabilities(self, scores: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
        """Return probabilities of scores; the scores themselves where there are none."""
        curve = self._predictor.calibration
        return scores if curve is None else curve.of(scores)

    def _scores(self, X: Items) -> Float64[np.ndarray, "n"]:
        check_is_fitted(self)
        X = dense(X)
        shape, encoder = self._model.sample_shape, self._predictor.encoder
        if encoder is not None:
            return self._scores_of([self._raw_rows(X, encoder)])
        if holds_paths(X) or (len(shape) == 3 and lists_names(X)):
            return self._scores_of(decoded_chunks(X, shape))
        if len(shape) == 3 or has_image_axes(X):
            return self._scores_of([image_values(np.asarray(X), shape, self.channels)])
        vectors: np.ndarray = validate_data(self, X, reset=False, ensure_all_finite=False)
        return self._scores_of([checked_values(vectors)])

    def _scores_of(self, chunks: Iterable[np.ndarray]) -> Float64[np.ndarray, "n"]:
        """Return scores; warn where the samples are unlike those of training."""
        predictor, reference = self._predictor, self._predictor.reference
        found, counts = [], []
        for chunk in chunks:
            inputs = predictor.inputs(chunk)
            found.append(predictor.scores_of(inputs))
            if reference is not None and len(chunk):
                counts.append(reference.counts(compared_numbers(inputs)))
        scores = np.concatenate(found)
        if reference is not None and counts:
            edges = reference.scores
            between = None if edges is None else edges.counts(scores[:, None])
            compared = compare(reference, np.sum(counts, axis=0), between)
            if compared and compared.warning:
                warnings.warn(compared.warning, UnfamiliarDataWarning, stacklevel=4)
        return scores

    def _raw_rows(self, X: Items, encoder: Encoder) -> np.ndarray:
        """Return samples as the encoder takes them; unknown values are counted in a notice."""
        if is_frame(X) and hasattr(self, "feature_names_in_"):
            validate_data(self, X, reset=False, skip_check_array=True)
        elif not holds_texts(X):
            numeric = all(column.kind in NUMERIC for column in encoder.columns)
            X = validate_data(
                self,
                X,
                reset=False,
                ensure_all_finite=False,
                dtype="numeric" if numeric else None,
            )
        rows = raw_rows(encoder.columns, X)
        for column, count in encoder.unknown(rows).items():
            EstimatorMonitor(self.verbose).note(unknown_values(column, count))
        return rows
