r"""Independent classes: a point may have none of them, one, or several.

Each class has its own binary model, absent or present: a mixture of a circuit in closed form and
logistic regression (`spinal.classifiers.blend`). All of them share the features. If there are more
than `FEATURES` features, they are reduced to the main directions: with the first eigenvectors
:math:`A` of the second moments :math:`\sum_i x_i x_i^\top` of many points, :math:`z = x A` changes
lengths and angles as little as possible.

The graph of the pool and the units of the features are shared as well. The units are chosen with
the class whose labels are most balanced. A label can be unknown for some classes; each class is
fitted to the points for which it is known.

The log-density of a point is the mean of the log-densities of all circuits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from spinal.circuits import Circuit
from spinal.classifiers.blend import Blend, fit_on_vectors
from spinal.classifiers.pool import PoolPoints
from spinal.classifiers.priors import label_frequencies
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.classifiers.units import Kind
from spinal.files import read_tensors, write_tensors

#: Maximum number of features.
FEATURES = 128
#: Marks a class for which a label is unknown.
UNKNOWN = -1
_FILE, _FORMAT = "classes.safetensors", "spinal.multi/1"


@dataclass(frozen=True, eq=False)
class MultiBlend:
    """A fitted mixture for each of C classes.

    Attributes:
        axes: the directions that are used, ``[D, R]``.
        blends: one for each class; its classes are absent and present.
    """

    axes: Tensor
    blends: tuple[Blend, ...]

    def probs(self, x: Tensor) -> Tensor:
        """The probability of each class, ``[N, C]``, at features ``[N, D]``; float64."""
        z = x.double() @ self.axes
        return torch.stack([blend.log_probs(z)[:, 1].exp() for blend in self.blends], 1)

    def log_density(self, x: Tensor) -> Tensor:
        """The log-density at features ``[N, D]``, ``[N]``: low for outliers; float64."""
        z = x.double() @ self.axes
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

        They are ``axes``, and for class i the arrays of `spinal.classifiers.plain` as
        ``i/part/name``.
        """
        arrays = {"axes": self.axes}
        for i, blend in enumerate(self.blends):
            arrays |= {f"{i}/{name}": array for name, array in blend.to_plain_arrays().items()}
        return arrays

    def save(self, folder: Path) -> None:
        """Write files to a folder."""
        tensors = {"axes": self.axes}
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
        return cls(tensors["axes"], tuple(blends))


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
    many = x if reference is None else torch.cat([x, reference.to(x)])
    axes = main_directions(many)
    z = x.double() @ axes
    others = None if reference is None else reference.double() @ axes
    pool_z = None if pool is None else replace(pool, x=pool.x.double() @ axes)
    columns = [_known_rows(column) for column in labels.T]
    blends: dict[int, Blend] = {}
    kinds: tuple[Kind, ...] | None = None
    for i in sorted(range(len(columns)), key=lambda i: -_evenness(columns[i][1])):
        blends[i] = _fit_class(z, *columns[i], others, pool_z, kinds)
        kinds = kinds or (blends[i].gaussian.coordinates.units.kind,)
    return MultiBlend(axes, tuple(blends[i] for i in range(len(columns))))


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


def _evenness(y: Tensor) -> int:
    """The number of labels of the rarer value, absent or present."""
    return int(min(y.sum(), len(y) - y.sum()))


def _fit_class(
    z: Tensor,
    rows: Tensor,
    y: Tensor,
    others: Tensor | None,
    pool: PoolPoints | None,
    kinds: tuple[Kind, ...] | None,
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
