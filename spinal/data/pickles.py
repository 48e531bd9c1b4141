"""Pickles that hold only dicts, lists, tuples, strings, numbers and NumPy arrays.

The Python version of CIFAR-10 is a pickle, and a pickle can call any function while it is read.
This reader interprets the operations of a pickle itself. It calls no function that the file names,
and checks each size before it creates an array, so a damaged or malicious file is only refused.
"""

from __future__ import annotations

import math
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinal.errors import FileFormatError

_MARK = object()
#: Operations whose argument is the value, and operations with a fixed value.
_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
#: Strings of Python 2, which are bytes.
_OLD_STRINGS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict, "MARK": lambda: _MARK,
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NOTHING = {"PROTO", "FRAME", "STOP"}


class _Name(NamedTuple):
    """A function or class that the file names."""

    module: str
    name: str


class _Type:
    """The type of the numbers in an array."""

    def __init__(self, name: Any) -> None:
        text = name.decode("latin-1") if isinstance(name, bytes) else name
        if not isinstance(text, str) or not re.fullmatch(r"[<>|=]?(b1|[iu][1248]|f[248])", text):
            raise ValueError(f"an array of {text!r}")
        self.dtype = np.dtype(text)

    def build(self, state: Any) -> None:
        """Set the byte order, the second entry of the state."""
        order: Any = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array whose content follows later."""

    value: NDArray | None = None

    def build(self, state: Any) -> None:
        """Set the content: version, shape, type, whether in Fortran order, bytes."""
        _, shape, kind, is_fortran, content = state
        self.value = _make_array(content, kind, shape, "F" if is_fortran else "C")


def load_plain_pickle(content: bytes, where: str | Path) -> Any:
    """Read a pickle of plain data; byte strings of Python 2 are returned as bytes.

    Raises:
        FileFormatError: if it is damaged, or holds anything else.
    """
    try:
        return _finish(_run(content))
    except Exception as error:  # a damaged pickle can fail in any way
        raise FileFormatError(f"{where}: not a complete pickle of plain data: {error}") from error


def _run(content: bytes) -> Any:
    """Run the operations one by one, on a stack, and return the final value."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    argument: Any
    for operation, argument, _ in pickletools.genops(content):
        name = operation.name
        if name in _VALUES:
            stack.append(argument)
        elif name in _OLD_STRINGS:
            stack.append(argument.encode("latin-1"))
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name == "GLOBAL":
            stack.append(_Name(*argument.split(" ", 1)))
        elif name not in _NOTHING:
            _do(name, stack)
    (value,) = stack
    return value


def _do(name: str, stack: list[Any]) -> None:
    """Run an operation on values of the stack."""
    if name == "POP":
        stack.pop()
    elif name == "POP_MARK":
        _pop_to_mark(stack)
    elif name in ("TUPLE", "LIST"):
        values = _pop_to_mark(stack)
        stack.append(tuple(values) if name == "TUPLE" else values)
    elif name == "DICT":
        values = _pop_to_mark(stack)
        stack.append(dict(zip(values[::2], values[1::2], strict=True)))
    elif name in ("APPEND", "APPENDS"):
        values = [stack.pop()] if name == "APPEND" else _pop_to_mark(stack)
        list.extend(stack[-1], values)
    elif name in ("SETITEM", "SETITEMS"):
        values = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _pop_to_mark(stack)
        dict.update(stack[-1], zip(values[::2], values[1::2], strict=True))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(_Name(module, attribute))
    elif name == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        stack.append(_call(function, arguments))
    elif name == "BUILD":
        state = stack.pop()
        if not isinstance(stack[-1], _Type | _Array):
            raise ValueError("it sets the state of something other than an array")
        stack[-1].build(state)
    else:
        raise ValueError(f"operation {name}")


def _pop_to_mark(stack: list[Any]) -> list[Any]:
    """Remove the last mark and all values above it from the stack, and return these values."""
    values: list[Any] = []
    while (value := stack.pop()) is not _MARK:
        values.append(value)
    return values[::-1]


def _call(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The results of the functions that NumPy and Python use to pickle arrays and bytes."""
    if not isinstance(function, _Name):
        raise ValueError("it calls something other than a function")
    if function == ("_codecs", "encode"):  # how Python 3 writes bytes in protocol 2
        text, encoding = (*arguments, "utf-8")[:2]
        if encoding not in ("latin1", "latin-1", "utf-8"):
            raise ValueError(f"encoding {encoding!r}")
        return str.encode(text, encoding)
    if function in (("__builtin__", "bytes"), ("builtins", "bytes")) and not arguments:
        return b""  # how Python 3 writes empty bytes
    if function == ("numpy", "dtype"):
        return _Type(arguments[0])
    # NumPy 2 moved numpy.core to numpy._core; files name either.
    plain = function.module.replace("numpy._core", "numpy.core")
    if (plain, function.name) == ("numpy.core.multiarray", "_reconstruct"):
        return _Array()
    if (plain, function.name) == ("numpy.core.numeric", "_frombuffer"):
        content, kind, shape, order = arguments
        return _make_array(content, kind, shape, order)
    raise ValueError(f"it asks for {function.module}.{function.name}")


def _make_array(content: Any, kind: Any, shape: Any, order: Any) -> NDArray:
    """An array from its bytes, if their number is right."""
    if not isinstance(content, bytes | bytearray) or not isinstance(kind, _Type):
        raise ValueError("an array that is not made of bytes")
    sizes = [int(n) for n in shape]
    if len(sizes) > 8 or min(sizes, default=0) < 0 or order not in ("C", "F"):
        raise ValueError(f"an array of shape {shape}")
    if math.prod(sizes) * kind.dtype.itemsize != len(content):
        raise ValueError(f"{len(content)} bytes for an array of shape {shape}")
    return np.frombuffer(content, kind.dtype).reshape(sizes, order=order)


def _finish(value: Any) -> Any:
    """The value, with each `_Array` replaced by a NumPy array."""
    if isinstance(value, _Array):
        if value.value is None:
            raise ValueError("an array without content")
        return value.value
    if isinstance(value, dict):
        return {_finish(key): _finish(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_finish(entry) for entry in value)
    if isinstance(value, _Name | _Type) or value is _MARK:
        raise ValueError("it holds more than plain data")
    return value
