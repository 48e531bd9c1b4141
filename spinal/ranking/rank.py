"""`rank`: ranks a pool in files with a trained model, into one Parquet file."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from spinal.acquisition import Acquisition, Candidates, describe_acquisition, make_acquisition
from spinal.errors import DataError, SpinalError
from spinal.files import replacing, write_text
from spinal.learner import ActiveLearner
from spinal.ranking.choice import Run, choose
from spinal.ranking.merge import merged, read_part
from spinal.ranking.models import Model, load_model
from spinal.ranking.parts import MANIFEST, Job, read_skipped
from spinal.ranking.pools import ROWS, FilePool, find_pool
from spinal.ranking.shards import Columns, import_arrow

#: Number of candidates for acquisition functions that compare points.
_CANDIDATES = 50_000
_FORMAT = "spinal.ranking/1"


@dataclass(frozen=True)
class Ranking:
    """A ranked pool.

    Attributes:
        path: the Parquet file, best points first. Its columns are ``rank`` (from 1), ``shard`` and
            ``row`` (the file of the pool and the row in it, from 0), ``id`` (if points have names),
            ``score``, ``predicted``, ``confidence``, ``margin``, ``uncertainty`` (entropy in nats)
            and ``log_density`` (if there is one).
        points: number of points in the pool.
        ranked: number of points in the file.
        skipped: number of points that could not be used. They are listed in
            ``<path>.skipped.csv``.
    """

    path: Path
    points: int
    ranked: int
    skipped: int

    def read(self, n: int | None = None) -> pd.DataFrame:
        """The best ``n`` points; all if None."""
        arrow = import_arrow()
        if n is None:
            return arrow.parquet.read_table(self.path).to_pandas()
        file = arrow.parquet.ParquetFile(self.path)
        batch = next(file.iter_batches(max(n, 1)), None)
        return (arrow.Table.from_batches([] if batch is None else [batch], file.schema_arrow)
                .to_pandas()[:n])  # fmt: skip


def rank(
    pool: str | Path | Sequence[str | Path],
    model: str | Path | ActiveLearner,
    out: str | Path,
    *,
    acquisition: str | Acquisition = "margin",
    top: int | None = None,
    candidates: int | None = None,
    known: pd.DataFrame | Sequence[str | Path] = (),
    column: str | Sequence[str] = (),
    id_column: str | None = None,
    seed: int = 0,
    engine: str = "joblib",
    workers: int = 0,
    address: str | None = None,
    rows_per_shard: int = ROWS,
    on_progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Rank a pool in files, shard by shard; write the best points first to a Parquet file.

    Memory is bounded: a worker holds a few thousand points at a time. The same call continues an
    interrupted one: finished shards are kept in ``<out>.parts`` until the end. Neither the engine
    nor the number of workers changes the result.

    An acquisition function that scores each point separately (``margin``, ``max-entropy``, ...)
    ranks the whole pool. Equal scores are in random order. One that compares points (``auto``,
    herding, ``k-center``, ...) chooses ``top`` of ``candidates`` random points; only these are
    read and encoded.

    Args:
        pool: a file, a folder, a pattern, or a list of these; Parquet, ``.npy``, ``.npz``, or tar
            files of WebDataset.
        model: a folder of `ActiveLearner.save`, a project of ``spinal label``, an exported model;
            or a fitted learner.
        out: the Parquet file to write.
        acquisition: a name, or an object.
        top: number of points to write; None for all.
        candidates: number of points that are compared; by default 50,000. It has no effect for
            functions that score each point separately.
        known: points that are labelled or asked, which are left out: a table with the columns
            ``shard`` and ``row``, or files (CSV, Parquet) of such tables. Functions that cover the
            pool count them as covered.
        column: the column with the points, or several columns of numbers; for tar files, the
            extension; for ``.npz`` files, the array.
        id_column: a column with names of the points.
        seed: of all randomness.
        engine: ``joblib`` for this machine, ``ray`` for a cluster.
        workers: number of processes; 0 for one per core.
        address: of the Ray cluster.
        rows_per_shard: maximum number of rows of a shard, if files can be split.
        on_progress: called with the number of points that are done, and that of all.

    Raises:
        SpinalError: if pool or model cannot be read, or ``out`` holds another ranking.
    """
    import_arrow()
    out = Path(out).expanduser().resolve()
    columns = Columns((column,) if isinstance(column, str) else tuple(column), id_column)
    if isinstance(acquisition, str):
        acquisition = make_acquisition(acquisition)
    if top is not None and top < 1:
        raise SpinalError(f"top must be 1 or more, not {top}")
    files = find_pool(pool, columns, rows_per_shard)
    if any(shard.path == out for shard in files.shards):
        raise DataError(f"{out}: is a file of the pool; write the ranking to another folder")
    folder = out.with_name(f"{out.name}.parts")
    model = _place(model, folder)
    loaded = load_model(model)
    compares = not _scores_alone(acquisition)
    if compares and top is None:
        raise SpinalError("this acquisition function compares points: say how many to choose (top)")
    positions, known_digest = _known(files, known)
    described = describe_acquisition(acquisition) or (type(acquisition).__qualname__, {})
    manifest = {
        "format": _FORMAT, "pool": files.fingerprint, "model": loaded.fingerprint,
        "acquisition": list(described), "top": top, "candidates": candidates if compares else None,
        "known": known_digest, "columns": [*columns.items, columns.ids], "seed": seed,
    }  # fmt: skip
    text = json.dumps(manifest, sort_keys=True)
    if out.exists():
        ranking = _existing(out, text, files)
        shutil.rmtree(folder, ignore_errors=True)
        return ranking
    _begin(folder, text)
    job = Job(model, acquisition, folder, columns, seed, top, positions)
    run = Run(files, engine, workers, address, on_progress)
    with _alone(folder):
        if compares:
            assert top is not None
            job = replace(job, top=None)
            n = candidates or acquisition.most_candidates or _CANDIDATES
            tables: Iterator[Any] = iter([choose(job, run, top, max(n, top))])
        else:
            run.process(job)
            done = [job.part(shard) for shard in files.shards]
            tables = merged([path for path in done if read_part(path).num_rows], seed)
        skipped = _write_skipped(out, job, files)
        with replacing(out) as partial:
            ranked = _write(partial, tables, files, loaded, top, text)
    shutil.rmtree(folder)
    return Ranking(out, len(files), ranked, skipped)


