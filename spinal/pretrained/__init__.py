"""Pretrained networks as a source of features, computed once and kept on disk."""

from spinal.pretrained.backbone import Backbone, BackboneError
from spinal.pretrained.cache import FeatureCache
from spinal.pretrained.catalogue import DEFAULT, backbone_names, is_backbone, load_backbone
from spinal.pretrained.embedded import embedded

__all__ = [
    "DEFAULT",
    "Backbone",
    "BackboneError",
    "FeatureCache",
    "backbone_names",
    "embedded",
    "is_backbone",
    "load_backbone",
]
