"""Product nodes: depthwise products of neighbouring cells on a two-axis grid.

A layer of a circuit has its nodes on a grid of cells, with ``C`` channels per cell. All nodes of a
cell have the same scope (the set of variables that they depend on). A product multiplies channel
``c`` of two cells along an axis, or of 2 x 2 cells.

========== ======================= ============================ ==========
kind       output ``i`` multiplies  that is                      ``n`` ->
========== ======================= ============================ ==========
``valid``  ``2 i`` and ``2 i + 1``  stride 2                     ``n / 2``
``full``   ``i - d`` and ``i``      dilation d, padded outside   ``n + d``
``final``  ``i`` and ``i + d``      dilation d, padded at end    ``d``
========== ======================= ============================ ==========

A cell outside the grid is padding: it has no variables and the value 1. Along an axis, outputs
fall into at most two groups whose cells have fixed distances (in ``full``, outputs with one cell
and outputs with two). Products are computed in blocks of such groups: every cell is read and
written once, padding is never allocated, and there are few calls, which dominate the cost of small
layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from spinal.errors import StructureError

#: A binary function such as ``torch.mul`` that accepts ``out=``.
Combine: TypeAlias = Callable[..., Tensor]
#: Places on an axis, evenly spaced in one dimension or several: sizes, strides, the first place.
Places: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]
#: The places of results on an axis, and the places of their factors.
Group: TypeAlias = tuple[Places, tuple[Places, ...]]
#: A block of a contiguous tensor, as in `Tensor.as_strided`: size, strides, offset.
Window: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]


@dataclass(frozen=True)
class Pairs:
    """Which two cells of an axis are multiplied with each other; see the table above."""

    kind: Literal["valid", "full", "final"]
    dilation: int = 1

    def size(self, n: int) -> int:
        """The length of the axis after the product; raises an error if it is impossible."""
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

    def up(self, n: int) -> list[Group]:
        """For each group of outputs, the cells that they multiply."""
        d = self.dilation
        if self.kind == "valid":
            return [(_range(n // 2), (_range(n // 2, step=2), _range(n // 2, step=2, start=1)))]
        both = _range(n - d), _range(n - d, start=d)
        if self.kind == "full":
            # Both ends at once, d outputs at each.
            ends = ((2, d), (n, 1), 0), (((2, d), (n - d, 1), 0),)
            return [ends, (_range(n - d, start=d), both)]
        rest = _range(2 * d - n, start=n - d)
        return [(_range(n - d), both), (rest, (rest,))]

    def down(self, n: int) -> list[Group]:
        """For each group of cells, the outputs that they are part of."""
        d = self.dilation
        if self.kind == "valid":  # the same output for two cells: a stride of 0
            return [(((n // 2, 2), (2, 1), 0), (((n // 2, 2), (1, 0), 0),))]
        if self.kind == "full":
            return [(_range(n), (_range(n), _range(n, start=d)))]
        return [(_range(d), (_range(d),)), (_range(n - d, start=d), (_range(n - d),))]


def _range(length: int, *, start: int = 0, step: int = 1) -> Places:
    return (length,), (step,), start


class Product(nn.Module):
    """Products along the rows, the columns, or both (2 x 2 cells); without either, the identity."""

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
        """Combine the cells of each product: ``x [A, B, ...] -> [A', B', ...]``.

        ``function`` is ``mul`` for values, ``add`` for logarithms, a disjoint union for scopes.
        """
        if self.is_identity:
            return x
        return _join(x, _blocks_up(*self.pairs, x.shape), function)

    def spread(self, y: Tensor, cells: tuple[int, int], function: Combine) -> Tensor:
        """The transpose of `combine`: ``y [A', B', ...] -> [A, B, ...]`` with ``cells = (A, B)``.

        The value of a product goes to all its cells. A cell of several products gets ``function``
        of their values: ``add`` for gradients, ``maximum`` for the top-down pass of a query.
        """
        if self.is_identity:
            return y
        return _join(y, _blocks_down(*self.pairs, torch.Size([*cells, *y.shape[2:]])), function)

    def spread_over(self, y: Tensor, x: Tensor) -> Tensor:
        """``spread(y) / x`` with additions, for ``x [A, B, ...]``."""
        return _join(y, _blocks_down(*self.pairs, x.shape), torch.add, divisor=x.contiguous())

    def parents(self, cells: tuple[int, int]) -> Tensor:
        """Which cells each product multiplies: ``[A' B', A B]`` booleans; ``cells = (A, B)``."""
        n = cells[0] * cells[1]
        single = torch.eye(n, dtype=torch.bool).view(*cells, n)
        return self.combine(single, torch.logical_or).flatten(0, 1)

    def scopes(self, children: Tensor) -> Tensor:
        """The scopes ``[A', B', D]`` of the products, from the scopes of their children.

        Raises:
            StructureError: if a product would multiply two nodes that share a variable. Otherwise
                the layer is decomposable.
        """
        return self.combine(children, _disjoint_union)

    def extra_repr(self) -> str:
        return ", ".join("-" if p is None else f"{p.kind} {p.dilation}" for p in self.pairs)


class _Blocks(NamedTuple):
    """The shape of a result, and for each of its blocks the blocks that it is computed from."""

    shape: tuple[int, ...]
    blocks: list[tuple[Window, list[Window]]]


# The positions of blocks depend only on shapes, so they are cached: computing them, and slicing
# along two axes, would take longer than the arithmetic of a small layer.
@functools.lru_cache(maxsize=512)
def _blocks_up(rows: Pairs | None, columns: Pairs | None, shape: torch.Size) -> _Blocks:
    """The blocks of products of ``[A, B, ...]``, a tensor of this shape."""
    groups = [_as_it_is(n) if p is None else p.up(n) for p, n in _axes(rows, columns, shape)]
    grid = [n if p is None else p.size(n) for p, n in _axes(rows, columns, shape)]
    return _find_blocks(shape, (*grid, *shape[2:]), groups)


@functools.lru_cache(maxsize=512)
def _blocks_down(rows: Pairs | None, columns: Pairs | None, shape: torch.Size) -> _Blocks:
    """The blocks that products pass back to their cells, a tensor of this shape."""
    groups = [_as_it_is(n) if p is None else p.down(n) for p, n in _axes(rows, columns, shape)]
    grid = [n if p is None else p.size(n) for p, n in _axes(rows, columns, shape)]
    return _find_blocks((*grid, *shape[2:]), shape, groups)


def _axes(
    rows: Pairs | None, columns: Pairs | None, shape: torch.Size
) -> Iterator[tuple[Pairs | None, int]]:
    return zip((rows, columns), shape[:2], strict=True)


def _as_it_is(n: int) -> list[Group]:
    return [(_range(n), (_range(n),))]


def _find_blocks(
    source: Sequence[int], target: Sequence[int], groups: list[list[Group]]
) -> _Blocks:
    def window(shape: Sequence[int], row: Places, column: Places) -> Window:
        within = torch.empty(tuple(shape), device="meta").stride()
        size = (*row[0], *column[0], *shape[2:])
        down, right = (
            [step * within[axis] for step in places[1]] for axis, places in enumerate((row, column))
        )
        return size, (*down, *right, *within[2:]), row[2] * within[0] + column[2] * within[1]

    rows, columns = groups
    blocks = [
        (window(target, to_row, to_column), [window(source, i, j) for i in above for j in left])
        for to_row, above in rows
        for to_column, left in columns
    ]
    return _Blocks(tuple(target), [block for block in blocks if 0 not in block[0][0]])


def _join(x: Tensor, blocks: _Blocks, function: Combine, divisor: Tensor | None = None) -> Tensor:
    """``function`` of blocks of ``x``, for each block of the result; divided by ``divisor``."""
    out = x.new_empty(blocks.shape)
    x = x.contiguous()
    start = x.storage_offset()
    for window, sources in blocks.blocks:
        block = out.as_strided(*window)
        parts = [x.as_strided(size, strides, start + at) for size, strides, at in sources]
        if torch.is_grad_enabled() and x.requires_grad:
            block.copy_(functools.reduce(function, parts))  # autograd does not support out=
            continue
        joined = parts[0]
        for part in parts[1:]:
            joined = function(joined, part, out=block)
        if divisor is not None:
            size, strides, at = window
            part = divisor.as_strided(size, strides, divisor.storage_offset() + at)
            torch.div(joined, part, out=block)
        elif len(parts) == 1:
            block.copy_(joined)
    return out


def _disjoint_union(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    shared = (a & b).flatten(0, -2).any(0).nonzero().flatten().tolist()
    if shared:
        raise StructureError(
            f"not decomposable: variables {shared} occur in both factors of a product"
        )
    return torch.logical_or(a, b, out=out)
