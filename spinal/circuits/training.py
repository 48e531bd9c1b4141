r"""Fitting a circuit: discriminatively, generatively, or both, by gradient or by EM.

The loss of a point :math:`(z, y)` mixes two by one weight :math:`\alpha`,

.. math::
    (1 - \alpha)\, \big(-\log p(y \mid z)\big) \;+\; \alpha\, \big(-\log p(z, y)\big) / D ,

the first teaching the circuit to tell classes apart, the second to know where the data are. The
second also ties down what cross-entropy alone leaves free, and so makes fits repeatable.

A class without labels is not ruled out: in the first term it is given :math:`1 / (N + C)` of every
target, Laplace's estimate of the share of a class that did not occur among N points.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from spinal.circuits.circuit import Circuit, Evaluated, draw_kept
from spinal.errors import SpinalError


@dataclass(frozen=True)
class FitSettings:
    r"""How a circuit is fitted. The defaults are the recipe of ``results/spn-recipe``.

    Attributes:
        generative: the weight :math:`\alpha` of the generative term: 0 is discriminative, 1
            generative.
        optimiser: ``adam``, or ``em`` (generative only; `learning_rate` is then the step towards
            the new estimate, 1 for plain EM).
        learning_rate: the highest one, if there is a schedule.
        schedule: ``one-cycle`` (up, then down to almost 0) or ``constant``.
        steps: updates in all; or ``epochs``, passes over the data, if that is given.
        batch_size: points in an update; all of them, if there are fewer. None: always all.
        leaf_dropout: rate at which variables are dropped (marginalised) in training.
        patience: stop after so many checks without improvement of the validation loss, or of the
            training loss where there is no validation set; never, if None.
        check_every: steps between two checks.
        tolerance: what counts as an improvement.
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


@dataclass
class FitReport:
    """What happened: training losses by step, validation losses by check, and why it ended."""

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
    """Train ``circuit`` in place, from where it stands.

    Args:
        z: features ``[N, D]``; NaN is missing.
        y: classes ``[N]``.
        weights: how much each point counts, ``[N]``.
        validation: features and classes; the parameters that were best on them are kept.
        seed: of the batches and the dropped variables.
        on_step: called with the step, the number of steps and the loss.
    """
    settings = settings or FitSettings()
    z, y, weights = _checked(circuit, z, y, weights)
    generator = torch.Generator().manual_seed(seed)
    size = len(z) if settings.batch_size is None else min(settings.batch_size, len(z))
    steps = settings.steps
    if settings.epochs is not None:
        steps = settings.epochs * math.ceil(len(z) / size)
    update = _em_update if settings.optimiser == "em" else _adam_update(circuit, settings, steps)
    report, watch = FitReport(), _Watch(settings)
    unseen = torch.bincount(y, minlength=circuit.classes) == 0
    share = unseen.to(z.dtype) / (len(z) + circuit.classes)

    batches = _batches(len(z), size, generator)
    for step in range(steps):
        rows = next(batches).to(z.device)
        keep = None
        if settings.leaf_dropout:
            kept = draw_kept((len(rows), z.size(1)), settings.leaf_dropout, generator)
            keep = kept.to(z.device)
        value = update(circuit, z[rows], y[rows], weights[rows], share, keep, settings)
        report.losses.append(value)
        if on_step is not None:
            on_step(step + 1, steps, value)
        if (step + 1) % settings.check_every == 0:
            if validation is not None:
                held = _checked(circuit, *validation, None)
                with torch.no_grad():
                    value = float(_loss(circuit, *held, torch.zeros_like(share), None, settings))
                report.validation_losses.append(value)
            else:
                value = sum(report.losses[-settings.check_every :]) / settings.check_every
            if watch.is_enough(value, circuit, keep_best=validation is not None):
                report.stopped_early = True
                break
    watch.restore(circuit)
    return report


