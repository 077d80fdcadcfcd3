"""The search itself: fold by fold, candidate by candidate, each result on disk before the next."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from onesided.core.dist import rank
from onesided.core.errors import OnesidedError
from onesided.core.folds import sides
from onesided.data.problem.content import counted
from onesided.data.problem.dataset import Selection
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher
from onesided.methods.auto import AutoConfig
from onesided.methods.average import averaged, spread
from onesided.run.encode import encode
from onesided.run.presets import amount_of
from onesided.run.prior import NoPrior, PriorUsed, find_prior, own_prior_of_three
from onesided.run.problem import Problem
from onesided.run.scored import are_scores
from onesided.run.search.candidates import Candidate, Menu, smallest_part
from onesided.run.search.folds import folds_of, groups_of, trained_on
from onesided.run.search.leaderboard import Entry, Leaderboard
from onesided.run.training import train
from onesided.storage.atomic import write_arrays
from onesided.storage.own_file import read_arrays


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes:
        board: All candidates.
        winner: The one that is trained on everything.
        prior: The prior that the winner trains with, if it needs one.
        seconds: Of all trainings of the search together.
    """

    board: Leaderboard
    winner: Candidate
    prior: PriorUsed | None
    seconds: float

    @property
    def scores(self) -> Float64[np.ndarray, "n"]:
        """The winner's out-of-fold scores of P and U that are trained on."""
        return self.board.winner.scores

    @property
    def negatives(self) -> Float64[np.ndarray, "k"]:
        """The winner's out-of-fold scores of known negatives that are trained on."""
        return self.board.winner.negatives


def search(problem: Problem, images: Problem, *, folder: Path | None, watcher: Watcher) -> Search:
    """Try candidates on the same folds and return the best; what is on disk is not done again.

    Every decision follows from scores, never from a clock: a search that was stopped ends with
    the same result.

    Args:
        problem: What direct methods and heads train on: features of images, or vectors.
        images: The same with the images themselves.
        folder: For the scores of finished folds and for checkpoints; None keeps nothing.
        watcher: Receives progress.
    """
    return _Race(problem, images, folder, watcher).run()


