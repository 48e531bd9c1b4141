"""Networks cut in two, ``features(x)`` and ``head(z)``: built, trained, applied, stored."""

from spinal.networks.architectures import NETWORKS, build_network, dense, lenet, vgg
from spinal.networks.evaluation import compute_features, predict_logits
from spinal.networks.inputs import Preprocess
from spinal.networks.network import Network, NetworkError
from spinal.networks.training import (
    PAPER_LENET,
    PAPER_VGG,
    TUNED,
    TrainReport,
    TrainSettings,
    train,
)

__all__ = [
    "NETWORKS",
    "PAPER_LENET",
    "PAPER_VGG",
    "TUNED",
    "Network",
    "NetworkError",
    "Preprocess",
    "TrainReport",
    "TrainSettings",
    "build_network",
    "compute_features",
    "dense",
    "lenet",
    "predict_logits",
    "train",
    "vgg",
]
