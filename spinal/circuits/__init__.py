"""Sum-product networks: leaves, products, sums, structures, queries. Needs only torch."""

from spinal.circuits.circuit import Circuit
from spinal.circuits.dgc import DGCSPN
from spinal.circuits.random import RandomSPN
from spinal.circuits.recipe import RECIPES, Recipe, train_circuit
from spinal.circuits.training import FitReport, FitSettings, fit

__all__ = [
    "DGCSPN",
    "RECIPES",
    "Circuit",
    "FitReport",
    "FitSettings",
    "RandomSPN",
    "Recipe",
    "fit",
    "train_circuit",
]
