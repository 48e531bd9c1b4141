r"""Fitting a circuit: discriminatively, generatively, or both, by gradient descent or by EM.

The loss of a point :math:`(z, y)` is a mixture of two terms with weight :math:`\alpha`,

.. math::
    (1 - \alpha)\, \big(-\log p(y \mid z)\big) \;+\; \alpha\, \big(-\log p(z, y)\big) / D .

The first, cross-entropy, separates the classes. The second, the likelihood, models the density. It
also fixes parameters that cross-entropy alone does not determine, which makes fits repeatable.

A class without labels keeps a positive probability: in the first term it gets :math:`1 / (N + C)`
of every target, Laplace's estimate of the share of a class that did not occur among N points.

With :math:`t` for the target of a point, a distribution over the classes, both terms together are

.. math::
    (1 - \alpha) \log \sum_c p(z, c) \;-\; \sum_c u_c \log p(z, c), \qquad
    u_c = (1 - \alpha)\, t_c + \tfrac{\alpha}{D} [c = y] ,

where :math:`u` depends on the labels alone, and is computed once for all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from spinal.circuits.circuit import Circuit, Evaluated, draw_kept
from spinal.circuits.early_stopping import EarlyStopping
from spinal.errors import SpinalError


@dataclass(frozen=True)
class FitSettings:
    r"""How a circuit is fitted. The defaults are the recipe of ``results/spn-recipe``.

    Attributes:
        generative: the weight :math:`\alpha` of the generative term: 0 is discriminative, 1
            generative.
        optimiser: ``adam``, or ``em`` (generative only; ``learning_rate`` is then the step towards
            the new estimate, 1 for plain EM).
        learning_rate: the maximum, if there is a schedule.
        schedule: ``one-cycle`` (up, then down to almost 0) or ``constant``.
        steps: number of updates.
        epochs: passes over the data, instead of ``steps``.
        batch_size: points per update; all points if there are fewer, or if None.
        leaf_dropout: rate at which variables are dropped (marginalised) in training.
        patience: stop after this many checks without improvement of the validation loss, or of the
            training loss if there is no validation set; None never stops.
        check_every: steps between two checks.
        tolerance: the minimum decrease of the loss that counts as an improvement.
    """

    generative: float = 0.25
    optimiser: Literal["adam", "em"] = "adam"
    learning_rate: float = 0.02
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    steps: int = 300
    epochs: int | None = None
    batch_size: int | None = 128
    leaf_dropout: float = 0.0
    patience: int | None = None
    check_every: int = 10
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 <= self.generative <= 1:
            raise SpinalError(f"generative is a weight from 0 to 1, not {self.generative}")
        if self.optimiser == "em" and self.generative < 1:
            raise SpinalError("EM maximises the likelihood: set generative=1, or optimiser='adam'")
        if self.optimiser not in ("adam", "em") or self.schedule not in ("one-cycle", "constant"):
            raise SpinalError(f"unknown optimiser {self.optimiser!r} or schedule {self.schedule!r}")
        if not 0 <= self.leaf_dropout < 1:
            raise SpinalError(f"leaf_dropout must be from 0 to below 1, not {self.leaf_dropout}")
        counts = (self.steps, self.epochs, self.batch_size, self.patience, self.check_every)
        if not self.learning_rate > 0 or any(n is not None and n < 1 for n in counts):
            raise SpinalError(
                "learning_rate, steps, epochs, batch_size, patience and check_every must be "
                "positive"
            )


@dataclass
class FitReport:
    """Losses of a fit, and how it ended.

    Attributes:
        losses: training loss of each step.
        validation_losses: validation loss at each check.
        stopped_early: whether the fit ended before its last step.
    """

    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    stopped_early: bool = False


def fit(
    circuit: Circuit,
    z: Tensor,
    y: Tensor,
    settings: FitSettings | None = None,
    *,
    weights: Tensor | None = None,
    validation: tuple[Tensor, Tensor] | None = None,
    seed: int = 0,
    on_step: Callable[[int, int, float], None] | None = None,
) -> FitReport:
    """Train ``circuit`` in place, from its current parameters.

    Args:
        circuit: trained in place.
        z: features ``[N, D]``; NaN is missing.
        y: classes ``[N]``.
        settings: how to fit; by default, ``FitSettings()``.
        weights: weight of each point, ``[N]``.
        validation: features and classes; the parameters with the lowest loss on them are kept.
        seed: for the batches and the dropped variables.
        on_step: called with the step, the number of steps and the loss.
    """
    settings = settings or FitSettings()
    points = _Points.checked(circuit, z, y, weights)
    held_out_loss = None
    if validation is not None:
        held_out = _Points.checked(circuit, *validation, None)
        held_out_loss = _held_out_loss(circuit, held_out, settings.generative)
    generator = torch.Generator().manual_seed(seed)
    n = len(points.y)
    size = n if settings.batch_size is None else min(settings.batch_size, n)
    steps = settings.steps
    if settings.epochs is not None:
        steps = settings.epochs * math.ceil(n / size)
    by_em = settings.optimiser == "em"
    update = (_em_update if by_em else _adam_update)(circuit, points, settings, steps)
    report = FitReport()
    stopping = EarlyStopping(settings.patience, settings.tolerance)

    batches = _batches(n, size, generator)
    for step in range(steps):
        rows = next(batches).to(points.z.device)
        keep = None
        if settings.leaf_dropout:
            is_kept = draw_kept((len(rows), circuit.n_features), settings.leaf_dropout, generator)
            keep = is_kept.to(rows.device)
        value = update(rows, keep)
        report.losses.append(value)
        if on_step is not None:
            on_step(step + 1, steps, value)
        is_last = step + 1 == steps and held_out_loss is not None
        if (step + 1) % settings.check_every == 0 or is_last:
            if held_out_loss is not None:
                value = held_out_loss()
                report.validation_losses.append(value)
            else:
                value = sum(report.losses[-settings.check_every :]) / settings.check_every
            is_held_out = held_out_loss is not None
            if stopping.should_stop(value, step + 1, circuit, keep_weights=is_held_out):
                report.stopped_early = True
                break
    stopping.restore(circuit)
    return report


class _Points(NamedTuple):
    """Features ``z [N, D]``, classes ``y [N]``, and weights of the points, ``weights [N]``."""

    z: Tensor
    y: Tensor
    weights: Tensor

    @classmethod
    def checked(cls, circuit: Circuit, z: Tensor, y: Tensor, weights: Tensor | None) -> _Points:
        """Tensors of the circuit's type and device; raises an error if they do not fit it."""
        like = circuit.prior_logits
        z = z.to(like)
        y = y.to(like.device).long()
        weights = torch.ones_like(z[:, 0]) if weights is None else weights.to(like)
        if len(z) == 0 or len(z) != len(y) or len(z) != len(weights):
            raise SpinalError(
                f"need as many labels and weights as points: {len(z)}, {len(y)}, {len(weights)}"
            )
        if z.isinf().any():
            raise SpinalError("features must be finite, or NaN where they are missing")
        if int(y.min()) < 0 or int(y.max()) >= circuit.n_classes:
            raise SpinalError(f"labels must be from 0 to {circuit.n_classes - 1}")
        return cls(z, y, weights)

    def coefficients(self, circuit: Circuit, alpha: float, *, share_unseen: bool) -> Tensor:
        """The coefficients ``u [N, C]`` of the class log-densities in the loss; see the module."""
        label = F.one_hot(self.y, circuit.n_classes).to(self.z.dtype)
        target = label
        if share_unseen:
            unseen = (label.sum(0) == 0).to(label.dtype)
            share = unseen / (len(label) + circuit.n_classes)
            target = (1 - share.sum()) * label + share
        return (1 - alpha) * target + alpha / circuit.n_features * label


