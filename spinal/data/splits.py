"""The split of a dataset into pool, validation set, initial set and test set.

A split depends only on the sizes and the seed, so all methods of an experiment use the same points.
Random numbers are the raw output of PCG64, which NumPy promises never to change: a seed gives the
same split on every platform and in every version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError, FileFormatError
from spinal.files import write_text

Indices = NDArray[np.int64]
_FORMAT = "spinal splits 1"


def shuffled(n: int, seed: int | np.random.SeedSequence) -> Indices:
    """The numbers 0..n-1 in random order."""
    return np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable").astype(np.int64)


def stratify(order: Indices, labels: NDArray[np.int64]) -> Indices:
    """Reorder indices so that every prefix contains the classes as equally as possible.

    The first point of each class comes first, then the second of each, and so on.

    Args:
        order: Indices of some points.
        labels: Classes of all points.
    """
    ranks = np.empty(len(order), np.int64)
    for label in np.unique(labels[order]):
        of_class = labels[order] == label
        ranks[of_class] = np.arange(of_class.sum())
    return order[np.argsort(ranks, kind="stable")]


@dataclass(frozen=True, eq=False)
class Splits:
    """Sorted indices of training points (``pool``, ``validation``, ``initial``) and test points.

    The three sets of training points are disjoint: the initial set is not part of the pool.
    """

    seed: int
    n_train: int
    n_test: int
    pool: Indices
    validation: Indices
    initial: Indices
    test: Indices

    def __post_init__(self) -> None:
        trained = np.concatenate([self.pool, self.validation, self.initial])
        for name, indices, n in (
            ("training", trained, self.n_train),
            ("test", self.test, self.n_test),
        ):
            if len(np.unique(indices)) != len(indices):
                raise DataError(f"the splits use some {name} points twice")
            if len(indices) and (indices.min() < 0 or indices.max() >= n):
                raise DataError(f"the splits use {name} points that do not exist: there are {n}")

    @property
    def members(self) -> Indices:
        """The points whose labels a learner may see: pool and initial set."""
        return np.union1d(self.pool, self.initial)

    def save(self, path: str | Path) -> None:
        """Write as JSON, atomically."""
        path = Path(path)
        content = {
            "format": _FORMAT,
            "seed": self.seed,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "initial": self.initial.tolist(),
            "validation": self.validation.tolist(),
            "pool": self.pool.tolist(),
            "test": self.test.tolist(),
        }
        write_text(path, json.dumps(content, separators=(",", ":")))

    @classmethod
    def load(cls, path: str | Path) -> Splits:
        """Read splits that `save` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="ascii"))
            if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
                raise FileFormatError(f"{path}: not a file of splits (no format {_FORMAT!r})")
            for name in ("pool", "validation", "initial", "test"):
                content[name] = np.array(content[name], np.int64)
            return cls(**content)
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from error
        except FileFormatError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path}: truncated or corrupt splits ({error})") from error


def make_splits(
    n_train: int,
    n_test: int = 0,
    *,
    pool: int | None = None,
    validation: int = 5_000,
    initial: int = 20,
    test: int | None = None,
    seed: int = 0,
    cap: bool = False,
    stratified: bool = False,
    labels: NDArray[np.int64] | None = None,
) -> Splits:
    """Split as in the paper: shuffle; take the pool, the validation set, then the initial set.

    Args:
        n_train: How many points the predefined training part of the dataset has.
        n_test: How many points its test part has.
        pool: Size of the pool; None for all points that are in neither of the other sets.
        validation: Size of the validation set.
        initial: Size of the initial training set.
        test: How many test points to use, drawn at random; None for all of them.
        seed: The same seed and sizes give the same splits.
        cap: Whether to shrink pool and validation set, in proportion, if there are too few points;
            otherwise that is an error.
        stratified: Whether the initial set contains the classes in equal numbers. If not, it is
            drawn uniformly at random, as in the paper.
        labels: int64 array [n_train], needed if ``stratified``.

    Examples:
        The paper's MNIST:

        >>> make_splits(60_000, 10_000, pool=40_000, validation=5_000, initial=20).pool.shape
        (40000,)
    """
    sizes = {"pool": pool or 0, "validation": validation, "initial": initial, "test": test or 0}
    for name, size in sizes.items():
        if size < 0:
            raise DataError(f"{name} = {size}: give a number of points")
    if cap:
        pool, validation = _shrink(pool, validation, max(n_train - initial, 0))
    n_taken = (pool or 0) + validation
    if n_taken + initial > n_train:
        raise DataError(
            f"{pool or 0} points for the pool, {validation} for validation and {initial} for the "
            f"initial set are {n_taken + initial}, but there are {n_train}"
        )
    if test is not None and test > n_test:
        raise DataError(f"{test} test points asked for, but there are {n_test}")
    train_seed, test_seed = np.random.SeedSequence(seed).spawn(2)
    order = shuffled(n_train, train_seed)
    rest = order[n_taken:]
    if stratified:
        if labels is None or len(labels) != n_train:
            raise DataError(f"a stratified initial set needs the labels of all {n_train} points")
        rest = stratify(rest, np.asarray(labels))
    in_pool = rest[initial:] if pool is None else order[:pool]
    return Splits(
        seed=seed,
        n_train=n_train,
        n_test=n_test,
        pool=np.sort(in_pool),
        validation=np.sort(order[n_taken - validation : n_taken]),
        initial=np.sort(rest[:initial]),
        test=np.sort(shuffled(n_test, test_seed)[:test]),
    )


def _shrink(pool: int | None, validation: int, room: int) -> tuple[int | None, int]:
    """Sizes in the same proportion with sum ``room``; if ``pool`` is None, 8 to 1 (the paper's)."""
    if pool is None:
        return None, min(validation, room // 9)
    if pool + validation <= room:
        return pool, validation
    return pool * room // (pool + validation), validation * room // (pool + validation)
