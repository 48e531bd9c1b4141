"""Sampling and the most probable explanation, in one upward and one downward pass.

In the downward pass, a root or a sum selects one child for each point, and a product selects all
its children. The result is an induced tree that reaches every variable exactly once. The state of a
layer is the selected node of every cell, ``[A, B, N]``, -1 in cells outside the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spinal.errors import StructureError

if TYPE_CHECKING:
    from spinal.circuits.circuit import Circuit


@torch.no_grad()
def sample(
    spn: Circuit,
    z: Tensor,
    classes: int | Tensor | None,
    generator: torch.Generator | None,
    return_classes: bool,
) -> Any:
    """Draw the NaN entries of ``z`` from ``p(missing | observed, class)``; see `Circuit.sample`."""
    device = z.device

    def noise(like: Tensor) -> Tensor:
        # Gumbel noise turns argmax into a draw. It is drawn on the CPU, for any device.
        uniform = torch.rand(like.shape, generator=generator, dtype=like.dtype)
        return -(-uniform.clamp_min(torch.finfo(like.dtype).tiny).log()).log().to(device)

    done, drawn = [], []
    for rows in torch.arange(len(z), device=device).split(128):
        values = spn.product_values(spn.leaves(z[rows])[0])
        c = _classes(classes, rows, spn)
        if c is None:
            scores = spn.class_values(z[rows])[0]
            c = (scores + noise(scores)).argmax(1)
        component = _descend(spn, values, c, noise)
        normal = torch.randn(z[rows].shape, generator=generator, dtype=z.dtype).to(device)
        done.append(spn.leaves.fill(z[rows], component, normal))
        drawn.append(c)
    empty = torch.zeros(0, dtype=torch.long, device=device)
    points = torch.cat([*done, z[:0]])
    return (points, torch.cat([*drawn, empty])) if return_classes else points


@torch.no_grad()
def most_probable(spn: Circuit, z: Tensor, classes: int | Tensor | None) -> Tensor:
    """Fill the NaN entries of ``z`` from the best component; see `Circuit.mpe`."""
    done = []
    for rows in torch.arange(len(z), device=z.device).split(128):
        values = spn.product_values(spn.leaves.peak_log_density(z[rows]), maximum=True)
        c = _classes(classes, rows, spn)
        if c is None:
            best = (values[-1].unsqueeze(-1) + spn.root_log_weights()).amax((0, 1, 3))
            c = (best + spn.prior_logits.log_softmax(0)).argmax(1)
        component = _descend(spn, values, c, torch.zeros_like)
        done.append(spn.leaves.fill(z[rows], component))
    return torch.cat([*done, z[:0]])


def _descend(spn: Circuit, values: list[Tensor], classes: Tensor, noise: Any) -> Tensor:
    """The component ``[A, B, N]`` of each region, from the product values and a class."""
    top = values[-1]
    a, b, n, inputs = top.shape
    scores = top + spn.root_log_weights()[..., classes].squeeze(2).transpose(2, 3)
    scores = scores.permute(2, 0, 1, 3).reshape(n, a * b * inputs)
    best = (scores + noise(scores)).argmax(1)
    chosen = torch.full((a * b, n), -1, device=top.device)
    chosen[best // inputs, torch.arange(n, device=top.device)] = best % inputs
    chosen = chosen.view(a, b, n)
    layers = list(spn.layers)
    for i in range(len(layers) - 1, 0, -1):
        cells = values[i - 1].shape[0], values[i - 1].shape[1]
        chosen = layers[i].product.spread(chosen, cells, torch.maximum)
        weights = layers[i - 1].sum.log_weights().transpose(1, 2)  # [A B, O, I]
        index = chosen.flatten(0, 1).clamp_min(0).unsqueeze(-1).expand(-1, -1, weights.size(2))
        scores = values[i - 1] + weights.gather(1, index).view_as(values[i - 1])
        chosen = torch.where(chosen >= 0, (scores + noise(scores)).argmax(-1), -1)
    return layers[0].product.spread(chosen, spn.leaves.cells, torch.maximum)


def _classes(classes: int | Tensor | None, rows: Tensor, spn: Circuit) -> Tensor | None:
    if classes is None:
        return None
    c = torch.as_tensor(classes, device=rows.device)
    if c.is_floating_point() or (c < 0).any() or (c >= spn.n_classes).any():
        raise StructureError(f"classes must be integers from 0 to {spn.n_classes - 1}")
    return c.expand(len(rows)) if c.ndim == 0 else c[rows]