def _loss(
    circuit: Circuit, z: Tensor, u: Tensor, weights: Tensor, keep: Tensor | None, alpha: float
) -> Tensor:
    """The weighted mean of the loss; ``u`` is `_Points.coefficients` of the points."""
    by_class, common = circuit.class_values(z, keep)
    share = weights / weights.sum()
    loss = ((1 - alpha) * by_class.logsumexp(1) - (by_class * u).sum(1)) @ share
    # The part that is common to all classes has the factor 1 - alpha in the first term, and in the
    # second the sum of u, which is larger by alpha / D.
    return loss - alpha / circuit.n_features * (common @ share.to(common.dtype))


def _held_out_loss(circuit: Circuit, points: _Points, alpha: float) -> Callable[[], float]:
    """A function that computes the current loss of the circuit on held-out points."""
    u = points.coefficients(circuit, alpha, share_unseen=False)

    @torch.no_grad()
    def measure() -> float:
        return float(_loss(circuit, points.z, u, points.weights, None, alpha))

    return measure


#: Makes one step on some points, with some variables dropped, and returns the loss.
Update: TypeAlias = Callable[[Tensor, Tensor | None], float]


def _adam_update(circuit: Circuit, points: _Points, settings: FitSettings, steps: int) -> Update:
    device = points.z.device.type
    parameters = [p for p in circuit.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(
        parameters, lr=settings.learning_rate, fused=device in ("cpu", "cuda")
    )
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None
    if settings.schedule == "one-cycle":
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, settings.learning_rate, total_steps=steps, cycle_momentum=False
        )
    alpha = settings.generative
    u = points.coefficients(circuit, alpha, share_unseen=True)

    def update(rows: Tensor, keep: Tensor | None) -> float:
        loss = _loss(circuit, points.z[rows], u[rows], points.weights[rows], keep, alpha)
        derivatives = torch.autograd.grad(loss, parameters)
        for parameter, derivative in zip(parameters, derivatives, strict=True):
            # Fused Adam assumes that gradients have the parameters' layout, as after `backward`.
            parameter.grad = derivative.contiguous()
        optimiser.step()
        if schedule is not None:
            schedule.step()
        return float(loss.detach())

    return update


