"""A user's network as an encoder: ``FILE.py:FACTORY``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torch import nn

from spinal.encoders.encoder import EncoderError
from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName

SIZE = 224


def load(name: EncoderName) -> ImageEncoder:
    """The module that ``FACTORY()`` returns, as an encoder; its fingerprint covers the file."""
    file, _, factory = name.plain.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise EncoderError(
            f"{name.plain}: there is no file {path}; write it as path/to/file.py:factory"
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise EncoderError(f"{name.plain}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        network = getattr(module, factory)()
    except Exception as error:  # the user's code can fail in any way
        raise EncoderError(f"{name.plain}: {type(error).__name__}: {error}") from error
    if not isinstance(network, nn.Module):
        raise EncoderError(f"{name.plain}: gives a {type(network).__name__}, not an nn.Module")
    source = path.read_text(encoding="utf-8")
    return build_image_encoder(name, Trunk(network, mean=0, std=255), SIZE, source=source)
