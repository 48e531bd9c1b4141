r"""Predictions from probabilities of independent classes, where an image can have several.

The model gives the probability of each class, :math:`p_c`. The prediction is the set of classes
with :math:`p_c > 1/2`. The probability that the whole set is right is taken to be

.. math:: \prod_c \max(p_c, 1 - p_c) .
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

#: The value if it is not known whether a class is present (1) or absent (0).
UNKNOWN = -1


def predicted(probs: NDArray) -> NDArray[np.bool_]:
    """The predicted classes, ``[N, C]``, from their probabilities."""
    return probs > 0.5


def confidence(probs: NDArray) -> NDArray:
    """The probability that the whole predicted set is right, ``[N]``; see above."""
    return np.maximum(probs, 1 - probs).prod(1)


def set_codes(sets: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each set ``[N, C]``, equal for equal sets: ``[N]``."""
    rows = np.packbits(sets, axis=1)
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, "<i8").astype(np.int64)


def suspect_sets(
    probs: NDArray, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Labels that probably lack a class, or have one too many; most suspect first.

    The probability of the answer about each class is compared with its mean over images with the
    same answer, as in `spinal.label.learning.suspicion`.

    Args:
        probs: of each class, by models trained without the label, ``[N, C]``; NaN if unknown.
        labels: 1 present, 0 absent, -1 unknown, ``[N, C]``.

    Returns:
        Rows of the suspect labels, ``[S]``, and which of their classes are suspect, ``[S, C]``.
    """
    known = ~np.isnan(probs) & (labels != UNKNOWN)
    own = np.where(known, np.where(labels == 1, probs, 1 - probs), 1.0)
    usual = np.ones_like(own)
    for said in (0, 1):
        here = known & (labels == said)
        mean = np.where(here, own, 0).sum(0) / np.maximum(here.sum(0), 1)
        usual = np.where(here, np.maximum(mean, 1e-12), usual)
    is_suspect = known & (own < 0.5)
    worst = np.where(is_suspect, own / usual, np.inf).min(1, initial=np.inf)
    rows = np.argsort(worst, kind="stable")[: int(is_suspect.any(1).sum())]
    return rows, is_suspect[rows]
