"""Anything to vectors ``[N, D]``, computed once and kept on disk: images, texts, your own.

A new encoder is a file with a class that has the members of `Encoder` and a function that loads it,
and a line in `spinal.encoders.table.ENCODERS`. An encoder that has no name can be used as an
object.
"""

from spinal.encoders.cache import FeatureCache
from spinal.encoders.encoder import Encoder, EncoderError, encode
from spinal.encoders.images import ImageEncoder, RawImages
from spinal.encoders.points import EncodedPoints, encode_dataset
from spinal.encoders.table import DEFAULT, encoder_names, is_encoder, load_encoder
from spinal.encoders.trained import build_fine_tuned, build_from_scratch, build_trunk

__all__ = [
    "DEFAULT",
    "EncodedPoints",
    "Encoder",
    "EncoderError",
    "FeatureCache",
    "ImageEncoder",
    "RawImages",
    "build_fine_tuned",
    "build_from_scratch",
    "build_trunk",
    "encode",
    "encode_dataset",
    "encoder_names",
    "is_encoder",
    "load_encoder",
]
