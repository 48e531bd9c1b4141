"""Arrays of numbers in MATLAB files of version 5, compressed or not.

After a header of 128 bytes, a file is a sequence of elements: type and size, 32 bits each, then
the data, padded to a multiple of 8 bytes. Data of up to 4 bytes follow a type and a size of 16 bits
each. An array is an element that contains elements: flags, sizes, name, numbers in Fortran order.
Every size is checked before it is used, so a damaged file is always refused.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.errors import FileFormatError

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
#: Types of numbers as they are stored.
_STORED = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
#: Types of numbers in MATLAB, by the class of the array.
_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
    15: "u8",
}  # fmt: skip
_IS_COMPLEX = 0x0800
#: The highest compression ratio of Deflate.
_RATIO = 1032


def read_matlab(
    content: NDArray[np.uint8], names: Collection[str], where: str | Path
) -> dict[str, NDArray]:
    """The variables with these names, as far as the file contains them.

    Args:
        content: the bytes of the file.
        names: names of variables that are arrays of real numbers.
        where: the file, for errors.

    Raises:
        FileFormatError: if the file is damaged, of another version, or holds something else under
            one of the names.
    """
    try:
        return _read(content.data, names)
    except (ValueError, IndexError, KeyError, zlib.error) as error:
        raise FileFormatError(f"{where}: corrupt MATLAB file ({error})") from error


def _read(content: memoryview, names: Collection[str]) -> dict[str, NDArray]:
    mark = bytes(content[126:128])
    if len(content) < _HEADER or mark not in (b"IM", b"MI"):
        raise ValueError("no header of version 5")
    order = "<" if mark == b"IM" else ">"
    if (version := int(np.frombuffer(content[124:126], f"{order}u2")[0])) != 0x0100:
        raise ValueError(f"version {version:#x}, expected 0x100; save it with -v7")
    arrays = {}
    for kind, element in _elements(content[_HEADER:], order):
        if kind == _COMPRESSED:
            kind, element = _decompress(element, order)
        if kind == _MATRIX and (found := _read_matrix(element, order, names)):
            arrays[found[0]] = found[1]
    return arrays


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and bytes of each element."""
    at = 0
    while at + 8 <= len(content):
        kind, size = (int(n) for n in np.frombuffer(content[at : at + 8], f"{order}u4"))
        start = at + 8
        if kind >> 16:  # a small element: size and type share the first four bytes
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            if size > 4:
                raise ValueError(f"{size} bytes instead of 4")
        if start + size > len(content):
            raise ValueError(f"an element of {size} bytes where {len(content) - start} are left")
        yield kind, content[start : start + size]
        end = start + size
        at = end if kind == _COMPRESSED else end + -end % 8


def _decompress(content: memoryview, order: str) -> tuple[int, memoryview]:
    """Type and bytes of the element inside a compressed element."""
    stream = zlib.decompressobj()
    head = stream.decompress(content, 8)
    kind, size = (int(n) for n in np.frombuffer(head, f"{order}u4"))
    if size > _RATIO * len(content):
        raise ValueError(f"{size} bytes from {len(content)} compressed ones")
    inside = stream.decompress(stream.unconsumed_tail, size) if size else b""
    if len(inside) < size:
        raise ValueError(f"{len(inside)} of {size} bytes")
    return kind, memoryview(inside)


def _read_matrix(
    content: memoryview, order: str, names: Collection[str]
) -> tuple[str, NDArray] | None:
    """Name and numbers of an array; None if its name was not requested."""
    elements = list(islice(_elements(content, order), 4))
    if len(elements) < 4:
        raise ValueError("an array without numbers")
    (_, flags), (_, sizes), (_, letters), (kind, data) = elements
    name = bytes(letters).decode("latin-1")
    if name not in names:
        return None
    flag = int(np.frombuffer(flags[:4], f"{order}u4")[0])
    if flag & 0xFF not in _CLASSES or flag & _IS_COMPLEX:
        raise ValueError(f"{name} is no array of real numbers")
    shape = [int(n) for n in np.frombuffer(sizes, f"{order}i4")]
    stored = np.dtype(order + _STORED[kind])
    if min(shape, default=-1) < 0 or math.prod(shape) * stored.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes for {name} of shape {shape}")
    numbers = np.frombuffer(data, stored).reshape(shape, order="F")
    return name, numbers.astype(_CLASSES[flag & 0xFF], order="K", copy=False)
