"""Units of features, that is, how each feature is scaled.

Columns of a table are not comparable, so each needs its own unit. Principal components and features
of networks are comparable: those that vary more also matter more, and one common unit preserves
that. For embeddings, often only the direction matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from spinal.classifiers.parts import Part
from spinal.errors import SpinalError

Kind = Literal["each", "common", "direction"]
#: All kinds of units, to choose from.
UNITS: tuple[Kind, ...] = get_args(Kind)
#: Larger features lose precision when they are squared in float64.
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Units:
    """Standardises features, so that a point has a mean square of 1, summed over features.

    Attributes:
        kind: ``each`` if every feature has its own unit, its standard deviation; ``common`` if all
            have the same; ``direction`` for the same, after vectors were scaled to length 1.
        shift: the mean, ``[D]``.
        scale: the units, ``[D]``.
    """

    kind: Kind
    shift: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, x: Tensor, kind: Kind) -> Units:
        """Units of features ``x [N, D]``.

        Raises:
            SpinalError: if features are not finite, or too large to be squared.
        """
        if not bool((x.abs() < _LARGEST).all()):
            raise SpinalError(
                f"features must be finite numbers below {_LARGEST:.0e}: scale them first"
            )
        x = _directed(x.double(), kind)
        shift = x.mean(0)
        deviation = (x - shift).square().mean(0).sqrt()
        varies = deviation > 1e-9 * shift.abs().clamp_min(1e-9)
        if kind == "each":
            scale = torch.where(varies, deviation, 1.0) * max(int(varies.sum()), 1) ** 0.5
        else:
            scale = deviation.square().sum().sqrt().expand_as(deviation)
        return cls(kind, shift, torch.where(scale > 0, scale, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        """Features ``[N, D]`` in these units, float64."""
        return (_directed(x.double(), self.kind) - self.shift) / self.scale


def _directed(x: Tensor, kind: Kind) -> Tensor:
    return torch.nn.functional.normalize(x, dim=1) if kind == "direction" else x


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Features in units, along their principal axes.

    Attributes:
        units: units of the features.
        origin: the mean, ``[D]``, in these units.
        axes: orthonormal columns, ``[D, R]``, by decreasing variance.
    """

    units: Units
    origin: Tensor
    axes: Tensor

    @classmethod
    def fit(cls, x: Tensor, units: Units, most: int | None = None) -> Coordinates:
        """All axes along which the points ``x [N, D]`` vary, or the first ``most`` of them."""
        z = units(x)
        origin = z.mean(0)
        z = z - origin
        wide = z.shape[1] > len(z)
        # The eigenvectors of the smaller of X X^T and X^T X, which have the same eigenvalues.
        variance, vectors = torch.linalg.eigh(z @ z.T if wide else z.T @ z)
        largest = variance[-1].clamp_min(torch.finfo(z.dtype).tiny)
        kept = variance > 1e-12 * largest
        kept[-1] = True  # at least one, even if all points are the same
        vectors = vectors[:, kept].flip(1)[:, :most]
        axes = torch.nn.functional.normalize(z.T @ vectors, dim=0) if wide else vectors
        return cls(units, origin, axes)

    def __call__(self, x: Tensor) -> Tensor:
        """Coordinates ``[N, R]`` of features ``[N, D]``, float64."""
        return (self.units(x) - self.origin) @ self.axes


def plausible_kinds(x: Tensor) -> tuple[Kind, ...]:
    """The kinds of units that may suit features ``x [N, D]``."""
    return ("each",) if in_different_units(x.double().std(0, correction=0)) else UNITS


def in_different_units(deviation: Tensor) -> bool:
    """Whether features with standard deviations ``[D]`` were measured in different units.

    This is assumed if the largest is more than a hundred times the median. In a common unit, only
    the largest features would have an effect.
    """
    deviation = deviation[deviation > 0]
    return len(deviation) > 0 and bool(deviation.max() > 100 * deviation.median())


def coordinates_of(
    parts: Sequence[Part], kind: Kind, reference: Tensor | None, most: int | None = None
) -> Iterator[tuple[Part, Tensor]]:
    """Parts with the coordinates ``[N, R]`` of their points.

    Args:
        parts: all with the same features, if there is a reference.
        kind: kind of the units.
        reference: points from which units are computed; None for the points that a part does not
            hold out.
        most: see `Coordinates.fit`.
    """
    if reference is not None and parts:
        x = parts[0].x
        z = Coordinates.fit(x, Units.fit(reference, kind), most)(x)
        yield from ((part, z) for part in parts)
        return
    for part in parts:
        units = Units.fit(part.x[~part.held], kind)
        yield part, Coordinates.fit(part.x, units, most)(part.x)
