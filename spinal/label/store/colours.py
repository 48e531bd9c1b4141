"""The colours of the classes, which are visible on light and dark pages."""

from __future__ import annotations

import re

#: Default colours by place, repeated from the thirteenth class on. All satisfy `visible`. They need
#: not be distinguishable: the page always shows the class name too.
PALETTE = (
    "#198f85", "#d15d21", "#6478e6", "#c75b96", "#6f8a1a", "#3187b9", "#b0761a", "#9b6ad0",
    "#339152", "#dc5050", "#6f838a", "#a87555",
)  # fmt: skip
#: Range of luminances with a contrast of at least 3 : 1 to every background of the page, light and
#: dark, as WCAG 2.2 (1.4.11) requires for graphics.
LOW, HIGH = 0.2135, 0.2325


def luminance(colour: str) -> float:
    r"""The relative luminance of WCAG 2.2, from 0 (black) to 1 (white).

    .. math::
        L = 0.2126 R + 0.7152 G + 0.0722 B, \quad
        R = \begin{cases} r / 12.92 & r \le 0.04045 \\ ((r + 0.055) / 1.055)^{2.4} \end{cases}

    Args:
        colour: as ``#rrggbb``, for :math:`r, g, b` in 255ths.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _parts(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def visible(colour: str) -> str:
    """The colour, mixed with just enough black or white to be visible on every background."""
    if LOW <= luminance(colour) <= HIGH:
        return colour
    is_dark = luminance(colour) < LOW
    target, parts = (1.0 if is_dark else 0.0), _parts(colour)
    for percent in range(1, 100):
        mixed = _written([p + (target - p) * percent / 100 for p in parts])
        if (luminance(mixed) >= LOW) if is_dark else (luminance(mixed) <= HIGH):
            return mixed
    raise AssertionError(colour)


def is_colour(text: str) -> bool:
    """Whether a text is a colour, as ``#rrggbb``."""
    return re.fullmatch(r"#[0-9a-fA-F]{6}", text) is not None


def _parts(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def _written(parts: list[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
