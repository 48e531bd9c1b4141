r"""A circuit in closed form: one normal for each class, all of the same shape.

The shape is the covariance within classes. With :math:`S` as measured on N points in D dimensions,
it is shrunk towards a ball by a weight :math:`s`,

.. math::
    \Sigma = \frac{N S + s\, \mathrm{tr}(S)\, I}{N + s D} .

The mean of a class of :math:`n_c` points is shrunk towards the centre :math:`\bar m`, the mean of
all class means, by :math:`m` further points there:

.. math::
    \mu_c = \bar m + \frac{n_c}{n_c + m} (\bar x_c - \bar m) .

In the coordinates :math:`u = \Sigma^{-1/2} (x - \bar m)` all features are independent, so that the
model is a sum-product network with one product for each class and normal leaves. The leaves have
the scale :math:`1 / \sqrt\beta`. Within classes it would be 1, but features of few points are never
that independent, and :math:`\beta` says how much of the evidence to believe:

.. math::
    \log p(c \mid x) = \log \pi_c + \beta (u^\top v_c - \tfrac12 \|v_c\|^2) + \text{const},
    \qquad v_c = \Sigma^{-1/2} (\mu_c - \bar m) .

:math:`s`, :math:`m` and :math:`\beta` are chosen by the likelihood of held-out points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from spinal.circuits import Circuit, RandomSPN
from spinal.classifiers.parts import Part, held_out_labels, held_out_loss
from spinal.classifiers.units import UNITS, Coordinates, Kind, Units, coordinates_of

#: Choices of s, m and beta.
SHRINKAGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
PSEUDO_POINTS = (0.0, 1.0, 3.0, 10.0)
SHARPNESS = tuple(float(b) for b in np.logspace(-2, 0.4, 19))
#: What is taken where nothing tells.
_DEFAULT = (3.0, 3.0, 0.3)
#: Of more features, so many principal components are used.
MOST_FEATURES = 256


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A fitted circuit, and the linear map to its variables.

    Attributes:
        coordinates: of the features.
        centre: where the variables are 0, ``[R]``.
        axes: the map ``[R, R]``; variables are ``(coordinates(x) - centre) @ axes``.
        circuit: over R variables.
    """

    coordinates: Coordinates
    centre: Tensor
    axes: Tensor
    circuit: Circuit

    def variables(self, x: Tensor) -> Tensor:
        """What the circuit is about, ``[N, R]``, from features ``[N, D]``."""
        return (self.coordinates(x) - self.centre) @ self.axes

    def log_probs(self, x: Tensor) -> Tensor:
        """Log-probabilities ``[N, C]`` at features ``[N, D]``."""
        with torch.no_grad():
            return self.circuit.log_posterior(self.variables(x))


@dataclass(frozen=True, eq=False)
class _Moments:
    """What has to be known of points ``z [N, R]`` and their classes.

    Attributes:
        counts: points of each class, ``[C]``.
        centre: the mean of the class means, ``[R]``.
        offsets: class means from there, ``[C, R]``; 0 for a class without points.
        spread: eigenvalues of S, ``[R]``.
        axes: its eigenvectors, ``[R, R]``.
    """

    counts: Tensor
    centre: Tensor
    offsets: Tensor
    spread: Tensor
    axes: Tensor

    @classmethod
    def of(cls, z: Tensor, y: Tensor, n_classes: int) -> _Moments:
        onehot = torch.nn.functional.one_hot(y, n_classes).to(z)
        counts = onehot.sum(0)
        means = onehot.T @ z / counts.clamp_min(1)[:, None]
        within = z - means[y]
        spread, axes = torch.linalg.eigh(within.T @ within / len(z))
        seen = counts > 0
        centre = means[seen].mean(0)
        offsets = torch.where(seen[:, None], means - centre, 0)
        return cls(counts, centre, offsets, spread.clamp_min(0), axes)

    def log_prior(self) -> Tensor:
        """Class frequencies with add-one smoothing, ``[C]``."""
        return ((self.counts + 1) / (self.counts + 1).sum()).log()

    def variances(self, shrinkage: float) -> Tensor:
        """Eigenvalues of Sigma, ``[R]``."""
        n, total = self.counts.sum(), self.spread.sum()
        # Without any spread within classes, that of the class means.
        total = total if total > 0 else self.offsets.square().sum().clamp_min(1e-12)
        return (n * self.spread + shrinkage * total) / (n + shrinkage * len(self.spread))

    def means(self, pseudo_points: float) -> Tensor:
        """Shrunk class means from the centre, along `axes`: ``[C, R]``."""
        share = self.counts / (self.counts + pseudo_points).clamp_min(1)
        return (share[:, None] * self.offsets) @ self.axes

    def evidence(self, z: Tensor, shrinkage: float, pseudo_points: float) -> Tensor:
        """Logits ``[N, C]`` for beta = 1, without the prior."""
        means = self.means(pseudo_points)
        scaled = means / self.variances(shrinkage)
        return (z - self.centre) @ self.axes @ scaled.T - 0.5 * (means * scaled).sum(1)


