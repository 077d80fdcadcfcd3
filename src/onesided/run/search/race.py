"""The search itself: fold by fold, candidate by candidate, each result on disk before the next."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from onesided.core.errors import OnesidedError
from onesided.core.folds import sides
from onesided.data.problem.dataset import Selection
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher
from onesided.methods.auto import AutoConfig
from onesided.run.encode import encode
from onesided.run.presets import Amount
from onesided.run.prior import NoPrior, PriorUsed, own_prior_twice
from onesided.run.problem import Problem
from onesided.run.scored import read_arrays
from onesided.run.search.candidates import Candidate, Menu
from onesided.run.search.folds import folds_of, groups_of, rows_of, trained_on
from onesided.run.search.leaderboard import Entry, Leaderboard
from onesided.run.training import train
from onesided.storage.atomic import write_arrays


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
        """The winner's out-of-fold scores of every training row."""
        return self.board.winner.scores


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
        config, data = problem.config, problem.split.train
        assert isinstance(config.method, AutoConfig)
        self.problem, self.images, self.folder, self.watcher = problem, images, folder, watcher
        groups = groups_of(images.split.train)
        fold = folds_of(data, groups, config.method.folds, config.seed)
        self.board = Leaderboard((), data.labelled, fold, groups)
        shapes = images.split.sample_shape, problem.split.sample_shape
        amount = Amount(len(data), int(data.labelled.sum()), images=len(shapes[0]) == 3)
        self.menu = Menu(config, amount, shapes, int(fold.max()) + 1)
        self.prior: PriorUsed | None = None
        self.planned, self.done = 0.0, 0.0  # seconds of work, estimated
        self.encoded: dict[tuple[bool, int], tuple[Problem, Selection]] = {}

    def run(self) -> Search:
        self._try_all(self.menu.first())
        if self.board.complete:
            board = self.board
            self._try_all(self.menu.second(board.best_of_families(), board.near()))
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
        """Return the prior for methods that need one: given, or by BBE on the best scores."""
        given = self.problem.config.prior
        if isinstance(given, float):
            return PriorUsed(given, None, None, "given")
        if not self.board.complete:
            return None
        scores, labelled = self.board.winner.scores, self.board.labelled
        found = own_prior_twice(scores[labelled], scores[~labelled])
        return None if isinstance(found, NoPrior) else found

    def _try_all(self, candidates: Sequence[Candidate]) -> None:
        folds = self.menu.folds
        self.planned += sum(folds * candidate.seconds for candidate in candidates)
        for candidate in candidates:
            before = self.done
            entry = self._try(candidate)
            self.done = before + folds * candidate.seconds  # also of one that was given up
            self.board = replace(self.board, entries=(*self.board.entries, entry))

    def _try(self, candidate: Candidate) -> Entry:
        """Return the candidate's out-of-fold scores; it is given up where it cannot win."""
        forced = candidate.config.method_name in self._always()
        entry = Entry(candidate, np.full(len(self.board.fold), np.nan), 0.0)
        for number, rest, part in sides(self.board.fold):
            self._tell(candidate, number)
            scores, seconds = self._fold(candidate, number, rest, part)
            self.done += candidate.seconds
            filled = entry.scores.copy()
            filled[part] = scores
            entry = Entry(candidate, filled, entry.seconds + seconds)
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
            place.mkdir(parents=True, exist_ok=True)
            memory = Memory(Checkpoints(place / f"{number}.pt", candidate.name))
        started = time.monotonic()
        prior = self.prior if candidate.config.method.needs.prior else None
        trained = train(training, memory=memory, prior=prior)
        scores = replace(trained.predictor, encoder=None).scores(inside)
        seconds = time.monotonic() - started
        if place:
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
            both = encode(trained_on(problem, rest, rows_of(problem.split.train, part)))
            assert both.split.held_out is not None
            split = replace(both.split, held_out=None)
            outside = replace(both, data=replace(both.data, split=split), training=split)
            self.encoded[key] = outside, both.split.held_out.values
        outside, inside = self.encoded[key]
        return replace(outside, config=candidate.config), inside

    def _tell(self, candidate: Candidate, fold: int) -> None:
        status = f"{candidate.words}, fold {fold + 1}"
        if self.board.complete:
            best = self.board.winner
            status += f" · best so far {best.candidate.words}: {self.board.auc(best):.3f}"
        # In tenths of a second of estimated work, so that the bar tells the time left.
        self.watcher.tried(round(10 * self.done), round(10 * self.planned), status)


def _read_fold(path: Path, rows: int) -> tuple[np.ndarray, float]:
    arrays = read_arrays(path)
    scores, seconds = arrays.get("scores"), arrays.get("seconds")
    if scores is None or seconds is None or scores.shape != (rows,) or seconds.shape != (1,):
        raise OnesidedError(
            f"{path} is damaged. Delete it, and give the same command again; only this fold is "
            "trained again."
        )
    return scores, float(seconds[0])
