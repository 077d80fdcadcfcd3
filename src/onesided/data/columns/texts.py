"""Texts as vectors without a download: TF-IDF, then latent semantic analysis.

Deerwester et al., Indexing by Latent Semantic Analysis (1990): the singular vectors of the
matrix of words and texts are directions in which words that occur together lie together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from onesided.core.rng import fingerprint

MOST_WORDS, MOST_DIRECTIONS = 20_000, 256
ROWS_PER_DIRECTION = 8
"""A direction that few texts decide is noise, so small tables have fewer."""
_TFIDF = {"strip_accents": "unicode", "sublinear_tf": True, "dtype": np.float32}


@dataclass(frozen=True)
class TextVectors:
    """Words with their weights, and the directions on which they are projected."""

    words: tuple[str, ...]
    idf: Float32[np.ndarray, "words"]
    components: Float32[np.ndarray, "directions words"]

    def transform(self, texts: Sequence[str]) -> Float[np.ndarray, "n directions"]:
        """Return one vector for each text; zeros for one without any known word."""
        weighted = self._weights.transform(texts)
        projected: np.ndarray = weighted @ self.components.T
        return projected.astype(np.float32)

    @cached_property
    def _weights(self) -> Any:  # noqa: ANN401 - scikit-learn has no types
        from sklearn.feature_extraction.text import TfidfVectorizer

        weights = TfidfVectorizer(vocabulary=self.words, **_TFIDF)
        weights.idf_ = self.idf
        return weights


def fit_texts(texts: Sequence[str], *, seed: int, name: str) -> TextVectors:
    """Return vectors fitted to these texts; without directions where they share no words.

    Args:
        texts: Of the training rows.
        seed: Of the run; a randomised decomposition finds the directions.
        name: Of the column, a coordinate of the seed.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(min_df=2, max_features=MOST_WORDS, **_TFIDF)
    try:
        weighted = vectorizer.fit_transform(texts)
    except ValueError:  # no word is in two texts
        return TextVectors((), np.empty(0, np.float32), np.empty((0, 0), np.float32))
    words = tuple(vectorizer.get_feature_names_out().tolist())
    wanted = max(1, len(texts) // ROWS_PER_DIRECTION)
    directions = min(MOST_DIRECTIONS, wanted, len(words))
    svd = TruncatedSVD(directions, random_state=fingerprint(seed, "texts", name) % 2**32)
    svd.fit(weighted)
    # Where texts repeat each other, the last directions are rounding noise.
    found = svd.components_[svd.singular_values_ > 1e-4 * svd.singular_values_[0]]
    # As the model's file will hold them, so that a loaded model gives the same scores.
    return TextVectors(
        words, vectorizer.idf_.astype(np.float32), np.ascontiguousarray(found, np.float32)
    )
