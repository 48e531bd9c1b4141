"""Strategies of other packages for `benchmarks.answers`, with its logistic regression.

They are imported where they are used: the packages have to be on the path (``PYTHONPATH``), and are
no dependency of spinal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: ``strategy(x [N, D], answers [N] with NaN where nothing was asked, model, b, seed)``: b rows.
Strategy = Callable[[NDArray, NDArray, Any, int, int], NDArray[np.int64]]


def _skactiveml(name: str, **settings: Any) -> Strategy:
    """A strategy of scikit-activeml (1.0.1)."""

    def query(x: NDArray, answers: NDArray, model: Any, b: int, seed: int) -> NDArray[np.int64]:
        import skactiveml.pool
        from skactiveml.classifier import SklearnClassifier
        from sklearn.linear_model import LogisticRegression

        strategy = getattr(skactiveml.pool, name)(random_state=seed, **settings)
        options: dict[str, Any] = {"batch_size": b}
        if name in ("Badge", "UncertaintySampling", "DropQuery"):
            options["clf"] = SklearnClassifier(
                LogisticRegression(C=model.strength, max_iter=200), classes=range(model.n_classes)
            )
        return strategy.query(x, answers, **options)

    return query


def _breaking_ties(
    x: NDArray, answers: NDArray, model: Any, b: int, seed: int
) -> NDArray[np.int64]:
    """The smallest margin, by small-text (1.4.1)."""
    from small_text import BreakingTies

    class Classifier:
        predict_proba = staticmethod(model.predict)

    known = ~np.isnan(answers)
    return BreakingTies().query(
        Classifier(), x, np.flatnonzero(~known), np.flatnonzero(known), answers[known], n=b
    )


#: By name; the first batch is random, or by the strategy itself where that needs no answers.
PEERS: dict[str, tuple[str, Strategy]] = {
    "scikit-activeml: BADGE": ("random", _skactiveml("Badge")),
    "scikit-activeml: margin": (
        "random", _skactiveml("UncertaintySampling", method="margin_sampling")
    ),
    "scikit-activeml: TypiClust": ("itself", _skactiveml("TypiClust")),
    "scikit-activeml: MaxHerding": ("itself", _skactiveml("MaxHerding")),
    "small-text: breaking ties": ("random", _breaking_ties),
}  # fmt: skip