class _Race:
    def __init__(
        self, problem: Problem, images: Problem, folder: Path | None, watcher: Watcher
    ) -> None:
        config, data = problem.config, problem.training.train
        assert isinstance(config.method, AutoConfig)
        self.problem, self.images, self.folder, self.watcher = problem, images, folder, watcher
        groups = groups_of(images.training.train)
        # Of P and U, and then of the known negatives that are trained on.
        self.fold = fold = folds_of(data, groups, config.method.folds, config.seed)
        self.rows = rows = len(problem.split.train)
        self.board = Leaderboard(
            (), data.labelled[:rows], fold[:rows], groups[:rows], counted(problem.split.train)
        )
        amount, width = amount_of(images.split), prod(problem.split.sample_shape)
        part = smallest_part(data, fold, images=amount.images)
        folds, weighed = int(fold.max()) + 1, data.weights is not None
        self.menu = Menu(config, amount, part, width, folds, weighed=weighed)
        self.prior: PriorUsed | None = None
        self.planned, self.done = 0.0, 0.0  # seconds of work, estimated
        self.encoded: dict[tuple[bool, int], tuple[Problem, Selection]] = {}

    def run(self) -> Search:
        self._try_all(self.menu.first())
        if self.board.complete:
            board = self.board
            self._try_all(self.menu.second(board.best_of_families(), board.near()))
            self._average()
        self.prior = self._find_prior()
        self._try_all(self.menu.third(self.prior.value if self.prior else None))
        if not self.board.complete:
            raise OnesidedError(
                "auto could try no candidate in this time. Give it more with --budget, or name a "
                "method with --method."
            )
        winner = self.board.winner.candidate
        seconds = sum(entry.seconds for entry in self.board.entries)
        prior = self.prior if winner.config.method.needs.prior else None
        return Search(self.board, winner, prior, seconds)

    def _find_prior(self) -> PriorUsed | None:
        """Return the prior for methods that need one: given, or by the best scores so far.

        Where these give none, or the user names an estimator, it is estimated from the data, as in
        a run of one method; but only for a method that was asked for, because it takes time.
        """
        given = self.problem.config.prior
        if isinstance(given, float):
            return PriorUsed(given, None, None, "given")
        wanted = self.menu.wants_prior
        if self.board.complete and not (wanted and given != "auto"):
            rows = self.board.scored(self.board.winner)
            scores, labelled = self.board.winner.scores[rows], self.board.labelled[rows]
            found = own_prior_of_three(scores[labelled], scores[~labelled])
            if not isinstance(found, NoPrior):
                return found
        if not wanted:
            return None
        return find_prior(given, encode(self.problem).split, self.problem.config.seed)

    def _try_all(self, candidates: Sequence[Candidate]) -> None:
        folds = self.menu.folds
        self.planned += sum(folds * candidate.seconds for candidate in candidates)
        for candidate in candidates:
            before = self.done
            entry = self._try(candidate)
            self.done = before + folds * candidate.seconds  # also of one that was given up
            self.board = replace(self.board, entries=(*self.board.entries, entry))

    def _average(self) -> None:
        """Add the average of equally good models, whose scores are known: it costs nothing."""
        parts = self.board.tied()
        if len(parts) < 2 or not self.menu.may_average:
            return
        spreads = {part.candidate.family: spread(part.scores) for part in parts}
        average = self.menu.average(
            {part.candidate.family: part.candidate for part in parts}, spreads
        )
        entry = Entry(
            average,
            averaged([part.scores for part in parts], list(spreads.values())),
            0.0,
            averaged([part.negatives for part in parts], list(spreads.values())),
            averages=tuple(part.candidate.name for part in parts),
        )
        self.board = replace(self.board, entries=(*self.board.entries, entry))

    def _try(self, candidate: Candidate) -> Entry:
        """Return the candidate's out-of-fold scores; it is given up where it cannot win."""
        forced = candidate.config.method_name in self._always()
        filled, spent = np.full(len(self.fold), np.nan), 0.0
        for number, rest, part in sides(self.fold):
            self._tell(candidate, number)
            filled[part], seconds = self._fold(candidate, number, rest, part)
            spent += seconds
            self.done += candidate.seconds
            scores, negatives = filled[: self.rows].copy(), filled[self.rows :].copy()
            entry = Entry(candidate, scores, spent, negatives)
            complete = self.board.complete
            if complete and not forced and not entry.complete:
                best = self.board.highest
                if self.board.clearly_worse(entry, best):
                    break
        return entry

    def _always(self) -> tuple[str, ...]:
        method = self.problem.config.method
        assert isinstance(method, AutoConfig)
        return (*method.also, *method.candidates)

    def _fold(
        self, candidate: Candidate, number: int, rest: np.ndarray, part: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the scores of a fold by a model that was trained on the others."""
        place = self.folder / candidate.name if self.folder else None
        if place and (place / f"{number}.npz").exists():
            return _read_fold(place / f"{number}.npz", len(part))
        training, inside = self._sides(candidate, number, rest, part)
        memory = Memory()
        if place:
            memory = Memory(Checkpoints(place / f"{number}.pt", candidate.name))
        if place and rank() == 0:
            place.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        prior = self.prior if candidate.config.method.needs.prior else None
        trained = train(training, memory=memory, prior=prior)
        scores = replace(trained.predictor, encoder=None).scores(inside)
        seconds = time.monotonic() - started
        if place and rank() == 0:
            write_arrays(
                place / f"{number}.npz", {"scores": scores, "seconds": np.array([seconds])}
            )
            (place / f"{number}.pt").unlink(missing_ok=True)
        return scores, seconds

    def _sides(
        self, candidate: Candidate, number: int, rest: np.ndarray, part: np.ndarray
    ) -> tuple[Problem, Selection]:
        """Return the problem outside a fold and the samples inside it, encoded once for all."""
        key = (candidate.on_images, number)
        if key not in self.encoded:
            problem = self.images if candidate.on_images else self.problem
            both = encode(trained_on(problem, rest, part))
            assert both.split.held_out is not None
            data = replace(both.data, split=replace(both.split, held_out=None))
            outside = replace(both, data=data, training=replace(both.training, held_out=None))
            self.encoded[key] = outside, both.split.held_out.values
        outside, inside = self.encoded[key]
        return outside.for_method(candidate.config), inside

    def _tell(self, candidate: Candidate, fold: int) -> None:
        status = f"trying {candidate.words}, fold {fold + 1} of {self.menu.folds}"
        if self.board.complete:
            best = self.board.winner
            auc = f"proxy AUC {self.board.auc(best):.1%}"
            status += f"\nbest so far: {best.candidate.words}, {auc}"
        # In tenths of a second of estimated work, so that the bar tells the time left.
        self.watcher.tried(round(10 * self.done), round(10 * self.planned), status)


def _read_fold(path: Path, rows: int) -> tuple[np.ndarray, float]:
    remedy = "Delete it, and give the same command again; only this fold is trained again."
    arrays = read_arrays(path, remedy)
    scores, seconds = arrays.get("scores"), arrays.get("seconds")
    sound = scores is not None and scores.shape == (rows,) and are_scores(scores)
    if scores is None or not sound or seconds is None or not _is_time(seconds):
        raise OnesidedError(f"{path} is damaged: it does not hold {rows} scores. {remedy}")
    return scores, float(seconds[0])


def _is_time(seconds: np.ndarray) -> bool:
    return seconds.shape == (1,) and seconds.dtype.kind == "f" and bool(seconds[0] < np.inf)
