r"""The consensus of several people and the model: CROWDLAB (Goh et al., 2022).

Person j gave image i the label :math:`y_{ij}`; the model, trained without image i, gives class
probabilities :math:`p_i`; and :math:`\hat y_i` is the majority. Over the images that more than one
person answered, let

- :math:`P` be the mean share of people who agree with the majority,
- :math:`s_j` the share of others, over all images of j, who agree with j,
- :math:`A_M` and :math:`A_0` the shares of images where the majority is the model's prediction, and
  where it is the most frequent answer overall.

A person's vote is turned into probabilities :math:`q_{ij}`: P for the class of the answer, and the
rest in equal parts for the other classes. The consensus is the mean of all, weighted by how much
more often than :math:`A_0` each is right,

.. math::
    c_i = \frac{w_M p_i + \sum_j w_j q_{ij}}{w_M + \sum_j w_j} , \qquad
    w_j = 1 - \frac{1 - s_j}{1 - A_0} , \qquad
    w_M = \Big(1 - \frac{1 - A_M}{1 - A_0}\Big) \sqrt{\bar n} ,

where :math:`\bar n` is the mean number of answers about an image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Stands for a missing answer.
NO_ANSWER = -1
#: Everybody's weight is at least this.
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Consensus:
    """The consensus about N images by J people and the model.

    Attributes:
        probs: class probabilities, ``[N, C]``.
        weights: of each person, ``[J]``.
        model_weight: of the model.
    """

    probs: NDArray[np.float64]
    weights: NDArray[np.float64]
    model_weight: float


def find_consensus(votes: NDArray[np.int64], probs: NDArray) -> Consensus:
    """The consensus about images; see above.

    Args:
        votes: class that each person chose, ``[N, J]``, or `NO_ANSWER`. Each image has an answer,
            and some have two or more.
        probs: class probabilities by a model trained without the image, ``[N, C]``.
    """
    n_classes = probs.shape[1]
    given = votes != NO_ANSWER
    said = np.where(given[:, :, None], np.eye(n_classes)[votes], 0.0)
    counts = said.sum(1)
    majority = (counts + probs / 2).argmax(1)  # the model breaks ties
    shared = given.sum(1) > 1
    agree = (votes == majority[:, None]) & given
    reliability = (agree[shared].sum(1) / given[shared].sum(1)).mean()
    base = (majority[shared] == counts.sum(0).argmax()).mean()

    def beyond_base(accuracy: NDArray | float) -> NDArray:
        weight = 1 - (1 - np.asarray(accuracy)) / max(1 - base, _LEAST)
        return np.maximum(weight, _LEAST)

    same = (counts[np.arange(len(votes))[:, None], votes] - 1) * given
    pairs = ((given.sum(1) - 1)[:, None] * given).sum(0)
    agreement = np.where(pairs > 0, same.sum(0) / np.maximum(pairs, 1), reliability)
    weights = beyond_base(agreement)
    accuracy = (probs[shared].argmax(1) == majority[shared]).mean()
    model_weight = float(beyond_base(accuracy) * np.sqrt(given.sum(1).mean()))

    rest = (1 - reliability) / (n_classes - 1)
    meant = rest + (reliability - rest) * said
    weighted = given * weights
    total = model_weight * probs + (weighted[:, :, None] * meant).sum(1)
    return Consensus(total / (model_weight + weighted.sum(1))[:, None], weights, model_weight)
