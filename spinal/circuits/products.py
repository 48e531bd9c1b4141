"""Product nodes: depthwise products of neighbouring cells on a two-axis grid.

A layer of a circuit holds its nodes on a grid of cells, every cell with ``C`` channels; all nodes
of a cell have the same scope (the set of variables they speak of). A product multiplies channel
``c`` of some cells with channel ``c`` of others: of two cells along an axis, or of 2 x 2 cells.

========== ======================= ============================ ==========
kind       output ``i`` multiplies  that is                      ``n`` ->
========== ======================= ============================ ==========
``valid``  ``2 i`` and ``2 i + 1``  stride 2                     ``n / 2``
``full``   ``i - d`` and ``i``      dilation d, padded outside   ``n + d``
``final``  ``i`` and ``i + d``      dilation d, padded at end    ``d``
========== ======================= ============================ ==========

A cell outside the grid is padding: it has no variables and the value 1. Along an axis, outputs
fall into a few stretches that have their cells at fixed distances, and products are computed block
by block of such stretches: every cell is read and written once, and padding is never made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from spinal.errors import StructureError

#: A binary function such as ``torch.mul`` that accepts ``out=``.
Combine: TypeAlias = Callable[..., Tensor]
#: Where results of an axis go, and the stretches of the same length that they come from.
Stretch: TypeAlias = tuple[slice, tuple[slice, ...]]


@dataclass(frozen=True)
class Pairs:
    """Which two cells of an axis are multiplied with each other; see the table above."""

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
                f"a product with dilation {d} needs an axis of at least {d}, not {n}"
            )
        if self.kind == "full":
            return n + d
        if n > 2 * d:
            raise StructureError(
                f"the final product with dilation {d} spans {2 * d} cells, not {n}"
            )
        return d

    def up(self, n: int) -> list[Stretch]:
        """For each stretch of outputs, the cells that they multiply."""
        d = self.dilation
        if self.kind == "valid":
            return [(slice(None), (slice(0, n, 2), slice(1, n, 2)))]
        both = slice(0, n - d), slice(d, n)
        if self.kind == "full":
            first, last = (slice(0, d), (slice(0, d),)), (slice(n, n + d), (slice(n - d, n),))
            return [first, (slice(d, n), both), last]
        return [(slice(0, n - d), both), (slice(n - d, d), (slice(n - d, d),))]

    def down(self, n: int) -> list[Stretch]:
        """For each stretch of cells, the outputs that they are part of."""
        d = self.dilation
        if self.kind == "valid":
            return [(slice(i, n, 2), (slice(None),)) for i in (0, 1)]
        if self.kind == "full":
            return [(slice(0, n), (slice(0, n), slice(d, n + d)))]
        return [(slice(0, d), (slice(0, d),)), (slice(d, n), (slice(0, n - d),))]


class Product(nn.Module):
    """Products along the rows, the columns, or both (2 x 2 cells); of neither, the identity."""

    def __init__(self, rows: Pairs | None = None, columns: Pairs | None = None) -> None:
        super().__init__()
        self.pairs = rows, columns

    @property
    def is_identity(self) -> bool:
        """Whether nothing is multiplied."""
        return self.pairs == (None, None)

    def grid(self, cells: tuple[int, int]) -> tuple[int, int]:
        """The cells after the product."""
        rows, columns = (
            n if p is None else p.size(n) for p, n in zip(self.pairs, cells, strict=True)
        )
        return rows, columns

    def combine(self, x: Tensor, function: Combine) -> Tensor:
        """Join the cells of each product by ``function``: ``x [A, B, ...] -> [A', B', ...]``.

        ``function`` is ``mul`` for values, ``add`` for logarithms, a disjoint union for scopes.
        """
        if self.is_identity:
            return x
        cells = x.size(0), x.size(1)
        pairs = zip(self.pairs, cells, strict=True)
        rows, columns = (_EVERYTHING if p is None else p.up(n) for p, n in pairs)
        return _join(x, rows, columns, self.grid(cells), function)

    def spread(self, y: Tensor, cells: tuple[int, int], function: Combine) -> Tensor:
        """The transpose of `combine`: ``y [A', B', ...] -> [A, B, ...]`` with ``cells = (A, B)``.

        What a product holds goes to all its cells. A cell of several products receives
        ``function`` of them: ``add`` for gradients, ``maximum`` for the top-down pass of a query.
        """
        if self.is_identity:
            return y
        rows, columns = self._down(cells)
        return _join(y, rows, columns, cells, function)

    def spread_over(self, y: Tensor, x: Tensor) -> Tensor:
        """``spread(y) / x`` with additions, for ``x [A, B, ...]``."""
        cells = x.size(0), x.size(1)
        rows, columns = self._down(cells)
        return _join(y, rows, columns, cells, torch.add, divisor=x)

    def _down(self, cells: tuple[int, int]) -> list[list[Stretch]]:
        pairs = zip(self.pairs, cells, strict=True)
        return [_EVERYTHING if p is None else p.down(n) for p, n in pairs]

    def parents(self, cells: tuple[int, int]) -> Tensor:
        """Which cells each product multiplies: ``[A' B', A B]`` booleans; ``cells = (A, B)``."""
        n = cells[0] * cells[1]
        single = torch.eye(n, dtype=torch.bool).view(*cells, n)
        return self.combine(single, torch.logical_or).flatten(0, 1)

    def scopes(self, children: Tensor) -> Tensor:
        """The scopes ``[A', B', D]`` of the products, from those of their children.

        Raises:
            StructureError: if a product would multiply two nodes that share a variable: the proof
                that the layer is decomposable.
        """
        return self.combine(children, _disjoint_union)

    def extra_repr(self) -> str:
        return ", ".join("-" if p is None else f"{p.kind} {p.dilation}" for p in self.pairs)


_EVERYTHING: list[Stretch] = [(slice(None), (slice(None),))]


def _join(
    x: Tensor,
    rows: list[Stretch],
    columns: list[Stretch],
    cells: tuple[int, int],
    function: Combine,
    divisor: Tensor | None = None,
) -> Tensor:
    """``function`` of blocks of ``x``, block by block of the result, whose grid is ``cells``."""
    out = x.new_empty(*cells, *x.shape[2:])
    for to_row, from_rows in rows:
        for to_column, from_columns in columns:
            parts = [x[i, j] for i in from_rows for j in from_columns]
            block = out[to_row, to_column]
            if not block.numel():
                continue
            if torch.is_grad_enabled() and x.requires_grad:
                block.copy_(functools.reduce(function, parts))  # autograd refuses out=
                continue
            if len(parts) == 1 and divisor is None:
                block.copy_(parts[0])
                continue
            if len(parts) > 1:
                function(parts[0], parts[1], out=block)
            for part in parts[2:]:
                function(block, part, out=block)
            if divisor is not None:
                joined = parts[0] if len(parts) == 1 else block
                torch.div(joined, divisor[to_row, to_column], out=block)
    return out


def _disjoint_union(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    shared = (a & b).flatten(0, -2).any(0).nonzero().flatten().tolist()
    if shared:
        raise StructureError(
            f"not decomposable: variables {shared} occur in both factors of a product"
        )
    return torch.logical_or(a, b, out=out)