def _em_update(circuit: Circuit, points: _Points, settings: FitSettings, _: int) -> Update:
    if circuit.exact_logs:
        raise SpinalError("EM needs a floor under the weights: weight_floor=0 rules it out")

    def update(rows: Tensor, keep: Tensor | None) -> float:
        batch = _Points(*(values[rows] for values in points))
        return _em_step(circuit, batch, keep, settings.learning_rate)

    return update


def _em_step(circuit: Circuit, points: _Points, keep: Tensor | None, step: float) -> float:
    r"""One step of expectation-maximisation; returns the loss before it.

    Expected counts are derivatives of the log-likelihood. The derivative with respect to a weight,
    times the weight, is its count. The derivatives with respect to the natural parameters of a leaf
    are the expected :math:`(z^2, z, 1)`.
    """
    z, y, weights = points
    theta = circuit.evaluate()
    eta = [part.detach().requires_grad_() for part in theta.natural.eta]
    mixtures = [w.detach().requires_grad_() for w in theta.mixtures]
    frozen = Evaluated(theta.natural._replace(eta=eta), mixtures, theta.log_prior.detach())
    by_class, common = circuit.class_values(z, keep, frozen)
    likelihood = ((by_class.gather(1, y[:, None]).squeeze(1) + common) * weights).sum()
    derivatives = torch.autograd.grad(likelihood, [*eta, *mixtures])
    statistics, counts = derivatives[: len(eta)], derivatives[len(eta) :]
    with torch.no_grad():
        for layer, w, derivative in zip(circuit.layers, mixtures, counts, strict=True):
            layer.sum.blend(w, derivative, step)
        circuit.leaves.blend(statistics, step)
        in_class = torch.zeros_like(circuit.prior_logits).index_add(0, y, weights)
        prior = (1 - step) * theta.log_prior.exp() + step * in_class / in_class.sum()
        circuit.set_prior(prior)
    return -float(likelihood.detach()) / float(weights.sum()) / circuit.n_features


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Endless shuffled batches, each point once per epoch; the last batch may be shorter."""
    while True:
        yield from torch.randperm(n, generator=generator).split(size)
