"""Any scikit-learn classifier as a posterior."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from torch import Tensor

from spinal.errors import SpinalError
from spinal.files import read_tensors, write_tensors
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.posteriors.vectors import all_vectors, vector_batches

_FILE, _FORMAT = "estimator.safetensors", "spinal.estimator/1"
#: The smallest probability, so that logarithms are finite: a tree may return 0.
_LEAST = 1e-6


def is_estimator(part: Any) -> bool:
    """Whether this is a classifier with scikit-learn's interface, or such a class."""
    return hasattr(part, "fit") and hasattr(part, "predict_proba")


@dataclass
class Estimator(Posterior):
    """``p(y | x)`` from a classifier with scikit-learn's interface, for example from skorch.

    It works on the features of the network, or, if the network is one dense layer, on that layer's
    input. Each fit uses a clone. A ``random_state`` of None is replaced by the seed of the round.

    `save` writes the vectors and labels of the last fit, and `load` fits a clone to them again: no
    pickle is ever read. The classifier itself is not saved and has to be given again.

    Attributes:
        model: the classifier, with `fit` and `predict_proba`. It is not changed.
    """

    model: Any
    _fitted: Any = field(default=None, init=False, repr=False)
    _data: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.model, type) or not is_estimator(self.model):
            raise SpinalError(
                f"{self.model!r} is not a classifier: it needs fit and predict_proba (of SVC, "
                "probability=True)"
            )

    @property
    def takes_missing(self) -> bool:
        try:
            return bool(get_tags(self.model).input_tags.allow_nan)
        except (AttributeError, TypeError):  # it declares nothing
            return False

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        self._data = {
            "vectors": all_vectors(labelled),
            "labels": labels,
            "n_classes": torch.tensor(context.n_classes),
            "seed": torch.tensor(context.seed),
        }
        self._refit()

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The logarithms of `predict_proba`, at least log 1e-6, as ``log_probs_N_C``."""
        if self._fitted is None:
            raise RuntimeError("the classifier has not been fitted yet")
        n_classes = int(self._data["n_classes"])
        probs = [self._fitted.predict_proba(x.numpy()) for _, x in vector_batches(view)]
        columns = np.asarray(self._fitted.classes_, np.int64)
        return log_probs(np.concatenate(probs), columns, n_classes)

    def save(self, folder: Path) -> None:
        write_tensors(folder / _FILE, self._data, _FORMAT, {})

    def load(self, folder: Path) -> None:
        _, self._data = read_tensors(folder / _FILE, _FORMAT)
        self._refit()

    def _refit(self) -> None:
        x, y = self._data["vectors"].numpy(), self._data["labels"].numpy()
        model = clone(self.model)
        seed = int(self._data["seed"]) % 2**31
        unseeded = [
            name
            for name, value in model.get_params().items()  # also of parts, such as a pipeline's
            if name.rpartition("__")[2] == "random_state" and value is None
        ]
        if unseeded:
            model.set_params(**dict.fromkeys(unseeded, seed))
        if len(np.unique(y)) == 1:  # most classifiers need at least two classes
            model = DummyClassifier()
        self._fitted = model.fit(x, y)


def log_probs(probs: NDArray, columns: NDArray[np.int64], n_classes: int) -> Tensor:
    """Class probabilities as logarithms, float32 ``[N, C]``.

    Args:
        probs: ``[N, K]``, for the classes that a classifier has seen.
        columns: the numbers of these classes, ``[K]``.
        n_classes: C.
    """
    probs_N_C = np.zeros((len(probs), n_classes))
    probs_N_C[:, columns] = probs
    probs_N_C = np.maximum(probs_N_C, _LEAST)
    return torch.from_numpy(np.log(probs_N_C / probs_N_C.sum(1, keepdims=True))).float()