def fit_gaussian(
    x: Tensor,
    y: Tensor,
    n_classes: int,
    parts: Sequence[Part],
    kinds: Sequence[Kind] = UNITS,
    reference: Tensor | None = None,
) -> tuple[Gaussian, Tensor]:
    """The circuit whose units, shrinkage and sharpness predict held-out points best.

    Args:
        x: features ``[N, D]``.
        y: classes ``[N]``.
        n_classes: C.
        parts: to choose by.
        kinds: of units, to choose from.
        reference: points that units are taken from, ``[M, D]``; ``x``, if None.

    Returns:
        The circuit of all points, and the predictions ``[M, C]`` for all held-out points by
        circuits that did not see them.
    """
    held_y = held_out_labels(y, parts)
    sharpness = torch.tensor(SHARPNESS, dtype=torch.float64)[:, None, None]
    best, choice = math.inf, (kinds[0], *_DEFAULT)
    held_log_probs = torch.zeros(0, n_classes, dtype=torch.float64)
    for kind in kinds if parts else ():
        moments, held, priors = [], [], []
        for part, z in coordinates_of(parts, kind, reference, MOST_FEATURES):
            moments.append(_Moments.of(z[~part.held], y[~part.held], n_classes))
            held.append(z[part.held])
            priors.append(moments[-1].log_prior().expand(len(held[-1]), -1))
        log_prior = torch.cat(priors)
        for shrinkage, pseudo_points in product(SHRINKAGES, PSEUDO_POINTS):
            evidence = torch.cat([
                m.evidence(z, shrinkage, pseudo_points) for m, z in zip(moments, held, strict=True)
            ])  # fmt: skip
            log_probs = (sharpness * evidence + log_prior).log_softmax(-1)
            losses = held_out_loss(log_probs, held_y)
            index = int(losses.argmin())
            if losses[index] < best:
                best, held_log_probs = float(losses[index]), log_probs[index]
                choice = (kind, shrinkage, pseudo_points, SHARPNESS[index])
    kind, *settings = choice
    units = Units.fit(x if reference is None else reference, kind)
    return _as_circuit(x, y, n_classes, units, *settings), held_log_probs


def _as_circuit(
    x: Tensor,
    y: Tensor,
    n_classes: int,
    units: Units,
    shrinkage: float,
    pseudo_points: float,
    sharpness: float,
) -> Gaussian:
    """The model with these settings."""
    coordinates = Coordinates.fit(x, units, MOST_FEATURES)
    moments = _Moments.of(coordinates(x), y, n_classes)
    stretch = moments.variances(shrinkage).rsqrt()
    circuit = RandomSPN(
        len(stretch), n_classes, depth=0, repetitions=1, leaves=n_classes, scale=sharpness**-0.5
    ).double()
    root = circuit.layers[0].sum
    with torch.no_grad():
        # The one region lists the variables in a random order.
        order = circuit.leaves.variables.flatten()
        circuit.leaves.location.copy_((moments.means(pseudo_points) * stretch).T[order])
        own = torch.eye(n_classes, dtype=torch.float64)[None]
        root.set_weights((1 - root.floor) * own + root.floor / root.fan_in)
    circuit.set_prior(moments.log_prior().exp())
    return Gaussian(coordinates, moments.centre, moments.axes * stretch, circuit)
