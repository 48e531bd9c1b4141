r"""Several classifiers as one: :math:`p(c \mid x) = \sum_m w_m\, p_m(c \mid x)`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_STEPS = 200
#: Lower log-probabilities are replaced by this in a comparison, so that no single point decides.
_LOWEST = -8.0


def mixing_weights(held_log_probs: Sequence[Tensor], labels: Tensor) -> Tensor:
    r"""The weights ``[M]`` under which held-out points are most likely, found by EM.

    One extra point per classifier, which only that classifier can explain, keeps every weight above
    0 and limits the effect of few points:

    .. math::
        \max_w \sum_i \log \sum_m w_m\, p_m(y_i \mid x_i) + \sum_m \log w_m .

    Args:
        held_log_probs: predictions ``[N, C]`` of each classifier, by models that did not see the
            points.
        labels: their classes ``[N]``.
    """
    log_p = torch.stack([p.double().gather(1, labels[:, None]).squeeze(1) for p in held_log_probs])
    weights = torch.full((len(log_p),), 1 / len(log_p), dtype=torch.float64)
    for _ in range(_STEPS):
        counts = (log_p + weights.log()[:, None]).softmax(0).sum(1) + 1
        weights = counts / counts.sum()
    return weights


def mix(log_probs: Sequence[Tensor], weights: Tensor) -> Tensor:
    """Predictions ``[N, C]`` of the mixture, from the predictions of each classifier."""
    weighted = [p + w for p, w in zip(log_probs, weights.log(), strict=True)]
    return torch.stack(weighted).logsumexp(0)


def held_out_gain(new: Tensor, old: Tensor, labels: Tensor) -> float:
    """How much more likely held-out points are under new predictions than under old ones, in nats.

    Args:
        new: log-probabilities ``[N, C]``.
        old: log-probabilities to compare with, ``[N, C]``.
        labels: classes of the points, ``[N]``.
    """
    log_p, other = (p.gather(1, labels[:, None]).clamp_min(_LOWEST).sum() for p in (new, old))
    return float(log_p - other)
