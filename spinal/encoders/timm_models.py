"""The models of timm, such as ``timm:resnet18``."""

from __future__ import annotations

from PIL import Image

from spinal.encoders.encoder import EncoderError
from spinal.encoders.images import ImageEncoder, Trunk, build_image_encoder
from spinal.encoders.naming import EncoderName
from spinal.errors import first_line, suggestion


def load(name: EncoderName) -> ImageEncoder:
    """A model of timm as an encoder, with timm's weights unless the name gives a file."""
    model = name.plain.removeprefix("timm:")
    try:
        import timm
        import timm.data
    except (ImportError, RuntimeError) as error:  # a torchvision that does not fit torch
        raise EncoderError(
            f"timm:{model} needs the package timm: pip install 'spinal[timm]' ({error})"
        ) from error
    if not timm.is_model(model):
        raise EncoderError(f"timm has no model {model!r}: {suggestion(model, timm.list_models())}")
    try:
        network = timm.create_model(model, pretrained=name.weights is None, num_classes=0)
    except Exception as error:  # a download can fail in many ways
        raise EncoderError(
            f"timm:{model}: its weights cannot be loaded ({first_line(error)}); "
            "without a connection, give them as a safetensors file"
        ) from error
    config = timm.data.resolve_model_data_config(network)
    mean, std = ([255 * value for value in config[key]] for key in ("mean", "std"))
    bicubic = config["interpolation"] != "bilinear"
    resample = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR
    size = int(config["input_size"][-1])
    return build_image_encoder(name, Trunk(network, mean, std), size, resample=resample)
