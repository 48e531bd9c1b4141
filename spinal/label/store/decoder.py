"""The process that decodes images for `spinal.label.store.decoding`.

``python -m spinal.label.store.decoder BYTES`` uses at most this much memory, if the system can
limit it. It reads requests from standard input, one after the other: a line of JSON and the content
of an image file. It replies with a line of JSON and the result.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from typing import Any

from PIL import Image

from spinal.data.images import describe, read_image, webp_size
from spinal.errors import DataError

#: Bytes that decoding WebP takes for each pixel.
_WEBP_BYTES = 20


def limit_memory(n_bytes: int) -> None:
    """Make allocations beyond this limit fail. Has no effect on Windows and macOS."""
    try:
        import resource
    except ImportError:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def check_memory(content: bytes, max_bytes: int) -> None:
    """Raise MemoryError for a WebP file that is too large: its decoder would not say why."""
    if (size := webp_size(content[:30])) and _WEBP_BYTES * size[0] * size[1] > max_bytes:
        raise MemoryError


def decode(content: bytes, request: dict[str, Any]) -> bytes:
    """The result of a request: a small JPEG, or the pixels of the image scaled to a square."""
    side = request["side"]
    if request["make"] == "jpeg":
        image = read_image(content, side)
        image.thumbnail((side, side))
        packed = io.BytesIO()
        image.save(packed, "JPEG", quality=request["quality"])
        return packed.getvalue()
    image = read_image(content, 2 * side)  # decode a JPEG at twice the size, then scale
    return image.resize((side, side), Image.Resampling(request["resample"])).tobytes()


def main(max_bytes: int) -> None:
    """Reply to requests until standard input ends."""
    limit_memory(max_bytes)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request = json.loads(line)
        try:
            content = requests.read(request["bytes"])
            check_memory(content, max_bytes)
            result = decode(content, request)
            reply: dict[str, Any] = {"bytes": len(result)}
        except (DataError, MemoryError) as error:
            result, reply = b"", {"error": describe(error)}
        replies.write(json.dumps(reply).encode() + b"\n" + result)
        replies.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
