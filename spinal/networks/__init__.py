"""Networks split into ``features(x)`` and ``head(z)``: built, trained, applied, stored."""

from spinal.networks.architectures import NETWORKS, build_network, dense, lenet, resnet_slim, vgg
from spinal.networks.dropout import DropoutSplit, set_dropout, split_at_dropout
from spinal.networks.evaluation import compute_features, predict_logits
from spinal.networks.inputs import Preprocess
from spinal.networks.network import Network, NetworkError
from spinal.networks.storage import load, load_weights, save
from spinal.networks.training import (
    PAPER_LENET,
    PAPER_VGG,
    SLIM,
    TUNED,
    PseudoLabels,
    TrainReport,
    TrainSettings,
    train,
)
from spinal.networks.wrapping import wrap

__all__ = [
    "NETWORKS",
    "PAPER_LENET",
    "PAPER_VGG",
    "SLIM",
    "TUNED",
    "DropoutSplit",
    "Network",
    "NetworkError",
    "Preprocess",
    "PseudoLabels",
    "TrainReport",
    "TrainSettings",
    "build_network",
    "compute_features",
    "dense",
    "lenet",
    "load",
    "load_weights",
    "predict_logits",
    "resnet_slim",
    "save",
    "set_dropout",
    "split_at_dropout",
    "train",
    "vgg",
    "wrap",
]
