"""Texts as vectors, without any download: TF-IDF of words, reduced by an SVD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from spinal.errors import DataError

#: With at least this many texts, a word has to occur in two of them.
_MANY = 100


class TfidfSVD:
    """Encodes texts as at most D numbers each; fitted to texts without labels.

    Word counts are replaced by ``1 + log(count)`` times the inverse document frequency, and scaled
    to length 1. English stop words are left out.

    Args:
        texts: Texts to fit to: the pool.
        components: D.

    Raises:
        DataError: If the texts share no words.
    """

    def __init__(self, texts: Sequence[str], components: int = 128) -> None:
        min_df = 2 if len(texts) >= _MANY else 1
        self._words = TfidfVectorizer(sublinear_tf=True, min_df=min_df, stop_words="english")
        try:
            counts = self._words.fit_transform(texts)
        except ValueError as error:  # an empty vocabulary
            raise DataError(f"{len(texts)} texts without words to compare ({error})") from error
        self._svd = TruncatedSVD(min(components, *counts.shape), random_state=0).fit(counts)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        if hasattr(texts, "columns"):
            raise DataError("a table, but the pool holds texts: give its column of texts")
        return self._svd.transform(self._words.transform(texts)).astype(np.float32)

    def arrays(self) -> tuple[list[str], NDArray[np.float32], NDArray[np.float32]]:
        """The V words, their inverse document frequencies ``[V]``, and components ``[V, D]``."""
        components = np.ascontiguousarray(self._svd.components_.T, np.float32)
        return (
            self._words.get_feature_names_out().tolist(),
            self._words.idf_.astype(np.float32),
            components,
        )