def _write(
    path: Path, tables: Iterator[Any], files: FilePool, model: Model, top: int | None, text: str
) -> int:
    """Write the rows in order, with their ranks; return their number."""
    arrow = import_arrow()
    names, classes = arrow.array(files.names), arrow.array(model.classes)
    writer, ranked = None, 0
    try:
        for table in tables:
            table = table.slice(0, None if top is None else top - ranked)
            if not table.num_rows:
                break
            columns = {name: table.column(name).combine_chunks() for name in table.column_names}
            columns["shard"] = arrow.DictionaryArray.from_arrays(columns.pop("file"), names)
            columns["predicted"] = arrow.DictionaryArray.from_arrays(columns["predicted"], classes)
            columns["rank"] = arrow.array(np.arange(ranked, ranked + table.num_rows) + 1)
            del columns["position"]
            order = ["rank", "shard", "row", *columns]
            rows = arrow.table({name: columns[name] for name in dict.fromkeys(order)})
            if writer is None:
                schema = rows.schema.with_metadata({"spinal": text})
                writer = arrow.parquet.ParquetWriter(path, schema)
            writer.write_table(rows)
            ranked += table.num_rows
        if writer is None:
            raise DataError("no point of the pool is left to rank")
    finally:
        if writer is not None:
            writer.close()
    return ranked


def _write_skipped(out: Path, job: Job, files: FilePool) -> int:
    """Write a list of the points that could not be used, if any; return their number."""
    skipped = [
        (files.names[shard.file], int(each.path.name.rpartition(":")[2]), each.reason)
        for shard in files.shards
        for each in read_skipped(job, shard)
    ]
    if skipped:
        table = pd.DataFrame(skipped, columns=["shard", "row", "reason"])
        table.to_csv(out.with_name(f"{out.name}.skipped.csv"), index=False)
    return len(skipped)


def _scores_alone(acquisition: Acquisition) -> bool:
    """Whether it scores each point separately; tested with an empty set of candidates."""
    empty = Candidates(log_probs=torch.zeros(0, 1, 2), moments=torch.zeros(0, 2, 2))
    return acquisition.scores(empty) is not None


def _place(model: str | Path | ActiveLearner, folder: Path) -> Path:
    """The folder of a model; a learner is first saved in the folder of the parts."""
    if not isinstance(model, ActiveLearner):
        return Path(model).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model")
    return folder / "model"


def _known(
    files: FilePool, known: pd.DataFrame | Sequence[str | Path]
) -> tuple[NDArray[np.int64], str]:
    """The ascending positions of the points that are left out, and a hash of them."""
    tables: list[tuple[pd.DataFrame, str]] = []
    if isinstance(known, pd.DataFrame):
        tables.append((known, "known"))
    else:
        for place in [known] if isinstance(known, str | Path) else known:
            path = Path(place)
            try:
                read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
                tables.append((read(path), str(path)))
            except (OSError, ValueError) as error:
                raise DataError(f"{path}: give CSV or Parquet files ({error})") from error
    found = [files.positions(table, where) for table, where in tables]
    positions = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    return positions, hashlib.sha256(positions.tobytes()).hexdigest()[:16]


def _begin(folder: Path, text: str) -> None:
    """Create the folder of the parts, or check that it belongs to the same ranking."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / MANIFEST
    if not file.exists():
        write_text(file, text)
    elif file.read_text(encoding="utf-8") != text:
        raise SpinalError(
            f"{folder}: holds parts of another ranking (pool, model or settings differ): "
            "delete it, or give another --out"
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a second process that makes the same ranking at the same time."""
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout as error:
        raise SpinalError(f"{folder}: another process is making this ranking") from error


def _existing(out: Path, text: str, files: FilePool) -> Ranking:
    """The ranking that is already at ``out``; an error if it is another one."""
    arrow = import_arrow()
    try:
        file = arrow.parquet.ParquetFile(out)
        same = (file.schema_arrow.metadata or {}).get(b"spinal", b"").decode() == text
    except (OSError, arrow.ArrowException):
        same = False
    if not same:
        raise SpinalError(
            f"{out}: exists, and is another ranking (pool, model or settings differ): "
            "delete it, or give another --out"
        )
    listed = out.with_name(f"{out.name}.skipped.csv")
    skipped = len(pd.read_csv(listed)) if listed.exists() else 0
    return Ranking(out, len(files), file.metadata.num_rows, skipped)
