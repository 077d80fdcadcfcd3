"""One tree, compiled: nodes from a stack, rows sorted in place, one feature after the other.

All trees share the matrix, which is stored feature by feature and never copied. A node is a range
of `rows`, its labelled rows first, both kinds in ascending order, so that a column is read from
front to back. Working memory: two row numbers and four values per row, one number per feature.

A tree spends most of its time waiting for main memory: a node of some hundred rows waits for nearly
every cache line of a column. So columns are fetched four at a time, which waits for four at once,
and the rest works on a compact copy.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, Shaped, UInt32, UInt64

from onesided.kernels.compiled import compiled
from onesided.trees.impurity import Risk, impurity, is_settled, majority

LEAF = -1
AT_ONCE = 4
"""Columns fetched together; with eight, writing costs more time than is saved."""
BLOCK = 128
"""Comparisons that are counted in eight bits before they are summed."""

# SplitMix64 (Steele, Lea, Flood 2014): one word of state, the same numbers on every machine.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BY_30, BY_27, BY_31, BY_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class Limits(NamedTuple):
    """How many splits a node tries, and when it becomes a leaf."""

    features: int
    """Varying features tried per node."""
    candidates: int
    """Random cuts per feature."""
    depth: int
    """A node this deep is a leaf; the root has depth 0."""
    samples: int
    """A node of at most this many rows is a leaf."""


class Part(NamedTuple):
    """A node on the stack."""

    start: int
    """Where its rows begin."""
    labelled: int
    """How many of them are labelled positive; they come first."""
    unlabelled: int
    """How many are not."""
    depth: int
    """Steps from the root."""
    varying: int
    """Features not known to be constant here: as many at the front of `order`."""
    parent: int
    """The node whose right child it is, or -1."""


class Split(NamedTuple):
    """The best cut of a node: its feature (LEAF if there is none), and the counts on the left."""

    feature: int
    cut: float
    labelled: int
    unlabelled: int
    varying: int


class Tree(NamedTuple):
    """A tree, node after node: a left child follows its parent, `right` finds the other."""

    feature: Int32[np.ndarray, "nodes"]
    cut: Float64[np.ndarray, "nodes"]
    right: Int64[np.ndarray, "nodes"]
    positive: Bool[np.ndarray, "nodes"]
    labelled: Int32[np.ndarray, "nodes"]
    unlabelled: Int32[np.ndarray, "nodes"]


class Work(NamedTuple):
    """Working memory of one tree."""

    rows: UInt32[np.ndarray, "rows"]
    """Row numbers; every node is a range of them."""
    spare: UInt32[np.ndarray, "rows"]
    """Memory to divide them."""
    values: Shaped[np.ndarray, "ahead rows"]
    """The next few features of a node's rows."""
    ahead: Int64[np.ndarray, "ahead"]
    """Which features these are."""
    places: Int64[np.ndarray, "ahead"]
    """Where they are in `order`."""
    order: Int64[np.ndarray, "features"]
    """All features; those that vary in the current node come first."""
    random: UInt64[np.ndarray, "1"]
    """State of the random numbers."""


@compiled
def random_number(state: UInt64[np.ndarray, "1"], ahead: int) -> float:
    """Return the random number in [0, 1) after `ahead` others, without drawing any of them."""
    word = state[0] + GAMMA * np.uint64(ahead + 1)
    word = (word ^ (word >> BY_30)) * FIRST
    word = (word ^ (word >> BY_27)) * SECOND
    word = word ^ (word >> BY_31)
    return float(word >> BY_11) * 2.0**-53


@compiled
def draw(state: UInt64[np.ndarray, "1"]) -> float:
    """Return the next random number in [0, 1)."""
    number = random_number(state, 0)
    state[0] += GAMMA
    return number


@compiled
def gather(
    columns: Shaped[np.ndarray, "features rows"],
    features: Int64[np.ndarray, "k"],
    rows: UInt32[np.ndarray, "n"],
    values: Shaped[np.ndarray, "at_least_k at_least_n"],
) -> None:
    """Copy a node's values of a few features side by side."""
    if len(features) == AT_ONCE:
        first, second = columns[features[0]], columns[features[1]]
        third, fourth = columns[features[2]], columns[features[3]]
        for i in range(len(rows)):
            row = rows[i]
            values[0, i], values[1, i] = first[row], second[row]
            values[2, i], values[3, i] = third[row], fourth[row]
        return
    for k in range(len(features)):
        column = columns[features[k]]
        for i in range(len(rows)):
            values[k, i] = column[rows[i]]


