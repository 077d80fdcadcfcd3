# ruff: noqa: N803, N806 - scikit-learn's interface calls the samples X
"""PUClassifier: `onesided fit` behind the interface of scikit-learn.

It does what the command does: arrays or files, a split, a preset, the configuration of a run,
training, a predictor. Attributes hold what a run folder would hold.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from onesided.core.config import nearest
from onesided.core.errors import CheckpointError, ConfigError, DataError, Interrupted
from onesided.core.labels import UNKNOWN, LabelScheme, normalise_pu_labels
from onesided.data.problem.samples import ImageKind
from onesided.data.problem.split import MINIMUM_POSITIVES
from onesided.data.read.arrays import ChannelAxis, checked_values, from_arrays
from onesided.data.read.folder import OneSided
from onesided.engine.fit import Watcher
from onesided.engine.model_file import ModelDescription, load_model
from onesided.engine.predict import Predictor
from onesided.estimator.inputs import (
    Items,
    RandomState,
    checked_labels,
    classes_of,
    decoded_chunks,
    given_settings,
    has_image_axes,
    holds_paths,
    image_values,
    read_paths,
    seed_of,
)
from onesided.estimator.monitor import DegenerateModelWarning, EstimatorMonitor
from onesided.estimator.saved import (
    Saved,
    packed,
    read_evaluation,
    read_folder,
    unpacked,
    write_folder,
)
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.pu import proxy_auc
from onesided.run.config import OwnConfig
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.execute import run_in_memory
from onesided.run.load import divide_own
from onesided.run.presets import plan_run
from onesided.run.problem import build_problem

KINDS: tuple[str, ...] = get_args(ImageKind)


class PUClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train on some labelled positives and a pool of unlabelled samples.

    Samples are features (N, D), images (N, H, W), (N, H, W, C) or (N, C, H, W), or a list of
    paths of image files; labels are 1 for positive and 0 or -1 for unlabelled.

    Example:
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
        preset: How much to spend: quick (minutes), standard (an hour), evening (one
            or two) or paper.
        prior: Class prior: share of positives among the unlabelled, for methods that need it;
            "auto" estimates it.
        epochs: Passes over the data; None lets the preset choose.
        backbone: auto, small, resnet18, resnet34, efficientnet_lite0 or mlp.
        settings: Further settings by table, as in a recipe, for example
            {"method": {"alignment_weight": 20}, "train": {"batch_size": 64}}. They override
            the other parameters.
        threshold: Score above which a sample is called positive, or a rule that finds it on the
            held-out part, as `onesided fit` takes it: "max-f1", "prior", "recall=0.9".
        held_out: Share of P and of U that is not trained on but evaluates the model; 0
            trains on everything and evaluates nothing.
        labels_mean: "pu" for two kinds of labels; "pnu" for three: 1 positive, 0 unlabelled,
            -1 known negative.
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
        evaluation_: Figures of the held-out part; None if nothing was held out.
        result_: The content of a run's `result.json`; empty where a folder has none.
        feature_importances_: By how much each feature reduces the risk, for forests.
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
        threshold: float | str = 0.5,
        held_out: float = 0.2,
        labels_mean: LabelScheme = "pu",
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
        self.threshold = threshold
        self.held_out = held_out
        self.labels_mean = labels_mean
        self.kind = kind
        self.channels = channels
        self.min_positives = min_positives
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Items, y: ArrayLike) -> Self:
        """Train on samples X with labels y: 1 positive, 0 or -1 unlabelled."""
        images = holds_paths(X) or has_image_axes(X)
        given = given_settings(self.get_params(), images=images, seed=seed_of(self.random_state))
        # A wrong setting is refused before anything is read.
        plan = plan_run(given, self.preset, where="PUClassifier")
        data_settings = plan.checked.data
        assert isinstance(data_settings, OwnConfig), "`given_settings` names people's own data"
        data, labels = self._read(X, y, data_settings)
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
                finished = run_in_memory(problem, Watcher(phase.step, phase.epoch, phase))
        except Interrupted as error:
            # A run folder would keep a checkpoint; an estimator has no folder.
            raise KeyboardInterrupt("Training was stopped, and nothing of it is kept.") from error
        result = finished.result | {"data": "files" if holds_paths(X) else "arrays"}
        self.classes_ = classes_of(labels, self.labels_mean)
        if images:
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit on a data frame
        self._take(finished.predictor, finished.model, result, finished.evaluation)
        if finished.evaluation is not None and finished.evaluation.degenerate:
            monitor.warn(finished.evaluation.degenerate, DegenerateModelWarning)
        return self

    def predict(self, X: Items) -> np.ndarray:
        """Return the class of every sample, one of `classes_`."""
        scores = self._scores(X)
        positive = self._predictor.decisions(scores)
        classes: np.ndarray = self.classes_[positive.astype(np.int64)]
        return classes

    def predict_proba(self, X: Items) -> Float64[np.ndarray, "n 2"]:
        """Return the probabilities of negative and of positive."""
        scores = self._scores(X)
        return np.stack([1 - scores, scores], axis=1)

    def decision_function(self, X: Items) -> Float64[np.ndarray, "n"]:
        """Return by how much the score lies above the threshold; above 0 means positive."""
        return self._scores(X) - self._predictor.threshold

    def score(self, X: Items, y: ArrayLike) -> float:
        """Return how often a positive outscores an unlabelled sample: the proxy AUC.

        Never the accuracy: if unlabelled counts as negative, the model that finds nothing new
        is the most accurate, and a parameter search would choose it.
        """
        labelled, known = normalise_pu_labels(column_or_1d(y), labels_mean=self.labels_mean)
        scores = self._scores(X)
        if len(scores) != len(labelled):
            raise DataError(
                f"X holds {len(scores)} samples and y {len(labelled)} labels; these must be equal."
            )
        return proxy_auc(scores[labelled], scores[known == UNKNOWN])

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

    def _read(
        self, X: Items, y: ArrayLike, data_settings: OwnConfig
    ) -> tuple[OneSided, np.ndarray]:
        """Return the samples with their PU labels, and the labels as they were given."""
        if not isinstance(self.min_positives, int | np.integer) or self.min_positives < 1:
            raise ConfigError(
                f"min_positives is {self.min_positives!r}; expected a whole number from 1 on."
            )
        if self.kind not in (None, *KINDS):
            raise ConfigError(f"There are no {self.kind!r} images.{nearest(str(self.kind), KINDS)}")
        if holds_paths(X):
            labels = checked_labels(y, self.labels_mean)
            kind = self.kind or "photograph"
            return read_paths(X, labels, self.labels_mean, data_settings, kind), labels
        if not has_image_axes(X):
            # `from_arrays` refuses gaps and infinities: its error names row and column.
            X, y = validate_data(self, X, y, ensure_all_finite=False)
        labels = checked_labels(y, self.labels_mean)
        data = from_arrays(
            np.asarray(X),
            labels,
            labels_mean=self.labels_mean,
            kind=self.kind,
            channels=self.channels,
            feature_names=() if has_image_axes(X) else getattr(self, "feature_names_in_", ()),
        )
        return data, labels

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
        self.n_features_in_ = prod(model.sample_shape)
        self.__dict__.pop("feature_importances_", None)
        importances = getattr(predictor.method, "importances", None)
        if callable(importances):
            self.feature_importances_ = importances()

    def _scores(self, X: Items) -> Float64[np.ndarray, "n"]:
        check_is_fitted(self)
        shape = self._model.sample_shape
        if holds_paths(X):
            chunks = decoded_chunks(X, shape)
            return np.concatenate([self._predictor.scores(chunk) for chunk in chunks])
        if len(shape) == 3 or has_image_axes(X):
            return self._predictor.scores(image_values(np.asarray(X), shape, self.channels))
        vectors: np.ndarray = validate_data(self, X, reset=False, ensure_all_finite=False)
        return self._predictor.scores(checked_values(vectors))
