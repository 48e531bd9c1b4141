"""Pretrained networks as a source of features, computed once and kept on disk."""

from spinal.encoders.backbone import Backbone, BackboneError, RawImages
from spinal.encoders.cache import FeatureCache
from spinal.encoders.catalogue import DEFAULT, backbone_names, is_backbone, load_backbone
from spinal.encoders.embedded import embedded
from spinal.encoders.trained import build_fine_tuned, build_from_scratch, cut_last_layer

__all__ = [
    "DEFAULT",
    "Backbone",
    "BackboneError",
    "FeatureCache",
    "RawImages",
    "backbone_names",
    "build_fine_tuned",
    "build_from_scratch",
    "cut_last_layer",
    "embedded",
    "is_backbone",
    "load_backbone",
]
