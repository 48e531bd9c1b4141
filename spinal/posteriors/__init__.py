"""Posteriors: estimates of ``p(y | x, labelled data)``."""

from spinal.posteriors.deterministic import Deterministic
from spinal.posteriors.ensemble import Ensemble
from spinal.posteriors.estimator import Estimator, is_estimator
from spinal.posteriors.logistic import Logistic
from spinal.posteriors.mc_dropout import MCDropout
from spinal.posteriors.neural_linear import NeuralLinear
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.posteriors.spn import SPN
from spinal.posteriors.spn_ensemble import SPNEnsemble
from spinal.posteriors.table import POSTERIORS, describe_posterior, make_posterior

__all__ = [
    "POSTERIORS",
    "SPN",
    "Deterministic",
    "Ensemble",
    "Estimator",
    "FitContext",
    "Logistic",
    "MCDropout",
    "NeuralLinear",
    "Posterior",
    "SPNEnsemble",
    "View",
    "describe_posterior",
    "is_estimator",
    "make_posterior",
]
