"""Product nodes: depthwise products of neighbouring cells on a two-axis grid.

A layer of a circuit holds its nodes on a grid of cells, every cell with ``C`` channels; all nodes
of a cell have the same scope (the set of variables they speak of). A product multiplies channel
``c`` of some cells with channel ``c`` of others. Products over 2 x 2 cells separate into a product
of pairs along the rows and one along the columns, so pairs are all that is needed here:

========== ======================= ============================ ==========
kind       output ``i`` multiplies  that is                      ``n`` ->
========== ======================= ============================ ==========
``valid``  ``2 i`` and ``2 i + 1``  stride 2                     ``n / 2``
``full``   ``i - d`` and ``i``      dilation d, padded outside   ``n + d``
``final``  ``i`` and ``i + d``      dilation d, padded at end    ``d``
========== ======================= ============================ ==========

A cell outside the grid is padding: it has no variables and the value 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from spinal.errors import StructureError

#: A binary function such as ``torch.mul`` that accepts ``out=``.
Combine = Callable[..., Tensor]


@dataclass(frozen=True)
class Pairs:
    """Which two cells of an axis are multiplied with each other; see the table above."""

    axis: int
    kind: Literal["valid", "full", "final"]
    dilation: int = 1

    def size(self, n: int) -> int:
        """The length of the axis after the product, or an error that says why there is none."""
        d = self.dilation
        if self.kind == "valid":
            if n % 2:
                raise StructureError(f"a product with stride 2 needs an even axis, not {n}")
            return n // 2
        if n < d:
            raise StructureError(
                f"a product with dilation {d} needs an axis of {d} or more, not {n}"
            )
        if self.kind == "full":
            return n + d
        if n > 2 * d:
            raise StructureError(
                f"the final product with dilation {d} spans {2 * d} cells, not {n}"
            )
        return d

    def combine(self, x: Tensor, function: Combine) -> Tensor:
        """Join the two cells of each output by ``function``; where one is padding, copy the other.

        ``function`` is ``mul`` for values, ``add`` for logarithms, a disjoint union for scopes.
        """
        n, d = x.size(self.axis), self.dilation
        if self.kind == "valid":
            left, right = x.unflatten(self.axis, (-1, 2)).unbind(self.axis + 1)
            return function(left, right)
        shape = list(x.shape)
        shape[self.axis] = self.size(n)
        out = x.new_empty(shape)
        start, overlap = (d, n - d) if self.kind == "full" else (0, n - d)
        left, right = x.narrow(self.axis, 0, overlap), x.narrow(self.axis, d, overlap)
        both = out.narrow(self.axis, start, overlap)
        if torch.is_grad_enabled() and x.requires_grad:
            both.copy_(function(left, right))  # autograd refuses out=
        else:
            function(left, right, out=both)
        if self.kind == "full":
            out.narrow(self.axis, 0, d).copy_(x.narrow(self.axis, 0, d))
            out.narrow(self.axis, n, d).copy_(x.narrow(self.axis, overlap, d))
        else:
            out.narrow(self.axis, overlap, d - overlap).copy_(
                x.narrow(self.axis, overlap, d - overlap)
            )
        return out

    def spread(self, y: Tensor, n: int, function: Combine) -> Tensor:
        """The transpose of `combine`: hand what each output holds to both of its cells.

        A cell with two outputs receives ``function`` of them: ``add`` for gradients, ``maximum``
        for the top-down pass of a query.
        """
        d = self.dilation
        if self.kind == "valid":
            return y.repeat_interleave(2, dim=self.axis)
        if self.kind == "full":
            return function(y.narrow(self.axis, 0, n), y.narrow(self.axis, d, n))
        return torch.cat([y, y.narrow(self.axis, 0, n - d)], dim=self.axis)


class Product(nn.Module):
    """Products of pairs along one axis, then along the next.

    Args:
        pairs: one `Pairs` for each axis that is multiplied; none at all is the identity.
    """

    def __init__(self, pairs: Sequence[Pairs]) -> None:
        super().__init__()
        self.pairs = tuple(pairs)

    def grid(self, cells: tuple[int, int]) -> tuple[int, int]:
        """The cells after the product."""
        sizes = list(cells)
        for pair in self.pairs:
            sizes[pair.axis] = pair.size(sizes[pair.axis])
        return sizes[0], sizes[1]

    def combine(self, x: Tensor, function: Combine) -> Tensor:
        """``x [A, B, ...] -> [A', B', ...]``, see `Pairs.combine`."""
        for pair in self.pairs:
            x = pair.combine(x, function)
        return x

    def spread(self, y: Tensor, cells: tuple[int, int], function: Combine) -> Tensor:
        """``y [A', B', ...] -> [A, B, ...]`` with ``cells = (A, B)``, see `Pairs.spread`."""
        for pair in reversed(self.pairs):
            y = pair.spread(y, cells[pair.axis], function)
        return y

    def scopes(self, children: Tensor) -> Tensor:
        """The scopes ``[A', B', D]`` of the products, from those of their children.

        Raises:
            StructureError: if a product would multiply two nodes that share a variable: the proof
                that the layer is decomposable.
        """
        return self.combine(children, _disjoint_union)

    def extra_repr(self) -> str:
        return ", ".join(f"axis {p.axis}: {p.kind} {p.dilation}" for p in self.pairs)


def _disjoint_union(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    shared = (a & b).flatten(0, -2).any(0).nonzero().flatten().tolist()
    if shared:
        raise StructureError(
            f"not decomposable: variables {shared} occur in both factors of a product"
        )
    return torch.logical_or(a, b, out=out)
