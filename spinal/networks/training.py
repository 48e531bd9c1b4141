"""Training of a network on labelled points, from scratch or from its current weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spinal.circuits.early_stopping import EarlyStopping
from spinal.networks.augmentation import Augment, augment, cut_out
from spinal.networks.dropout import set_dropout
from spinal.networks.evaluation import evaluating
from spinal.networks.network import Network, NetworkError, derived_seed, seeded

#: The weight of the loss of a batch of pseudo-labels; a batch of labels has weight 1.
_PSEUDO_WEIGHT = 0.5


@dataclass(frozen=True)
class TrainSettings:
    """How a network is trained. The defaults are `TUNED`; ``results/networks-tuned.md`` says why.

    Attributes:
        optimiser: ``adamw`` or ``sgd``.
        learning_rate: the maximum, if there is a schedule.
        schedule: ``one-cycle`` (up, then down to almost 0) or ``constant``.
        momentum: Nesterov momentum of ``sgd``.
        weight_decay: not applied to biases and batch norms.
        batch_size: points per step; all points if there are fewer.
        epochs: passes over the labelled points.
        min_steps: minimum number of steps.
        max_steps: maximum number of steps.
        dropout: rate of the network's last two dropout layers, or the rates of all of them, see
            `set_dropout`; None leaves them unchanged.
        label_smoothing: share of the target that is spread over all classes.
        augment: ``none``, ``flip`` (mirrored left to right, with probability 1/2), ``shift`` (by
            up to an eighth of the sides, the edge repeated) or ``shift-flip`` (both). Images only.
        cutout: side of a square that is blanked at a random place in each image, as a share of the
            shorter side; 0 for none. Images only.
        patience: stop after this many checks without a lower validation loss; None never stops.
            With a validation set, the weights with the lowest loss on it are always used.
        check_every: steps between two checks of the validation loss.
    """

    optimiser: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float = 2e-3
    schedule: Literal["one-cycle", "constant"] = "one-cycle"
    momentum: float = 0.0
    weight_decay: float = 1e-2
    batch_size: int = 16
    epochs: float = 20
    min_steps: int = 200
    max_steps: int = 4000
    dropout: float | tuple[float, ...] | None = None
    label_smoothing: float = 0.1
    augment: Augment = "none"
    cutout: float = 0.0
    patience: int | None = None
    check_every: int = 50

    def __post_init__(self) -> None:
        for name, choices in (
            ("optimiser", ("adamw", "sgd")),
            ("schedule", ("one-cycle", "constant")),
            ("augment", get_args(Augment)),
        ):
            if getattr(self, name) not in choices:
                raise NetworkError(
                    f"{name} {getattr(self, name)!r}: take one of {', '.join(choices)}"
                )
        if self.batch_size < 1 or self.check_every < 1 or self.max_steps < self.min_steps:
            raise NetworkError(
                "batch_size and check_every must be positive, and min_steps at most max_steps"
            )
        if not 0 <= self.cutout <= 1:
            raise NetworkError(f"cutout is a share from 0 to 1, not {self.cutout}")
        rates = self.dropout if isinstance(self.dropout, tuple) else (self.dropout,)
        if not all(rate is None or 0 <= rate < 1 for rate in rates):
            raise NetworkError(f"dropout is a rate from 0 to below 1, not {self.dropout}")

    def steps(self, labels: int) -> int:
        """Number of steps for a number of labelled points."""
        passes = math.ceil(self.epochs * labels / min(self.batch_size, labels))
        return min(max(passes, self.min_steps), self.max_steps)


#: The default: accurate from 20 to 10,000 labels, and fast on a CPU.
TUNED = TrainSettings()

#: For `spinal.networks.resnet_slim`, from 1,000 labels on. Add ``augment="shift"`` for images whose
#: mirror image means something else, such as digits.
SLIM = TrainSettings(
    optimiser="sgd", learning_rate=0.15, momentum=0.9, weight_decay=2e-3, batch_size=64,
    epochs=25, min_steps=1500, max_steps=10_000, augment="shift-flip", cutout=0.25,
)  # fmt: skip

#: What the paper states for its LeNet. Measured: 33 % on digits from 1,000 labels (tuned: 99 %).
PAPER_LENET = TrainSettings(
    optimiser="sgd", learning_rate=0.001, schedule="constant", weight_decay=0.0,
    batch_size=120, epochs=100, min_steps=1, max_steps=10**9, label_smoothing=0.0,
)  # fmt: skip

#: What the paper states for its VGG on CIFAR-10; on the other datasets its learning rate is 0.0005.
PAPER_VGG = TrainSettings(
    optimiser="sgd", learning_rate=0.001, schedule="constant", weight_decay=0.0,
    batch_size=100, epochs=250, min_steps=1, max_steps=10**9, label_smoothing=0.0,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """Guessed classes of points without labels.

    Attributes:
        points: ``[M, ...]``, as in `train`.
        targets: class probabilities to learn, ``[M, C]``.
        weights: how often a point is drawn, relative to the others, ``[M]``.
    """

    points: NDArray | Tensor
    targets: Tensor
    weights: Tensor


@dataclass
class TrainReport:
    """Losses of a training run, and how it ended.

    Attributes:
        losses: training loss of each step.
        validation_losses: validation loss at each check.
        best_step: step with the lowest validation loss; None without a validation set.
        stopped_early: whether training ended before its last step.
    """

    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    best_step: int | None = None
    stopped_early: bool = False


def train(
    network: Network,
    points: NDArray | Tensor,
    labels: NDArray | Tensor,
    settings: TrainSettings = TUNED,
    *,
    pseudo: PseudoLabels | None = None,
    validation: tuple[NDArray | Tensor, NDArray | Tensor] | None = None,
    seed: int = 0,
    start: Literal["scratch", "continue"] = "scratch",
    device: torch.device | str | None = None,
    on_step: Callable[[int, int, float], None] | None = None,
) -> TrainReport:
    """Train ``network`` in place; it is in evaluation mode afterwards.

    The same seed gives the same weights. The state of torch's global generators is restored.

    Args:
        network: trained in place.
        points: images, uint8 ``[N, H, W, C]``, or features ``[N, D]``. If the preprocessing of the
            network has not been fitted (`Preprocess.fit`), it is fitted to these points.
        labels: classes ``[N]``; not every class has to occur.
        settings: how to train.
        pseudo: pseudo-labels to learn from as well. Each batch of labelled points is joined by an
            equally large batch of these, drawn by their weights, whose loss counts half.
        validation: points and labels for choosing the best weights; see ``patience``.
        seed: for the initial weights, the order of points, dropout and augmentation.
        start: ``scratch``, from new weights (see `Network.restart`), or ``continue``.
        device: the network is moved to this device first; if None, it stays where it is.
        on_step: called with the step, the number of steps and the loss.
    """
    if start not in ("scratch", "continue"):
        raise NetworkError(f"start must be 'scratch' or 'continue', not {start!r}")
    if device is not None:
        network.to(device)
    if not network.preprocess.fitted and len(points):
        network.preprocess.fit(
            points.cpu().numpy() if isinstance(points, Tensor) else np.asarray(points)
        )
    if start == "scratch":
        network.restart(derived_seed(seed, 0))
    if settings.dropout is not None:
        set_dropout(network, settings.dropout)
    images, targets = _checked(network, points, labels)
    held_out = None if validation is None else _checked(network, *validation)

    generator = torch.Generator().manual_seed(derived_seed(seed, 1))
    steps = settings.steps(len(targets))
    batches = _batches(len(targets), settings.batch_size, generator)
    extra = None if pseudo is None else _Drawn(pseudo, network, generator)
    optimiser, schedule = _optimiser(network, settings, steps)
    report, stopping = TrainReport(), EarlyStopping(settings.patience)

    with seeded(derived_seed(seed, 2), network.device), _deterministic():
        for step in range(1, steps + 1):
            rows = next(batches).to(images.device)
            batch, guesses = images[rows], None
            if extra is not None:
                more, guesses = extra.draw(len(rows))
                batch = torch.cat([batch, more])
            batch = augment(batch, settings.augment, generator)
            batch = cut_out(batch, settings.cutout, generator)
            _set_training(network, len(batch))
            with _mixed_precision(network.device):
                logits = network(network.to_input(batch))
                loss = _loss(logits, targets[rows], guesses, settings.label_smoothing)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if schedule is not None:
                schedule.step()
            report.losses.append(float(loss.detach()))
            if on_step is not None:
                on_step(step, steps, report.losses[-1])
            if held_out is not None and (step % settings.check_every == 0 or step == steps):
                report.validation_losses.append(_validation_loss(network, *held_out))
                if stopping.should_stop(report.validation_losses[-1], step, network):
                    report.stopped_early = True
                    break
    stopping.restore(network)
    report.best_step = stopping.best_step
    network.eval()
    return report


class _Drawn:
    """Points with pseudo-labels on the network's device, drawn by their weights."""

    def __init__(self, pseudo: PseudoLabels, network: Network, generator: torch.Generator) -> None:
        self._images = _on_device(network, pseudo.points)
        self._targets = pseudo.targets.float().to(network.device)
        self._weights, self._generator = pseudo.weights.double().cpu(), generator
        if not len(self._images) == len(self._targets) == len(self._weights):
            raise NetworkError(
                f"need a target and a weight for each point: {len(self._images)} points, "
                f"{len(self._targets)} targets, {len(self._weights)} weights"
            )

    def draw(self, n: int) -> tuple[Tensor, Tensor]:
        """Points ``[n, ...]`` and targets ``[n, C]``."""
        rows = torch.multinomial(self._weights, n, replacement=True, generator=self._generator)
        rows = rows.to(self._images.device)
        return self._images[rows], self._targets[rows]


