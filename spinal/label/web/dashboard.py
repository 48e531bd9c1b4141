"""The numbers of the dashboard: quality of the model for each class, and activity of people."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.label.store.catalogue import Search
from spinal.label.web.browsing import Browser

#: Number of groups of equal size in the calibration diagram, and minimum images in a group.
GROUPS, LEAST = 5, 5
_Z = 1.959964  # quantile of the normal distribution, for an interval of 95 %


class Dashboard:
    """Answers requests for the numbers of the dashboard.

    The table of classes and the confusion matrix are for labelled images outside the audit, each
    predicted by a model that was fitted without it; see `Browser.guesses`. The audit has a separate
    column, and the calibration is that of the audit.

    Args:
        browser: finds the images.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser, self.views = browser, browser.views
        self.store, self.project = browser.store, browser.project
        self.routes = [Route("/api/dashboard", self.dashboard)]

    def dashboard(self, _: Request) -> Response:
        """All numbers of the dashboard."""
        beliefs = self.views.beliefs
        seconds = [s for times in self.store.activity.seconds().values() for s in times]
        return JSONResponse(
            {
                **self.quality(),
                "people": self.store.activity.people(),
                "seconds": median(seconds) if seconds else None,
                "learned_from": beliefs.learned_from if beliefs else None,
            }
        )

    def quality(self) -> dict[str, Any]:
        """Quality of the model: ``classes``, ``matrix`` and ``calibration``."""
        matrix = self.confusion()
        labels, probs = self._audited()
        best = probs.argmax(1) if len(labels) else labels
        return {
            "classes": [
                {
                    "name": name,
                    "precision": share(matrix[i, i], matrix[:, i].sum()),
                    "recall": share(matrix[i, i], matrix[i].sum()),
                    "audited": int((labels == i).sum()),
                    "audited_right": int(((labels == i) & (best == i)).sum()),
                }
                for i, name in enumerate(self.project.settings.classes)
            ],
            "matrix": matrix.tolist(),
            "calibration": calibration(probs.max(1), best == labels),
        }

    def confusion(self) -> NDArray[np.int64]:
        """Numbers of images by label (rows) and prediction (columns), ``[C, C]``."""
        classes, guesses = self.project.settings.classes, self.browser.guesses()
        matrix = np.zeros((len(classes), len(classes)), np.int64)
        for i, name in enumerate(classes):
            rows = guesses.rows(self.store.catalogue.find(Search(label=name)))
            best = guesses.sets[rows[rows >= 0]].argmax(1)
            matrix[i] = np.bincount(best, minlength=len(classes))[: len(classes)]
        return matrix

    def _audited(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Current labels of the images of the audit, ``[A]``, and predictions ``[A, C]``."""
        classes, beliefs = self.project.settings.classes, self.views.beliefs
        if beliefs is None or beliefs.audited_probs.shape[1] != len(classes):
            return np.empty(0, np.int64), np.empty((0, len(classes)), np.float32)
        number = {name: i for i, name in enumerate(classes)}
        rows = self.store.catalogue.rows(beliefs.audited.tolist())
        labels = np.array([number.get(rows[i]["label"], -1) for i in beliefs.audited.tolist()])
        return labels[labels >= 0], beliefs.audited_probs[labels >= 0]


def share(part: int, whole: int) -> dict[str, float] | None:
    r"""A share with its 95 % Wilson interval; None if ``whole`` is 0.

    For :math:`k` of :math:`n`, with :math:`p = k / n` and the quantile :math:`z`, it is

    .. math::
        \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4 n^2}}{1 + z^2 / n} .
    """
    if not whole:
        return None
    p, n = part / whole, float(whole)
    middle, scale = p + _Z**2 / (2 * n), 1 + _Z**2 / n
    width = _Z * (p * (1 - p) / n + _Z**2 / (4 * n**2)) ** 0.5
    low, high = (middle - width) / scale, (middle + width) / scale
    low, high = (low if part else 0.0), (high if part < whole else 1.0)  # exactly, without rounding
    return {"value": p, "low": low, "high": high, "n": int(whole)}


def calibration(sure: NDArray[np.float32], is_right: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """How often predictions are right, depending on their confidence.

    Args:
        sure: the confidence of each prediction, ``[A]``.
        is_right: whether it is right, ``[A]``.

    Returns:
        For groups of equal size, least confident first: their mean ``confidence``, and the `share`
        of right predictions.
    """
    if len(sure) < LEAST:
        return []
    parts = np.array_split(np.argsort(sure, kind="stable"), min(GROUPS, len(sure) // LEAST))
    return [
        {
            "confidence": float(sure[part].mean()),
            **(share(int(is_right[part].sum()), len(part)) or {}),
        }
        for part in parts
    ]
