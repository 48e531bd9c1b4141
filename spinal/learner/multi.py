"""The active learner for independent classes: a point may have none, one, or several of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spinal.acquisition import Candidates
from spinal.acquisition.multi import MultiHerding
from spinal.classifiers.graph import GraphCache
from spinal.classifiers.multi import UNKNOWN, MultiBlend, fit_multi
from spinal.classifiers.pool import PoolPoints
from spinal.data import Points, as_points
from spinal.data.inputs import points_like
from spinal.errors import DataError, FileFormatError, LabelError, SpinalError
from spinal.files import (
    existing_folder,
    read_arrays,
    replacing_folder,
    verify_checksums,
    write_arrays,
    write_text,
)
from spinal.learner.settings import NotFittedError, PoolDryError
from spinal.networks.network import derived_seed

#: Numbers of points to compute directions and units from, and of points of the pool to learn from.
REFERENCE, POOL = 2000, 5000
#: Maximum number of candidates, and points per batch.
CANDIDATES, _BATCH = 20_000, 4096
_FILE, _LABELS, _FORMAT = "multi.json", "labels.npz", "spinal.multi-learner/1"


class MultiLearner:
    """Decides which points to label next, and learns which of several classes each point has.

    It is used like `ActiveLearner`, but a label is a row of C truth values. There is a classifier
    for each class (`spinal.classifiers.multi`), and it asks for points where these are uncertain
    (`spinal.acquisition.multi`). Points are vectors, or are encoded as vectors, such as texts.

    Args:
        points: the points; see `spinal.data.as_points`.
        classes: names of the classes.
        members: indices of the points that may be asked; None for all.
        seed: for all randomness.
        acquisition: chooses the points to ask.
        learn_from: ``pool`` to learn from unlabelled points as well, or ``labels`` only, which
            takes half the time, and was worse with few labels; see ``results/label-multi.md``.
        cache: folder for the graph of the points, so that the next learner can reuse it.

    Attributes:
        labels: the known labels, ``[N, C]``: 1 present, 0 absent, -1 unknown.
        rounds: number of fits.
        model: the model of the last `fit`.

    Examples:
        >>> import numpy as np
        >>> from spinal.learner import MultiLearner
        >>> x = np.random.default_rng(0).normal(size=(200, 8)).astype("float32")
        >>> y = x[:, :3] > 0.5
        >>> learner = MultiLearner(x, ["a", "b", "c"])
        >>> first = learner.ask(30)
        >>> learner.tell(first, y[first])
        >>> learner.fit()
        >>> learner.predict_proba(x).shape
        (200, 3)
    """

    def __init__(
        self,
        points: Any,
        classes: Sequence[str],
        *,
        members: NDArray[np.int64] | None = None,
        seed: int = 0,
        acquisition: MultiHerding | None = None,
        learn_from: str = "pool",
        cache: Path | None = None,
    ) -> None:
        self.points: Points = as_points(points)
        if len(self.points.shape) != 2:
            raise DataError("points with several classes must be vectors: encode them first")
        if learn_from not in ("pool", "labels"):
            raise SpinalError(f"learn_from is 'pool' or 'labels', not {learn_from!r}")
        self.classes, self.seed, self.learn_from = tuple(map(str, classes)), seed, learn_from
        if not self.classes or len(set(self.classes)) < len(self.classes):
            raise DataError("classes: give one name or more, all different")
        n = len(self.points)
        self.members = np.arange(n) if members is None else np.unique(members)
        self.acquisition = acquisition or MultiHerding()
        self.labels = np.full((n, len(self.classes)), UNKNOWN, np.int64)
        self.rounds = 0
        self.model: MultiBlend | None = None
        self._asked = np.zeros(n, bool)
        self._graphs = GraphCache(cache)

    def __repr__(self) -> str:
        n = len(self.labelled_indices)
        return (
            f"MultiLearner({len(self.classes)} classes; {n} of {len(self.points)} points labelled, "
            f"fitted {self.rounds} times)"
        )

    @property
    def labelled_indices(self) -> NDArray[np.int64]:
        """Indices of the points with at least one known class, ascending."""
        return np.flatnonzero((self.labels != UNKNOWN).any(1))

    def tell(self, indices: ArrayLike, labels: ArrayLike) -> None:
        """Record labels; earlier labels of these points are replaced.

        Args:
            indices: indices of the points, ``[n]``.
            labels: truth values ``[n, C]``, or integers with -1 for unknown.

        Raises:
            LabelError: for an index outside the pool, or labels of the wrong shape or type.
        """
        rows, given = np.atleast_1d(np.asarray(indices)), np.atleast_2d(np.asarray(labels))
        if given.shape != (len(rows), len(self.classes)):
            raise LabelError(
                f"labels of shape {given.shape}: give a row for each of {len(rows)} points, with a "
                f"truth value for each of {len(self.classes)} classes"
            )
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self.points)):
            raise LabelError(f"indices go from 0 to {len(self.points) - 1}")
        if not np.isin(given, (UNKNOWN, 0, 1)).all():
            raise LabelError("labels must be truth values, or -1 for unknown")
        self.labels[rows] = given.astype(np.int64)
        self._asked[rows] = False

    def fit(self) -> None:
        """Learn from all labels.

        Raises:
            NotFittedError: if there are none.
        """
        rows = self.labelled_indices
        if not len(rows):
            raise NotFittedError("there are no labels to learn from: call ask() and tell() first")
        x, y = self._vectors(rows), torch.from_numpy(self.labels[rows])
        left = np.setdiff1d(self.members, rows)
        drawn = np.random.default_rng(derived_seed(self.seed, self.rounds)).permutation(left)
        others = np.sort(drawn[:REFERENCE])
        reference = self._vectors(others) if len(others) else None
        pool = self._pool(rows) if self.learn_from == "pool" and len(left) else None
        self.model = fit_multi(x, y, reference, pool)
        self.rounds += 1

    def _pool(self, labelled: NDArray[np.int64]) -> PoolPoints:
        """The same points each time, then the labelled points that are not among them."""
        members = self.members
        if len(members) > POOL:
            numbers = np.random.default_rng(0).random(len(self.points))
            members = np.sort(members[np.argsort(numbers[members])[:POOL]])
        rows = np.concatenate([members, np.setdiff1d(labelled, members)])
        place = np.empty(len(self.points), np.int64)
        place[rows] = np.arange(len(rows))
        x = self._vectors(rows)
        smoothing = self._graphs.smoothing(x, len(members))
        return PoolPoints(x, torch.from_numpy(place[labelled]), smoothing)

    def ask(self, b: int = 1) -> NDArray[np.int64]:
        """Indices of the ``b`` points to label next, best first; fewer if no more are left.

        They are not returned again. Before the first `fit`, they are chosen to cover all points.

        Raises:
            PoolDryError: if there is nothing left to ask.
        """
        if b < 1:
            raise SpinalError(f"ask for one point or more, not {b}")
        known = (self.labels != UNKNOWN).any(1) | self._asked
        left = self.members[~known[self.members]]
        if not len(left):
            raise PoolDryError("nothing left to ask: every point is labelled, or was asked")
        generator = torch.Generator().manual_seed(derived_seed(self.seed, 1000 + self.rounds))
        if len(left) > max(CANDIDATES, b):
            drawn = torch.randperm(len(left), generator=generator)[: max(CANDIDATES, b)]
            left = np.sort(left[drawn.numpy()])
        x = self._vectors(left)
        probs = torch.full((len(left), len(self.classes)), 0.5)
        if self.model is not None:
            probs = self.model.probs(x).float()
        candidates = Candidates(
            features=x, labelled_features=self._vectors(np.flatnonzero(known)),
            ids=torch.from_numpy(left), label_probs=probs,
        )  # fmt: skip
        chosen = left[self.acquisition.select(candidates, b, generator).numpy()]
        self._asked[chosen] = True
        return chosen

    def predict_proba(self, points: Any) -> NDArray[np.float32]:
        """The probability of each class, ``[N, C]``, for points of the learner's kind."""
        return self.assess(points)[0]

    def predict(self, points: Any) -> NDArray[np.bool_]:
        """Which classes are more probable than not, ``[N, C]``."""
        return self.predict_proba(points) > 0.5

    def assess(
        self, points: Any, rows: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Probabilities ``[N, C]`` and log-densities ``[N]`` of some points, in batches.

        Args:
            points: points of the learner's kind.
            rows: which points; None for all.
        """
        model = self._fitted()
        points = points_like(self.points, points)
        rows = np.arange(len(points)) if rows is None else rows
        probs, density = [np.empty((0, len(self.classes)))], [np.empty(0)]
        for start in range(0, len(rows), _BATCH):
            x = torch.as_tensor(points[rows[start : start + _BATCH]])
            probs.append(model.probs(x).numpy())
            density.append(model.log_density(x).numpy())
        return np.concatenate(probs).astype(np.float32), np.concatenate(density).astype(np.float32)

    def save(self, folder: str | Path) -> None:
        """Write everything except the points to a folder, atomically."""
        values = {
            "format": _FORMAT, "classes": self.classes, "seed": self.seed, "rounds": self.rounds,
            "learn_from": self.learn_from,
            "acquisition": asdict(self.acquisition),
        }  # fmt: skip
        with replacing_folder(Path(folder)) as partial:
            arrays = {"labels": self.labels, "asked": self._asked, "members": self.members}
            write_arrays(partial / _LABELS, arrays)
            if self.model is not None:
                self.model.save(partial)
            write_text(partial / _FILE, json.dumps(values, indent=2))

    @classmethod
    def load(cls, folder: str | Path, points: Any, *, cache: Path | None = None) -> MultiLearner:
        """Read a learner that `save` wrote, for the same points.

        Raises:
            FileFormatError: if the folder holds no learner, a damaged one, or one of other points.
        """
        folder = existing_folder(Path(folder))
        verify_checksums(folder)
        values, arrays = (
            _read(folder),
            read_arrays(folder / _LABELS, ("labels", "asked", "members")),
        )
        learner = cls(
            points, values["classes"], members=arrays["members"], seed=values["seed"],
            acquisition=MultiHerding(**values["acquisition"]), learn_from=values["learn_from"],
            cache=cache,
        )  # fmt: skip
        if learner.labels.shape != arrays["labels"].shape:
            raise FileFormatError(f"{folder}: a learner of {len(arrays['labels'])} points")
        learner.labels, learner._asked = arrays["labels"], arrays["asked"]
        learner.rounds = values["rounds"]
        if learner.rounds:
            learner.model = MultiBlend.load(folder)
        return learner

    def _vectors(self, rows: NDArray[np.int64]) -> Tensor:
        return torch.as_tensor(self.points[rows]).float()

    def _fitted(self) -> MultiBlend:
        if self.model is None:
            raise NotFittedError("the learner is not fitted yet: call fit() first")
        return self.model


def load_multi_model(folder: Path) -> tuple[MultiBlend, tuple[str, ...]]:
    """The model of a saved learner, without its points, and the names of the classes.

    Raises:
        FileFormatError: if the folder holds no learner, or a damaged one.
    """
    folder = existing_folder(folder)
    verify_checksums(folder)
    return MultiBlend.load(folder), tuple(_read(folder)["classes"])


def is_fitted_multi(folder: Path) -> bool:
    """Whether a fitted learner of this kind was saved in a folder."""
    return (existing_folder(folder) / _FILE).is_file()


def _read(folder: Path) -> dict[str, Any]:
    try:
        values = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if values["format"] != _FORMAT:
            raise FileFormatError(f"{folder}: a learner of another version of spinal")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{folder}: holds no learner, or a damaged one ({error})") from error
    return values
