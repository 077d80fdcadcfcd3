import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.trees.impurity import (
    LOGISTIC,
    NON_NEGATIVE,
    QUADRATIC,
    UNBIASED,
    Risk,
    impurities,
    impurity,
    is_settled,
    majority,
    masses,
)

INF = math.inf


def risk(
    estimator: int = NON_NEGATIVE,
    loss: int = QUADRATIC,
    *,
    prior: float = 0.4,
    labelled: int = 4,
    unlabelled: int = 10,
) -> Risk:
    return Risk(prior / labelled, 1 / unlabelled, estimator, loss)


# n_p = 4, n_u = 10, pi = .4: P and U in the node, W_p, W_n, answer, and the risk that is left
# with quadratic nnPU, quadratic uPU and logistic nnPU.
FACTS = [
    (4, 10, 0.4, 0.6, -1, 0.96, 0.96, 0.6730116670),
    (1, 5, 0.1, 0.4, -1, 0.32, 0.32, 0.2502012118),
    (3, 5, 0.3, 0.2, 1, 0.48, 0.48, 0.3365058335),
    (1, 2, 0.1, 0.1, 0, 0.2, 0.2, 0.1386294361),
    (3, 2, 0.3, -0.1, 1, 0.0, -0.6, 0.0),
    (2, 0, 0.2, -0.2, 1, 0.0, -INF, 0.0),
    (0, 3, 0.0, 0.3, -1, 0.0, 0.0, 0.0),
]
every_fact = pytest.mark.parametrize(
    ("labelled", "unlabelled", "w_p", "w_n", "answer", "nnpu", "upu", "logistic"), FACTS
)


@every_fact
def test_a_node_has_the_masses_the_answer_and_the_risk_of_the_table(
    labelled: int,
    unlabelled: int,
    w_p: float,
    w_n: float,
    answer: int,
    nnpu: float,
    upu: float,
    logistic: float,
) -> None:
    assert masses(risk(), labelled, unlabelled) == pytest.approx((w_p, w_n))
    assert majority(risk(), labelled, unlabelled) == answer
    assert impurity(risk(), labelled, unlabelled) == pytest.approx(nnpu, abs=1e-12)
    assert impurity(risk(UNBIASED), labelled, unlabelled) == pytest.approx(upu, abs=1e-12)
    with_logistic = risk(NON_NEGATIVE, LOGISTIC)
    assert impurity(with_logistic, labelled, unlabelled) == pytest.approx(logistic, abs=1e-10)


def test_unbiased_logistic_risk_has_no_bottom_where_p_outweighs_u() -> None:
    assert impurity(risk(UNBIASED, LOGISTIC), 3, 2) == -INF
    assert impurity(risk(UNBIASED, LOGISTIC), 2, 0) == -INF
    assert impurity(risk(UNBIASED, LOGISTIC), 3, 5) == pytest.approx(0.3365058335, abs=1e-10)


@pytest.mark.parametrize(("loss", "gain"), [(QUADRATIC, 0.16), (LOGISTIC, 0.0863046217)])
def test_a_split_reduces_the_risk_by_what_its_children_no_longer_have(
    loss: int, gain: float
) -> None:
    chosen = risk(NON_NEGATIVE, loss)
    reduced = impurity(chosen, 4, 10) - impurity(chosen, 1, 5) - impurity(chosen, 3, 5)
    assert reduced == pytest.approx(gain, abs=1e-10)


@given(
    prior=st.floats(0.01, 0.99),
    labelled=st.integers(1, 5000),
    unlabelled=st.integers(1, 90_000),
    estimator=st.sampled_from([NON_NEGATIVE, UNBIASED]),
)
def test_the_root_depends_on_the_prior_alone(
    prior: float, labelled: int, unlabelled: int, estimator: int
) -> None:
    quadratic = risk(estimator, prior=prior, labelled=labelled, unlabelled=unlabelled)
    left = impurity(quadratic, labelled, unlabelled)
    assert left == pytest.approx(4 * prior * (1 - prior), rel=1e-9)
    logistic = quadratic._replace(loss=LOGISTIC)
    entropy = -prior * math.log(prior) - (1 - prior) * math.log(1 - prior)
    assert impurity(logistic, labelled, unlabelled) == pytest.approx(entropy, rel=1e-9)


@pytest.mark.parametrize(("labelled", "unlabelled"), [(4, 10), (1, 5), (3, 5), (1, 2), (1, 9)])
def test_no_constant_answer_risks_less_than_the_impurity(labelled: int, unlabelled: int) -> None:
    w_p, w_n = masses(risk(), labelled, unlabelled)
    answers = np.linspace(-6, 6, 120_001)
    quadratic = w_p * (1 - answers) ** 2 + w_n * (1 + answers) ** 2
    assert impurity(risk(), labelled, unlabelled) == pytest.approx(quadratic.min(), abs=1e-8)
    logistic = w_p * np.log1p(np.exp(-answers)) + w_n * np.log1p(np.exp(answers))
    chosen = risk(NON_NEGATIVE, LOGISTIC)
    assert impurity(chosen, labelled, unlabelled) == pytest.approx(logistic.min(), abs=1e-8)


@given(split=st.tuples(*[st.integers(0, n) for n in (20, 60)]), loss=st.sampled_from([0, 1]))
def test_a_split_of_a_node_with_u_in_the_majority_never_adds_risk(
    split: tuple[int, int], loss: int
) -> None:
    chosen = risk(NON_NEGATIVE, loss, prior=0.3, labelled=20, unlabelled=60)
    children = impurity(chosen, *split) + impurity(chosen, 20 - split[0], 60 - split[1])
    assert children <= impurity(chosen, 20, 60) + 1e-12


@pytest.mark.parametrize("loss", [QUADRATIC, LOGISTIC])
def test_non_negative_nodes_are_settled_when_one_side_is_all_that_is_left(loss: int) -> None:
    settled = [is_settled(risk(NON_NEGATIVE, loss), *fact[:2]) for fact in FACTS]
    assert settled == [False, False, False, False, True, True, True]


@pytest.mark.parametrize(("loss", "where_p_outweighs_u"), [(QUADRATIC, False), (LOGISTIC, True)])
def test_unbiased_nodes_go_on_until_a_count_is_zero_or_the_risk_without_bottom(
    loss: int, where_p_outweighs_u: bool
) -> None:
    settled = [is_settled(risk(UNBIASED, loss), *fact[:2]) for fact in FACTS]
    assert settled == [False, False, False, False, where_p_outweighs_u, True, True]


def test_a_mass_that_is_zero_but_for_rounding_counts_as_zero() -> None:
    chosen = risk(prior=0.3, labelled=3, unlabelled=10)
    negative = masses(chosen, 3, 3)[1]
    assert 0 < abs(negative) < 1e-15
    assert is_settled(chosen, 3, 3)
    assert impurity(chosen._replace(estimator=UNBIASED, loss=LOGISTIC), 3, 3) == 0


def test_equal_masses_are_no_majority_even_after_rounding() -> None:
    chosen = risk(prior=0.3, labelled=3, unlabelled=10)
    positive, negative = masses(chosen, 1, 2)
    assert positive != negative
    assert majority(chosen, 1, 2) == 0


def test_many_nodes_at_once_are_as_one_by_one() -> None:
    labelled, unlabelled = (np.array([fact[place] for fact in FACTS]) for place in (0, 1))
    found = impurities(risk(UNBIASED), labelled, unlabelled)
    assert found.tolist() == [impurity(risk(UNBIASED), *fact[:2]) for fact in FACTS]
