"""A review of one run: what comes next, what was answered, and how far reviewers agree.

The page, Python and simulated reviewers use this object. Everything that people said is in the
run's journal of answers (`storage/answer_journal.py`); a session only remembers what it read there.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from onesided.core.config import nearest, read_toml
from onesided.core.errors import ConfigError, DataError, DataNotFound, OnesidedError
from onesided.core.monitor import Monitor
from onesided.review import strategies
from onesided.review.agreement import PairAgreement, agreement, working_seconds
from onesided.review.features import Features, stored_features
from onesided.review.items import ShownItems, open_items
from onesided.review.strategies import DIVERSE, LIKELY, RANDOM, UNCERTAIN
from onesided.run.config import RunConfig, with_new_names
from onesided.run.evaluate import read_pool
from onesided.run.folder import CONFIG, MANIFEST, read_result
from onesided.storage.answer_journal import UNDONE, AnswerJournal, now, standing
from onesided.storage.answers import ANSWERS, Answer, MergedAnswers, is_sure, merge_answers
from onesided.storage.atomic import read_json
from onesided.storage.names import shown_path

AUDIT, SECOND, BROWSED = "audit", "second opinion", "browsed"
"""Reasons to show an item beside the strategies."""
LEASE = 600.0
"""Seconds during which an item that was shown to one reviewer is not shown to another."""
LONGEST_NAME = 60
RECENT = 20
"""Decided answers that tell whether positives still come."""
CONTESTED, OPEN = "contested", "open"
SHOWN = (OPEN, *ANSWERS, CONTESTED)
"""Which items a reviewer wants to see, by what was answered."""


@dataclass(frozen=True)
class Pick:
    """An item to look at, and why.

    Attributes:
        item: Its name.
        row: Its place in the ranking, from 0 on.
        score: The model's score; None where the reviewer is not to see it.
        strategy: Why it is shown, as it is stored with the answer.
        why: The same as a sentence.
    """

    item: str
    row: int
    score: float | None
    strategy: str
    why: str


@dataclass(frozen=True)
class Wanted:
    """Which items a reviewer wants to see.

    Attributes:
        low: Lowest score.
        high: Highest score.
        text: A part of the name, capitals or not.
        answered: One of `SHOWN`: open ones, or those with this answer.
    """

    low: float = 0.0
    high: float = 1.0
    text: str = ""
    answered: str = OPEN


@dataclass(frozen=True)
class Progress:
    """What was done so far, by everybody.

    Attributes:
        items: How many there are: the pool, or what was drawn for an audit.
        answered: How many have an answer.
        counts: Answer to number of items, as it holds after all reviewers.
        contested: On how many items reviewers disagree.
        seconds: How long people worked.
        own: How many answers of this reviewer hold.
        recent: How many of the last decided answers, at most 20, are positive, and how many they
            are: where hardly any is, it is time to train or to stop.
    """

    items: int
    answered: int
    counts: Mapping[str, int]
    contested: int
    seconds: float
    own: int
    recent: tuple[int, int] = (0, 0)

    @property
    def found_per_hour(self) -> float | None:
        """Confirmed positives per hour of work; None before there is an hour's tenth of work."""
        if self.seconds < 360:
            return None
        return self.counts.get("positive", 0) / (self.seconds / 3600)


@dataclass
class _State:
    """What the journal says, worked out once for each change."""

    entries: int = -1
    holding: list[Answer] = field(default_factory=list)
    merged: MergedAnswers = field(default_factory=lambda: MergedAnswers((), ()))
    settled: dict[str, Answer] = field(default_factory=dict)
    contested: frozenset[str] = frozenset()
    by: dict[str, dict[str, Answer]] = field(default_factory=dict)


