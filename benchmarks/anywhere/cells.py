"""Cells: a set, how long its tail is, a number of labels and a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.anywhere.features import KINDS
from benchmarks.anywhere.sets import Points, SuiteEntry
from benchmarks.anywhere.vectors import unit_length
from spinal import ActiveLearner, Pool
from spinal.networks import TUNED, TrainSettings, build_network, compute_features

#: Options of the networks, and how they are trained. A dense layer on features as by ``spinal
#: label``, which is better nearly everywhere than the defaults for images; the narrow VGG as at the
#: ``cpu`` scale of its protocols, because with the defaults it does not learn its labels.
NETWORKS: dict[str, tuple[dict[str, float], TrainSettings]] = {
    "dense": (
        {"input_dropout": 0.5},
        TrainSettings(learning_rate=4e-3, batch_size=32, weight_decay=0.3, label_smoothing=0.0),
    ),
    "lenet": ({}, TUNED),
    "vgg": (
        {"width": 0.125},
        TrainSettings(
            learning_rate=4e-3, min_steps=1000, max_steps=1000, dropout=(0.0, 0.0, 0.05, 0.05, 0.1)
        ),
    ),
}
LABELS = (30, 100, 300, 1000)
TAILS = (1, 10, 100)
#: At most this share of a pool is labelled.
LABELLED = 0.75


@dataclass(frozen=True)
class CellName:
    """What identifies a cell in the results.

    Attributes:
        set: full name of a set of the suite.
        tail: how many times more frequent the most frequent class is made than the least one;
            1: as it is.
        labels: how many points of the pool are labelled, drawn at random.
        seed: of that draw, and of everything that a contender leaves to chance.
    """

    set: str
    tail: int
    labels: int
    seed: int


@dataclass(frozen=True, eq=False)
class Cell:
    """What contenders get.

    Attributes:
        name: of the cell.
        network: what is trained by the head and the SPN: ``dense`` on features, or a whole network.
        x_pool: all points of the pool, without labels.
        labelled: indices of those with labels, ``[n]``.
        labels: their classes, ``[n]``; some classes may be missing.
        x_test: points to be predicted.
        n_classes: C.
        own_units: whether each feature has a unit of its own (tables).
    """

    name: CellName
    network: str
    x_pool: NDArray
    labelled: NDArray[np.int64]
    labels: NDArray[np.int64]
    x_test: NDArray
    n_classes: int
    own_units: bool

    def fit_learner(self, method: str) -> ActiveLearner:
        """A learner with these labels, fitted."""
        pool = Pool(self.x_pool, [str(c) for c in range(self.n_classes)])
        options, training = NETWORKS[self.network]
        shape, seed = self.x_pool.shape[1:], self.name.seed
        network = build_network(self.network, shape, self.n_classes, seed=seed, **options)
        learner = ActiveLearner(pool, network, method, seed=seed, training=training)
        learner.tell(self.labelled, self.labels)
        learner.fit()
        return learner

    @cached_property
    def head(self) -> ActiveLearner:
        """The network with its softmax head."""
        return self.fit_learner("deterministic")

    @cached_property
    def features(self) -> tuple[NDArray, NDArray]:
        """Features of the labelled points and of the test points, for classifiers on features.

        Those of a table in units of their standard deviations; all others in one common unit, the
        vectors of frozen networks scaled to length 1 first. Where a whole network is trained, they
        are that network's.
        """
        if self.network == "dense":
            pool, test = self.x_pool, self.x_test
        else:
            pool, test = (
                compute_features(self.head.network, x).cpu().numpy()
                for x in (self.x_pool[self.labelled], self.x_test)
            )
        pool, test = pool.astype(np.float64), test.astype(np.float64)
        if not self.own_units and self.network == "dense":
            pool, test = (unit_length(x) for x in (pool, test))
        spread = pool.std(0) if self.own_units else np.sqrt(pool.var(0).mean())
        spread = np.where(spread > 0, spread, 1.0)
        pool, test = ((x - pool.mean(0)) / spread for x in (pool, test))
        return pool[self.labelled] if self.network == "dense" else pool, test


@dataclass(frozen=True, eq=False)
class Truth:
    """What contenders do not get: classes ``[N]`` of the test points, and their weights ``[N]``."""

    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


def cell_names(
    entry: SuiteEntry, points: Points, labels: list[int], tails: list[int], seeds: list[int]
) -> Iterator[CellName]:
    """The cells of a set, as far as it has enough points.

    A tail is left out where the set itself has one that is as long or longer.
    """
    counts = np.bincount(points.y_train, minlength=len(points.classes))
    own = counts.max() / max(counts.min(), 1)
    for tail in tails:
        if tail > 1 and own >= tail:
            continue
        pool = len(points.y_train) if tail == 1 else len(long_tailed(points.y_train, tail))
        for n in labels:
            if n <= LABELLED * pool:
                yield from (CellName(entry.full, tail, n, seed) for seed in seeds)


def make_cell(entry: SuiteEntry, points: Points, name: CellName) -> tuple[Cell, Truth]:
    """Draw the pool and its labels.

    The pool is long-tailed, and so is the test part: not by leaving points out, which would make
    results depend on very few of them, but by weights, so that each class counts in the test part
    what it counts in the pool.
    """
    n_classes = len(points.classes)
    pool = np.arange(len(points.y_train))
    weights = np.ones(len(points.y_test))
    if name.tail > 1:
        pool = long_tailed(points.y_train, name.tail)
        shares = np.bincount(points.y_train[pool], minlength=n_classes) / len(pool)
        weights = class_weights(points.y_test, shares)
    x_pool, x_test = points.x_train[pool], points.x_test
    if points.categorical is not None:
        x_pool, x_test = encode_table(x_pool, x_test, points.categorical)
    labelled = np.sort(np.random.default_rng(name.seed).permutation(len(pool))[: name.labels])
    kind = KINDS.get(entry.features)
    cell = Cell(
        name,
        "dense" if kind else entry.features,
        x_pool,
        labelled,
        points.y_train[pool][labelled],
        x_test,
        n_classes,
        own_units=kind == "table",
    )
    return cell, Truth(points.y_test, weights)


def long_tailed(labels: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """Indices of as many points as can be, so that class frequencies fall exponentially.

    The classes, in an order drawn once, have frequencies from 1 to 1 / ``ratio``. Of each class the
    points that come first are taken.
    """
    counts = np.bincount(labels)
    rank = np.random.default_rng(0).permutation(len(counts))
    profile = ratio ** (-rank / (len(counts) - 1))
    sizes = np.maximum(1, np.round(profile * (counts / profile).min())).astype(int)
    parts = [np.flatnonzero(labels == c)[:size] for c, size in enumerate(sizes)]
    return np.sort(np.concatenate(parts))


def class_weights(labels: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of points, 1 on average, that give each class its share of the total."""
    counts = np.bincount(labels, minlength=len(shares))
    weights = (shares / np.maximum(counts, 1))[labels]
    return weights / weights.mean()


def encode_table(
    x_pool: NDArray, x_test: NDArray, categorical: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A table as numbers: categories one-hot, the mean of the pool where a number is missing."""
    columns: list[tuple[NDArray, NDArray]] = []
    for j, of_codes in enumerate(categorical):
        a, b = x_pool[:, j], x_test[:, j]
        if of_codes:
            codes = np.unique(a[~np.isnan(a)])
            columns += [((a == code), (b == code)) for code in codes]
        else:
            known = a[~np.isnan(a)]
            mean = known.mean() if len(known) else 0.0
            columns.append((np.where(np.isnan(a), mean, a), np.where(np.isnan(b), mean, b)))
    pool, test = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    return pool.astype(np.float32), test.astype(np.float32)
