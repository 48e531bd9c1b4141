"""Classifiers on feature vectors, in closed form or nearly so, chosen by held-out likelihood."""

from spinal.classifiers.gaussian import Gaussian, fit_gaussian
from spinal.classifiers.logistic import Logistic, fit_logistic, logistic_path
from spinal.classifiers.mixing import mix, mixing_weights
from spinal.classifiers.parts import Part, held_out_labels, held_out_loss, held_out_parts
from spinal.classifiers.priors import label_frequencies, pool_frequencies, shift_prior
from spinal.classifiers.trees import Trees, fit_trees
from spinal.classifiers.units import UNITS, Coordinates, Units

__all__ = [
    "UNITS",
    "Coordinates",
    "Gaussian",
    "Logistic",
    "Part",
    "Trees",
    "Units",
    "fit_gaussian",
    "fit_logistic",
    "fit_trees",
    "held_out_labels",
    "held_out_loss",
    "held_out_parts",
    "label_frequencies",
    "logistic_path",
    "mix",
    "mixing_weights",
    "pool_frequencies",
    "shift_prior",
]
