"""Scores for batches that another library reads, such as Ray Data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinal.acquisition import make_acquisition
from spinal.errors import SpinalError
from spinal.ranking.models import load_model
from spinal.ranking.parts import assess_batch
from spinal.ranking.shards import Items
from spinal.threads import single_thread


class BatchScorer:
    """Adds scores and predictions to batches of columns; the model is loaded once.

    With Ray Data, every actor holds one:
    ``dataset.map_batches(BatchScorer, fn_constructor_args=(model, "z"), concurrency=2)``.

    Args:
        model: see `spinal.ranking.load_model`.
        column: the column with vectors ``[N, D]``, images ``[N, H, W, C]``, texts, or contents of
            image files.
        acquisition: a function that scores each point separately.
    """

    def __init__(self, model: str | Path, column: str, acquisition: str = "margin") -> None:
        self._model, self._column = load_model(model), column
        self._acquisition = make_acquisition(acquisition)

    def __call__(self, batch: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """The batch with the columns of `spinal.ranking.Ranking` except rank, shard and row.

        Points that cannot be used have a score of NaN and class -1.
        """
        values = np.asarray(batch[self._column])
        items: Items = values
        if values.dtype == object:
            first = values[0] if len(values) else b""
            items = values.tolist() if isinstance(first, str | bytes) else np.stack(list(values))
        elif values.dtype.kind == "U":
            items = values.tolist()
        with single_thread():
            points, skips = self._model.encode(items)
            columns = assess_batch(self._model, points, self._acquisition)
        if "score" not in columns:
            raise SpinalError("this acquisition function compares points: use spinal.ranking.rank")
        used = np.setdiff1d(np.arange(len(values)), list(skips))
        result = dict(batch)
        for name, found in columns.items():
            whole = np.full(len(values), -1 if name == "predicted" else np.nan, found.dtype)
            whole[used] = found
            result[name] = whole
        return result
