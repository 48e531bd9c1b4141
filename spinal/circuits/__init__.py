"""Sum-product networks: leaves, products, sums, structures, queries. Needs only torch."""

from spinal.circuits.circuit import Circuit
from spinal.circuits.dgc import DGCSPN
from spinal.circuits.random import RandomSPN

__all__ = ["DGCSPN", "Circuit", "RandomSPN"]
