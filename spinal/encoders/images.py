"""From an image to the vector that is kept of it: by a pretrained network, or its pixels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from spinal.data.images import flatten_mode, upright
from spinal.errors import SpinalError
from spinal.files import write_tensors

#: Images that go through the network at a time.
BATCH = 32
#: The format of a file with all weights of a `Trunk`.
TRUNK_FORMAT = "spinal.trunk/1"


class BackboneError(SpinalError, ValueError):
    """A backbone that is not there, lacks a package or weights, or gives no feature vectors."""


class Trunk(nn.Module):
    """From pixels to features, as one module: what `Backbone` computes and an export contains.

    Args:
        body: maps float ``[N, 3, S, S]`` to ``[N, D]``, or to ``[N, D, H, W]``, which is averaged
            over H and W.
        mean: taken off each channel, in units of 0..255.
        std: by which what is left is divided.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, body: nn.Module, mean: float | Sequence[float], std: float | Sequence[float]
    ) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("mean", torch.tensor(mean).float().view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).float().view(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """uint8 ``[N, S, S, 3]`` to float32 ``[N, D]``."""
        x = (pixels.permute(0, 3, 1, 2).float() - self.mean) / self.std
        z = self.body(x)
        return z.mean((2, 3)) if z.ndim == 4 else z


class Backbone:
    """A frozen network with all that belongs before it: image in, feature vector out.

    An image is turned upright, made RGB on a white background, and stretched to S x S: the network
    sees all that the person who labels it sees.

    Args:
        name: what `load_backbone` made it from.
        trunk: the network.
        size: S.
        resample: how images are scaled.
        device: where to compute.
        source: the code that made the network, if it is not part of a package.

    Attributes:
        features: D, the length of a feature vector.
        dtype: of its numbers.
        fingerprint: 16 hexadecimal digits that differ where features may differ: of the name, the
            scaling, all weights, and the source.
    """

    dtype: ClassVar = np.dtype("<f4")

    def __init__(
        self,
        name: str,
        trunk: Trunk,
        size: int,
        *,
        resample: Image.Resampling = Image.Resampling.BICUBIC,
        device: str | torch.device = "cpu",
        source: str = "",
    ) -> None:
        self.name, self.size, self.resample, self.source = name, size, resample, source
        self.device = torch.device(device)
        self.trunk = trunk.eval().requires_grad_(False)
        self.fingerprint = self._fingerprint(source)
        self.trunk.to(self.device)
        try:
            probe = self.embed(np.zeros((2, size, size, 3), np.uint8))
        except (RuntimeError, TypeError, ValueError) as error:
            raise BackboneError(f"{name}: does not take images of {size} px ({error})") from error
        self.features = probe.shape[1]

    def __repr__(self) -> str:
        return f"Backbone({self.name!r}: {self.size} px to {self.features} features)"

    def compute(self, images: Sequence[Image.Image | NDArray[np.uint8]] | NDArray) -> NDArray:
        """The features, float32 ``[N, D]``, of PIL images, or uint8 ``[H, W]`` or ``[H, W, C]``."""
        parts = [np.empty((0, self.features), np.float32)]
        for start in range(0, len(images), BATCH):
            prepared = [self.prepare(image) for image in images[start : start + BATCH]]
            parts.append(self.embed(np.stack(prepared)))
        return np.concatenate(parts)

    def prepare(self, image: Image.Image | NDArray[np.uint8]) -> NDArray[np.uint8]:
        """One image as the network wants it: uint8 ``[S, S, 3]``."""
        return _prepared(image, self.size, self.resample)

    @torch.inference_mode()
    def embed(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The features ``[N, D]`` of prepared images, uint8 ``[N, S, S, 3]``."""
        z = self.trunk(torch.from_numpy(pixels).to(self.device))
        if not isinstance(z, Tensor) or z.ndim != 2 or len(z) != len(pixels):
            shape = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise BackboneError(
                f"{self.name}: gives {shape} for {len(pixels)} images; it should give one feature "
                "vector each, [N, D], or [N, D, H, W] to be averaged"
            )
        return z.float().cpu().numpy()

    def save_weights(self, path: Path) -> None:
        """Write all weights as a file that can be named after a backbone: ``NAME=FILE``."""
        write_tensors(path, self.trunk.state_dict(), TRUNK_FORMAT, {})

    def _fingerprint(self, source: str) -> str:
        known = hashlib.blake2b(digest_size=8)
        name = self.name.partition("=")[0]  # weights count by what they are, not where
        known.update(f"{name} {self.size} {self.resample.name} {source}".encode())
        for key, value in sorted(self.trunk.state_dict().items()):
            known.update(key.encode())
            known.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return known.hexdigest()


class RawImages:
    """Images themselves, small: what a network sees that is trained on them.

    It stands where a `Backbone` does in a `spinal.encoders.FeatureCache`, which then keeps each
    image as 3 S S bytes.

    Args:
        size: S.
        resample: how images are scaled.
    """

    dtype: ClassVar = np.dtype(np.uint8)

    def __init__(self, size: int, resample: Image.Resampling = Image.Resampling.BICUBIC) -> None:
        self.name, self.size, self.resample = f"images@{size}", size, resample
        self.fingerprint = resample.name.lower()
        self.features = 3 * size * size

    def prepare(self, image: Image.Image | NDArray[np.uint8]) -> NDArray[np.uint8]:
        """One image, uint8 ``[S, S, 3]``."""
        return _prepared(image, self.size, self.resample)

    def embed(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Images ``[N, S, S, 3]`` as vectors ``[N, 3 S S]``."""
        return pixels.reshape(len(pixels), -1)


def _prepared(
    image: Image.Image | NDArray[np.uint8], size: int, resample: Image.Resampling
) -> NDArray[np.uint8]:
    """An image upright, RGB on white, and stretched: uint8 ``[size, size, 3]``."""
    if not isinstance(image, Image.Image):
        if image.dtype != np.uint8:
            raise BackboneError(f"images of type {image.dtype}: give uint8 arrays")
        image = Image.fromarray(image.squeeze(-1) if image.shape[2:] == (1,) else image)
    image = flatten_mode(upright(image), 3)
    return np.asarray(image.resize((size, size), resample))
