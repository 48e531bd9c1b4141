"""Small circuits written out as explicit mixtures: the ground truth, independent of the layers.

Nothing here uses products, sums or scopes of `spinal.circuits`: a structure is expanded from its
definition (windows of 2 x 2 cells, halves of a region) into a list of components
``(log weight, {variable: (mean, deviation)})``, of which every query has a closed form.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from spinal.circuits import DGCSPN, RandomSPN
from spinal.circuits.circuit import Circuit

Component = tuple[float, dict[int, tuple[float, float]]]


def multiply(factors: list[list[Component]]) -> list[Component]:
    product = []
    for parts in itertools.product(*factors):
        leaves: dict[int, tuple[float, float]] = {}
        for _, part in parts:
            assert not leaves.keys() & part.keys(), "not decomposable"
            leaves |= part
        product.append((sum(w for w, _ in parts), leaves))
    return product


def mix(weights: np.ndarray, children: list[list[Component]]) -> list[Component]:
    return [
        (math.log(w) + v, leaves)
        for w, child in zip(weights, children, strict=True)
        for v, leaves in child
    ]


def regions(spn: Circuit) -> dict[tuple[int, int], list[list[Component]]]:
    """The components of every leaf region, by cell and channel."""
    mean = spn.leaves.location.detach().numpy().astype(float)
    deviation = spn.leaves.scale().detach().numpy().astype(float)
    shift, stretch = spn.leaves.shift.numpy(), spn.leaves.stretch.numpy()
    table, slot = {}, 0
    for a, row in enumerate(spn.leaves.variables.tolist()):
        for b, variables in enumerate(row):
            channels: list[list[Component]] = [[(0.0, {})] for _ in range(mean.shape[1])]
            for v in variables:
                if v < 0:
                    continue
                for k in range(mean.shape[1]):
                    channels[k][0][1][v] = (
                        mean[slot, k] * stretch[v] + shift[v],
                        deviation[slot, k] * stretch[v],
                    )
                slot += 1
            table[a, b] = channels
    return table


def sum_layer(spn: Circuit, i: int, products: dict) -> dict:
    weights = spn.layers[i].sum.weights().detach().numpy().astype(float)
    cells = sorted(products)
    return {
        cell: [mix(weights[n, :, o], products[cell]) for o in range(weights.shape[2])]
        for n, cell in enumerate(cells)
    }


def window_products(children: dict, offsets: list[int], stride: int, size: tuple[int, int]) -> dict:
    """Products of the cells ``stride * (i, j) + offset``, those outside the grid left out."""
    channels = len(next(iter(children.values())))
    products = {}
    for i, j in itertools.product(range(size[0]), range(size[1])):
        window = [(stride * i + a, stride * j + b) for a, b in itertools.product(offsets, offsets)]
        inside = [children[cell] for cell in window if cell in children]
        products[i, j] = [multiply([cell[c] for cell in inside]) for c in range(channels)]
    return products


def expand(spn: Circuit) -> list[list[Component]]:
    """The mixture of every class, prior included."""
    cells = regions(spn)
    size = spn.leaves.cells
    last = len(spn.layers) - 1
    products = cells
    for i in range(last):
        cells = sum_layer(spn, i, products)
        if isinstance(spn, RandomSPN):
            size = size[0], size[1] // 2
            channels = len(next(iter(cells.values())))
            products = {
                (r, j): [
                    multiply([cells[r, 2 * j][c], cells[r, 2 * j + 1][c]]) for c in range(channels)
                ]
                for r in range(size[0])
                for j in range(size[1])
            }
            continue
        assert isinstance(spn, DGCSPN)
        strided, layers = spn.config()["strided"], len(spn.config()["sums"])
        if i + 1 < strided:
            size = size[0] // 2, size[1] // 2
            products = window_products(cells, [0, 1], 2, size)
        elif i + 1 < layers:
            d = 2 ** (i + 1 - strided)
            size = size[0] + d, size[1] + d
            products = window_products(cells, [-d, 0], 1, size)
        else:
            d = 2 ** (layers - strided)
            size = d, d
            products = window_products(cells, [0, d], 1, size)
    weights = spn.layers[last].sum.weights().detach().numpy().astype(float)
    prior = spn.prior_logits.detach().softmax(0).numpy()
    flat = [channel for cell in sorted(products) for channel in products[cell]]
    return [
        [(v + math.log(prior[c]), leaves) for v, leaves in mix(weights[:, :, c].ravel(), flat)]
        for c in range(spn.n_classes)
    ]


def log_joint(mixture: list[list[Component]], z: np.ndarray) -> np.ndarray:
    """``log p(z, c)`` as ``[N, C]``; NaN is left out of the product, that is, integrated out."""
    rows = []
    for point in z:
        seen = [v for v in range(len(point)) if not np.isnan(point[v])]

        def density(part: Component, point: np.ndarray = point, seen: list[int] = seen) -> float:
            return part[0] + sum(norm.logpdf(point[v], *part[1][v]) for v in seen)

        rows.append([logsumexp([density(part) for part in parts]) for parts in mixture])
    return np.array(rows)


def moments(components: list[Component], features: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a mixture."""
    w = np.exp(np.array([v for v, _ in components]))
    w /= w.sum()
    mean = np.array([[leaves[v][0] for v in range(features)] for _, leaves in components])
    variance = np.array([[leaves[v][1] ** 2 for v in range(features)] for _, leaves in components])
    centre = w @ mean
    return centre, np.diag(w @ variance) + (mean - centre).T @ (w[:, None] * (mean - centre))
