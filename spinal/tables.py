"""Tables with categories encoded as numbers; NaN for missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class TableEncoder:
    """Encodes a DataFrame whose columns are numbers or categories.

    A column of strings, booleans or categories becomes a column of codes 0 to M - 1, for the M
    values that occur in ``table``. A missing or unknown value has the code NaN.

    Args:
        table: determines the values of each column.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.columns = table.columns
        #: The values of each column in the order of their codes; None for numbers.
        self.values: list[list[Any] | None] = [
            None if _is_number(column) else sorted(column.dropna().unique(), key=str)
            for _, column in table.items()
        ]

    @property
    def sizes(self) -> list[int]:
        """The number of values of each column; 0 for numbers, and for columns without values."""
        return [len(values or ()) for values in self.values]

    def __call__(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """The table as numbers, ``[N, D]``."""
        encoded = np.empty(table.shape)
        for j, (column, values) in enumerate(zip(table, self.values, strict=True)):
            if values is None:
                encoded[:, j] = pd.to_numeric(table[column]).to_numpy(np.float64, na_value=np.nan)
                continue
            codes = pd.Index(values, dtype=object).get_indexer(table[column].astype(object))
            encoded[:, j] = np.where(codes < 0, np.nan, codes)
        return encoded

    def one_hot(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """The table with a column of 0 and 1 for each category instead of codes.

        All columns of a category are NaN if its value is missing.
        """
        parts = []
        for column, size in zip(self(table).T[:, :, None], self.sizes, strict=True):
            known = np.where(column == np.arange(size), 1.0, 0.0)
            parts.append(np.where(np.isnan(column), np.nan, known) if size else column)
        return np.concatenate(parts, axis=1)

    def decode(self, encoded: NDArray[np.float64]) -> pd.DataFrame:
        """The table from its encoding ``[N, D]``."""
        return pd.DataFrame({
            name: column if values is None else _named(column, values)
            for name, column, values in zip(self.columns, encoded.T, self.values, strict=True)
        })  # fmt: skip


def has_categories(x: Any) -> bool:
    """Whether ``x`` is a DataFrame with a column that is not numbers."""
    return isinstance(x, pd.DataFrame) and not all(_is_number(column) for _, column in x.items())


def _is_number(column: pd.Series) -> bool:
    kind = column.dtype
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def _named(codes: NDArray[np.float64], values: list[Any]) -> list[Any]:
    # A column without values is encoded as missing numbers, and numbers may be drawn for it.
    return [None if np.isnan(code) or not values else values[int(code)] for code in codes]