def _loss(logits: Tensor, labels: Tensor, guesses: Tensor | None, smoothing: float) -> Tensor:
    """The loss of logits for points with labels, and then for points with guesses."""
    n = len(labels)
    loss = cross_entropy(logits[:n], labels, label_smoothing=smoothing)
    if guesses is not None:
        loss += _PSEUDO_WEIGHT * cross_entropy(logits[n:], guesses, label_smoothing=smoothing)
    return loss


def _on_device(network: Network, points: NDArray | Tensor) -> Tensor:
    """Points as a tensor on the network's device, images still uint8."""
    if isinstance(points, Tensor):
        images = points
    else:  # a copy if the array is read-only, of which torch warns
        images = torch.from_numpy(np.require(points, requirements="W"))
    if images.is_floating_point():
        images = images.float()  # before moving: not every device supports float64
    return images.to(network.device)


def _checked(
    network: Network, points: NDArray | Tensor, labels: NDArray | Tensor
) -> tuple[Tensor, Tensor]:
    """Points and labels as tensors on the network's device, images still uint8."""
    images = _on_device(network, points)
    targets = torch.as_tensor(labels).long().to(network.device)
    if len(images) == 0 or targets.shape != (len(images),):
        raise NetworkError(
            f"need one label for each point, and at least one: {len(images)} points, "
            f"labels of shape {tuple(targets.shape)}"
        )
    with evaluating(network):
        n_classes = network(network.to_input(images[:1])).size(1)
    low, high = int(targets.min()), int(targets.max())
    if low < 0 or high >= n_classes:
        raise NetworkError(
            f"labels from {low} to {high}, but the network has {n_classes} classes "
            f"(0 to {n_classes - 1})"
        )
    return images, targets


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Endless batches of rows, ``[size]`` each (or ``[n]``, if that is less).

    The rows are shuffled repeatedly, and a batch may span two shuffles. So all batches have the
    same size, and none has a noisier gradient or only a single point.
    """
    size = min(size, n)
    rows = torch.empty(0, dtype=torch.long)
    while True:
        while len(rows) < size:
            rows = torch.cat([rows, torch.randperm(n, generator=generator)])
        yield rows[:size]
        rows = rows[size:]


def _optimiser(
    network: Network, settings: TrainSettings, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler | None]:
    trained = [p for p in network.parameters() if p.requires_grad]
    if not trained:
        raise NetworkError("the network has no weights to train: all are frozen")
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    rate = settings.learning_rate
    optimiser: torch.optim.Optimizer
    if settings.optimiser == "adamw":
        fused = network.device.type in ("cpu", "cuda")
        optimiser = torch.optim.AdamW(groups, lr=rate, fused=fused)
    else:
        momentum = settings.momentum
        optimiser = torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=momentum > 0)
    if settings.schedule == "constant":
        return optimiser, None
    return optimiser, torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, cycle_momentum=False
    )


def _set_training(network: Network, batch: int) -> None:
    """Training mode; batch norms use running statistics if the batch has a single point."""
    network.train()
    if batch == 1:
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()


def _mixed_precision(device: torch.device) -> AbstractContextManager:
    """bfloat16 on GPUs that support it; on CPUs it is slower, or only emulated."""
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.autocast("cuda", torch.bfloat16)
    return nullcontext()


@contextmanager
def _deterministic() -> Iterator[None]:
    """Restrict cuDNN to deterministic algorithms inside the ``with`` block."""
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before


def _validation_loss(network: Network, images: Tensor, targets: Tensor) -> float:
    total = 0.0
    with evaluating(network):
        for x, y in zip(images.split(256), targets.split(256), strict=True):
            total += float(cross_entropy(network(network.to_input(x)), y, reduction="sum"))
    return total / len(targets)
