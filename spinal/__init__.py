"""spinal: active learning that asks a sum-product network what to label next."""

from spinal.errors import SpinalError
from spinal.estimators import SPNClassifier

__version__ = "0.1.0.dev0"

__all__ = ["SPNClassifier", "SpinalError", "__version__"]
