"""Names of encoders, such as ``timm:resnet18@128=weights.safetensors``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EncoderName:
    """The parts of a name: ``PLAIN@SIZE=WEIGHTS``.

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
    """Split a name into its parts."""
    name, _, weights = name.partition("=")
    path = Path(weights).expanduser() if weights else None
    plain, at, size = name.rpartition("@")
    if at and size.isdecimal() and int(size) > 0:
        return EncoderName(plain, int(size), path)
    return EncoderName(name, None, path)
