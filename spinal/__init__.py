"""spinal: active learning that asks a sum-product network what to label next."""

from spinal.data import Pool, load_dataset
from spinal.errors import SpinalError
from spinal.estimators import SPNClassifier
from spinal.learner import ActiveLearner

__version__ = "0.1.0.dev0"

__all__ = [
    "ActiveLearner",
    "Pool",
    "SPNClassifier",
    "SpinalError",
    "__version__",
    "load_dataset",
]
