"""Encoders turn items (images, texts) into vectors ``[N, D]``, computed once and stored on disk.

To add one, write a file with a class that follows the protocol `Encoder` and a function that loads
it, and add a line to `spinal.encoders.table.ENCODERS`. An encoder without a name can be passed as
an object.
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
