"""A user's network or encoder: ``FILE.py:FACTORY``, ``MODULE:FACTORY`` or a registered name."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from spinal.encoders.encoder import Encoder, EncoderError
from spinal.encoders.images import Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName
from spinal.errors import SpinalError
from spinal.registry import find_own

SIZE = 224


def load(name: EncoderName) -> Encoder:
    """The result of ``FACTORY()``: an encoder, or a module on images.

    The fingerprint of a module includes the source file of the factory.
    """
    try:
        factory = find_own("encoder", name.plain)
        is_made = isinstance(factory, nn.Module) or _is_encoder(factory)
        part = factory if is_made else factory()
    except SpinalError as error:
        raise EncoderError(str(error)) from error
    except Exception as error:  # the user's code can fail in any way
        raise EncoderError(f"{name.plain}: {type(error).__name__}: {error}") from error
    if isinstance(part, nn.Module):
        trunk = Trunk(part, mean=0, std=255)
        return build_image_encoder(name, trunk, SIZE, source=_source(factory))
    if not _is_encoder(part):
        raise EncoderError(
            f"{name.plain}: gives a {type(part).__name__}, not an nn.Module or an Encoder"
        )
    return part


def _is_encoder(part: Any) -> bool:
    """Whether this is an encoder, rather than an encoder class."""
    return isinstance(part, Encoder) and not isinstance(part, type)


def _source(factory: Any) -> str:
    """The source file of a factory; empty in a notebook."""
    try:
        return inspect.getsource(inspect.getmodule(factory) or factory)
    except (OSError, TypeError):
        return ""