@compiled
def cut_range(values: Shaped[np.ndarray, "n"]) -> tuple[float, float]:
    """Return the range of cuts; equal ends mean a constant feature.

    PUET: [a + .4 (b - a), c + .6 (e - c)] for the two smallest (a < b) and the two largest
    (c < e) distinct values, so that no child is empty. In double precision: twice 200 is
    144 in the eight bits of a pixel.
    """
    # In this form the CPU compares 32 pixels at a time.
    lowest = highest = values[0]
    for value in values:
        lowest = value if value < lowest else lowest
        highest = value if value > highest else highest
    second, second_last = highest, lowest
    for value in values:
        above = value if value > lowest else highest
        second = above if above < second else second
        below = value if value < highest else lowest
        second_last = below if below > second_last else second_last
    a, b, c, e = float(lowest), float(second), float(second_last), float(highest)
    return a + 0.4 * (b - a), c + 0.6 * (e - c)


@compiled
def last_on_the_left(values: Shaped[np.ndarray, "n"], cut: float) -> float:
    """Return the largest number of the values' own type that is not above a cut.

    The CPU compares 32 pixels of eight bits at a time, but only 4 in double precision. Cuts of
    pixels are not negative.
    """
    kind = values.dtype.type
    limit: float = kind(cut)
    if limit > cut:  # a pixel is rounded down, a float32 to the nearest
        limit = kind(np.nextafter(limit, np.float32(-np.inf)))
    return limit


@compiled
def count_left(values: Shaped[np.ndarray, "n"], cut: float) -> int:
    """Return how many values lie on the left of a cut, or on it."""
    limit = last_on_the_left(values, cut)
    count = 0
    for start in range(0, len(values), BLOCK):
        few: Any = np.uint8(0)
        for value in values[start : start + BLOCK]:
            few = np.uint8(few + (value <= limit))
        count += few
    return count


@compiled
def divide(
    column: Shaped[np.ndarray, "rows"],
    rows: UInt32[np.ndarray, "n"],
    cut: float,
    spare: UInt32[np.ndarray, "rows"],
) -> None:
    """Move the rows that go left to the front; both sides keep their order."""
    left = right = 0
    for row in rows:
        # Written to both sides, of which one advances: a branch would often be mispredicted.
        rows[left] = spare[right] = row
        goes_left = column[row] <= cut
        left += goes_left
        right += not goes_left
    for i in range(right):  # assigning a slice would cost ten seconds of compilation
        rows[left + i] = spare[i]


@compiled
def fetch_ahead(
    columns: Shaped[np.ndarray, "features rows"],
    rows: UInt32[np.ndarray, "n"],
    work: Work,
    undrawn: int,
    count: int,
    candidates: int,
) -> None:
    """Fetch the next `count` features that are drawn, if each of them turns out to vary.

    A varying feature takes one random number for itself and one per cut, so the next ones are
    known in advance; `order` does not change.
    """
    order, ahead, places = work.order, work.ahead[:count], work.places[:count]
    for k in range(count):
        last = undrawn - k - 1
        place = int(random_number(work.random, k * (1 + candidates)) * (last + 1))
        order[place], order[last] = order[last], order[place]
        ahead[k], places[k] = order[last], place
    for k in range(count - 1, -1, -1):
        place, last = places[k], undrawn - k - 1
        order[place], order[last] = order[last], order[place]
    gather(columns, ahead, rows, work.values)


@compiled
def choose_split(
    columns: Shaped[np.ndarray, "features rows"], part: Part, work: Work, risk: Risk, limits: Limits
) -> Split:
    """Return the random cut that leaves the least risk, among a few features that vary.

    Features are drawn without replacement and dropped if they are constant, which gives a uniform
    draw among those that vary. A constant one goes to the end of `order`, which the subtree does
    not use: a subtree only reorders the features that it uses, so its sibling finds the same.
    """
    size = part.labelled + part.unlabelled
    rows, order = work.rows[part.start : part.start + size], work.order
    feature, best, labelled, unlabelled, least = LEAF, 0.0, 0, 0, np.inf
    varying, undrawn, found = part.varying, part.varying, 0
    fetched, used, careful = 0, 0, False
    while found < limits.features and undrawn > 0:
        if used == fetched:
            # One at a time after a constant feature: there may be more of them.
            most = 1 if careful else AT_ONCE
            fetched, used = min(most, undrawn, limits.features - found), 0
            fetch_ahead(columns, rows, work, undrawn, fetched, limits.candidates)
        place = int(draw(work.random) * undrawn)
        drawn = order[place]
        undrawn -= 1
        order[place] = order[undrawn]
        values = work.values[used, :size]
        used += 1
        low, high = cut_range(values)
        careful = low == high
        if careful:
            varying -= 1
            order[undrawn], order[varying] = order[varying], drawn
            fetched = used  # the features after it were fetched in vain
            continue
        order[undrawn] = drawn
        found += 1
        for _ in range(limits.candidates):
            cut = low + draw(work.random) * (high - low)
            p = count_left(values[: part.labelled], cut)
            u = count_left(values[part.labelled :], cut)
            remaining = impurity(risk, p, u)
            remaining += impurity(risk, part.labelled - p, part.unlabelled - u)
            if remaining < least:
                feature, best, labelled, unlabelled, least = drawn, cut, p, u, remaining
    return Split(feature, best, labelled, unlabelled, varying)


