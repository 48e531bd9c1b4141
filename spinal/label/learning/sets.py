r"""What probabilities of independent classes mean, where an image can have several.

The model says how probable each class is, :math:`p_c`. What it predicts is the set of classes that
are more probable than not, and the probability that all of this set is right is taken to be

.. math:: \prod_c \max(p_c, 1 - p_c) .
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

#: In the place of what is not known of a class: 1 is present, 0 absent.
UNKNOWN = -1


def predicted(probs: NDArray) -> NDArray[np.bool_]:
    """The classes that are predicted, ``[N, C]``, from the probability of each."""
    return probs > 0.5


def confidence(probs: NDArray) -> NDArray:
    """How probable it is that all predicted classes are right, ``[N]``; see above."""
    return np.maximum(probs, 1 - probs).prod(1)


def set_codes(sets: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each set ``[N, C]``, the same for the same classes: ``[N]``."""
    rows = np.packbits(sets, axis=1)
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, "<i8").astype(np.int64)


def suspect_sets(
    probs: NDArray, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Labels with a class that is probably wrong: missing, or too much; most suspect first.

    The probability of what was said of each class is compared with what is usual for images of
    which the same was said, as in `spinal.label.learning.suspicion`.

    Args:
        probs: of each class, by models without the label, ``[N, C]``; NaN if not known.
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
