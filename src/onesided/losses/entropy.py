"""Entropy of the classifier's predictions, to be minimised.

| symbol | code              | meaning             |
|--------|-------------------|---------------------|
| f(x)   | softmax(`logits`) | class probabilities |
| H(f)   | `mean_entropy`    | -sum f log f        |
"""

from jaxtyping import Float
from torch import Tensor


def mean_entropy(logits: Float[Tensor, "n 2"]) -> Float[Tensor, ""]:
    """Return the mean entropy of the predicted class probabilities, in nats.

    The regularisation named below Eq. 14 of the NcPU paper. Descending it makes the
    classifier take sides, so that pseudo targets do not linger at one half.
    """
    # exp(log p) * log p is 0 for a vanishing p; p.log() would be -inf and the product NaN.
    log_probability = logits.log_softmax(dim=1)
    return -(log_probability.exp() * log_probability).sum(dim=1).mean()
