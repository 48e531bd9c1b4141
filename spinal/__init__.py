"""spinal: active learning that asks a sum-product network what to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spinal.data import Pool, load_dataset
    from spinal.errors import SpinalError
    from spinal.estimators import SPNClassifier
    from spinal.learner import ActiveLearner
    from spinal.registry import register

__all__ = [
    "ActiveLearner",
    "Pool",
    "SPNClassifier",
    "SpinalError",
    "__version__",
    "load_dataset",
    "register",
]

_HOMES = {
    "ActiveLearner": "spinal.learner",
    "Pool": "spinal.data",
    "SPNClassifier": "spinal.estimators",
    "SpinalError": "spinal.errors",
    "load_dataset": "spinal.data",
    "register": "spinal.registry",
}


def __getattr__(name: str) -> Any:
    """Import on first use: ``spinal --help`` need not wait for torch and scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'spinal' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
