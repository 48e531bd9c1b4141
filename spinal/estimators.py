"""A sum-product network as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from spinal.circuits.recipe import Recipe, train_circuit
from spinal.circuits.training import FitSettings
from spinal.tables import TableEncoder, has_categories

_RECIPE = Recipe()


class SPNClassifier(ClassifierMixin, BaseEstimator):
    """A sum-product network as a classifier on feature arrays.

    Unlike a discriminative classifier, it also models the density of the features. It gives the
    log-density of a point (`score_samples`), draws new points (`sample`), and handles missing
    values (NaN) by integrating them out exactly. Features are standardised internally; densities
    are in the original units. In a DataFrame, columns that are not numbers are categories: they
    have categorical leaves, a value that did not occur in training counts as missing, and `sample`
    returns a DataFrame.

    The defaults suit tables of measurements: features in different units, with the class
    frequencies of the labels. For features of a network, the defaults of `spinal.circuits.Recipe`
    are better.

    Args:
        structure: ``dgc`` (convolutional on a grid), ``random`` or ``auto``; see
            `spinal.circuits`.
        grid: (H, W), the grid on which the features lie (``dgc``); by default, the smallest that
            fits.
        leaves: Number of components of each leaf region.
        sums: Number of channels of each sum layer.
        scale: Standard deviation of the leaves, in units of the standardised features.
        learn_scale: Whether ``scale`` is only the initial value, and is learned.
        units: Standardise every feature by its own standard deviation (``each``), or all by a
            common one (``common``), for features that have the same unit.
        start: Initial locations of the leaves: the means of the classes (``classes``), the means of
            equal parts of each feature (``data``), or at random (``random``).
        weight_spread: Standard deviation of the initial logits of the sum weights.
        class_weight: How many times a point of each class counts, as in scikit-learn: a dict of
            weights by class, ``balanced`` for the inverse of the frequencies in ``y``, or None for
            1. It changes the class priors: with ``balanced``, they are equal.
        leaf_dropout: Rate at which features are dropped in training, by marginalising them.
        generative: From 0 (cross-entropy alone) to 1 (likelihood alone).
        optimiser: ``adam`` or ``em``; ``em`` needs ``generative=1``.
        learning_rate: Step size of the optimiser.
        steps: Number of updates.
        batch_size: Points per update; None for all points.
        patience: Stop after this many checks, ten steps apart, without a lower training loss; None
            never stops.
        random_state: Int, RandomState or None; seeds the initialisation, the batches and the
            dropped features.
        device: A torch device: ``cpu``, ``cuda``, ``mps``.
        dtype: ``float64`` or ``float32``. float32 is about twice as fast and accurate up to
            rounding; ``mps`` supports nothing else.

    Attributes:
        circuit_: The trained network.
        classes_: Labels of the classes, ``[n_classes]``.
        n_features_in_: D, the number of features.

    Examples:
        >>> from sklearn.datasets import load_digits
        >>> from spinal import SPNClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> spn = SPNClassifier(random_state=0).fit(X[:500], y[:500])
        >>> spn.predict_proba(X[500:510]).shape
        (10, 10)
    """

    def __init__(
        self,
        structure: str = _RECIPE.structure,
        *,
        grid: tuple[int, int] | None = None,
        leaves: int = _RECIPE.leaves,
        sums: tuple[int, ...] = _RECIPE.sums,
        scale: float = 1.0,
        learn_scale: bool = _RECIPE.learn_scale,
        units: str = "each",
        start: str = _RECIPE.start,
        weight_spread: float = _RECIPE.weight_spread,
        class_weight: Mapping[Any, float] | str | None = None,
        leaf_dropout: float = _RECIPE.fit.leaf_dropout,
        generative: float = 0.5,
        optimiser: str = _RECIPE.fit.optimiser,
        learning_rate: float = _RECIPE.fit.learning_rate,
        steps: int = _RECIPE.fit.steps,
        batch_size: int | None = _RECIPE.fit.batch_size,
        patience: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        dtype: str = "float64",
    ) -> None:
        self.structure = structure
        self.grid = grid
        self.leaves = leaves
        self.sums = sums
        self.scale = scale
        self.learn_scale = learn_scale
        self.units = units
        self.start = start
        self.weight_spread = weight_spread
        self.class_weight = class_weight
        self.leaf_dropout = leaf_dropout
        self.generative = generative
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.steps = steps
        self.batch_size = batch_size
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.dtype = dtype

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit to features ``X``, (n, d), with NaN for missing values, and labels ``y``, (n,)."""
        z, labels = self._encoded(X, y)
        check_classification_targets(labels)
        weight = _check_sample_weight(sample_weight, z, ensure_non_negative=True)
        used = weight > 0
        if not used.any():
            raise ValueError("sample_weight is 0 for every point: there is nothing to fit")
        z, labels, weight = z[used], labels[used], weight[used]
        self.classes_, y = np.unique(labels, return_inverse=True)
        if isinstance(self.class_weight, str) and self.class_weight != "balanced":
            raise ValueError(f"class_weight is 'balanced', a dict or None: {self.class_weight!r}")
        weight = (
            weight
            * compute_class_weight(
                self.class_weight, classes=self.classes_, y=labels, sample_weight=weight
            )[y]
        )
        recipe = Recipe(
            structure=self.structure,  # type: ignore[arg-type]
            leaves=self.leaves,
            sums=tuple(self.sums),
            scale=self.scale,
            learn_scale=self.learn_scale,
            units=self.units,  # type: ignore[arg-type]
            start=self.start,  # type: ignore[arg-type]
            weight_spread=self.weight_spread,
            balance=0.0,
            fit=FitSettings(
                generative=self.generative,
                optimiser=self.optimiser,  # type: ignore[arg-type]
                learning_rate=self.learning_rate,
                steps=self.steps,
                batch_size=self.batch_size,
                patience=self.patience,
                leaf_dropout=self.leaf_dropout,
            ),
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.circuit_ = train_circuit(
            self._tensor(z),
            torch.tensor(y, device=self.device),
            len(self.classes_),
            recipe,
            grid=self.grid,
            weights=self._tensor(weight),
            categories=() if self._encoder is None else self._encoder.sizes,
            seed=seed,
            dtype=self._torch_dtype,
        )
        return self

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of the class probabilities, (n, n_classes)."""
        check_is_fitted(self)
        with torch.no_grad():
            return self.circuit_.log_posterior(self._features(X)).cpu().double().numpy()

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each point, (n,)."""
        most_probable = self.predict_log_proba(X).argmax(1)
        return self.classes_[most_probable]

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-density of each point, (n,): low for points that differ from the training data."""
        check_is_fitted(self)
        with torch.no_grad():
            return self.circuit_.log_prob(self._features(X)).cpu().double().numpy()

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[NDArray[np.float64] | pd.DataFrame, NDArray[Any]]:
        """Draw points and their labels: (n_samples, d) and (n_samples,).

        Points are a DataFrame if the model was fitted to one with categories.
        """
        check_is_fitted(self)
        state = check_random_state(self.random_state if random_state is None else random_state)
        generator = torch.Generator().manual_seed(int(state.randint(np.iinfo(np.int32).max)))
        z, c = self.circuit_.sample(n_samples, generator=generator, return_classes=True)
        points = z.cpu().double().numpy()
        if self._encoder is not None:
            points = self._encoder.decode(points)
        return points, self.classes_[c.cpu().numpy()]

    def _features(self, X: ArrayLike) -> torch.Tensor:
        if self._encoder is not None:
            validate_data(self, X, skip_check_array=True, reset=False)
            return self._tensor(self._encoder(X))
        z = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return self._tensor(z)

    def _encoded(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Features as numbers, and labels; a table with categories is encoded."""
        self._encoder = None
        if has_categories(X):
            _, labels = validate_data(self, X, y, skip_check_array=True)
            labels = column_or_1d(labels, warn=True)
            check_consistent_length(X, labels)
            self._encoder = TableEncoder(X)
            return self._encoder(X), labels
        return validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(array, dtype=self._torch_dtype, device=self.device)

    @property
    def _torch_dtype(self) -> torch.dtype:
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"dtype is 'float64' or 'float32', not {self.dtype!r}")
        return torch.float64 if self.dtype == "float64" else torch.float32

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
