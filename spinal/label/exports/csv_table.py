"""One CSV table of labels and predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spinal.files import replacing
from spinal.label.exports.labels import Labels

if TYPE_CHECKING:
    import pandas as pd


def write(labels: Labels, path: Path) -> list[Path]:
    """Write one table: the labels, then the images that have only a prediction."""
    write_table(joined(labels), path)
    return [path]


def joined(labels: Labels) -> pd.DataFrame:
    """Labels and predictions in one table."""
    import pandas as pd  # here because it is slow to import

    table = labels.given
    if labels.predicted is not None:
        table = pd.concat([table, labels.predicted]).reindex(
            columns=[*table.columns, *labels.predicted.columns.drop(list(labels.keys))]
        )
        table["round"] = table["round"].astype("Int64")
    return table


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV file, with six digits for numbers."""
    with replacing(path) as partial:
        table.to_csv(partial, index=False, float_format="%.6g", encoding="utf-8")
