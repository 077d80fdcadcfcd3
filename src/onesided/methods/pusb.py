"""PUSB: P that was chosen with a bias, by the order of the posterior (Kato et al. 2019).

Kato, Teshima, Honda, Learning from Positive and Unlabeled Data with a Selection Bias, ICLR 2019.

| paper               | here                                | paper     | here                     |
|---------------------|-------------------------------------|-----------|--------------------------|
| pi                  | `prior`, share of positives in U    | o = 1     | labelled                 |
| r(x) = p_P / p_U    | an increasing function of `margin`  | theta_pi  | `cut`, as a margin       |

Positives are not labelled at random, so the posterior cannot be found. Its order can, if whoever
is more likely positive is not less likely labelled (invariance of order): p(y=1 | x) and r(x) then
rise together. So r, or pi r by a PU risk with the logistic loss, ranks samples; and the top share
pi of U is called positive, which is right if the prior is.
"""

from typing import ClassVar, Literal

from jaxtyping import Float, Float64
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.clock import Sweep
from onesided.core.labels import POSITIVE
from onesided.losses.classification import margin
from onesided.losses.risk import PURisk, Surrogate, least_squares_ratio, require_prior
from onesided.methods.base import Card
from onesided.methods.risk import Evidence, NNPUConfig, RiskMethod, descended
from onesided.nets.standardise import Backbone
from onesided.state.pool_quantile import PoolQuantile


class PUSBConfig(NNPUConfig):
    """Settings of PUSB; those of nnPU are the settings of its risk."""

    order: Literal["risk", "ratio"] = "risk"
    """What ranks the samples: a PU risk, minimised by pi p_P / p_U, or a least-squares fit of the
    density ratio p_P / p_U."""
    surrogate: Surrogate = "logistic"
    """Loss of the risk. Only the logistic one is minimised by pi p_P / p_U; others keep less of
    the order."""

    card: ClassVar[Card] = Card(
        title="PUSB",
        summary="Ranks by the density ratio of P and U and calls the share of the prior positive.",
        citation="Kato, Teshima, Honda, Learning from Positive and Unlabeled Data with a Selection "
        "Bias, ICLR 2019.",
        fidelity="Written from the paper's mathematics: the order by a PU risk with the logistic "
        "loss or by a density ratio, and the threshold by the quantile of U. The risk is corrected "
        "as in nnPU; the bound that the paper puts on the classifier's output is left out. The "
        "ratio is fitted by a network, where the paper has kernels. The quantile is that of the "
        "training part of U; we are not certain that the paper's experiments took the same part.",
        licence="Ours, under Apache-2.0; we know of no terms of the authors' code and looked at "
        "none of it.",
        good_at="P that is biased towards clear positives, with a known prior.",
        bad_at="A wrong prior; a bias that labels unlikely positives more often than likely ones; "
        "scores as probabilities, which it cannot know.",
        variants={
            "risk": "order by a PU risk (default)",
            "ratio": "order by the density ratio, by least squares",
        },
        logs=NNPUConfig.card.logs,
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "PUSB":
        """Return an untrained PUSB."""
        return PUSB(self, facts, backbone)

    def risk(self, seen: Evidence) -> PURisk:
        """Return the risk whose minimum has the order of the posterior."""
        if self.order == "ratio":
            return descended(least_squares_ratio(seen.margin, seen.labelled))
        return super().risk(seen)


class PUSB(RiskMethod):
    """A classifier whose decision is the top share of U, found when training ends."""

    inference_parts = ("backbone.", "classifier.", "cut.")

    def __init__(self, config: PUSBConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__(config, facts, backbone)
        self.cut = PoolQuantile()

    def finish(self, sweep: Sweep) -> None:
        """Find the margin above which a share pi of the unlabelled training rows lies."""
        assert self.prior is not None, "declared in `needs`, so the run provides it"
        require_prior(self.prior, "PUSB")
        z, labelled = sweep(self._margin)
        self.cut.measure(z[~labelled.to(z.device)], share=self.prior)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return logits, shifted so that a score above 0.5 means: in the top share of U."""
        logits: Tensor = self.classifier(self.backbone(images)).clone()
        logits[:, POSITIVE] -= self.cut.value.to(logits.dtype)
        return logits

    def _margin(self, images: Tensor) -> Float64[Tensor, "n"]:
        return margin(self.classifier(self.backbone(images)).double())
