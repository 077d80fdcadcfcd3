"""Shapes of the tensors of a batch, by name, for the signatures of methods."""

from jaxtyping import Bool, Float, Int64
from torch import Tensor

Scalar = Float[Tensor, ""]
RowValues = Float[Tensor, "batch"]
RowMask = Bool[Tensor, "batch"]
RowIntegers = Int64[Tensor, "batch"]  # classes, or positions in the batch
TwoColumns = Float[Tensor, "batch 2"]  # logits, probabilities or targets: NEGATIVE, POSITIVE
Embeddings = Float[Tensor, "batch dim"]
PairMask = Bool[Tensor, "batch batch"]
