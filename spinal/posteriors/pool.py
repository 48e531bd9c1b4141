"""What unlabelled points teach: soft targets for them, from their neighbours and from a model.

A model that was fitted to few labels is taught by the rest of the pool in four steps:

1. `neighbour_graph` joins each point of the pool (or of a sample of it) to those most like it.
2. `spread_labels` lets the labels flow along the graph.
3. `pool_targets` makes soft targets and weights where the model and the flow agree.
4. The model is fitted again, to labelled points with weight 1 and to all others with theirs. All
   weights are then scaled so that their sum is the number of labelled points: against the same
   penalty on the model, the pool would make it too sure of itself.

Steps 3 and 4 are done twice. The pool can teach wrong things, so one checks whether it helps, by
the negative log-likelihood of out-of-fold predictions of labelled points, with and without the
pool, each at the temperature that suits it best. The pool is used if it lowers the mean by more
than a standard error of the difference.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags
from torch import Tensor

#: Similarities that are held at once.
_CHUNK = 1 << 22
#: What an unlabelled point counts at most; a labelled one counts 1.
_WEIGHT = 0.3


def neighbour_graph(features_N_D: Tensor, neighbours: int = 10) -> csr_matrix:
    r"""The graph of nearest neighbours by the cosine of centred features.

    Neighbours i and j have :math:`W_{ij} = \max(0, \cos_{ij})^3`. If only one of two points is
    among the nearest of the other, they are neighbours, too.

    Args:
        features_N_D: One row for each point.
        neighbours: How many are joined to each point, at least.

    Returns:
        :math:`D^{-1/2} W D^{-1/2}`, ``[N, N]``, where D is the diagonal matrix of row sums. Rows of
        points without neighbours are 0.
    """
    n = len(features_N_D)
    unit_N_D = torch.nn.functional.normalize(features_N_D.float() - features_N_D.float().mean(0))
    nearest = min(neighbours, n - 1)
    values, columns = [], []
    for rows in torch.arange(n).split(max(1, _CHUNK // max(n, 1))):
        cosine_B_N = unit_N_D[rows] @ unit_N_D.T
        cosine_B_N[torch.arange(len(rows)), rows] = -torch.inf  # not its own neighbour
        top = cosine_B_N.topk(nearest)
        values.append(top.values.clamp_min(0).pow(3))
        columns.append(top.indices)
    row_ends = np.arange(n + 1) * nearest
    weights = csr_matrix(
        (torch.cat(values).numpy().ravel(), torch.cat(columns).numpy().ravel(), row_ends), (n, n)
    )
    weights = weights.maximum(weights.T)
    degree_N = np.asarray(weights.sum(1), np.float64).ravel()
    scale_N = np.divide(1, np.sqrt(degree_N), out=np.zeros(n), where=degree_N > 0)
    return csr_matrix(diags(scale_N) @ weights @ diags(scale_N))


def spread_labels(
    graph: csr_matrix,
    labelled_L: Tensor,
    labels_L: Tensor,
    n_classes: int,
    *,
    reach: float = 0.95,
    steps: int = 50,
) -> Tensor:
    r"""Labels that flow along a graph (Zhou et al., 2004).

    :math:`F \leftarrow \alpha S F + (1 - \alpha) Y`, where Y holds the labels. Each class has the
    same total in Y, however many labels it has.

    Args:
        graph: S, from `neighbour_graph`.
        labelled_L: Which points have labels.
        labels_L: Their classes.
        n_classes: C.
        reach: :math:`\alpha`.
        steps: How often.

    Returns:
        Class probabilities ``[N, C]``; uniform for points that no label reaches.
    """
    n = graph.shape[0]
    start_N_C = np.zeros((n, n_classes))
    start_N_C[labelled_L.numpy(), labels_L.numpy()] = 1
    start_N_C /= np.maximum(start_N_C.sum(0), 1)
    flow_N_C = start_N_C
    for _ in range(steps):
        flow_N_C = reach * (graph @ flow_N_C) + (1 - reach) * start_N_C
    total_N_1 = flow_N_C.sum(1, keepdims=True)
    uniform = np.full_like(flow_N_C, 1 / n_classes)
    return torch.from_numpy(np.divide(flow_N_C, total_N_1, out=uniform, where=total_N_1 > 0))


def pool_targets(log_probs_N_C: Tensor, spread_N_C: Tensor) -> tuple[Tensor, Tensor]:
    r"""Targets for unlabelled points, sharp and heavy where two opinions agree.

    With p from the model and f from the graph, :math:`q \propto \sqrt{p f}`. The target is
    :math:`q^4`, normalised. The weight is :math:`0.3 \, (\max_c q_c - 1/C)^2 / (1 - 1/C)^2`.

    Args:
        log_probs_N_C: The model's predictions, as logarithms.
        spread_N_C: From `spread_labels`.

    Returns:
        Targets ``[N, C]``, and weights ``[N]`` from 0 to 0.3, both float64.
    """
    n_classes = log_probs_N_C.shape[1]
    tiny = torch.finfo(torch.float64).tiny  # what one holds impossible, the other may not
    p_N_C, f_N_C = (x.clamp_min(tiny) for x in (log_probs_N_C.double().exp(), spread_N_C.double()))
    log_q_N_C = (p_N_C.log() + f_N_C.log()) / 2
    q_N_C = log_q_N_C.softmax(1)
    certainty_N = (q_N_C.amax(1) * n_classes - 1) / max(n_classes - 1, 1)
    return (4 * log_q_N_C).softmax(1), _WEIGHT * certainty_N.clamp(0, 1).square()
