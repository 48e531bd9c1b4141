"""The user's own parts by name: registered in this process, or written ``module:name``.

Methods, acquisition functions, posteriors, encoders and datasets have names. In place of such a
name, also in protocols and on the command line, ``module:name`` stands for an object in a Python
module, and ``path/to/file.py:name`` for one in a file. `register` gives an object a short name. It
is known in this process only; runs in several processes need the long name.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from spinal.errors import SpinalError, suggestion

Kind = Literal["method", "acquisition", "posterior", "encoder", "dataset"]

_REGISTERED: dict[tuple[str, str], Any] = {}


def register(kind: Kind, name: str, part: Any) -> None:
    """Register a name for your own part, for use in this process.

    Args:
        kind: ``method``: a `spinal.methods.Method`, or a scikit-learn classifier or its class;
            ``acquisition``: an `Acquisition`, its class, or a function of `Candidates`;
            ``posterior``: a `Posterior`, its class, or a scikit-learn classifier or its class;
            ``encoder``: an `Encoder`, or a function that makes one or an `nn.Module`;
            ``dataset``: a `Dataset`, or a function that makes one.
        name: A name without a colon. Built-in names take precedence.
        part: The part. Registering the same name again replaces it.
    """
    if kind not in get_args(Kind):
        raise SpinalError(f"no kind of part {kind!r}: {suggestion(str(kind), get_args(Kind))}")
    if not name or ":" in name:
        raise SpinalError(f"{name!r} cannot be registered: choose a name without a colon")
    _REGISTERED[kind, name] = part
    if kind == "method" and hasattr(part, "predict_proba"):
        _REGISTERED["posterior", name] = part  # a classifier is its own posterior


def is_own(kind: Kind, name: str) -> bool:
    """Whether a name is registered, or written ``module:name``."""
    return (kind, name) in _REGISTERED or ":" in name


def registered(kind: Kind) -> list[str]:
    """The registered names, for messages."""
    return [name for of_kind, name in _REGISTERED if of_kind == kind]


def find_own(kind: Kind, name: str) -> Any:
    """The part of this name, for which `is_own` is true.

    Raises:
        SpinalError: If there is no such module, or no such name in it.
    """
    if (kind, name) in _REGISTERED:
        return _REGISTERED[kind, name]
    where, _, attribute = name.rpartition(":")
    module = _import(where, name)
    if not hasattr(module, attribute):
        public = [known for known in vars(module) if not known.startswith("_")]
        hint = suggestion(attribute, public)
        raise SpinalError(f"{kind} {name}: {where} has no {attribute!r}: {hint}")
    return getattr(module, attribute)


def _import(where: str, name: str) -> ModuleType:
    """The module of this name, or in this file; a file in the working directory needs no suffix."""
    try:
        if where.endswith(".py"):
            return import_file(Path(where).expanduser())
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            path = Path(f"{where}.py")
            if error.name != where or not path.is_file():
                raise
            return import_file(path)
    except SpinalError as error:
        raise SpinalError(f"{name}: {error}") from error
    except Exception as error:  # the user's code can fail in any way
        raise SpinalError(f"{name}: {type(error).__name__}: {error}") from error


def import_file(path: Path) -> ModuleType:
    """The module in a file; executed once while the file does not change.

    Raises:
        SpinalError: If there is no such Python file.
    """
    if not path.is_file():
        raise SpinalError(f"there is no file {path}; write it as path/to/file.py:name")
    path = path.resolve()
    key = f"spinal own {path} {path.stat().st_mtime_ns}"
    if key in sys.modules:
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None:
        raise SpinalError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[key]
        raise
    return module
