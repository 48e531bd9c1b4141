"""Texts as vectors of their words: what a fitted TF-IDF with SVD computes, in plain operations.

`spinal export PROJECT --to model` puts a copy of this file beside the weights; it needs nothing but
NumPy and safetensors:

    import words
    encode = words.load("words.safetensors")
    features = encode(["a text", "another one"])    # float32 [N, D]
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

FORMAT = "spinal.words/1"
#: A word: two or more letters, digits or underscores.
WORD = re.compile(r"\b\w\w+\b")


class Words:
    r"""Encodes texts by the words of a vocabulary.

    A word that occurs :math:`n > 0` times in a text has the weight
    :math:`(1 + \log n) \cdot \mathrm{idf}`; the weights of a text, scaled to length 1, are
    multiplied by ``components``.

    Args:
        vocabulary: V words, in lower case.
        idf: the inverse document frequency of each, ``[V]``.
        components: ``[V, D]``.
    """

    def __init__(
        self, vocabulary: Sequence[str], idf: NDArray[np.float32], components: NDArray[np.float32]
    ) -> None:
        self.vocabulary, self.idf, self.components = list(vocabulary), idf, components
        self._places = {word: i for i, word in enumerate(self.vocabulary)}

    @property
    def width(self) -> int:
        """D."""
        return self.components.shape[1]

    def leave_out(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        """The K different words of a text, and the vectors ``[K, D]`` of the text without each."""
        places, counts = self.count(text)
        weights = (1 + np.log(counts)) * self.idf[places]
        parts = weights[:, None] * self.components[places]
        lengths = np.sqrt(np.maximum((weights**2).sum() - weights**2, 1e-12))
        vectors = (parts.sum(0) - parts) / lengths[:, None]
        return [self.vocabulary[i] for i in places], vectors.astype(np.float32)

    def count(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places in the vocabulary of a text's words, ``[K]``, and how often each occurs."""
        counts = Counter(w for w in WORD.findall(text.lower()) if w in self._places)
        places = np.array([self._places[word] for word in counts], np.int64)
        return places, np.array(list(counts.values()), np.int64)

    def combine(self, places: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vector ``[D]`` of a text with these words; zeros if there are none."""
        weights = (1 + np.log(counts)) * self.idf[places]
        length = np.sqrt((weights**2).sum())
        return ((weights / max(length, 1e-12)) @ self.components[places]).astype(np.float32)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        vectors = [self.combine(*self.count(text)) for text in texts]
        return np.stack(vectors) if vectors else np.empty((0, self.width), np.float32)


def load(path: str | Path) -> Words:
    """Read a file of words; nothing is unpickled."""
    with safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            raise ValueError(f"{path}: not a file of words (format {metadata.get('format')!r})")
        idf, components = file.get_tensor("idf"), file.get_tensor("components")
    said = metadata.get("sha256", "")
    content = Path(path).read_bytes().replace(said.encode(), b"0" * 64, 1)
    if said and hashlib.sha256(content).hexdigest() != said:  # with zeros in its place
        raise ValueError(f"{path}: damaged (its checksum is not the one in its head)")
    return Words(json.loads(metadata["header"])["vocabulary"], idf, components)
