"""The protocol of encoders."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.errors import SpinalError

#: Items per call of `Encoder.embed`.
BATCH = 32


class EncoderError(SpinalError, ValueError):
    """An encoder does not exist, lacks a package or weights, or does not return vectors."""


@runtime_checkable
class Encoder(Protocol):
    """Turns items (images, texts) into vectors of D numbers.

    Two encoders with the same name and fingerprint must return the same vectors: stored vectors are
    looked up by name, fingerprint and content.

    Attributes:
        name: the name for `load_encoder`.
        fingerprint: a short text that changes whenever the vectors may change, that is, with
            settings, weights and code.
        width: D.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def width(self) -> int: ...

    def prepare(self, item: Any) -> Any:
        """Turn one item, or the content of its file as bytes, into the input of `embed`.

        Called from several threads.

        Raises:
            DataError: if the item cannot be used, with the reason.
        """

    def embed(self, prepared: Sequence[Any]) -> NDArray[np.float32]:
        """The vectors ``[N, D]`` of N prepared items."""


def encode(encoder: Encoder, items: Sequence[Any] | NDArray) -> NDArray[np.float32]:
    """The vectors ``[N, D]`` of N items, computed in batches and not stored."""
    parts = [np.empty((0, encoder.width), np.float32)]
    for start in range(0, len(items), BATCH):
        parts.append(encoder.embed([encoder.prepare(x) for x in items[start : start + BATCH]]))
    return np.concatenate(parts)


def hash_of_weights(settings: str, weights: Mapping[str, Tensor]) -> str:
    """A fingerprint: 16 hexadecimal digits that change with the settings and with all weights."""
    digest = hashlib.blake2b(settings.encode(), digest_size=8)
    for key, value in sorted(weights.items()):
        digest.update(key.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
