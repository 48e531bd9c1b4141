"""Contenders: each maps a cell to the class probabilities ``[N, C]`` of its test points.

A new one is a function here, and a line in `CONTENDERS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.anywhere.cells import Cell
from benchmarks.anywhere.vectors import span

FOLDS = 5
STRENGTHS = np.logspace(-4, 3, 8)  # C of logistic regression
NEIGHBOURS = (1, 2, 3, 5, 10, 20)
TREES = 300


def head(cell: Cell) -> NDArray:
    """The network's own softmax."""
    return cell.head.predict_proba(cell.x_test)


def spn(cell: Cell) -> NDArray:
    """SPN-CNN with its defaults, whatever they are at this commit."""
    return cell.fit_learner("spn-cnn").predict_proba(cell.x_test)


def logistic(cell: Cell) -> NDArray:
    """Logistic regression; C by the likelihood of out-of-fold predictions."""
    x, test = cell.features
    basis = span(x)
    x, test = x @ basis, test @ basis
    y, n_classes = cell.labels, cell.n_classes
    present = np.unique(y)
    if len(present) == 1:
        return _smoothed(np.ones((len(test), 1)), y, n_classes)
    total = np.zeros(len(STRENGTHS))
    for held in _folds(y, cell.name.seed):
        if len(np.unique(y[~held])) < 2:
            continue
        for i, probs in enumerate(_logistic_path(x[~held], y[~held], x[held])):
            whole = _smoothed(probs, y[~held], n_classes)
            total[i] += np.log(whole[np.arange(held.sum()), y[held]]).sum()
    probs = _logistic_path(x, y, test, STRENGTHS[: total.argmax() + 1])[-1]
    return _smoothed(probs, y, n_classes)


def gda(cell: Cell) -> NDArray:
    r"""Gaussian discriminant analysis with one covariance, shrunk towards a multiple of I.

    :math:`\Sigma = [n S + \mathrm{tr}(S) I] / (n + D)`: S is the covariance within classes of n
    points; it is as if there were D more, spread as far, in all directions alike.
    """
    x, test = cell.features
    present, y = np.unique(cell.labels, return_inverse=True)
    counts = np.bincount(y)
    means = np.stack([x[y == c].mean(0) for c in range(len(present))])
    n, d = x.shape
    centred = x - means[y]
    s = centred.T @ centred / n
    precision = (n + d) * np.linalg.inv(n * s + (np.trace(s) + 1e-6) * np.eye(d))
    projected = means @ precision  # [C, D]
    logits = test @ projected.T - 0.5 * (projected * means).sum(1) + np.log(counts / n)
    return _smoothed(_softmax(logits), cell.labels, cell.n_classes)


def knn(cell: Cell) -> NDArray:
    """The k nearest neighbours and a vote for the class frequencies; k by leaving one out."""
    x, test = cell.features
    onehot = np.eye(cell.n_classes)[cell.labels]
    prior = _frequencies(cell.labels, cell.n_classes)

    def vote(distances: NDArray, k: int) -> NDArray:
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return (onehot[nearest].sum(1) + prior) / (k + 1)

    within = _squared_distances(x, x)
    np.fill_diagonal(within, np.inf)
    choices = [k for k in NEIGHBOURS if k < len(x)]
    fit = [np.log((vote(within, k) * onehot).sum(1)).sum() for k in choices]
    return vote(_squared_distances(test, x), choices[int(np.argmax(fit))])


def forest(cell: Cell) -> NDArray:
    """A random forest and one vote for the class frequencies."""
    x, test = cell.features
    trees = RandomForestClassifier(TREES, random_state=cell.name.seed).fit(x, cell.labels)
    probs = np.zeros((len(test), cell.n_classes))
    probs[:, trees.classes_] = trees.predict_proba(test)
    return (TREES * probs + _frequencies(cell.labels, cell.n_classes)) / (TREES + 1)


CONTENDERS: dict[str, Callable[[Cell], NDArray]] = {
    "head": head,
    "logistic": logistic,
    "gda": gda,
    "knn": knn,
    "forest": forest,
    "spn": spn,
}
#: Contenders that are not for networks and embeddings.
FOR_TABLES = ("forest",)


def _smoothed(probs: NDArray, labels: NDArray[np.int64], n_classes: int) -> NDArray:
    """Probabilities of the classes among the labels, with the missing classes added.

    scikit-learn's classifiers rule out a class without labels. Here it gets the frequency that
    add-one smoothing gives it, ``1 / (n + C)``.
    """
    whole = _frequencies(labels, n_classes)
    present = np.bincount(labels, minlength=n_classes) > 0
    result = np.tile(whole, (len(probs), 1))
    result[:, present] = probs * whole[present].sum()
    return result


def _frequencies(labels: NDArray[np.int64], n_classes: int) -> NDArray:
    """Class frequencies with add-one smoothing, ``[C]``."""
    counts = np.bincount(labels, minlength=n_classes) + 1
    return counts / counts.sum()


def _logistic_path(
    x: NDArray, y: NDArray, test: NDArray, strengths: NDArray = STRENGTHS
) -> list[NDArray]:
    """Probabilities of the classes in ``y`` by regressions of growing C, each from the last."""
    model = LogisticRegression(max_iter=1000, tol=1e-4, warm_start=True)
    with warnings.catch_warnings():
        # Many classes for few labels, and fits that stop early: cross-validation sorts them out.
        warnings.simplefilter("ignore")
        return [model.set_params(C=c).fit(x, y).predict_proba(test) for c in strengths]


def _folds(labels: NDArray[np.int64], seed: int) -> Iterator[NDArray[np.bool_]]:
    """Which points are held out: folds with like shares of each class, however rare it is."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), int)
    fold[order] = np.arange(len(labels)) % FOLDS
    return (fold == i for i in range(FOLDS))


def _squared_distances(a: NDArray, b: NDArray) -> NDArray:
    return (a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)


def _softmax(logits: NDArray) -> NDArray:
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
