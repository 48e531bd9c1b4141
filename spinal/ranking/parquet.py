"""Pools in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinal.errors import DataError
from spinal.ranking.shards import ITEMS, NUMBERS, Batch, Columns, Items, import_arrow


class ParquetFiles:
    """Rows of a column of vectors, texts or images, or of several columns of numbers.

    Images are the contents of files, as binary values or, as in Hugging Face datasets, in the field
    ``bytes`` of a struct. Files are split between row groups.
    """

    def cuts(self, path: Path, rows: int, columns: Columns) -> list[int]:
        cuts, starts = [0], _group_starts(_open(path))
        if len(starts) == 1:
            return [0, 0]
        for stop, after in zip(starts[1:], [*starts[2:], None], strict=True):
            if after is None or after - cuts[-1] > rows:
                cuts.append(stop)
        return cuts

    def read(
        self, path: Path, start: int, stop: int, rows: NDArray[np.int64] | None, columns: Columns
    ) -> Iterator[Batch]:
        file = _open(path)
        starts = np.array(_group_starts(file))
        groups = [i for i, first in enumerate(starts[:-1]) if start <= first < stop]
        if rows is not None:
            needed = set(np.searchsorted(starts, rows, side="right") - 1)
            groups = [i for i in groups if i in needed]
        names = _choose(path, file.schema_arrow, columns)
        ids = [] if columns.ids is None else [columns.ids]
        size = NUMBERS if _is_numbers(file.schema_arrow.field(names[0]).type) else ITEMS
        for group in groups:
            first = int(starts[group])
            parts = file.iter_batches(size, row_groups=[group], columns=[*names, *ids])
            for part in parts:
                numbers = np.arange(first, first + len(part))
                first += len(part)
                if rows is not None:
                    numbers = numbers[np.isin(numbers, rows)]
                    part = part.take(import_arrow().array(numbers - (first - len(part))))
                if len(part):
                    items = _items(path, part, names)
                    named = None if not ids else [str(x) for x in part.column(ids[0]).to_pylist()]
                    yield Batch(numbers, items, named)


def _open(path: Path) -> Any:
    arrow = import_arrow()
    try:
        return arrow.parquet.ParquetFile(path)
    except (OSError, arrow.ArrowException) as error:
        raise DataError(f"{path}: not a Parquet file, or damaged ({error})") from error


def _group_starts(file: Any) -> list[int]:
    """The first row of each row group, and the number of rows."""
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [0, *np.cumsum(sizes).tolist()]


def _is_numbers(kind: Any) -> bool:
    types = import_arrow().types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_numbers(kind.value_type)
    return types.is_integer(kind) or types.is_floating(kind)


def _is_items(kind: Any) -> bool:
    """Whether each value of a column is a point: a list of numbers, a text, or a file."""
    types = import_arrow().types
    if types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0
    is_list = not types.is_primitive(kind) and _is_numbers(kind)
    strings = types.is_string(kind) or types.is_large_string(kind)
    return is_list or strings or types.is_binary(kind) or types.is_large_binary(kind)


def _choose(path: Path, schema: Any, columns: Columns) -> list[str]:
    """The columns to read: those given, otherwise the only possible ones."""
    asked = [*columns.items, *([] if columns.ids is None else [columns.ids])]
    if missing := [name for name in asked if name not in schema.names]:
        raise DataError(f"{path}: no column {missing[0]!r}; there are {', '.join(schema.names)}")
    others = [field for field in schema if field.name != columns.ids]
    names = list(columns.items)
    if not names:
        names = [field.name for field in others if _is_items(field.type)]
    if not names:
        names = [field.name for field in others if _is_numbers(field.type)]
    of_numbers = all(
        import_arrow().types.is_primitive(schema.field(name).type) for name in names
    ) and all(_is_numbers(schema.field(name).type) for name in names)
    if len(names) != 1 and not (names and of_numbers):
        raise DataError(
            f"{path}: which column holds the points? Choose one with --column: "
            f"{', '.join(schema.names)}"
        )
    kind = schema.field(names[0]).type
    if not (of_numbers or _is_items(kind)):
        raise DataError(
            f"{path}: column {names[0]!r} is {kind}; give vectors, texts or contents of images"
        )
    return names


def _items(path: Path, part: Any, names: list[str]) -> Items:
    """The points in a batch of rows. A missing number is NaN."""
    arrow, column = import_arrow(), part.column(names[0])
    kind = column.type
    if arrow.types.is_primitive(kind):
        table = [part.column(name).cast("float64").to_numpy(False) for name in names]
        return np.stack(table, axis=1).astype(np.float32)
    if arrow.types.is_struct(kind):
        column = column.field("bytes")
    if column.null_count:
        raise DataError(f"{path}: a value of column {names[0]!r} is missing")
    if not _is_numbers(kind):
        return column.to_pylist()
    numbers = column.flatten().cast("float32").to_numpy(False)
    width = len(numbers) // len(column)
    lengths = arrow.compute.list_value_length(column)
    if len(lengths.unique()) != 1:
        raise DataError(f"{path}: the vectors in column {names[0]!r} differ in length")
    return numbers.reshape(len(column), width)
