"""Posteriors: ``p(y | x, labelled data)`` by whatever means, always as ``log_probs_N_K_C``."""

from spinal.posteriors.deterministic import Deterministic
from spinal.posteriors.ensemble import Ensemble
from spinal.posteriors.mc_dropout import MCDropout
from spinal.posteriors.neural_linear import NeuralLinear
from spinal.posteriors.posterior import Posterior, View
from spinal.posteriors.spn import SPN

__all__ = [
    "SPN",
    "Deterministic",
    "Ensemble",
    "MCDropout",
    "NeuralLinear",
    "Posterior",
    "View",
]
