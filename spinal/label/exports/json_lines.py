"""Labels and predictions in JSON Lines."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from spinal.files import write_text
from spinal.label.exports.csv_table import joined
from spinal.label.exports.labels import Labels


def write(labels: Labels, path: Path) -> list[Path]:
    """Write an object for each label, then for each image that has only a prediction.

    Empty values are left out. Several classes of an image are a list.
    """
    records = joined(labels).astype(object).to_dict("records")
    for record, column in product(records, ("label", "predicted") if labels.multi else ()):
        if isinstance(record.get(column), str):
            record[column] = labels.names(record[column])
    lines = [
        json.dumps({key: _plain(value) for key, value in record.items() if not _is_missing(value)},
                   ensure_ascii=False)
        for record in records
    ]  # fmt: skip
    write_text(path, "".join(line + "\n" for line in lines))
    return [path]


def _is_missing(value: object) -> bool:
    return value in (None, "") or value != value or str(value) == "<NA>"  # NaN differs from itself


def _plain(value: object) -> object:
    """A NumPy value as a Python value; a float has six digits."""
    value = value.item() if hasattr(value, "item") else value
    return float(f"{value:.6g}") if isinstance(value, float) else value
