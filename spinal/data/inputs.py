"""Points from data of many kinds: one function for each kind of input.

`as_points` looks at the data and calls the function that fits. Objects of other packages (torch,
pandas, datasets) are recognised by their methods; the packages are not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from spinal.data.kinds import FittedPoints, ItemPoints, SparsePoints
from spinal.data.points import (
    UNLABELLED,
    ArrayPoints,
    LabelledPoints,
    Points,
    encode_labels,
    refuse_channels_first,
)
from spinal.errors import DataError

#: A column of strings with more different values than this is not treated as a category.
MOST_CATEGORIES = 100


def as_points(data: Any) -> Points:
    """Points from data of many kinds; points are returned unchanged.

    | arrays, memory maps, tensors  images, uint8 [N, H, W, C] or [N, H, W]; features [N, D]
    | SciPy sparse matrices         features [N, D], made dense batch by batch
    | DataFrames                    numbers and categories; see `spinal.tables.TableEncoder`
    | lists of strings              texts, by `spinal.data.texts.TfidfSVD`, fitted to them
    | lists of paths                images of 32 x 32 pixels; `ImageFiles` has more settings
    | lists of PIL images           all of the same size
    | datasets of PyTorch           any of the above as items, alone or before a label; read in
    |                               batches, as are the datasets behind a DataLoader
    | datasets of Hugging Face      with one column of texts, images or vectors

    Raises:
        DataError: If the data are of another kind; the message says what to do.
    """
    read = _read(data)
    if isinstance(read, Unencoded):
        return FittedPoints(read.items, read.fit(read.items), len(read.items))
    return read


def points_like(points: Points, data: Any) -> Points:
    """More data of the same kind, encoded in the same way as ``points``.

    Raises:
        DataError: If the data are texts or a table, but ``points`` are not.
    """
    read = _read(data)
    if not isinstance(read, Unencoded):
        return read
    like: Callable[[Any], Points] | None = getattr(points, "like", None)
    if like is None:
        kind = "a table" if hasattr(read.items, "columns") else "texts"
        raise DataError(f"{kind}, but the pool holds other points, of shape {points.shape}")
    return like(read.items)


class Unencoded(NamedTuple):
    """Texts, or a table, and the function that fits an encoder to them."""

    items: Any
    fit: Callable[[Any], Callable[[Any], NDArray]]


def _read(data: Any) -> Points | Unencoded:
    """The points of data of any kind; `Unencoded` if an encoder is needed."""
    if isinstance(data, np.ndarray):
        is_text = data.dtype.kind in "UT" or (data.dtype == object and _all_are(str, data.tolist()))
        return _from_texts(data.tolist()) if is_text and data.ndim == 1 else ArrayPoints(data)
    if isinstance(data, str | Path):
        raise DataError(
            f"{str(data)[:60]!r} alone: give a list; for a folder of images, "
            "spinal.data.load_folder(path).points"
        )
    if isinstance(data, Mapping):
        names = ", ".join(map(repr, list(data)[:5]))
        raise DataError(f"a mapping with the keys {names}: give one of its values")
    for is_kind, adapt in _KINDS:
        if is_kind(data):
            return adapt(data)
    if isinstance(data, Points):
        return data
    if hasattr(data, "__array__"):
        return _read(np.asarray(data))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return _from_items(data)
    raise DataError(
        f"a {type(data).__name__}, whose points have no positions: read it into a list or an array"
    )


def _from_texts(texts: Sequence[str]) -> Unencoded:
    return Unencoded(list(texts), _fit_texts)


def _fit_texts(texts: list[str]) -> Callable[[Any], NDArray]:
    from spinal.data.texts import TfidfSVD

    return TfidfSVD(texts)


def _from_table(table: Any) -> Unencoded:
    if hasattr(table, "columns"):
        return Unencoded(table, _fit_table)
    values = table.tolist()  # of a Series
    if not _all_are(str, values):
        raise DataError("one column of numbers: give a DataFrame, such as column.to_frame()")
    return _from_texts(values)


def _fit_table(table: Any) -> Callable[[Any], NDArray]:
    from spinal.tables import TableEncoder

    for name in table.columns:
        n_values = table[name].nunique()
        if table[name].dtype.kind not in "biuf" and n_values > MOST_CATEGORIES:
            raise DataError(
                f"column {name!r} has {n_values} different values, too many for a category: leave "
                f"it out, or, if it holds texts, give table[{name!r}] alone"
            )
    return partial(_encode_table, TableEncoder(table).one_hot, list(table.columns))


def _encode_table(encoder: Callable[[Any], NDArray], columns: list[Any], table: Any) -> NDArray:
    if not hasattr(table, "columns"):
        raise DataError("texts, but the pool holds a table")
    if missing := [name for name in columns if name not in table.columns]:
        raise DataError(f"a table without the columns {', '.join(map(str, missing))} of the pool")
    return encoder(table[columns])


def _from_tensor(tensor: Any) -> Points:
    line = "images.permute(0, 2, 3, 1)"
    if tensor.is_floating_point():
        line = f"(255 * {line}).round().byte()"
    refuse_channels_first(tuple(tensor.shape), line)
    return ArrayPoints(tensor.detach().cpu().numpy())


def _from_list(items: Sequence[Any]) -> Points | Unencoded:
    if not len(items):
        raise DataError("an empty list, which holds no points")
    if _all_are(str, items) and not _all_name_images(items):
        return _from_texts(items)
    if _all_are(str, items) or _all_are(Path, items):
        return _from_paths([Path(item) for item in items])
    if isinstance(items[0], Image.Image) or hasattr(items[0], "detach"):
        return _from_items(items)
    if any(isinstance(item, str | Path) for item in items):
        kinds = sorted({type(item).__name__ for item in items})
        raise DataError(f"a list of {', '.join(kinds)}: give points of one kind")
    try:
        return ArrayPoints(np.asarray(items))
    except ValueError as error:  # rows of different lengths
        raise DataError(f"a list that cannot be an array ({error})") from error


def _from_paths(paths: Sequence[Path]) -> Points:
    from spinal.data.images import ImageFiles

    images = ImageFiles(paths)
    if images.skipped:  # leaving them out would shift the positions in the list
        first = images.skipped[0]
        raise DataError(
            f"{len(images.skipped)} of {len(paths)} images cannot be read; {first.path}: "
            f"{first.reason}. Leave them out, or give spinal.data.ImageFiles(paths)"
        )
    return images


def _from_items(items: Any) -> Points | Unencoded:
    """Points that are read item by item; the first item, or its first part, determines the kind."""
    if not len(items):
        raise DataError(f"a {type(items).__name__} without items")
    first = items[0]
    if isinstance(first, Mapping):
        return _from_columns(items)
    if isinstance(first, tuple):  # a point and its label
        first = first[0]
    if isinstance(first, str):
        return _from_texts([_point(items[i]) for i in range(len(items))])
    if isinstance(first, Image.Image):
        modes = {item.mode for item in items} if isinstance(items, list) else {first.mode}
        return ItemPoints(items, partial(_image_array, channels=1 if modes <= {"1", "L"} else 3))
    return ItemPoints(items, _number_array)


def _from_loader(loader: Any) -> Points | Unencoded:
    return _read(loader.dataset)  # positions are those of the dataset, not of its batches


def _from_columns(dataset: Any) -> Points | Unencoded:
    """The column of a dataset, with a mapping for each row, that holds texts, images or vectors."""
    if not hasattr(dataset, "__len__"):
        raise DataError("a dataset that is streamed has no positions: load it without streaming")
    row = dataset[0]
    names = [name for name, value in row.items() if _is_point(value)]
    if len(names) != 1:
        listed = " and ".join(map(repr, names)) or f"none of {', '.join(map(repr, row))}"
        raise DataError(
            f"a dataset whose points may be {listed}: choose one column, such as "
            f"dataset[{(names or list(row))[0]!r}], or give dataset.to_pandas()[[...]]"
        )
    return _from_items(_Column(dataset, names[0]))


class _Column:
    """A column of a dataset, read row by row."""

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset, self._name = dataset, name

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, i: int) -> Any:
        return self._dataset[i][self._name]


def _point(item: Any) -> Any:
    """The point of an item that may have a label."""
    return item[0] if isinstance(item, tuple) else item


def _number_array(item: Any) -> NDArray:
    point = _point(item)
    return np.asarray(point.detach().cpu() if hasattr(point, "detach") else point)


def _image_array(item: Any, channels: int) -> NDArray[np.uint8]:
    from spinal.data.images import flatten_mode

    pixels = np.asarray(flatten_mode(_point(item), channels))
    return pixels.reshape(*pixels.shape[:2], channels)


def _is_point(value: Any) -> bool:
    """Whether a value of a row is a text, an image or a vector, rather than one number."""
    return isinstance(value, str | list | np.ndarray | Image.Image) or hasattr(value, "detach")


def _is_table(data: Any) -> bool:
    return hasattr(data, "iloc")


def _all_are(kind: type, items: Sequence[Any]) -> bool:
    return all(isinstance(item, kind) for item in items)


def _all_name_images(items: Sequence[str]) -> bool:
    from spinal.data.images import SUFFIXES

    return all(item.lower().endswith(SUFFIXES) for item in items)


#: How each kind of input is recognised, in this order, and the function that turns it into points.
#: Objects with a shape, such as tensors, could also pass for points.
_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Points | Unencoded]], ...] = (
    (_is_table, _from_table),
    (lambda data: hasattr(data, "detach") and hasattr(data, "numpy"), _from_tensor),
    (lambda data: hasattr(data, "tocsr"), SparsePoints),
    (lambda data: hasattr(data, "dataset") and hasattr(data, "batch_size"), _from_loader),
    (lambda data: hasattr(data, "column_names") and hasattr(data, "features"), _from_columns),
    (lambda data: isinstance(data, list | tuple), _from_list),
)


def from_arrays(
    data: Any, labels: ArrayLike | None = None, classes: Sequence[str] | None = None
) -> LabelledPoints:
    """Points and labels from arrays.

    Labels are indices into ``classes`` if they are integers (-1: unlabelled), and names of
    classes if they are strings ("": unlabelled). Without ``classes``, the classes of integers
    are named "0" to their maximum, and those of strings are the sorted names.

    Args:
        data: N points of any kind that `as_points` takes.
        labels: [N] integers or strings; None if nothing is labelled.
        classes: Names of the classes.
    """
    points = as_points(data)
    if labels is None:
        return LabelledPoints(
            points, np.full(len(points), UNLABELLED, np.int64), tuple(classes or ())
        )
    array = np.asarray(labels)
    if array.shape != (len(points),):
        raise DataError(f"{len(points)} points, but labels of shape {array.shape}")
    if array.dtype.kind in "UO":
        encoded, names = encode_labels([str(label) for label in array], classes)
        return LabelledPoints(points, encoded, names)
    if array.dtype.kind not in "iu":
        raise DataError(f"labels of type {array.dtype}: give integers or names")
    if classes is None:
        names = tuple(str(c) for c in range(int(array.max()) + 1))
    else:
        names = tuple(classes)
    if array.min() < UNLABELLED or array.max() >= len(names):
        raise DataError(
            f"labels from {array.min()} to {array.max()}, but {len(names)} classes "
            f"(0 to {len(names) - 1}; {UNLABELLED} for unlabelled)"
        )
    return LabelledPoints(points, array.astype(np.int64), names)
