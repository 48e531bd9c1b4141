"""The pool: labelled points, points whose label was requested, and all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinal.data.inputs import as_points, points_like
from spinal.data.kinds import JoinedPoints
from spinal.data.points import UNLABELLED, Points
from spinal.errors import DataError, LabelError
from spinal.html import html_table

Indices = NDArray[np.int64]


class Pool:
    """Points, and their labels as far as they are known.

    An index always refers to the same point, ``points[index]``. A call that raises an error changes
    nothing.

    Args:
        points: Images [N, H, W, C], features [N, D], or any other kind that
            `spinal.data.as_points` takes, such as a table or a list of texts. They may include
            points that are not in the pool, such as a validation set.
        classes: Names of the classes, or how many there are.
        members: Indices of the points that belong to the pool, labelled or to be labelled; all by
            default.
    """

    def __init__(
        self,
        points: Any,
        classes: Sequence[str] | int,
        members: ArrayLike | None = None,
    ) -> None:
        self.points = as_points(points)
        names = range(classes) if isinstance(classes, int) else classes
        self.classes = tuple(str(name) for name in names)
        if len(set(self.classes)) != len(self.classes):
            raise DataError("two classes have the same name")
        self._member = np.zeros(len(self.points), bool)
        if members is None:
            self._member[:] = True
        else:
            at = _whole_numbers(members, "members")
            outside = at[(at < 0) | (at >= len(self.points))]
            if len(outside):
                raise DataError(f"member {outside[0]} of a pool of {len(self.points)} points")
            self._member[at] = True
        self._label = np.full(len(self.points), UNLABELLED, np.int64)
        self._asked = np.zeros(len(self.points), bool)

    def __repr__(self) -> str:
        return (
            f"Pool({len(self)} points: {len(self.labelled_indices)} labelled, "
            f"{len(self.asked_indices)} asked, {len(self.unlabelled_indices)} unlabelled)"
        )

    def _repr_html_(self) -> str:
        counts = np.bincount(self.labels, minlength=len(self.classes))
        return html_table(
            f"Pool of {len(self)} points, {' x '.join(map(str, self.points.shape[1:]))}",
            {
                **{name: int(n) for name, n in zip(self.classes, counts, strict=True)},
                "asked": len(self.asked_indices),
                "unlabelled": len(self.unlabelled_indices),
            },
        )

    def __len__(self) -> int:
        """How many points belong to the pool."""
        return int(self._member.sum())

    @property
    def members(self) -> Indices:
        """Indices of all points of the pool, ascending."""
        return np.flatnonzero(self._member)

    @property
    def labelled_indices(self) -> Indices:
        """Indices of the points that have a label, ascending."""
        return np.flatnonzero(self._label != UNLABELLED)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Their classes, in the order of `labelled_indices`."""
        return self._label[self.labelled_indices]

    @property
    def asked_indices(self) -> Indices:
        """Indices of the points whose label was requested, but not yet given, ascending."""
        return np.flatnonzero(self._asked)

    @property
    def unlabelled_indices(self) -> Indices:
        """Indices of the points that may be asked: neither labelled nor asked; ascending."""
        return np.flatnonzero(self._member & ~self._asked & (self._label == UNLABELLED))

    def points_like(self, data: Any) -> Points:
        """Points from data of the pool's kind; texts and tables are encoded in the same way."""
        return points_like(self.points, data)

    def extend(self, points: Any) -> Indices:
        """Add points to the pool, after all others. Existing points keep their indices.

        An encoder of texts or tables is not fitted again. To load a saved learner, build the pool
        in the same steps.

        Args:
            points: More data of the same kind.

        Returns:
            Their indices.
        """
        more = self.points_like(points)
        if more.shape[1:] != self.points.shape[1:]:
            raise DataError(
                f"points of shape {more.shape[1:]}, in a pool of {self.points.shape[1:]}"
            )
        n_old, n_new = len(self.points), len(more)
        self.points = JoinedPoints(*getattr(self.points, "parts", [self.points]), more)
        self._member = np.append(self._member, np.ones(n_new, bool))
        self._label = np.append(self._label, np.full(n_new, UNLABELLED))
        self._asked = np.append(self._asked, np.zeros(n_new, bool))
        return np.arange(n_old, n_old + n_new)

    def add_class(self, name: str) -> int:
        """Add a class after all others; a learner uses it from its next `fit` on.

        Returns:
            Its number.
        """
        if str(name) in self.classes:
            raise DataError(f"class {str(name)!r} already exists")
        self.classes = (*self.classes, str(name))
        return len(self.classes) - 1

    def record(self, indices: ArrayLike, labels: ArrayLike, correction: bool = False) -> None:
        """Store labels, as indices of classes or as their names.

        Repeating a label has no effect. A different label is refused, unless ``correction`` is set.
        """
        at = self._check_indices(indices)
        new = self._check_labels(labels)
        if at.shape != new.shape:
            raise LabelError(f"{len(at)} indices, but {len(new)} labels")
        old = self._label[at]
        contradicted = np.flatnonzero((old != UNLABELLED) & (old != new))
        if len(contradicted) and not correction:
            i = contradicted[0]
            raise LabelError(
                f"point {at[i]} is labelled {self.classes[old[i]]!r}, and now "
                f"{self.classes[new[i]]!r}: to change it, set correction=True"
            )
        self._label[at] = new
        self._asked[at] = False

    def mark_asked(self, indices: ArrayLike) -> None:
        """Record that these labels have been requested, so that they are not requested again."""
        at = self._check_indices(indices)
        for taken, what in (
            (self._asked[at], "asked"),
            (self._label[at] != UNLABELLED, "labelled"),
        ):
            if taken.any():
                raise LabelError(f"point {at[taken][0]} is already {what}")
        self._asked[at] = True

    def release(self, indices: ArrayLike) -> None:
        """Withdraw a request: these points, which were asked, may be asked again."""
        at = self._check_indices(indices)
        if not self._asked[at].all():
            raise LabelError(f"point {at[~self._asked[at]][0]} was not asked")
        self._asked[at] = False

    def state_dict(self) -> dict[str, NDArray]:
        """Members, labels and open requests, as plain arrays; without the points themselves."""
        n_fitted = getattr(self.points, "n_fitted", None)
        return {
            **({} if n_fitted is None else {"n_fitted": np.array(n_fitted)}),
            "n_points": np.array(len(self.points)),
            "n_classes": np.array(len(self.classes)),
            "members": self.members,
            "labelled_indices": self.labelled_indices,
            "labels": self.labels,
            "asked_indices": self.asked_indices,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, for the same points and classes."""
        if missing := self.state_dict().keys() - state.keys():
            raise DataError(f"the state of the pool lacks {', '.join(sorted(missing))}")
        for name, expected in self.state_dict().items():
            if name.startswith("n_") and int(state[name]) != int(expected):
                raise DataError(f"the state has {name} = {int(state[name])}, the pool {expected}")
        fresh = Pool(self.points, self.classes, state["members"])
        fresh.record(state["labelled_indices"], state["labels"])
        fresh.mark_asked(state["asked_indices"])
        self._member, self._label, self._asked = fresh._member, fresh._label, fresh._asked

    def _check_indices(self, indices: ArrayLike) -> Indices:
        at = _whole_numbers(indices, "indices")
        outside = (at < 0) | (at >= len(self.points))
        outside[~outside] = ~self._member[at[~outside]]
        if outside.any():
            raise LabelError(f"there is no point {at[outside][0]} in the pool")
        values, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            raise LabelError(f"point {values[counts > 1][0]} is given twice")
        return at

    def _check_labels(self, labels: ArrayLike) -> NDArray[np.int64]:
        array = np.atleast_1d(np.asarray(labels))
        if array.dtype.kind in "UO" and array.size:
            number = {name: i for i, name in enumerate(self.classes)}
            unknown = [name for name in array.tolist() if name not in number]
            indices = np.array([number.get(name, UNLABELLED) for name in array.tolist()], np.int64)
        else:
            indices = _whole_numbers(labels, "labels")
            unknown = indices[(indices < 0) | (indices >= len(self.classes))].tolist()
        if unknown:
            raise LabelError(f"there is no class {unknown[0]!r}: {self._name_classes()}")
        return indices

    def _name_classes(self) -> str:
        named = ", ".join(f"{i} {name}" for i, name in enumerate(self.classes[:10]))
        return f"the {len(self.classes)} classes are {named}{', ...' * (len(self.classes) > 10)}"


def _whole_numbers(values: ArrayLike, what: str) -> NDArray[np.int64]:
    array = np.atleast_1d(np.asarray(values))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise LabelError(f"{what} of type {array.dtype} and shape {array.shape}: give integers")
    return array.astype(np.int64)
