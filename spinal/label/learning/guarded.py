"""Encoders whose images are decoded in separate processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.encoders import Encoder, ImageEncoder, RawImages
from spinal.label.store.decoding import Decoders


def guard(encoder: Encoder, decoders: Decoders) -> Encoder:
    """The same encoder, with image files decoded in other processes."""
    if isinstance(encoder, ImageEncoder | RawImages):
        return _GuardedEncoder(encoder, decoders)
    return encoder


class _GuardedEncoder:
    def __init__(self, encoder: ImageEncoder | RawImages, decoders: Decoders) -> None:
        self._encoder, self._decoders = encoder, decoders
        self.name, self.fingerprint = encoder.name, encoder.fingerprint
        self.width = encoder.width

    def prepare(self, item: Any) -> NDArray[np.uint8]:
        if isinstance(item, bytes):
            item = self._decoders.to_square(item, self._encoder.size, self._encoder.resample)
        return self._encoder.prepare(item)

    def embed(self, prepared: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return self._encoder.embed(prepared)
