"""Early stopping: the weights at the lowest loss, and when to stop training."""

from __future__ import annotations

import copy
import math

from torch import Tensor, nn


class EarlyStopping:
    """Keeps the best weights of a module in training, and decides when to stop.

    Args:
        patience: stop after this many checks without a lower loss; None never stops.
        tolerance: the minimum decrease of the loss that counts as lower.

    Attributes:
        best_step: the step of the lowest loss; None before the first check.
    """

    def __init__(self, patience: int | None, tolerance: float = 0.0) -> None:
        self.patience, self.tolerance = patience, tolerance
        self.best_step: int | None = None
        self._lowest, self._checks_since = math.inf, 0
        self._weights: dict[str, Tensor] | None = None

    def should_stop(
        self, loss: float, step: int, module: nn.Module, *, keep_weights: bool = True
    ) -> bool:
        """Record the loss at a step, and return whether training should stop.

        Args:
            loss: the loss at this step.
            step: its number.
            module: the module in training.
            keep_weights: copy the weights for `restore` if the loss is the lowest so far.
        """
        if loss < self._lowest - self.tolerance:
            self._lowest, self._checks_since, self.best_step = loss, 0, step
            if keep_weights:
                self._weights = copy.deepcopy(module.state_dict())
        else:
            self._checks_since += 1
        return self.patience is not None and self._checks_since >= self.patience

    def restore(self, module: nn.Module) -> None:
        """Load the weights of the lowest loss into the module, if they were copied."""
        if self._weights is not None:
            module.load_state_dict(self._weights)
