"""Images as the browser gets them: the file itself, or a smaller copy."""

from __future__ import annotations

import io

from spinal.data.images import read_image
from spinal.label.store.pictures import Picture

#: Smaller files are sent to the browser unchanged; larger ones are scaled down to `SHOWN` pixels.
PLAIN_BYTES, PLAIN_PIXELS = 1 << 20, 4_000_000
SHOWN = 1600
_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


def show(picture: Picture) -> tuple[bytes, str]:
    """Content and media type for the browser: the file itself, or a smaller copy.

    Raises:
        DataError: if it cannot be decoded.
    """
    if picture.bytes <= PLAIN_BYTES and picture.width * picture.height <= PLAIN_PIXELS:
        return picture.path.read_bytes(), _TYPES[picture.format]
    return shrink(picture, SHOWN, quality=88), "image/jpeg"


def shrink(picture: Picture, side: int, quality: int = 80) -> bytes:
    """A JPEG of a picture with no side longer than ``side``.

    Raises:
        DataError: if it cannot be decoded.
    """
    image = read_image(picture.path, side)
    image.thumbnail((side, side))
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=quality)
    return packed.getvalue()