@compiled
def _fill(
    tree: Tree,
    columns: Shaped[np.ndarray, "features rows"],
    root: Part,
    work: Work,
    risk: Risk,
    limits: Limits,
) -> int:
    """Write a tree into arrays that are long enough, and return its number of nodes."""
    nodes = 0
    stack = [root]
    while len(stack) > 0:
        part = stack.pop()
        node, nodes = nodes, nodes + 1
        if part.parent >= 0:
            tree.right[part.parent] = node
        tree.labelled[node], tree.unlabelled[node] = part.labelled, part.unlabelled
        size = part.labelled + part.unlabelled
        split = Split(LEAF, 0.0, 0, 0, 0)
        enough = part.depth < limits.depth and size > limits.samples
        if enough and not is_settled(risk, part.labelled, part.unlabelled):
            split = choose_split(columns, part, work, risk, limits)
        tree.feature[node], tree.cut[node] = split.feature, split.cut
        if split.feature == LEAF:
            answer = majority(risk, part.labelled, part.unlabelled)
            tree.positive[node] = draw(work.random) < 0.5 if answer == 0 else answer > 0
            continue
        here = work.rows[part.start : part.start + size]
        divide(columns[split.feature], here, split.cut, work.spare)
        p, u, depth = split.labelled, split.unlabelled, part.depth + 1
        rest = part.labelled - p, part.unlabelled - u
        # The left child on top: it becomes the next node.
        stack.append(Part(part.start + p + u, rest[0], rest[1], depth, split.varying, node))
        stack.append(Part(part.start, p, u, depth, split.varying, -1))
    return nodes


def grow_tree(
    columns: Shaped[np.ndarray, "features rows"],
    rows: UInt32[np.ndarray, "rows"],
    labelled: int,
    risk: Risk,
    limits: Limits,
    seed: int,
) -> Tree:
    """Return a tree that splits greedily by the PU risk, without a bootstrap.

    PUET, Algorithm 1 without recursion: depth can reach the number of rows.

    Args:
        columns: One row per feature, uint8 or float32.
        rows: All row numbers, labelled ones first, each kind ascending; not changed.
        labelled: How many of them are labelled.
        seed: 64 bits.
    """
    work = Work(
        rows=rows.copy(),
        spare=np.empty_like(rows),
        values=np.empty((AT_ONCE, len(rows)), columns.dtype),
        ahead=np.empty(AT_ONCE, np.int64),
        places=np.empty(AT_ONCE, np.int64),
        order=np.arange(len(columns)),
        random=np.array([seed], dtype=np.uint64),
    )
    # Every leaf has at least one row. Zeros take no memory before they are written to.
    most = 2 * len(rows) - 1
    types = (np.int32, np.float64, np.int64, np.bool_, np.int32, np.int32)
    tree = Tree(*(np.zeros(most, kind) for kind in types))
    root = Part(0, labelled, len(rows) - labelled, 0, len(columns), -1)
    nodes = _fill(tree, columns, root, work, risk, limits)
    return Tree(*(part[:nodes].copy() for part in tree))


@compiled
def add_leaves(
    features: Shaped[np.ndarray, "samples features"],
    roots: Int64[np.ndarray, "trees"],
    feature: Int32[np.ndarray, "nodes"],
    cut: Float64[np.ndarray, "nodes"],
    right: Int64[np.ndarray, "nodes"],
    value: Shaped[np.ndarray, "nodes"],
) -> Float64[np.ndarray, "samples"]:
    """Return for each sample the sum over all trees of its leaf's value, a number or a vote."""
    sums = np.zeros(len(features), np.float64)
    for row in range(len(features)):
        sample = features[row]
        for root in roots:
            node = root
            while feature[node] != LEAF:
                node = node + 1 if sample[feature[node]] <= cut[node] else right[node]
            sums[row] += value[node]
    return sums
