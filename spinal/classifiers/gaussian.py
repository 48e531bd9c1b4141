r"""A circuit in closed form: one normal distribution per class, all with the same covariance.

This is the covariance within classes, :math:`S` for N points in D dimensions, shrunk towards a
multiple of the identity with a weight :math:`s`,

.. math::
    \Sigma = \frac{N S + s\, \mathrm{tr}(S)\, I}{N + s D} .

The mean of a class of :math:`n_c` points is shrunk towards the centre :math:`\bar m`, the mean of
all class means, by adding :math:`m` points there:

.. math::
    \mu_c = \bar m + \frac{n_c}{n_c + m} (\bar x_c - \bar m) .

In the coordinates :math:`u = \Sigma^{-1/2} (x - \bar m)` all features are independent, so the model
is a sum-product network with one product for each class and normal leaves. The leaves have the
scale :math:`1 / \sqrt\beta`. Within classes it would be 1, but features are never that independent
if there are few points, and :math:`\beta` determines how much of the evidence to use:

.. math::
    \log p(c \mid x) = \log \pi_c + \beta (u^\top v_c - \tfrac12 \|v_c\|^2) + \text{const},
    \qquad v_c = \Sigma^{-1/2} (\mu_c - \bar m) .

:math:`s`, :math:`m` and :math:`\beta` are chosen by the likelihood of held-out points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from spinal.circuits import Circuit, RandomSPN
from spinal.classifiers.parts import Part, held_out_labels, held_out_loss
from spinal.classifiers.priors import add_one
from spinal.classifiers.units import UNITS, Coordinates, Kind, Units, coordinates_of

#: Choices of s, m and beta.
SHRINKAGES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
PSEUDO_POINTS = (0.0, 1.0, 3.0, 10.0)
SHARPNESS = tuple(float(b) for b in np.logspace(-2, 0.4, 19))
#: If there are more features than this, they are reduced to this many principal components.
MOST_FEATURES = 256


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A fitted circuit, and the linear map to its variables.

    Attributes:
        coordinates: coordinates of the features.
        centre: where the variables are 0, ``[R]``.
        axes: the map ``[R, R]``; variables are ``(coordinates(x) - centre) @ axes``.
        circuit: the circuit over R variables.
        chosen: s, m and beta, ``[3]``.
        points: how many points the mean of each class rests on, :math:`n_c + m`, ``[C]``; None in
            files of earlier versions.
    """

    coordinates: Coordinates
    centre: Tensor
    axes: Tensor
    circuit: Circuit
    chosen: Tensor | None = None
    points: Tensor | None = None

    def variables(self, x: Tensor) -> Tensor:
        """The variables of the circuit, ``[N, R]``, from features ``[N, D]``."""
        return (self.coordinates(x) - self.centre) @ self.axes

    def log_probs(self, x: Tensor) -> Tensor:
        """Log-probabilities ``[N, C]`` at features ``[N, D]``."""
        with torch.no_grad():
            return self.circuit.log_posterior(self.variables(x))

    @torch.no_grad()
    def sample(self, u: Tensor, k: int, generator: torch.Generator) -> Tensor:
        r"""Log-probabilities ``[N, K, C]`` under K draws of the class means.

        The covariance within classes is I in the variables u. So, given :math:`n_c` points and m
        more at the centre, the posterior of a class mean is :math:`N(v_c, I / (n_c + m))`. If
        :math:`n_c + m < 1`, it is :math:`N(v_c, I)`. A draw of all class means is the same model
        for every point.

        Args:
            u: variables ``[N, R]``, see `variables`.
            k: K.
            generator: draws the means.
        """
        means, points, beta, log_prior = self._beliefs()
        deviation = points.rsqrt()[:, None]
        said = []
        for _ in range(k):
            noise = torch.randn(means.shape, generator=generator, dtype=means.dtype)
            drawn = means + deviation * noise
            evidence = u.to(drawn) @ drawn.T - 0.5 * drawn.square().sum(1)
            said.append((beta * evidence + log_prior).log_softmax(1))
        return torch.stack(said, 1)

    @torch.no_grad()
    def moments(self, u: Tensor) -> tuple[Tensor, Tensor]:
        r"""Mean and variance of the class probabilities under `sample`, ``[N, C]`` each.

        With R variables and :math:`a = n_c + m`, the log-likelihood of class c under a draw has

        .. math::
            \text{mean}\; u v_c - \tfrac12 |v_c|^2 - \frac{R}{2a} \quad\text{and variance}\quad
            \frac{|u - v_c|^2}{a} + \frac{R}{2a^2},

        exactly, and independently for each class. The probabilities follow by the delta method to
        first order: with :math:`\sigma_c^2` the variance of a logit, the variance of :math:`p_c` is
        :math:`p_c^2 \big((1 - 2 p_c) \sigma_c^2 + \sum_j p_j^2 \sigma_j^2\big)`.

        Args:
            u: variables ``[N, R]``, see `variables`.
        """
        means, points, beta, log_prior = self._beliefs()
        u = u.to(means)
        r = u.shape[1]
        evidence = u @ means.T - 0.5 * means.square().sum(1) - 0.5 * r / points
        p = (beta * evidence + log_prior).softmax(1)
        spread = beta**2 * (torch.cdist(u, means).square() / points + 0.5 * r / points**2)
        common = (p.square() * spread).sum(1, keepdim=True)
        return p, p.square() * ((1 - 2 * p) * spread + common)

    def _beliefs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Class means ``[C, R]``, points behind each (at least 1), beta, and the log-prior."""
        assert self.chosen is not None
        assert self.points is not None
        leaves = self.circuit.leaves
        means = leaves.location[leaves.variables.flatten().argsort()].T
        return (
            means,
            self.points.clamp_min(1),
            self.chosen[2],
            self.circuit.prior_logits.log_softmax(0),
        )


@dataclass(frozen=True)
class Settings:
    """The settings that are chosen on held-out points; see the module.

    Attributes:
        shrinkage: s.
        pseudo_points: m.
        sharpness: beta.
    """

    shrinkage: float = 3.0
    pseudo_points: float = 3.0
    sharpness: float = 0.3


@dataclass(frozen=True, eq=False)
class Moments:
    """Sufficient statistics of points ``z [N, R]`` and their classes.

    Attributes:
        counts: points of each class, ``[C]``.
        centre: the mean of the class means, ``[R]``.
        offsets: class means minus the centre, ``[C, R]``; 0 for a class without points.
        spread: eigenvalues of S, ``[R]``.
        axes: its eigenvectors, ``[R, R]``.
    """

    counts: Tensor
    centre: Tensor
    offsets: Tensor
    spread: Tensor
    axes: Tensor

    @classmethod
    def of(cls, z: Tensor, targets: Tensor) -> Moments:
        r"""Moments of points.

        Args:
            z: the points, ``[N, R]``.
            targets: the weight of each point in each class, :math:`t_{ic}` as ``[N, C]``; the sum
                for a point must be above 0. A point with a known class has weight 1 in that class.

        A point with an uncertain class contributes to S in all its classes,
        :math:`S = \sum_{ic} t_{ic} (z_i - \bar z_c)(z_i - \bar z_c)^\top / N`. This is computed as
        the scatter around the weighted mean of the class means, plus a correction.
        """
        counts, weights = targets.sum(0), targets.sum(1, keepdim=True)
        seen = counts > 0
        means = targets.T @ z / torch.where(seen, counts, 1)[:, None]
        shares = targets / weights
        within = z - shares @ means
        missing = torch.diag(counts) - targets.T @ shares  # 0 if all classes are certain
        scatter = (weights * within).T @ within + means.T @ missing @ means
        spread, axes = torch.linalg.eigh(scatter / counts.sum())
        centre = means[seen].mean(0)
        offsets = torch.where(seen[:, None], means - centre, 0)
        return cls(counts, centre, offsets, spread.clamp_min(0), axes)

    def variances(self, shrinkage: float) -> Tensor:
        """Eigenvalues of Sigma, ``[R]``."""
        n, total = self.counts.sum(), self.spread.sum()
        # Without any spread within classes, use the spread of the class means.
        total = total if total > 0 else self.offsets.square().sum().clamp_min(1e-12)
        return (n * self.spread + shrinkage * total) / (n + shrinkage * len(self.spread))

    def means(self, pseudo_points: float) -> Tensor:
        """Shrunk class means relative to the centre, along `axes`: ``[C, R]``."""
        share = self.counts / (self.counts + pseudo_points).clamp_min(1)
        return (share[:, None] * self.offsets) @ self.axes

    def rotated(self, z: Tensor) -> Tensor:
        """Points ``[N, R]`` relative to the centre, along `axes`."""
        return (z - self.centre) @ self.axes

    def evidence(self, rotated: Tensor, shrinkage: float, pseudo_points: float) -> Tensor:
        """Logits ``[N, C]`` of `rotated` points for beta = 1, without the prior."""
        means = self.means(pseudo_points)
        scaled = means / self.variances(shrinkage)
        return rotated @ scaled.T - 0.5 * (means * scaled).sum(1)

    def log_probs(self, z: Tensor, settings: Settings, prior: Tensor) -> Tensor:
        """Log-probabilities ``[N, C]`` of points ``[N, R]`` under class frequencies ``[C]``."""
        means = self.means(settings.pseudo_points)
        scaled = means / self.variances(settings.shrinkage)
        evidence = (z - self.centre) @ (self.axes @ scaled.T) - 0.5 * (means * scaled).sum(1)
        return (settings.sharpness * evidence + prior.log()).log_softmax(1)

    def as_circuit(self, coordinates: Coordinates, settings: Settings, prior: Tensor) -> Gaussian:
        """The circuit of these moments, under class frequencies ``[C]``."""
        stretch, n_classes = self.variances(settings.shrinkage).rsqrt(), len(prior)
        circuit = RandomSPN(
            len(stretch), n_classes, depth=0, repetitions=1, leaves=n_classes,
            scale=settings.sharpness**-0.5,
        ).double()  # fmt: skip
        root = circuit.layers[0].sum
        with torch.no_grad():
            # The only region lists the variables in a random order.
            order = circuit.leaves.variables.flatten()
            means = self.means(settings.pseudo_points)
            circuit.leaves.location.copy_((means * stretch).T[order])
            own = torch.eye(n_classes, dtype=torch.float64)[None]
            root.set_weights((1 - root.floor) * own + root.floor / root.fan_in)
        circuit.set_prior(prior)
        chosen = torch.tensor(astuple(settings), dtype=torch.float64)
        points = self.counts + settings.pseudo_points
        return Gaussian(coordinates, self.centre, self.axes * stretch, circuit, chosen, points)


def fit_gaussian(
    x: Tensor,
    y: Tensor,
    n_classes: int,
    parts: Sequence[Part],
    kinds: Sequence[Kind] = UNITS,
    reference: Tensor | None = None,
    default: Settings | None = None,
) -> tuple[Gaussian, Tensor]:
    """The circuit whose units, shrinkage and sharpness predict held-out points best.

    Args:
        x: features ``[N, D]``.
        y: classes ``[N]``.
        n_classes: C.
        parts: held-out parts for choosing the settings.
        kinds: kinds of units to choose from.
        reference: points from which units are computed, ``[M, D]``; None for ``x``.
        default: the settings if there are no parts.

    Returns:
        The circuit of all points, and the predictions ``[M, C]`` for all held-out points by
        circuits that did not see them.
    """
    held_y, targets = held_out_labels(y, parts), one_hot(y, n_classes).double()
    best, choice = math.inf, (kinds[0], default or Settings())
    held_log_probs = torch.zeros(0, n_classes, dtype=torch.float64)
    for kind in kinds if parts else ():
        folds = []
        for part, z in coordinates_of(parts, kind, reference, MOST_FEATURES):
            known = targets[~part.held]
            folds.append((Moments.of(z[~part.held], known), z[part.held], add_one(known.sum(0))))
        loss, settings, log_probs = choose_settings(folds, held_y)
        if loss < best:
            best, choice, held_log_probs = loss, (kind, settings), log_probs
    kind, settings = choice
    units = Units.fit(x if reference is None else reference, kind)
    coordinates = Coordinates.fit(x, units, MOST_FEATURES)
    moments = Moments.of(coordinates(x), targets)
    return moments.as_circuit(coordinates, settings, add_one(targets.sum(0))), held_log_probs


def choose_settings(
    folds: Sequence[tuple[Moments, Tensor, Tensor]], held_y: Tensor
) -> tuple[float, Settings, Tensor]:
    """The settings that predict held-out points best.

    Args:
        folds: moments, held-out points ``[n, R]`` that are not part of them, and class frequencies
            ``[C]``.
        held_y: classes of the held-out points of all folds, ``[M]``.

    Returns:
        Their loss, the settings, and the predictions ``[M, C]``.
    """
    sharpness = torch.tensor(SHARPNESS, dtype=torch.float64)[:, None, None]
    log_prior = torch.cat([prior.log().expand(len(held), -1) for _, held, prior in folds])
    rotated = [(moments, moments.rotated(held)) for moments, held, _ in folds]
    results = []
    for shrinkage, pseudo_points in product(SHRINKAGES, PSEUDO_POINTS):
        evidence = torch.cat([m.evidence(z, shrinkage, pseudo_points) for m, z in rotated])
        log_probs = (sharpness * evidence + log_prior).log_softmax(-1)
        losses = held_out_loss(log_probs, held_y)
        index = int(losses.argmin())
        settings = Settings(shrinkage, pseudo_points, SHARPNESS[index])
        results.append((float(losses[index]), settings, log_probs[index]))
    return min(results, key=lambda result: result[0])
