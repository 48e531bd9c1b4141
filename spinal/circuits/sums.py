r"""Sum nodes: weighted sums over the channels of a cell, or of all cells.

Weights have a floor that is part of the model,
:math:`w = (1 - \epsilon)\,\mathrm{softmax}(\theta) + \epsilon / n`: no sum can be smaller than
:math:`\epsilon / n` times its largest child, so circuits can be evaluated in the linear domain
(`spinal.circuits.flows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from spinal.circuits.products import Product
from spinal.errors import StructureError

#: Share of each sum that is spread evenly over its children. Small enough to be negligible, large
#: enough for float32: a product of four sums over 64 channels is at least (1e-6 / 64)^4 = 6e-32.
WEIGHT_FLOOR = 1e-6


class Sum(nn.Module):
    """Weighted sums over the channels of a cell, with separate weights for each cell.

    Args:
        cells: the grid ``(A, B)``.
        inputs: number of channels below.
        outputs: number of channels above.
        over_cells: sum over the cells as well, with one distribution over all ``A B C`` inputs
            (dense: the root of each class); otherwise one distribution for each cell (local).
        floor: the share of the weight that is spread evenly over all children. With 0, weights may
            be 0, and the circuit is evaluated in the log domain, which is exact but much slower.
        spread: standard deviation of the initial logits. It breaks the symmetry between channels;
            near 0, training stays close to a solution with identical channels.
        generator: draws the initial logits.
    """

    def __init__(
        self,
        cells: tuple[int, int],
        inputs: int,
        outputs: int,
        *,
        over_cells: bool = False,
        floor: float = WEIGHT_FLOOR,
        spread: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= floor < 1:
            raise StructureError(f"weight_floor must be in [0, 1), not {floor}")
        if inputs < 1 or outputs < 1:
            raise StructureError(f"a sum layer needs channels: got {inputs} below, {outputs} above")
        self.cells, self.inputs, self.outputs = cells, inputs, outputs
        self.over_cells, self.floor = over_cells, floor
        self._scaled_floor = floor / self.fan_in / (1 - floor)
        # Inputs last: softmax is several times faster over contiguous memory.
        n = cells[0] * cells[1]
        shape = (outputs, n, inputs) if over_cells else (n, outputs, inputs)
        self.logits = nn.Parameter(spread * torch.randn(shape, generator=generator))

    @property
    def fan_in(self) -> int:
        """The number of children of each sum."""
        return self.inputs * (self.cells[0] * self.cells[1] if self.over_cells else 1)

    def weights(self) -> Tensor:
        """``[A B, inputs, outputs]``; sums to 1 over the inputs (and the cells, if it is dense)."""
        return (1 - self.floor) * self.mixtures().transpose(1, 2)

    def mixtures(self) -> Tensor:
        """`weights` divided by ``1 - floor``, softmax plus a constant: ``[A B, outputs, inputs]``.

        This is the layout in memory. The factor ``1 - floor`` of the layer is applied to the scale
        of its sums, at no cost; multiplying the weights would take another pass over all of them
        and their derivatives.
        """
        w = self._softmax(torch.softmax)
        return w + self._scaled_floor if self.floor else w

    def log_weights(self) -> Tensor:
        """The logarithm of `weights`, without underflow if there is no floor."""
        if self.floor:
            return self.weights().log()
        return self._softmax(torch.log_softmax).transpose(1, 2)

    def _softmax(self, function: Callable[[Tensor, int], Tensor]) -> Tensor:
        """``function`` over the children of each sum: ``[A B, outputs, inputs]``."""
        if not self.over_cells:
            return function(self.logits, -1)
        return function(self.logits.flatten(1), -1).view(self.logits.shape).transpose(0, 1)

    def _by_cell(self, logits: Tensor) -> Tensor:
        """From and to the shape of the logits: ``[A B, outputs, inputs]``, a view."""
        return logits.transpose(0, 1) if self.over_cells else logits

    @torch.no_grad()
    def set_weights(self, weights: Tensor) -> None:
        """Choose the logits so that `weights` returns these, ``[A B, inputs, outputs]``.

        Raises:
            StructureError: if they are not distributions over the inputs, or lie below the floor.
        """
        shape = (self.cells[0] * self.cells[1], self.inputs, self.outputs)
        if weights.shape != shape or (weights < 0).any():
            raise StructureError(f"weights must be non-negative, of shape {shape}")
        total = weights.sum((0, 1) if self.over_cells else 1)
        if not torch.allclose(total, torch.ones_like(total), atol=1e-4):
            raise StructureError("the weights of every sum must add up to 1")
        above = (weights - self.floor / self.fan_in) / (1 - self.floor)
        if (above < 0).any():
            raise StructureError(
                f"weights below the floor of {self.floor / self.fan_in:.1e}; "
                "build the circuit with a smaller weight_floor"
            )
        logits = above.log().clamp_min(torch.finfo(above.dtype).min / 4)
        self._by_cell(self.logits).copy_(logits.transpose(1, 2))

    @torch.no_grad()
    def favour_same_class(self, n_classes: int, strength: float) -> None:
        """Give more weight to children of the same class; channel j has class ``j mod C``."""
        below = torch.arange(self.inputs, device=self.logits.device) % n_classes
        above = torch.arange(self.outputs, device=self.logits.device) % n_classes
        self._by_cell(self.logits).add_(strength * (above[:, None] == below))

    @torch.no_grad()
    def blend(self, mixtures: Tensor, derivative: Tensor, step: float) -> None:
        r"""Move towards the EM estimate.

        The floor is a separate component, which takes its share of the expected counts. The counts
        of :math:`\mathrm{softmax}(\theta)` are its value times the derivative with respect to it.
        So the step is exact EM, including the floor.

        Args:
            mixtures: the current `mixtures`.
            derivative: derivative of the log-likelihood with respect to ``mixtures``.
            step: 0 changes nothing, 1 moves all the way.
        """
        old = mixtures - self._scaled_floor
        counts = (old * derivative).clamp_min(0)
        dim = (0, 2) if self.over_cells else (2,)
        total = counts.sum(dim, keepdim=True)
        old = old / old.sum(dim, keepdim=True)
        new = torch.where(total > 0, counts / total, old)
        mixed = (1 - step) * old + step * new
        logits = mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()
        self._by_cell(self.logits).copy_(logits)

    def scopes(self, children: Tensor) -> Tensor:
        """The scopes ``[A, B, D]`` (``[1, 1, D]`` if dense) of the sums, from their children's.

        Raises:
            StructureError: if a sum would have children of different scopes. Otherwise the layer is
                complete. Channels of one cell always have the same scope.
        """
        if not self.over_cells:
            return children
        first = children[:1, :1]
        if not bool((children == first).all()):
            raise StructureError("not complete: the children of a root differ in their variables")
        return first

    def extra_repr(self) -> str:
        kind = "dense" if self.over_cells else "local"
        return f"{kind}, cells={self.cells}, {self.inputs} -> {self.outputs}, floor={self.floor}"


class Layer(nn.Module):
    """Products of ``cells``, then sums over the channels of each product cell."""

    def __init__(self, product: Product, sum: Sum, cells: tuple[int, int]) -> None:
        super().__init__()
        self.product, self.sum, self.cells = product, sum, cells

    def scopes(self, children: Tensor) -> Tensor:
        """Check that the layer is decomposable and complete; return its scopes."""
        return self.sum.scopes(self.product.scopes(children))


def stack_layers(
    cells: tuple[int, int],
    products: Sequence[Product],
    channels: Sequence[int],
    *,
    floor: float,
    spread: float,
    generator: torch.Generator,
) -> list[Layer]:
    """Layers on top of each other; the last one is dense, with one root per class.

    Args:
        cells: the grid of the leaves.
        products: one for each layer.
        channels: numbers of channels of the leaves and of the sums of each layer; the last is the
            number of classes.
        floor: see `Sum`.
        spread: see `Sum`.
        generator: draws the initial weights.
    """
    layers = []
    for product, inputs, outputs in zip(products, channels[:-1], channels[1:], strict=True):
        below, cells = cells, product.grid(cells)
        weighted = Sum(
            cells, inputs, outputs, over_cells=product is products[-1], floor=floor,
            spread=spread, generator=generator,
        )  # fmt: skip
        layers.append(Layer(product, weighted, below))
    return layers


def log_sum(p: Tensor, below: Sum, *, maximum: bool = False) -> Tensor:
    """The sums of a layer in the log domain: ``p [A, B, N, I] -> [A, B, N, O]``.

    With a floor, a sum is a matrix product of weights and values relative to the largest one: that
    one has a weight above 0, so smaller terms may underflow. Without a floor, every edge is visited
    for every point, which is exact for any weights, but slow. ``maximum`` takes the largest term
    instead of the sum, and visits every edge too.
    """
    if below.floor and not maximum:
        top = p.amax(-1, keepdim=True)
        relative = (p - top).exp().flatten(0, 1) @ below.weights()
        return relative.log().unflatten(0, p.shape[:2]) + top
    log_weights = below.log_weights()
    w = log_weights.view(*p.shape[:2], 1, p.size(-1), -1)
    # In pieces of about 2^22 edges, so that memory does not grow with the number of points.
    step = max(1, 2**22 // log_weights.numel())
    reduce = torch.amax if maximum else torch.logsumexp
    return torch.cat([reduce(q.unsqueeze(-1) + w, dim=-2) for q in p.split(step, dim=2)], dim=2)
