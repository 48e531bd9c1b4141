"""Encoders of images: a pretrained network, or the pixels themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from spinal.data.images import flatten_mode, read_image, upright
from spinal.encoders.encoder import Encoder, EncoderError, hash_of_weights
from spinal.encoders.naming import EncoderName
from spinal.errors import DataError
from spinal.files import check_tensors, write_tensors
from spinal.networks.network import choose_device

#: The format of a file with all weights of a `Trunk`.
TRUNK_FORMAT = "spinal.trunk/1"

#: An image: from Pillow, uint8 ``[H, W]`` or ``[H, W, C]``, or the content of a file.
SomeImage = Image.Image | NDArray[np.uint8] | bytes


class Trunk(nn.Module):
    """From pixels to features, as one module: the network of an `ImageEncoder`.

    Args:
        body: maps float ``[N, 3, S, S]`` to ``[N, D]``, or to ``[N, D, H, W]``, which is averaged
            over H and W.
        mean: subtracted from each channel, in units of 0..255.
        std: each channel is then divided by this.
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


class ImageEncoder:
    """A frozen network, with the scaling of images before it.

    An image is rotated upright, converted to RGB on a white background, and stretched to S x S. It
    is not cropped: the network sees everything that the annotator sees.

    Args:
        name: the name for `spinal.encoders.load_encoder`.
        trunk: the network, a `Trunk` or several side by side.
        size: S, the side of the scaled images in pixels.
        resample: how images are scaled.
        device: where to compute.
        source: the code that built the network, if it is not part of a package.

    Attributes:
        width: D, the length of a feature vector.
        fingerprint: 16 hexadecimal digits, a hash of the name, the scaling, all weights and the
            source.
    """

    def __init__(
        self,
        name: str,
        trunk: nn.Module,
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
            raise EncoderError(f"{name}: does not take images of {size} px ({error})") from error
        self.width = probe.shape[1]

    def __repr__(self) -> str:
        return f"ImageEncoder({self.name!r}: {self.size} px to {self.width} numbers)"

    def prepare(self, item: SomeImage) -> NDArray[np.uint8]:
        """The scaled image, uint8 ``[S, S, 3]``."""
        return _scaled(item, self.size, self.resample)

    @torch.inference_mode()
    def embed(self, prepared: Sequence[NDArray[np.uint8]] | NDArray) -> NDArray[np.float32]:
        """The features ``[N, D]`` of prepared images, uint8 ``[N, S, S, 3]``."""
        pixels = np.asarray(prepared)
        z = self.trunk(torch.from_numpy(pixels).to(self.device))
        if not isinstance(z, Tensor) or z.ndim != 2 or len(z) != len(pixels):
            shape = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise EncoderError(
                f"{self.name}: gives {shape} for {len(pixels)} images; it should give one feature "
                "vector per image, [N, D], or [N, D, H, W] to be averaged"
            )
        return z.float().cpu().numpy()

    def as_raw_images(self) -> RawImages:
        """An encoder that returns the images, scaled as here, to train a network on them."""
        return RawImages(self.size, self.resample)

    def save_weights(self, path: Path) -> None:
        """Write all weights to a file for use as ``NAME=FILE``; see `load_encoder`."""
        write_tensors(path, self.trunk.state_dict(), TRUNK_FORMAT, {})

    def _fingerprint(self, source: str) -> str:
        name = self.name.partition("=")[0]  # the weights are hashed, not their path
        settings = f"{name} {self.size} {self.resample.name} {source}"
        return hash_of_weights(settings, self.trunk.state_dict())


class RawImages:
    """The scaled images themselves, for a network that is trained on them.

    The numbers are whole, from 0 to 255, so a `spinal.encoders.FeatureCache` can store them as
    bytes.

    Args:
        size: S, the side of the scaled images in pixels.
        resample: how images are scaled.

    Attributes:
        width: 3 S S.
    """

    def __init__(self, size: int, resample: Image.Resampling = Image.Resampling.BICUBIC) -> None:
        self.name, self.size, self.resample = f"images@{size}", size, resample
        self.fingerprint = resample.name.lower()
        self.width = 3 * size * size

    def prepare(self, item: SomeImage) -> NDArray[np.uint8]:
        """The scaled image, uint8 ``[S, S, 3]``."""
        return _scaled(item, self.size, self.resample)

    def embed(self, prepared: Sequence[NDArray[np.uint8]] | NDArray) -> NDArray[np.float32]:
        """Images ``[N, S, S, 3]`` as vectors ``[N, 3 S S]``."""
        return np.asarray(prepared, np.float32).reshape(len(prepared), -1)


def build_image_encoder(
    name: EncoderName,
    trunk: Trunk,
    default_size: int,
    *,
    resample: Image.Resampling = Image.Resampling.BICUBIC,
    source: str = "",
) -> ImageEncoder:
    """An image encoder, with the size and the weights that its name gives.

    Args:
        name: name of the encoder.
        trunk: its network.
        default_size: side of its images in pixels, unless the name gives another.
        resample: how images are scaled.
        source: the code that built the network, if it is not part of a package.
    """
    size = name.size or default_size
    full_name = name.plain if size == default_size else f"{name.plain}@{size}"
    if name.weights is not None:
        _fill(trunk, name.weights, name.plain)
        full_name += f"={name.weights}"
    device = choose_device(name.device)
    return ImageEncoder(full_name, trunk, size, resample=resample, device=device, source=source)


def require_images(encoder: Encoder) -> ImageEncoder:
    """Check that an encoder is an `ImageEncoder`, and return it.

    Raises:
        EncoderError: if it is not.
    """
    if not isinstance(encoder, ImageEncoder):
        raise EncoderError(f"{encoder.name}: not a network on images, which is needed here")
    return encoder


def _scaled(item: SomeImage, size: int, resample: Image.Resampling) -> NDArray[np.uint8]:
    """An image upright, RGB on white, and stretched: uint8 ``[size, size, 3]``."""
    if isinstance(item, bytes):
        image = read_image(item, 2 * size)  # decode a JPEG at twice the size, then scale
    elif isinstance(item, Image.Image):
        image = flatten_mode(upright(item), 3)
    elif item.dtype == np.uint8:
        grey = item.shape[2:] == (1,)
        image = flatten_mode(Image.fromarray(item.squeeze(-1) if grey else item), 3)
    else:
        raise DataError(f"images of type {item.dtype}: give uint8 arrays")
    return np.asarray(image.resize((size, size), resample))


def _fill(trunk: Trunk, weights: Path, name: str) -> None:
    """Load weights from a safetensors file; nothing is unpickled."""
    try:
        with safe_open(str(weights), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise EncoderError(
            f"{weights}: not a safetensors file ({error}); "
            "safetensors.torch.save_file(model.state_dict(), ...) writes one"
        ) from error
    check_tensors(weights, metadata)
    whole = metadata.get("format") == TRUNK_FORMAT
    if not whole and ":" not in name:
        raise EncoderError(f"{name} has its own weights: leave out {weights}")
    if whole:
        trunk.mean, trunk.std = tensors.pop("mean"), tensors.pop("std")
        tensors = {key.removeprefix("body."): value for key, value in tensors.items()}
    elif name.startswith("timm:"):
        # The file may also hold the weights of a classifier, which this network does not have.
        own = trunk.body.state_dict()
        tensors = {key: value for key, value in tensors.items() if key in own}
    try:
        trunk.body.load_state_dict(tensors)
    except RuntimeError as error:
        raise EncoderError(f"{weights}: the weights do not fit {name} ({error})") from error
