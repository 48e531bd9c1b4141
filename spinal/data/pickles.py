"""Pickles that hold only dicts, lists, strings, numbers and NumPy arrays.

The Python version of CIFAR-10 is a pickle, and a pickle can call any function while it is read.
This reader allows a short list of functions and refuses a file that names another one.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from spinal.errors import FileFormatError


def _encode(text: str, encoding: str = "utf-8") -> bytes:
    """Python 3 writes bytes in protocol 2 as a call of ``_codecs.encode(text, "latin1")``."""
    if encoding not in ("latin1", "latin-1", "utf-8"):
        raise pickle.UnpicklingError(f"encoding {encoding!r}")
    return text.encode(encoding)


def _dtype(kind: Any, align: Any = False, copy: Any = True) -> np.dtype:
    """Always a copy, since the file goes on to modify the type that it gets."""
    return np.dtype(kind, bool(align), True)


# The functions that NumPy itself names when it pickles an array (protocols up to 4, and 5).
_reconstruct: Any = np.empty(0).__reduce__()[0]
_from_buffer: Any = np.empty(0).__reduce_ex__(5)[0]

_ALLOWED: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): np.ndarray,
    # NumPy 2 moved numpy.core to numpy._core; files name either.
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def load_plain_pickle(content: bytes, where: str | Path) -> Any:
    """Read a pickle of plain data; byte strings of Python 2 are returned as bytes."""
    try:
        return _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a damaged pickle can fail in any way
        raise FileFormatError(f"{where}: not a whole pickle of plain data: {error}") from error
