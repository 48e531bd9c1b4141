"""Pretrained networks as a source of features, computed once and kept on disk."""

from spinal.pretrained.backbone import Backbone, BackboneError, RawImages
from spinal.pretrained.cache import FeatureCache
from spinal.pretrained.catalogue import DEFAULT, backbone_names, is_backbone, load_backbone
from spinal.pretrained.embedded import embedded
from spinal.pretrained.trained import build_fine_tuned, build_from_scratch, cut_last_layer

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
