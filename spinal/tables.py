"""Tables with categories as numbers: one column for each category, NaN where a value is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class TableEncoder:
    """Encodes a DataFrame whose columns are numbers or categories.

    A column of strings, booleans or categories becomes one column of 0 and 1 for each value that
    occurred. Where the value is missing, or never occurred, all of them are NaN: to a circuit,
    which integrates over them, nothing is known.

    Args:
        table: from which the values of each column are taken.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        #: The values of each column in the order of their encoding; None for numbers.
        self.values: list[list[Any] | None] = [
            None if _is_number(column) else sorted(column.dropna().unique(), key=str)
            for _, column in table.items()
        ]

    def __call__(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """The table as numbers, ``[N, D]``."""
        parts = []
        for (_, column), values in zip(table.items(), self.values, strict=True):
            if values is None:
                parts.append(pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)[:, None])
                continue
            codes = pd.Index(values, dtype=object).get_indexer(column.astype(object))
            onehot = (codes[:, None] == np.arange(len(values))).astype(np.float64)
            parts.append(np.where(codes[:, None] < 0, np.nan, onehot))
        return np.concatenate(parts, axis=1)


def has_categories(x: Any) -> bool:
    """Whether ``x`` is a DataFrame with a column that is not numbers."""
    return isinstance(x, pd.DataFrame) and not all(_is_number(column) for _, column in x.items())


def _is_number(column: pd.Series) -> bool:
    kind = column.dtype
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
