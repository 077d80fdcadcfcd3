"""auto: the settings of a search among methods; `run.search` does it."""

from typing import ClassVar

from pydantic import Field

from onesided.core.batch import DataFacts
from onesided.core.errors import ContractError
from onesided.methods.base import Card, Method, MethodConfig
from onesided.nets.standardise import Backbone


class AutoConfig(MethodConfig):
    """Settings of the search."""

    minutes: float = Field(default=2.0, gt=0, le=10_000)
    """Time to spend, as two idle cores would need it. It decides which candidates are tried and
    how long they train. It is planned by the amount of data and not by a clock, so that a stopped
    search resumes to the same result."""
    folds: int = Field(default=5, ge=2, le=50)
    """Parts of the data; each is scored by models that were trained on the others."""
    candidates: tuple[str, ...] = ()
    """Methods to try, by name; none given means all that the time allows."""
    also: tuple[str, ...] = ()
    """Methods to try beside these, whatever they cost."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="auto",
        summary="Tries simple methods first and larger ones as time allows, and keeps the best by "
        "cross-validated proxy AUC.",
        citation="Ours. Correction of the winner's figure: Tsamardinos, Greasidou, Borboudakis, "
        "Bootstrapping the out-of-sample predictions for efficient and accurate cross-validation, "
        "Machine Learning 2018.",
        fidelity="There is no publication to be faithful to.",
        licence="Ours, under Apache-2.0 like the whole library.",
        good_at="Data that nobody tuned anything for: it is the default.",
        bad_at="Repeating a publication: choose its method and the preset paper.",
        variants={},
        logs={},
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> Method:
        """Never called: the search builds its candidates."""
        raise ContractError("auto is a search among methods and has no model of its own.")
