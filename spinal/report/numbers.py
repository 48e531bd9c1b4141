"""Formatting of numbers; NaN becomes an empty text."""

from __future__ import annotations

import numpy as np

_MINUS = "−"


def _sign(text: str) -> str:
    return text.replace("-", _MINUS)


def percent(value: float, digits: int = 2) -> str:
    """A fraction as percent, without the sign."""
    return "" if np.isnan(value) else _sign(f"{100 * value:.{digits}f}")


def points(value: float, digits: int = 2) -> str:
    """A difference of fractions, in percentage points, with its sign."""
    return "" if np.isnan(value) else _sign(f"{100 * value:+.{digits}f}")


def with_deviation(mean: float, deviation: float) -> str:
    """Mean and deviation of fractions, in percent."""
    return percent(mean) + ("" if np.isnan(deviation) else f" ± {percent(deviation)}")


def with_interval(value: float, low: float, high: float) -> str:
    """A difference of fractions with its interval, in percentage points."""
    if np.isnan(low):
        return points(value)
    return f"{points(value)} ({points(low)} to {points(high)})"


def decimal(value: float, digits: int = 3) -> str:
    """A plain number."""
    return "" if np.isnan(value) else _sign(f"{value:.{digits}f}")


def count(value: float) -> str:
    """A count, with digits in groups of three."""
    return "" if np.isnan(value) else _sign(f"{value:,.0f}")


def p_value(value: float) -> str:
    """A p-value to three decimals, or ``<0.001``."""
    if np.isnan(value):
        return ""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"
