"""TF-IDF with SVD as an encoder, fitted to the texts of a pool and stored in a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError

from spinal.data.texts import TfidfSVD
from spinal.encoders.words import FORMAT, Words, load
from spinal.errors import DataError, FileFormatError
from spinal.files import write_tensors

#: The name of this encoder in a project of texts. `load_encoder` cannot load it: it must be fitted.
NAME = "tfidf-svd"
#: The encoder is fitted to at most this many texts, drawn at random.
_MOST = 50_000


class TfidfEncoder:
    """Encodes texts by their words; see `Words`.

    Args:
        words: the fitted vocabulary and components.

    Attributes:
        name: `NAME`.
        fingerprint: a hash of the words and all numbers.
    """

    name = NAME

    def __init__(self, words: Words) -> None:
        self.words = words
        digest = hashlib.blake2b("\n".join(words.vocabulary).encode(), digest_size=8)
        digest.update(words.idf.tobytes())
        digest.update(words.components.tobytes())
        self.fingerprint = digest.hexdigest()

    @property
    def width(self) -> int:
        """D."""
        return self.words.width

    @classmethod
    def fit(cls, texts: Sequence[str], components: int = 128, seed: int = 0) -> TfidfEncoder:
        """Fit to texts; if there are many, to a random sample of them.

        Raises:
            DataError: if the texts share no words.
        """
        if len(texts) > _MOST:
            drawn = np.random.default_rng(seed).choice(len(texts), _MOST, replace=False)
            texts = [texts[i] for i in np.sort(drawn)]
        return cls(Words(*TfidfSVD(texts, components).arrays()))

    @classmethod
    def load(cls, path: Path) -> TfidfEncoder:
        """Read an encoder that `save` wrote.

        Raises:
            FileFormatError: if it is damaged.
        """
        try:
            return cls(load(path))
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            raise FileFormatError(f"{path}: damaged ({error}); delete it") from error

    def save(self, path: Path) -> None:
        """Write a file, atomically."""
        tensors = {
            "idf": torch.from_numpy(self.words.idf),
            "components": torch.from_numpy(self.words.components),
        }
        write_tensors(path, tensors, FORMAT, {"vocabulary": self.words.vocabulary})

    def prepare(self, item: str | bytes) -> str:
        """The text."""
        return read_text(item)

    def embed(self, prepared: Sequence[str]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N texts."""
        return self.words(prepared)


def read_text(item: str | bytes) -> str:
    """A text, from a string or from the bytes of a file.

    Raises:
        DataError: if it is not UTF-8.
    """
    try:
        return item.decode() if isinstance(item, bytes) else item
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8 text") from error
