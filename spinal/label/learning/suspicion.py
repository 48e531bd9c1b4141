r"""Answers that are probably wrong, according to models that were trained without them.

Let :math:`p_i` be the class probabilities of a labelled image by such a model, and :math:`y_i` its
label. If wrong answers are equally likely for all other classes, the odds that :math:`y_i` is wrong
are proportional to :math:`(1 - p_i(y_i)) / p_i(y_i)`. Images of some classes are hard, and all
their probabilities are low. So the self-confidence :math:`p_i(y_i)` is compared with the mean of
the class, as in confident learning (Northcutt et al., 2021),

.. math::
    p_i(y_i) / t_{y_i}, \qquad t_c = \operatorname{mean}_{i : y_i = c} \, p_i(c) ,

and the answers with the lowest ratio come first. ``results/wrong-answers.md`` compares this with
the rule of confident learning itself, which finds fewer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def suspect_answers(
    probs: NDArray, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Answers for which another class is more probable, most suspect first.

    Args:
        probs: class probabilities by models trained without the answer, ``[N, C]``.
        labels: the answers, ``[N]``.

    Returns:
        Rows of the suspect answers, ``[S]``, and the most probable class of each, ``[S]``.
    """
    own = probs[np.arange(len(labels)), labels]
    n_classes = probs.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    usual = np.bincount(labels, own, n_classes) / np.maximum(counts, 1)
    ratio = own / np.maximum(usual[labels], 1e-12)
    order = np.argsort(ratio, kind="stable")
    suspect = order[probs.max(1)[order] > own[order]]
    return suspect, probs[suspect].argmax(1)
