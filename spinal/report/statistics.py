"""Tests and intervals: over the points of a test set, and over seeds.

There are two sources of randomness, and a kind of test for each:

- A z-test or McNemar's test over test points treats the trained classifiers as fixed. It says
  whether *these* classifiers differ; training with other labels may give another result.
- A test or an interval over seeds treats each paired seed as one observation. It says whether the
  *methods* differ, and needs several seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Which test points were right: their ``indices [N]`` in the dataset, and ``right [N]``."""

    indices: NDArray[np.int64]
    right: NDArray[np.bool_]


def z_test(pairs: Sequence[tuple[Outcomes, Outcomes]]) -> float:
    r"""One-sided p-value of a paired z-test: is the first of each pair more accurate?

    With one pair, :math:`z = \bar d \sqrt N / s_d`, where :math:`d_i \in \{-1, 0, 1\}` tells which
    of the two got point i right. With a pair for each seed, differences are averaged over seeds
    first (the paper's mean row). A point is one observation, no matter how many seeds tested on it,
    so

    .. math:: z = \frac{\sum_i D_i}{\sqrt{\sum_i (D_i - n_i \bar d)^2}}, \quad
        D_i = \sum_s d_{is}, \quad \bar d = \frac{\sum_i D_i}{\sum_i n_i},

    with :math:`n_i` seeds that tested on point i.
    """
    points = np.concatenate([first.indices for first, _ in pairs])
    differences = np.concatenate(
        [first.right.astype(float) - second.right for first, second in pairs]
    )
    _, point_of = np.unique(points, return_inverse=True)
    sums, counts = np.bincount(point_of, differences), np.bincount(point_of)
    spread = np.sqrt(np.square(sums - counts * differences.mean()).sum())
    if spread == 0:  # they differ on no point, or by the same amount on all points
        return 0.5 if not differences.any() else float(differences.mean() < 0)
    return float(stats.norm.sf(sums.sum() / spread))


def two_proportion_z_test(first: float, second: float, n: int) -> float:
    r"""One-sided p-value from two accuracies alone: is the first classifier more accurate?

    :math:`z = (a - b) / \sqrt{(a (1 - a) + b (1 - b)) / n}` is an unpaired test: it treats the
    classifiers as if they had been tested on different points. Errors on the same points mostly
    coincide, so `z_test` is more powerful. The paper's tests are of this kind.

    Args:
        first: accuracy of the first classifier, 0 to 1.
        second: accuracy of the second.
        n: number of test points of each classifier.
    """
    variance = (first * (1 - first) + second * (1 - second)) / n
    if variance == 0:
        return 0.5 if first == second else float(first < second)
    return float(stats.norm.sf((first - second) / np.sqrt(variance)))


def mcnemar_test(first: Outcomes, second: Outcomes) -> float:
    """Two-sided exact p-value of McNemar's test: do the two make different numbers of errors?"""
    only_first = int((first.right & ~second.right).sum())
    only_second = int((second.right & ~first.right).sum())
    return float(mcnemar([[0, only_first], [only_second, 0]], exact=True).pvalue)


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    r"""Holm's correction for multiple tests; NaN stays NaN and does not count as a test.

    Of m tests, the i-th smallest p-value becomes :math:`\max_{j \le i} (m - j + 1)\, p_{(j)}`, at
    most 1.
    """
    # statsmodels' `multipletests` runs the garbage collector at each call, which would take most of
    # the time of a report.
    p = np.asarray(p_values, float)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN is last
    corrected = np.full(len(p), np.nan)
    stepped = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.maximum.accumulate(stepped).clip(max=1)
    return corrected


#: With fewer seeds there are neither intervals nor tests over seeds. With two, Student's quantile
#: is 12.7 standard errors: such an interval is too wide to be useful, and its width mostly random.
MIN_SEEDS = 3


def paired_t_test(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of Student's test over seeds; NaN below `MIN_SEEDS`, or without spread."""
    if len(differences) < MIN_SEEDS or np.ptp(differences) == 0:
        return np.nan
    return float(stats.ttest_1samp(differences, 0).pvalue)


def deviation(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Standard deviation over seeds; NaN for a single seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def t_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    r"""Student's interval of the mean over seeds; NaN below `MIN_SEEDS`.

    The ends are :math:`\bar x \pm t_{n-1} s / \sqrt n`, with the quantile of Student's distribution
    with :math:`n - 1` degrees of freedom. It is the only interval in a report. It excludes 0 if and
    only if `paired_t_test` is below ``1 - level``.

    Args:
        values: A value for each seed, ``[n]``; paired differences for a paired interval.
        level: Confidence level.
    """
    n = len(values)
    if n < MIN_SEEDS:
        return np.nan, np.nan
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * deviation(values) / np.sqrt(n)
    return float(values.mean() - half), float(values.mean() + half)


def beats(differences: NDArray[np.float64]) -> bool:
    """Whether paired differences are significantly positive, by a two-sided Student's test."""
    return t_interval(differences)[0] > 0
