"""Encoders by name. To add one, write a file with a function that loads it, and add a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from spinal.encoders import efficientnet, own, pixels, sentences, timm_models, trained
from spinal.encoders.beside import side_by_side
from spinal.encoders.encoder import Encoder, EncoderError
from spinal.encoders.images import require_images
from spinal.encoders.naming import EncoderName, parse_name
from spinal.errors import suggestion
from spinal.registry import is_own, registered

DEFAULT = efficientnet.NAME

#: Functions that load an encoder, by its name without size and weights. A key that ends in a colon
#: stands for all names that start with it.
ENCODERS: dict[str, Callable[[EncoderName], Encoder]] = {
    **dict.fromkeys(efficientnet.SIZES, efficientnet.load),
    "pixels": pixels.load,
    "timm:": timm_models.load,
    "sentences:": sentences.load,
}


def encoder_names() -> list[str]:
    """The names that `load_encoder` knows; words in capitals are placeholders."""
    names = [f"{name}MODEL" if name.endswith(":") else name for name in ENCODERS]
    return [*names, "FILE.py:FACTORY", "MODULE:FACTORY", *registered("encoder")]


def is_encoder(name: str) -> bool:
    """Whether this is the name of an encoder; it may still lack a package or a file."""
    return not _unknown(parse_name(name))


def check_name(name: str) -> None:
    """Raise EncoderError if this is not the name of an encoder."""
    _check(parse_name(name))


def is_own_code(name: str) -> bool:
    """Whether loading this encoder runs a Python file that the user names."""
    return _find(parse_name(name)) is own.load


def load_encoder(
    name: str = DEFAULT,
    weights: str | Path | None = None,
    device: str = "auto",
    *,
    size: int | None = None,
) -> Encoder:
    """Load an encoder by its name.

    | ``efficientnet-lite0``  ImageNet, 1,280 features, from packages: works offline; also
    |                         ``-lite1`` and ``-lite2``, larger and slower
    | ``timm:MODEL``          any model of timm, such as ``timm:resnet18``
    | ``FILE.py:FACTORY``     your own: ``FACTORY()`` in that file makes an `nn.Module` that maps
    |                         RGB images, float ``[N, 3, S, S]`` from 0 to 1, to ``[N, D]``; or an
    |                         `Encoder`, of images, texts or anything else
    | ``MODULE:FACTORY``      the same in a module; or a registered name (`spinal.registry`)
    | ``sentences:FOLDER``    texts, by an ONNX model in a folder: works offline
    | ``sentences:ORG/MODEL`` texts, by any sentence-transformers model of the Hugging Face Hub
    | ``pixels``              the image itself at 16 px: no network, for trying things out
    | ``NAME+NAME@SIZE``      several networks side by side, each block of features of length 1

    ``NAME@128`` is the same as ``size=128``: with it, EfficientNet-Lite0 is three times as fast and
    slightly less accurate. ``NAME=FILE`` is the same as ``weights=FILE``. So one name can hold all
    settings, as in protocols and projects: ``net.py:make@128=net.safetensors``. Weights that were
    fine-tuned or trained from scratch by `spinal label` are named in the same way:
    ``efficientnet-lite0=trunk.safetensors``, ``lenet=trunk.safetensors``.

    Args:
        name: as above.
        weights: a safetensors file that `ImageEncoder.save_weights` wrote. For ``timm:MODEL`` and
            ``FILE.py:FACTORY``, it may also be the ``state_dict`` of the module. By default,
            ``timm:MODEL`` uses timm's weights.
        device: ``auto`` takes an accelerator if there is one.
        size: side in pixels to which images are scaled; by default, as in the network's training.

    Raises:
        EncoderError: if there is no such encoder, or a package or file is missing.
    """
    parsed = parse_name(name)
    path = parsed.weights if weights is None else Path(weights).expanduser()
    parsed = replace(parsed, size=size or parsed.size, weights=path, device=device)
    _check(parsed)
    parts = _parts(parsed)
    if len(parts) == 1:
        return _load(parsed)
    if path is not None or parsed.size is None:
        raise EncoderError(f"{name}: several networks need one size and no weights: A+B@160")
    return side_by_side([require_images(_load(replace(parsed, plain=part))) for part in parts])


def _load(name: EncoderName) -> Encoder:
    load = _find(name)
    assert load is not None
    return load(name)


def _parts(name: EncoderName) -> list[str]:
    """The networks that are used side by side; a file name may contain a plus sign."""
    return [name.plain] if ":" in name.plain else name.plain.split("+")


def _unknown(name: EncoderName) -> list[str]:
    """The parts that are not names of encoders."""
    return [part for part in _parts(name) if _find(replace(name, plain=part)) is None]


def _check(name: EncoderName) -> None:
    for part in _unknown(name):
        raise EncoderError(f"no encoder {part!r}: {suggestion(part, encoder_names())}")


def _find(name: EncoderName) -> Callable[[EncoderName], Encoder] | None:
    """The function that loads the encoder of that name; None if there is none."""
    family, colon, _ = name.plain.partition(":")
    if name.plain in trained.SCRATCH and name.weights is not None:
        return trained.load
    is_known = colon or is_own("encoder", name.plain)
    return ENCODERS.get(family + colon, own.load if is_known else None)
