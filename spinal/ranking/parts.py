"""The result of one shard: a file with its ranked rows, or with its candidates."""

from __future__ import annotations

import functools
import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.acquisition import Acquisition, Candidates
from spinal.data import Skipped
from spinal.errors import DataError, SpinalError
from spinal.files import replacing, write_text
from spinal.probabilities import entropy, margin, mean_log_probs
from spinal.ranking.models import Model, load_model
from spinal.ranking.order import best_first
from spinal.ranking.pools import read_shard
from spinal.ranking.shards import Columns, Shard, import_arrow
from spinal.threads import single_thread

#: The file in the folder of parts that describes the ranking.
MANIFEST = "ranking.json"


@dataclass(frozen=True, eq=False)
class Job:
    """What to do with each shard. It is sent to every worker once.

    Attributes:
        model: the folder of the model.
        acquisition: scores the points, or determines what is stored of candidates.
        folder: the folder of the parts, shared by all workers.
        columns: what to read.
        seed: for the order of equal scores.
        top: number of the best rows of a shard to keep; None for all.
        known: ascending positions of points that are labelled or asked.
        wanted: ascending positions of the candidates; None to rank all points by their scores.
    """

    model: Path
    acquisition: Acquisition
    folder: Path
    columns: Columns = field(default_factory=Columns)
    seed: int = 0
    top: int | None = None
    known: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    wanted: NDArray[np.int64] | None = None

    def part(self, shard: Shard) -> Path:
        """The file with the result of a shard."""
        return self.folder / f"{shard.number:06d}.arrow"

    def needs(self, shard: Shard) -> bool:
        """Whether the shard must still be processed."""
        if self.wanted is not None and not len(shard.rows_of(self.wanted)):
            return False
        return not self.part(shard).exists()


def process(job: Job, shard: Shard, model: Model | None = None) -> int:
    """Encode and score a shard, and write its part, atomically.

    Only one thread computes, so that results do not depend on the number of cores.

    Returns:
        The number of points that were read.

    Raises:
        SpinalError: if the shard cannot be read, or the folder of the parts is not shared.
    """
    if not (job.folder / MANIFEST).exists():
        raise SpinalError(
            f"{platform.node()} does not see {job.folder}: pool, model and --out must be in "
            "folders that all nodes share, at the same paths"
        )
    with single_thread():
        try:
            columns, skipped = _columns(job, shard, model or _cached(job.model))
        except DataError as error:
            text = str(error)
            raise DataError(text if str(shard.path) in text else f"{shard.path}: {text}") from error
    if skipped:
        rows = [[int(row), reason] for row, reason in skipped]
        write_text(job.part(shard).with_suffix(".skipped.json"), json.dumps(rows))
    arrow = import_arrow()
    table = arrow.table({name: _to_arrow(values) for name, values in columns.items()})
    with replacing(job.part(shard)) as partial, arrow.ipc.new_file(partial, table.schema) as file:
        file.write_table(table)
    return len(table) + len(skipped)


def read_skipped(job: Job, shard: Shard) -> list[Skipped]:
    """The points of a shard that could not be used; the row is part of the path."""
    path = job.part(shard).with_suffix(".skipped.json")
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Skipped(Path(f"{shard.path}:{row}"), reason) for row, reason in rows]


def assess_batch(model: Model, points: NDArray, acquisition: Acquisition) -> dict[str, NDArray]:
    """Columns for N points; with ``score`` if the function scores points separately."""
    candidates = model.assess(points, acquisition)
    scores_N = acquisition.scores(candidates)
    columns = describe(candidates)
    return columns if scores_N is None else {"score": scores_N.double().numpy(), **columns}


def describe(candidates: Candidates) -> dict[str, NDArray]:
    """Number of the most probable class, its probability, margin, entropy and density."""
    assert candidates.log_probs is not None
    log_probs_N_C = mean_log_probs(candidates.log_probs).double()
    columns = {
        "predicted": log_probs_N_C.argmax(1).to(torch.int32),
        "confidence": log_probs_N_C.amax(1).exp().float(),
        "margin": margin(log_probs_N_C).float(),
        "uncertainty": entropy(log_probs_N_C).float(),
    }
    if candidates.log_density is not None:
        columns["log_density"] = candidates.log_density.float()
    return {name: values.numpy() for name, values in columns.items()}


def _columns(
    job: Job, shard: Shard, model: Model
) -> tuple[dict[str, NDArray], list[tuple[int, str]]]:
    """The columns of a part, and the rows that were skipped with the reasons."""
    collect = job.wanted is not None
    wanted = shard.rows_of(job.wanted) if job.wanted is not None else None
    known = shard.rows_of(job.known)
    parts: list[dict[str, NDArray]] = []
    skipped: list[tuple[int, str]] = []
    for batch in read_shard(shard, job.columns, wanted):
        points, skips = model.encode(batch.items)
        skipped += [(int(batch.rows[i]), reason) for i, reason in skips.items()]
        used = np.setdiff1d(np.arange(len(batch.rows)), list(skips))
        fresh = np.ones(len(used), bool) if collect else ~np.isin(batch.rows[used], known)
        points, used = points[fresh], used[fresh]
        if not len(used):
            continue
        rows = batch.rows[used]
        place: dict[str, NDArray] = {"position": shard.first + rows - shard.start, "row": rows}
        place["file"] = np.full(len(rows), shard.file, np.int32)
        if batch.ids is not None:
            place["id"] = np.array([batch.ids[i] for i in used], object)
        if collect:
            candidates = model.assess(points, job.acquisition)
            parts.append(place | describe(candidates) | _arrays(candidates))
        else:
            parts.append(_top(job, place | assess_batch(model, points, job.acquisition)))
    if not parts:
        return {}, skipped
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return joined if collect else _top(job, joined), skipped


def _top(job: Job, columns: dict[str, NDArray]) -> dict[str, NDArray]:
    """The rows in order, at most ``job.top``."""
    order = best_first(columns["score"], columns["position"], job.seed)[: job.top]
    return {name: values[order] for name, values in columns.items()}


#: Fields of `Candidates` that are stored.
FIELDS = ("log_probs", "features", "moments", "log_density")


def _arrays(candidates: Candidates) -> dict[str, NDArray]:
    """The arrays that acquisition functions compare, under names that no column has."""
    given = {name: getattr(candidates, name) for name in FIELDS}
    return {f"_{name}": values.numpy() for name, values in given.items() if values is not None}


def _to_arrow(values: NDArray) -> Any:
    """A column; a column of tensors for arrays with several axes."""
    arrow = import_arrow()
    if values.ndim == 1:
        return arrow.array(values)
    return arrow.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))


@functools.lru_cache(maxsize=1)
def _cached(place: Path) -> Model:
    """The model, loaded once per process."""
    return load_model(place)
