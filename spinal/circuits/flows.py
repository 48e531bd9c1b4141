r"""The values of the roots and their derivatives, in one upward and one downward pass.

In the upward pass, the products and sums of a layer are

.. math::
    p_i = \prod_{j \in \text{children}} s_{ji}, \qquad t = \sum_i p_i, \qquad
    s_o = \sum_i w_{io}\, \hat p_i, \qquad \hat p_i = p_i / t ,

in the linear domain. Exponentials of a large array are needed only at the leaves, which are scaled
by the maximum of a cell. The scale ``t``, which the channels of a cell share, is stored separately;
the scales of all cells below a root are multiplied at the end, as logarithms in float64. Nothing
underflows: weights have a floor that is part of the model, see `Sum`, so
:math:`\epsilon / n \le s_o \le 1 / (1 - \epsilon)`, and a product of four such values is far above
the smallest float32. All terms are positive, so nothing cancels and relative errors stay small.

In the downward pass, the scales are constants, because no root depends on the choice of ``t``. A
product passes the same flow :math:`f = \partial L / \partial \log p` to all its children. With
:math:`\bar s` and :math:`\bar w` for the derivatives with respect to sums and weights,

.. math::
    \bar s_j = \Big(\sum_{\text{products of } j} f\Big) / s_j, \qquad
    \bar w = \hat p^\top \bar s, \qquad f = (\bar s\, w^\top) \odot \hat p .

The flow that arrives at the leaves is the derivative with respect to their log-densities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spinal.circuits.leaves import wide
from spinal.circuits.sums import Layer


def root_values(
    log_p: Tensor, layers: Sequence[Layer], mixtures: Sequence[Tensor], paths: Tensor
) -> tuple[Tensor, Tensor]:
    """The logarithms of the roots, in two parts to be added.

    Args:
        log_p: log-densities of the leaves, ``[A, B, N, K]``.
        layers: all layers; the last one is dense.
        mixtures: `Sum.mixtures` of each layer.
        paths: see `paths_to_roots`.

    Returns:
        ``[N, C]``, and the scale ``[N]`` (in float64, without derivative) that is common to all
        classes. Far from all data it can be below -1e8, where float32 would lose the differences
        between classes.
    """
    by_class, common = _RootValues.apply(log_p, list(layers), paths, *mixtures)
    return by_class, common


def paths_to_roots(layers: Sequence[Layer]) -> Tensor:
    """How often each cell is a factor of each product of the roots: ``[R, cells]``.

    Columns are the cells of the leaves, then the cells of each layer, up to the R root cells.
    """
    rows, columns = layers[-1].sum.cells
    paths = [torch.eye(rows * columns)]
    for layer in reversed(layers):
        parents = layer.product.parents(layer.cells).to(paths[0].dtype)
        paths.insert(0, paths[0] @ parents)
    return torch.cat(paths, dim=1)


class _RootValues(torch.autograd.Function):
    """All layers, with the backward pass derived above."""

    @staticmethod
    def forward(
        ctx: Any, log_p: Tensor, layers: list[Layer], paths: Tensor, *mixtures: Tensor
    ) -> tuple[Tensor, Tensor]:
        # The scales of all cells in one tensor, [cells, N]; `t` are views of it, [cells, N, 1].
        sizes = [log_p.size(0) * log_p.size(1), *(w.size(0) for w in mixtures)]
        scales = log_p.new_empty(sum(sizes), log_p.size(2))
        log_t, *t_of_layers = (part.unsqueeze(-1) for part in scales.split(sizes))

        torch.amax(log_p.flatten(0, 1), -1, keepdim=True, out=log_t)
        s = (log_p - log_t.view(*log_p.shape[:3], 1)).exp_()
        sums, products = [], []
        for layer, w, t in zip(layers, mixtures, t_of_layers, strict=True):
            sums.append(s)
            p = layer.product.combine(s, torch.mul).flatten(0, 1)
            if layer.product.is_identity:
                t.fill_(1)
            else:  # a sum as a matrix product with ones: several times as fast for few channels
                torch.mv(p.view(-1, p.size(-1)), p.new_ones(p.size(-1)), out=t.view(-1))
            if layer is layers[-1]:
                # The roots sum over cells, so all cells are brought to one common scale.
                factor = t.reciprocal()
                scales[sizes[0] :].log_()
                m = paths.to(wide(s)) @ scales.to(wide(s))
                common = m.amax(0)
                # A cell whose share underflows is negligible: weights, and so sums, have a floor.
                factor.mul_((m - common).exp_().unsqueeze(-1))
                p = p * factor if layer.product.is_identity else p.mul_(factor)
                s = torch.bmm(p, w.transpose(1, 2)).sum(0)
            else:
                if not layer.product.is_identity:
                    p.mul_(t.reciprocal())
                s = torch.bmm(p, w.transpose(1, 2)).view(*layer.sum.cells, *p.shape[1:-1], -1)
                t.mul_(1 - layer.sum.floor)
            products.append(p)
        ctx.layers = layers
        ctx.save_for_backward(s, *sums, *products, *mixtures)
        common.add_(math.log1p(-layers[-1].sum.floor))
        ctx.mark_non_differentiable(common)
        return s.log(), common

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_by_class: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        roots, *saved = ctx.saved_tensors
        depth = len(ctx.layers)
        sums, products, mixtures = saved[:depth], saved[depth : 2 * depth], saved[2 * depth :]
        d_mixtures: list[Tensor | None] = [None] * depth
        ds = (d_by_class / roots).expand(len(products[-1]), -1, -1)
        for i in reversed(range(depth)):
            layer, s, p = ctx.layers[i], sums[i], products[i]
            if ctx.needs_input_grad[3 + i]:
                d_mixtures[i] = torch.bmm(ds.transpose(1, 2), p)
            flow = torch.bmm(ds, mixtures[i]).mul_(p)
            flow = flow.view(*layer.sum.cells, *p.shape[1:])
            if i:
                ds = layer.product.spread_over(flow, s).flatten(0, 1)
        d_log_p = ctx.layers[0].product.spread(flow, ctx.layers[0].cells, torch.add)
        return d_log_p, None, None, *d_mixtures