def _loss(
    circuit: Circuit,
    z: Tensor,
    y: Tensor,
    weights: Tensor,
    share: Tensor,
    keep: Tensor | None,
    settings: FitSettings,
) -> Tensor:
    """The mean loss; ``share [C]`` of every target goes to those classes, the rest to the label."""
    by_class, common = circuit.class_values(z, keep)
    at_label = by_class.gather(1, y[:, None]).squeeze(1)
    at_target = (1 - share.sum()) * at_label + by_class @ share
    discriminative = by_class.logsumexp(1) - at_target
    generative = -(at_label + common) / circuit.features
    alpha = settings.generative
    loss = (1 - alpha) * discriminative + alpha * generative
    return (loss * weights).sum() / weights.sum()


def _adam_update(circuit: Circuit, settings: FitSettings, steps: int) -> Callable[..., float]:
    device = circuit.prior_logits.device.type
    optimiser = torch.optim.Adam(
        circuit.parameters(), lr=settings.learning_rate, fused=device in ("cpu", "cuda")
    )
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None
    if settings.schedule == "one-cycle":
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, settings.learning_rate, total_steps=steps, cycle_momentum=False
        )

    def update(*arguments: object) -> float:
        loss = _loss(*arguments)  # type: ignore[arg-type]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if schedule is not None:
            schedule.step()
        return float(loss.detach())

    return update


def _em_update(
    circuit: Circuit,
    z: Tensor,
    y: Tensor,
    weights: Tensor,
    _: Tensor,
    keep: Tensor | None,
    settings: FitSettings,
) -> float:
    r"""One step of expectation-maximisation.

    Expected counts are derivatives: of the log-likelihood by a weight, times the weight; and by
    the natural parameters of a leaf, which gives the expected :math:`(z^2, z, 1)` themselves.
    """
    theta = circuit.evaluate()
    eta = [part.detach().requires_grad_() for part in theta.natural.eta]
    mixes = [w.detach().requires_grad_() for w in theta.weights]
    frozen = Evaluated(theta.natural._replace(eta=eta), mixes, theta.log_prior.detach())
    by_class, common = circuit.class_values(z, keep, frozen)
    likelihood = ((by_class.gather(1, y[:, None]).squeeze(1) + common) * weights).sum()
    derivatives = torch.autograd.grad(likelihood, [*eta, *mixes])
    statistics, counts = derivatives[: len(eta)], derivatives[len(eta) :]
    step = settings.learning_rate
    with torch.no_grad():
        for layer, w, derivative in zip(circuit.layers, mixes, counts, strict=True):
            layer.sum.blend(w, derivative, step)
        circuit.leaves.blend(statistics, step)
        in_class = torch.zeros_like(circuit.prior_logits).index_add(0, y, weights)
        prior = (1 - step) * theta.log_prior.exp() + step * in_class / in_class.sum()
        circuit.set_prior(prior)
    return -float(likelihood.detach()) / float(weights.sum()) / circuit.features


class _Watch:
    """Remembers the best loss (and the parameters there), and says when to stop."""

    def __init__(self, settings: FitSettings) -> None:
        self.settings = settings
        self.best, self.without = math.inf, 0
        self.state: dict[str, Tensor] | None = None

    def is_enough(self, value: float, circuit: Circuit, *, keep_best: bool) -> bool:
        if value < self.best - self.settings.tolerance:
            self.best, self.without = value, 0
            if keep_best:
                self.state = copy.deepcopy(circuit.state_dict())
        else:
            self.without += 1
        return self.settings.patience is not None and self.without >= self.settings.patience

    def restore(self, circuit: Circuit) -> None:
        if self.state is not None:
            circuit.load_state_dict(self.state)


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled batches without end, each point once an epoch; the short rest of an epoch counts."""
    while True:
        yield from torch.randperm(n, generator=generator).split(size)


def _checked(
    circuit: Circuit, z: Tensor, y: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
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
    if int(y.min()) < 0 or int(y.max()) >= circuit.classes:
        raise SpinalError(f"labels must be from 0 to {circuit.classes - 1}")
    return z, y, weights
