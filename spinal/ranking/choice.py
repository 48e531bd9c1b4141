"""Processes all shards, and chooses among candidates from all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from spinal.acquisition import Candidates
from spinal.errors import DataError
from spinal.files import write_text
from spinal.ranking.engines import process_all
from spinal.ranking.merge import read_part
from spinal.ranking.order import draw
from spinal.ranking.parts import FIELDS, MANIFEST, Job
from spinal.ranking.pools import FilePool
from spinal.ranking.shards import import_arrow


@dataclass(frozen=True)
class Run:
    """Where and how shards are processed."""

    files: FilePool
    engine: str
    workers: int
    address: str | None
    on_progress: Callable[[int, int], None] | None

    def process(self, job: Job) -> None:
        """Process all shards that are not done yet."""
        left = [shard for shard in self.files.shards if job.needs(shard)]
        of_all = [s for s in self.files.shards if job.wanted is None or len(s.rows_of(job.wanted))]
        total = sum(map(len, of_all))
        done = total - sum(map(len, left))
        if not left:
            return
        sizes = process_all(job, left, self.engine, self.workers, self.address)
        for size in sizes:
            done = min(total, done + size)
            if self.on_progress is not None:
                self.on_progress(done, total)


def choose(job: Job, run: Run, top: int, n: int) -> Any:
    """The table of the chosen points, from ``n`` random candidates."""
    drawn = draw(len(run.files), n, job.seed, job.known)
    table, arrays = _collect(replace(job, wanted=drawn), run)
    needs = job.acquisition.needs
    if needs & {"labelled_features", "labelled_log_probs"}:
        known = replace(job, wanted=job.known, folder=job.folder / "known")
        labelled: dict[str, torch.Tensor] = {}
        if len(job.known):
            known.folder.mkdir(exist_ok=True)
            write_text(known.folder / MANIFEST, "{}")
            labelled = _collect(known, run)[1]
        for name in ("features", "log_probs"):
            if f"labelled_{name}" in needs:
                arrays[f"labelled_{name}"] = labelled.get(name, arrays[name][:0])
    kept = {name: values for name, values in arrays.items() if name in needs}
    ids = torch.tensor(table.column("position").to_pylist())
    generator = torch.Generator().manual_seed(job.seed)
    positions = job.acquisition.select(Candidates(**kept, ids=ids), top, generator)
    return table.take(import_arrow().array(positions.numpy()))


def _collect(job: Job, run: Run) -> tuple[Any, dict[str, torch.Tensor]]:
    """A table of the candidates, and the arrays that acquisition functions compare."""
    arrow = import_arrow()
    run.process(job)
    parts = [job.part(shard) for shard in run.files.shards if job.part(shard).exists()]
    tables = [table for table in map(read_part, parts) if table.num_rows]
    if not tables:
        raise DataError("no point of the pool is left to choose from")
    table = arrow.concat_tables(tables).combine_chunks()
    arrays = {}
    for name in FIELDS:
        if f"_{name}" in table.column_names:
            column = table.column(f"_{name}").combine_chunks()
            many = isinstance(column, arrow.ExtensionArray)
            values = column.to_numpy_ndarray() if many else column.to_numpy()
            arrays[name] = torch.from_numpy(np.array(values))
            table = table.drop_columns([f"_{name}"])
    return table, arrays