class Session:
    """A review of a finished run; several threads may use it, and several processes the run.

    Args:
        run: Folder of a finished run.
        reviewer: Who answers, where nobody else is named.
        drawn: Names of the items to answer, in their order, where this is an audit.
        blind: Whether scores are hidden.
        seed: Of the random order.
        monitor: Receives notices and progress.
    """

    def __init__(
        self,
        run: str | Path,
        *,
        reviewer: str = "me",
        drawn: Sequence[str] | None = None,
        blind: bool = False,
        seed: int = 0,
        monitor: Monitor | None = None,
    ) -> None:
        self.run, self.seed, self.blind = Path(run), seed, blind
        self.monitor = monitor or Monitor()
        self.reviewer = _checked_name(reviewer)
        self.result = read_result(self.run)
        self.threshold = float(self.result["threshold"])
        pool = read_pool(self.run, threshold=self.threshold)
        self.items = tuple(pool)
        self.scores = np.array(list(pool.values()))
        self.row_of = {item: row for row, item in enumerate(self.items)}
        self.drawn = None if drawn is None else np.array([self._row(item) for item in drawn])
        self.round = _round_of(self.run)
        self._journal = AnswerJournal(self.run)
        self._state = _State()
        self._shown: dict[int, tuple[str, float]] = {}
        self._lock, self._reading = threading.RLock(), threading.Lock()
        self._now()  # a damaged journal is refused before anybody looks at an item

    @cached_property
    def config(self) -> RunConfig:
        """The settings of the run."""
        path = self.run / CONFIG
        if not path.exists():
            raise DataNotFound(
                f"There is no {shown_path(path)}, so nobody knows where the items of this run "
                "are. Restore it from a copy."
            )
        return RunConfig.from_settings(with_new_names(read_toml(path)), str(path))

    @cached_property
    def shown_items(self) -> ShownItems:
        """The items as people see them."""
        return open_items(self.run, self.config.data)

    @property
    def features(self) -> Features | None:
        """Stored features of all items; None where the run has none."""
        with self._reading:  # two threads would read them twice
            return self._features

    @cached_property
    def _features(self) -> Features | None:
        try:
            with self.monitor.phase("reading features") as phase:
                return stored_features(self.run, self.config, self.items, phase)
        except OnesidedError as error:
            self.monitor.note(f"Items that look alike cannot be found: {error}")
            return None

    def next(
        self,
        count: int = 1,
        *,
        strategy: str = "mixed",
        reviewer: str | None = None,
        wanted: Wanted | None = None,
        second_opinion: bool = False,
    ) -> list[Pick]:
        """Return the next items to look at; fewer, or none, where no more are left.

        Args:
            count: How many.
            strategy: likely, uncertain, diverse, random, mixed, or weights: likely:3,random:1.
            reviewer: Who asks; others are not given the same items for some minutes.
            wanted: Which items to choose from.
            second_opinion: Show what others answered and this reviewer did not.
        """
        who, wanted = _checked_name(reviewer or self.reviewer), wanted or Wanted()
        weights = strategies.parse_strategy(strategy)
        if wanted.answered not in SHOWN:
            raise ConfigError(
                f"'{wanted.answered}' is none of {', '.join(SHOWN)}."
                f"{nearest(wanted.answered, SHOWN)}"
            )
        with self._lock:
            state = self._now()
            rows = self._candidates(state, who, wanted, second_opinion)
            if self.drawn is not None:
                left = set(rows.tolist())
                chosen = [(int(row), AUDIT) for row in self.drawn if row in left][:count]
            elif second_opinion:
                order = strategies.at_random(len(self.items), rows, seed=self.seed)
                chosen = [(int(row), SECOND) for row in order[:count]]
            elif wanted.answered != OPEN:
                latest = {each.item: place for place, each in enumerate(state.merged.answers)}
                again = sorted(rows.tolist(), key=lambda row: -latest[self.items[row]])
                chosen = [(row, BROWSED) for row in again[:count]]
            else:
                chosen = self._by_strategy(state, rows, weights, count)
            until = time.monotonic() + LEASE
            self._shown |= {row: (who, until) for row, _ in chosen}
        return [self.pick(row, why) for row, why in chosen]

    def _candidates(
        self, state: _State, who: str, wanted: Wanted, second_opinion: bool
    ) -> np.ndarray:
        """Return the rows that fit what is wanted, in ascending order."""
        text, moment = wanted.text.strip().casefold(), time.monotonic()
        own = state.by.get(who, {})
        audited = {each.item for each in state.holding if each.strategy == AUDIT}

        def fits(row: int) -> bool:
            item = self.items[row]
            if text and text not in item.casefold():
                return False
            holder, until = self._shown.get(row, (who, 0.0))
            taken = holder != who and until > moment
            settled = state.settled.get(item)
            if second_opinion:
                return item not in own and settled is not None and settled.answer != "skip"
            if self.drawn is not None:
                return item not in audited
            if wanted.answered == CONTESTED:
                return item in state.contested
            if wanted.answered != OPEN:
                return settled is not None and settled.answer == wanted.answered
            done = settled is not None and settled.answer != "skip"
            return not done and item not in own and not taken

        rows = np.arange(len(self.items)) if self.drawn is None else np.sort(self.drawn)
        inside = (self.scores[rows] >= wanted.low) & (self.scores[rows] <= wanted.high)
        return np.array([row for row in rows[inside].tolist() if fits(row)], np.int64)

    def _by_strategy(
        self, state: _State, rows: np.ndarray, weights: dict[str, int], count: int
    ) -> list[tuple[int, str]]:
        if DIVERSE in weights and self.features is None:
            if len(weights) == 1:
                raise ConfigError(
                    "This run has no stored features, so nobody can tell which items look alike. "
                    "Choose likely, uncertain or random; a run on a frozen backbone, on numbers "
                    "or on texts has features."
                )
            weights = {name: weight for name, weight in weights.items() if name != DIVERSE}
        answered = [self.row_of[each.item] for each in state.holding]
        make: dict[str, Callable[[], np.ndarray]] = {
            LIKELY: lambda: strategies.likely(self.scores, rows),
            UNCERTAIN: lambda: strategies.uncertain(self.scores, rows, threshold=self.threshold),
            RANDOM: lambda: strategies.at_random(len(self.items), rows, seed=self.seed),
            DIVERSE: lambda: self._diverse(rows, answered, count),
        }
        orders = {name: make[name]().tolist() for name in weights}
        return strategies.interleave(orders, weights, count)

    def _diverse(self, rows: np.ndarray, answered: list[int], count: int) -> np.ndarray:
        assert self.features is not None
        known = np.array(answered, np.int64)
        return strategies.diverse(
            self.scores, self.features, rows, known, count=count, threshold=self.threshold
        )

    def pick(self, row: int, strategy: str) -> Pick:
        """Return an item of the ranking as something to look at."""
        score = None if self.blind else float(self.scores[row])
        return Pick(self.items[row], row, score, strategy, self._why(row, strategy))

    def _why(self, row: int, strategy: str) -> str:
        if self.blind and strategy not in (AUDIT, SECOND):
            return "Scores are hidden."
        place = f"place {row + 1:,} of {len(self.items):,}"
        likely = f"Likely positive: {place} of the ranking."
        if self.scores[row] <= self.threshold:
            likely = f"Likeliest of those left: {place}, below the threshold."
        return {
            LIKELY: likely,
            UNCERTAIN: f"Uncertain: its score is near the threshold {self.threshold:.3g}.",
            DIVERSE: f"Diverse: {place}, and unlike what was answered so far.",
            RANDOM: "Random: drawn from the whole pool.",
            AUDIT: "Audit: drawn at random to check the model.",
            SECOND: "Second opinion: somebody else answered it.",
        }.get(strategy, f"Chosen by you: {place}.")

    def answer(
        self, item: str, answer: str, *, reviewer: str | None = None, strategy: str = ""
    ) -> Answer:
        """Store what a reviewer says of an item; it is on the disk when this returns.

        A reviewer may answer again; the last answer counts.

        Args:
            item: Its name, as in `scores.csv`.
            answer: positive, negative, unsure or skip.
            reviewer: Who says so.
            strategy: Why the item was shown.
        """
        if answer not in ANSWERS:
            raise DataError(
                f"The answer '{answer}' is none of {', '.join(ANSWERS)}.{nearest(answer, ANSWERS)}"
            )
        self._row(item)
        who = _checked_name(reviewer or self.reviewer)
        with self._lock:
            before = self._now().by.get(who, {}).get(item)
            if strategy == BROWSED and before is not None:
                strategy = before.strategy  # a correction; the item was shown for another reason
            if self.drawn is not None:
                strategy = AUDIT
            given = Answer(item, answer, who, now(), strategy, self.round)
            self._journal.append([given])
        return given

    def add(self, answers: Iterable[Answer]) -> None:
        """Store answers that were given elsewhere."""
        with self._lock:
            self._journal.append(answers)

    def undo(self, reviewer: str | None = None) -> Answer | None:
        """Take back the last answer of a reviewer and return it; None where there is none.

        What the reviewer said of this item before holds again.
        """
        who = _checked_name(reviewer or self.reviewer)
        with self._lock:
            own = [each for each in self._now().holding if each.reviewer == who]
            if self.drawn is not None:
                own = [each for each in own if each.strategy == AUDIT]
            if not own:
                return None
            last = own[-1]
            undone = Answer(last.item, UNDONE, who, now(), last.strategy, self.round)
            self._journal.append([undone])
            return last

    def answers(self) -> list[Answer]:
        """Return the answers that hold, of all reviewers, in the order in which they were given."""
        with self._lock:
            return list(self._now().holding)

    def entries(self) -> list[Answer]:
        """Return everything that was ever answered or undone."""
        with self._lock:
            return list(self._journal.entries())

    def merged(self) -> MergedAnswers:
        """Return the answers of all reviewers, and where they disagree."""
        with self._lock:
            return self._now().merged

    def own_answer(self, item: str, reviewer: str) -> str | None:
        """Return what a reviewer says of an item, None if nothing."""
        with self._lock:
            given = self._now().by.get(reviewer, {}).get(item)
        if given is None or (self.drawn is not None and given.strategy != AUDIT):
            return None
        return given.answer

    def settled_answer(self, item: str) -> str | None:
        """Return what all reviewers together say of an item, None if nothing."""
        with self._lock:
            settled = self._now().settled.get(item)
        return None if settled is None else settled.answer

    def agreement(self) -> list[PairAgreement]:
        """Return how far each two reviewers agree on the items that both decided."""
        return agreement(self.answers())

    def progress(self, reviewer: str | None = None) -> Progress:
        """Return what was done so far."""
        who = _checked_name(reviewer or self.reviewer)
        with self._lock:
            state = self._now()
            entries = self._journal.entries()
        settled = state.settled
        if self.drawn is not None:
            drawn = {self.items[row] for row in self.drawn}
            holding = [each for each in state.holding if each.strategy == AUDIT]
            settled = merge_answers({"": holding}).settled()
            settled = {item: each for item, each in settled.items() if item in drawn}
            entries = [each for each in entries if each.strategy == AUDIT]
        counts = {word: 0 for word in ANSWERS}
        for each in settled.values():
            counts[each.answer] += 1
        latest = [each for each in state.holding if is_sure(each)][-RECENT:]
        return Progress(
            items=len(self.items) if self.drawn is None else len(self.drawn),
            answered=len(settled),
            counts=counts,
            contested=len(state.contested),
            seconds=working_seconds(entries),
            own=len(state.by.get(who, {})),
            recent=(sum(each.answer == "positive" for each in latest), len(latest)),
        )

    def similar(self, row: int, *, count: int = 6) -> list[int]:
        """Return the rows of the items that look most like one; [] where no features are stored."""
        if self.features is None:
            return []
        found: list[int] = strategies.similar(self.features, row, count=count).tolist()
        return found

    def _row(self, item: str) -> int:
        if item not in self.row_of:
            raise DataError(f"'{item}' is not in the pool of {self.run}. Use names of scores.csv.")
        return self.row_of[item]

    def _now(self) -> _State:
        """Return what holds now; other processes may have answered meanwhile."""
        entries = self._journal.entries()
        if self._state.entries != len(entries):
            # Answers of an earlier training in this folder may name items that are gone.
            holding = [each for each in standing(entries) if each.item in self.row_of]
            merged = merge_answers({"": holding})
            by: dict[str, dict[str, Answer]] = {}
            for each in holding:
                by.setdefault(each.reviewer, {})[each.item] = each
            contested = frozenset(conflict.item for conflict in merged.conflicts)
            self._state = _State(len(entries), holding, merged, merged.settled(), contested, by)
        return self._state


def decided(answers: Mapping[str, Answer]) -> dict[str, str]:
    """Return item to positive or negative, of the items that people decided."""
    return {item: each.answer for item, each in answers.items() if is_sure(each)}


def _checked_name(name: str) -> str:
    shown = " ".join(name.split())
    if not shown or len(shown) > LONGEST_NAME or not shown.isprintable():
        raise ConfigError(
            f"A reviewer's name has 1 to {LONGEST_NAME} letters; got {name[: 2 * LONGEST_NAME]!r}."
        )
    return shown


def _round_of(run: Path) -> int:
    """Return how many rounds of review a run is the result of, and this one."""
    if not (run / MANIFEST).exists():
        return 1
    number = read_json(run / MANIFEST).get("round", 1)
    return number if type(number) is int and number >= 1 else 1
