r"""A mixture of the circuit with other classifiers, in case it is not the best.

Predictions are the mixture :math:`\sum_m w_m\, p_m(c \mid x)` of the circuit with logistic
regression on the same features and with trees. If the features come from a network that was trained
on the labels, the network's own softmax, sharpened or softened, takes the place of the trees. The
weights maximise the likelihood of held-out points, so another classifier replaces the circuit as
far as it is better.

A mixture of calibrated predictions is less sure than it should be (Ranjan and Gneiting, 2010). So
on features that do not depend on the labels, its predictions are raised to a power and normalised.
The power is chosen on held-out points, too. Other class frequencies are taken into account after
that.

If there are unlabelled points, a circuit that also learned from them replaces the first one if it
makes held-out points more likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spinal.classifiers.gaussian import Gaussian, Settings, fit_gaussian
from spinal.classifiers.logistic import Logistic, fit_logistic
from spinal.classifiers.mixing import held_out_gain, mix, mixing_weights
from spinal.classifiers.parts import Part, held_out_labels, held_out_parts
from spinal.classifiers.plain import blend_arrays
from spinal.classifiers.pool import PoolPoints, fit_gaussian_to_pool
from spinal.classifiers.priors import add_one, shift_prior
from spinal.classifiers.sharpness import fit_sharpness
from spinal.classifiers.trees import Trees, fit_trees
from spinal.classifiers.units import Kind, plausible_kinds
from spinal.probabilities import sharpened

FOLDS = 5
_SEED = 0
#: What the power of the mixture is drawn to, and how strongly; see `fit_sharpness`. The power that
#: held-out points favour is rather too small: their predictions are by models with fewer labels,
#: and labelled points are often harder than others.
_USUAL, _PULL = 1.2, 10.0
#: With more features than this, there are no trees, and logistic regression uses the circuit's
#: units.
MOST_FOR_TREES = 300


@dataclass(frozen=True, eq=False)
class Blend:
    """A fitted mixture.

    Attributes:
        gaussian: the circuit. Its prior is ``after``.
        weights: weights of the circuit and then of the others, in the order below, ``[M]``.
        before: class frequencies under which the others were fitted, ``[C]``.
        after: class frequencies for predictions, ``[C]``.
        logistic: logistic regression on the features.
        trees: trees on the features.
        sharpness: the power of the softmax of the network, ``[]``.
        from_pool: whether the circuit also learned from unlabelled points, ``[]``; None if there
            were none.
        power: the power of the predictions of the mixture, ``[]``; None for 1.
    """

    gaussian: Gaussian
    weights: Tensor
    before: Tensor
    after: Tensor
    logistic: Logistic | None = None
    trees: Trees | None = None
    sharpness: Tensor | None = None
    from_pool: Tensor | None = None
    power: Tensor | None = None

    def log_probs(self, x: Tensor, head: Tensor | None = None) -> Tensor:
        """Log-probabilities ``[N, C]``, float64.

        Args:
            x: features ``[N, D]``.
            head: the network's own log-probabilities ``[N, C]``, if it is part of the mixture.
        """
        others = [other.log_probs(x) for other in (self.logistic, self.trees) if other is not None]
        if head is not None and self.sharpness is not None:
            others.append(sharpened(head.double(), float(self.sharpness)))
        shifted = [shift_prior(other, self.before, self.after) for other in others]
        mixed = mix([self.gaussian.log_probs(x), *shifted], self.weights)
        if self.power is None:
            return mixed
        powered = sharpened(shift_prior(mixed, self.after, self.before), float(self.power))
        return shift_prior(powered, self.before, self.after)

    def shares(self) -> dict[str, float]:
        """The weight of each classifier by its name; the circuit is ``spn``."""
        others = {"logistic": self.logistic, "trees": self.trees, "network": self.sharpness}
        names = ["spn", *(name for name, other in others.items() if other is not None)]
        return dict(zip(names, self.weights.tolist(), strict=True))

    def with_prior(self, after: Tensor) -> Blend:
        """The same mixture under other class frequencies ``[C]``."""
        self.gaussian.circuit.set_prior(after)
        return replace(self, after=after)

    def to_plain_arrays(self, head: tuple[Tensor, Tensor] | None = None) -> dict[str, Tensor]:
        """The arrays from which `log_probs` is computed, for export.

        See `spinal.classifiers.plain` for the names and the formulas.

        Args:
            head: weight ``[C, D]`` and bias ``[C]`` of the network's logits, if it is part of the
                mixture.
        """
        return blend_arrays(self, head)


def fit_on_vectors(
    x: Tensor,
    y: Tensor,
    n_classes: int,
    unlabelled: Tensor | None = None,
    pool: PoolPoints | None = None,
    *,
    with_trees: bool = True,
    kinds: tuple[Kind, ...] | None = None,
) -> Blend:
    """The mixture on features that do not depend on the labels.

    Folds and trees use a fixed seed.

    Args:
        x: features ``[N, D]``.
        y: classes ``[N]``.
        n_classes: C.
        unlabelled: features of other points, ``[M, D]``, which give better units than x alone.
        pool: the same points and others. A circuit learns from all of them, and is used if the
            mixture with it predicts held-out points better.
        with_trees: whether to include trees, if there are few features.
        kinds: kinds of units to choose from; None for all that may suit the features.
    """
    parts = held_out_parts(x, y, FOLDS, _SEED)
    held_y = held_out_labels(y, parts)
    reference = None if unlabelled is None else torch.cat([x, unlabelled])
    kinds = kinds or plausible_kinds(x if reference is None else reference)
    gaussian, *held = fit_gaussian(x, y, n_classes, parts, kinds, reference)
    few = with_trees and x.shape[1] <= MOST_FOR_TREES
    kinds = (gaussian.coordinates.units.kind,)
    if few and kinds != ("each",):
        kinds = (*kinds, "each")
    logistic, held_logistic = fit_logistic(x, y, n_classes, parts, kinds, reference)
    held.append(held_logistic)
    trees = None
    if few:
        trees, held_trees = fit_trees(x, y, n_classes, _SEED)
        held.append(torch.cat([held_trees[:0], *(held_trees[part.held] for part in parts)]))
    weights, from_pool = mixing_weights(held, held_y), None
    mixed = mix(held, weights)
    if pool is not None and parts:
        taught, held_taught = fit_gaussian_to_pool(pool, y, n_classes, parts, kinds[0])
        held_with = [held_taught, *held[1:]]
        weights_with = mixing_weights(held_with, held_y)
        mixed_with = mix(held_with, weights_with)
        better = held_out_gain(mixed_with, mixed, held_y) > 0
        if better:
            gaussian, weights, mixed = taught, weights_with, mixed_with
        from_pool = torch.tensor(better)
    power = torch.tensor(fit_sharpness(mixed, held_y, _USUAL, _PULL))
    before = add_one(torch.bincount(y, minlength=n_classes))
    return Blend(
        gaussian, weights, before, before, logistic, trees, from_pool=from_pool, power=power
    )


def fit_on_network(
    z: Tensor, y: Tensor, n_classes: int, parts: Sequence[Part], held_head: Tensor
) -> Blend:
    """The mixture on features of a network that was trained on the labels.

    Points that a network was trained on are better separated in its features than other points. So
    all settings are chosen with further networks, each of which did not see some of the labels.

    Args:
        z: features ``[N, F]`` from the network.
        y: classes ``[N]``.
        n_classes: C.
        parts: features of the same points from each further network; may be empty.
        held_head: their log-probabilities for the points that they hold out, one part after the
            other: ``[M, C]``.
    """
    gaussian, held = fit_gaussian(z, y, n_classes, parts, ("common",))
    logistic, held_logistic = fit_logistic(z, y, n_classes, parts, ("common",))
    held_y = held_out_labels(y, parts)
    sharpness = fit_sharpness(held_head, held_y)
    weights = mixing_weights([held, held_logistic, sharpened(held_head, sharpness)], held_y)
    before = add_one(torch.bincount(y, minlength=n_classes))
    return Blend(gaussian, weights, before, before, logistic, sharpness=torch.tensor(sharpness))


def refit_on_network(z: Tensor, y: Tensor, n_classes: int, kept: Blend) -> Blend:
    """A mixture on the features of a network, with settings and weights of another network.

    Args:
        z: features ``[N, F]``.
        y: classes ``[N]``.
        n_classes: C.
        kept: the result of `fit_on_network` for the other network.
    """
    assert kept.gaussian.chosen is not None
    assert kept.logistic is not None
    assert kept.logistic.chosen is not None
    settings, penalties = Settings(*kept.gaussian.chosen.tolist()), int(kept.logistic.chosen)
    gaussian, _ = fit_gaussian(z, y, n_classes, (), ("common",), default=settings)
    logistic, _ = fit_logistic(z, y, n_classes, (), ("common",), default=penalties)
    before = add_one(torch.bincount(y, minlength=n_classes))
    return replace(kept, gaussian=gaussian, logistic=logistic, before=before, after=before)
