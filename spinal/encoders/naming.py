"""Names of encoders, such as ``timm:resnet18@128=weights.safetensors``, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from safetensors import SafetensorError, safe_open

from spinal.encoders.encoder import EncoderError
from spinal.encoders.images import TRUNK_FORMAT, ImageEncoder, Trunk
from spinal.networks.network import choose_device


@dataclass(frozen=True)
class EncoderName:
    """A name in its parts: ``PLAIN@SIZE=WEIGHTS``.

    Attributes:
        plain: the name without size and weights.
        size: what follows ``@``; for images, the side in pixels to which they are scaled.
        weights: a safetensors file.
        device: where to compute; ``auto`` takes an accelerator if there is one.
    """

    plain: str
    size: int | None = None
    weights: Path | None = None
    device: str = "auto"


def parse_name(name: str) -> EncoderName:
    """Take a name apart."""
    name, _, weights = name.partition("=")
    path = Path(weights).expanduser() if weights else None
    plain, at, size = name.rpartition("@")
    if at and size.isdecimal() and int(size) > 0:
        return EncoderName(plain, int(size), path)
    return EncoderName(name, None, path)


def finish(
    name: EncoderName,
    trunk: Trunk,
    default_size: int,
    *,
    resample: Image.Resampling = Image.Resampling.BICUBIC,
    source: str = "",
) -> ImageEncoder:
    """An image encoder of that name, with the weights that it gives.

    Args:
        name: of the encoder.
        trunk: its network.
        default_size: side of its images in pixels, unless the name gives another.
        resample: how images are scaled.
        source: the code that made the network, if it is not part of a package.
    """
    size = name.size or default_size
    full_name = name.plain if size == default_size else f"{name.plain}@{size}"
    if name.weights is not None:
        _fill(trunk, name.weights, name.plain)
        full_name += f"={name.weights}"
    device = choose_device(name.device)
    return ImageEncoder(full_name, trunk, size, resample=resample, device=device, source=source)


def _fill(trunk: Trunk, weights: Path, name: str) -> None:
    """Load a safetensors file: tensors alone, nothing is unpickled."""
    try:
        with safe_open(str(weights), framework="pt") as file:
            whole = (file.metadata() or {}).get("format") == TRUNK_FORMAT
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise EncoderError(
            f"{weights}: not a safetensors file ({error}); "
            "safetensors.torch.save_file(model.state_dict(), ...) writes one"
        ) from error
    if not whole and ":" not in name:
        raise EncoderError(f"{name} has its own weights: leave {weights} away")
    if whole:
        trunk.mean, trunk.std = tensors.pop("mean"), tensors.pop("std")
        tensors = {key.removeprefix("body."): value for key, value in tensors.items()}
    elif name.startswith("timm:"):
        # The weights of its classifier, which is not there, may be left over.
        known = trunk.body.state_dict()
        tensors = {key: value for key, value in tensors.items() if key in known}
    try:
        trunk.body.load_state_dict(tensors)
    except RuntimeError as error:
        raise EncoderError(f"{weights}: the weights do not fit {name} ({error})") from error
