r"""Independent classes: a point may have none of them, one, or several.

Each class has its own binary model, absent or present: a mixture of a circuit in closed form and
logistic regression (`spinal.classifiers.blend`). All of them share the features
:math:`z = (x - m) A`, with the mean :math:`m` of many points. If there are more than `FEATURES`
features, :math:`A` has the first eigenvectors of the second moments
:math:`\sum_i (x_i - m) (x_i - m)^\top`, which changes lengths and angles as little as possible;
otherwise it is the identity.

The graph of the pool and the units of the features are shared as well. Either the direction of
:math:`z` is used, or each feature in a unit of its own: that under which held-out labels of the
most balanced classes are most likely, in the sum over these classes. A common unit for all features
is no choice, although it may suit the labels as well as the direction. It relies on lengths, and
those of new points can differ: texts from which the features were not made have shorter vectors, so
that all classes would seem absent.

A label can be unknown for some classes; each class is fitted to the points for which it is known.

The log-density of a point is the mean of the log-densities of all circuits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from spinal.circuits import Circuit
from spinal.classifiers.blend import FOLDS, Blend, fit_on_vectors
from spinal.classifiers.gaussian import fit_gaussian
from spinal.classifiers.parts import held_out_labels, held_out_loss, held_out_parts
from spinal.classifiers.pool import PoolPoints
from spinal.classifiers.priors import label_frequencies
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.classifiers.units import Kind, plausible_kinds
from spinal.files import read_tensors, write_tensors

#: Maximum number of features.
FEATURES = 128
#: Units to choose from, and the number of classes by which they are chosen.
_KINDS: tuple[Kind, ...] = ("direction", "each")
_DECIDING = 6
#: Marks a class for which a label is unknown.
UNKNOWN = -1
_FILE, _FORMAT = "classes.safetensors", "spinal.multi/1"


@dataclass(frozen=True, eq=False)
class MultiBlend:
    """A fitted mixture for each of C classes.

    Attributes:
        centre: the mean of the features, ``[D]``.
        axes: the directions that are used, ``[D, R]``.
        blends: one for each class; its classes are absent and present.
    """

    centre: Tensor
    axes: Tensor
    blends: tuple[Blend, ...]

    def probs(self, x: Tensor) -> Tensor:
        """The probability of each class, ``[N, C]``, at features ``[N, D]``; float64."""
        z = (x.double() - self.centre) @ self.axes
        return torch.stack([blend.log_probs(z)[:, 1].exp() for blend in self.blends], 1)

    def log_density(self, x: Tensor) -> Tensor:
        """The log-density at features ``[N, D]``, ``[N]``: low for outliers; float64."""
        z = (x.double() - self.centre) @ self.axes
        with torch.no_grad():
            return torch.stack([_log_density(blend, z) for blend in self.blends]).mean(0)

    def shares(self) -> dict[str, float]:
        """The mean weight of each classifier over the classes."""
        names = self.blends[0].shares()
        return {
            name: sum(blend.shares()[name] for blend in self.blends) / len(self.blends)
            for name in names
        }

    @property
    def from_pool(self) -> bool:
        """Whether at least one class learned from unlabelled points as well."""
        return any(bool(blend.from_pool) for blend in self.blends)

    def to_plain_arrays(self) -> dict[str, Tensor]:
        """The arrays from which `probs` and `log_density` are computed, for export.

        They are ``centre``, ``axes``, and for class i the arrays of `spinal.classifiers.plain` as
        ``i/part/name``.
        """
        arrays = {"centre": self.centre, "axes": self.axes}
        for i, blend in enumerate(self.blends):
            arrays |= {f"{i}/{name}": array for name, array in blend.to_plain_arrays().items()}
        return arrays

    def save(self, folder: Path) -> None:
        """Write files to a folder."""
        tensors = {"centre": self.centre, "axes": self.axes}
        for i, blend in enumerate(self.blends):
            blend.gaussian.circuit.save(folder / _circuit_file(i))
            tensors |= {f"{i}/{name}": tensor for name, tensor in to_tensors(blend).items()}
        write_tensors(folder / _FILE, tensors, _FORMAT, {"n_classes": len(self.blends)})

    @classmethod
    def load(cls, folder: Path) -> MultiBlend:
        """Read the files that `save` wrote.

        Raises:
            FileFormatError: if a file is missing or damaged.
        """
        header, tensors = read_tensors(folder / _FILE, _FORMAT)
        blends = []
        for i in range(int(header["n_classes"])):
            own = {n.removeprefix(f"{i}/"): t for n, t in tensors.items() if n.startswith(f"{i}/")}
            circuit = Circuit.load(folder / _circuit_file(i))
            blends.append(from_tensors(Blend, own, str(folder / _FILE), circuit))
        return cls(tensors["centre"], tensors["axes"], tuple(blends))


def fit_multi(
    x: Tensor, labels: Tensor, reference: Tensor | None = None, pool: PoolPoints | None = None
) -> MultiBlend:
    """A mixture for each class.

    Args:
        x: features ``[N, D]``.
        labels: ``[N, C]``, 1 if a class is present, 0 if it is absent, `UNKNOWN` if that is not
            known. A class that is unknown for all points counts as absent.
        reference: features of more points, ``[M, D]``, to estimate directions and units.
        pool: the same points and others, to learn from.
    """
    many = (x if reference is None else torch.cat([x, reference.to(x)])).double()
    centre = many.mean(0)
    axes = main_directions(many - centre)

    def project(points: Tensor) -> Tensor:
        return (points.double() - centre) @ axes

    z, others = project(x), None if reference is None else project(reference)
    pool_z = None if pool is None else replace(pool, x=project(pool.x))
    columns = [_known_rows(column) for column in labels.T]
    kinds = (_choose_units(z, columns, project(many)),)
    blends = tuple(_fit_class(z, *column, others, pool_z, kinds) for column in columns)
    return MultiBlend(centre, axes, blends)


def main_directions(x: Tensor, most: int = FEATURES) -> Tensor:
    """The directions ``[D, R]`` along which points ``x [N, D]`` are longest; all if D is small."""
    if x.shape[1] <= most:
        return torch.eye(x.shape[1], dtype=torch.float64)
    x = x.double()
    return torch.linalg.eigh(x.T @ x)[1].flip(1)[:, :most].contiguous()


def _known_rows(column: Tensor) -> tuple[Tensor, Tensor]:
    """Rows ``[K]`` of the points for which a class is known, and whether they have it, ``[K]``."""
    known = (column != UNKNOWN).nonzero().flatten()
    if len(known):
        return known, column[known]
    return torch.arange(len(column)), torch.zeros_like(column)


def _choose_units(z: Tensor, columns: Sequence[tuple[Tensor, Tensor]], many: Tensor) -> Kind:
    """The units of all classes; see the top of the module.

    Args:
        z: features ``[N, R]``.
        columns: rows and labels of each class, as `_known_rows` gives them.
        many: points that units are taken from, ``[M, R]``.
    """
    if plausible_kinds(many) == ("each",):
        return "each"
    deciding = sorted(columns, key=lambda column: -_evenness(column[1]))[:_DECIDING]
    loss = dict.fromkeys(_KINDS, 0.0)
    for rows, y in deciding:
        parts = held_out_parts(z[rows], y, FOLDS, 0)
        held_y = held_out_labels(y, parts)
        for kind in _KINDS if parts else ():
            _, held = fit_gaussian(z[rows], y, 2, parts, (kind,), many)
            loss[kind] += len(held_y) * float(held_out_loss(held, held_y))
    return min(loss, key=lambda kind: loss[kind])


def _evenness(y: Tensor) -> int:
    """The number of labels of the rarer value, absent or present."""
    return int(min(y.sum(), len(y) - y.sum()))


def _fit_class(
    z: Tensor,
    rows: Tensor,
    y: Tensor,
    others: Tensor | None,
    pool: PoolPoints | None,
    kinds: tuple[Kind, ...],
) -> Blend:
    """The mixture of one class, from the points for which it is known."""
    points = None if pool is None else replace(pool, labelled=pool.labelled[rows])
    blend = fit_on_vectors(z[rows], y, 2, others, points, with_trees=False, kinds=kinds)
    return blend.with_prior(label_frequencies(torch.bincount(y, minlength=2)))


def _log_density(blend: Blend, z: Tensor) -> Tensor:
    by_class, common = blend.gaussian.circuit.class_values(blend.gaussian.variables(z))
    return by_class.logsumexp(1) + common


def _circuit_file(i: int) -> str:
    return f"class-{i}.safetensors"
