"""Processing of shards in this process, in several, or on a Ray cluster."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import joblib

from spinal.errors import SpinalError, suggestion
from spinal.experiments.engines import ENGINES, RayEngine
from spinal.ranking.models import load_model
from spinal.ranking.parts import Job, process
from spinal.ranking.shards import Shard

#: After this many crashes of workers on the same shard, the ranking stops.
_MOST_CRASHES = 3


def process_all(
    job: Job, shards: Sequence[Shard], engine: str, workers: int, address: str | None
) -> Iterator[int]:
    """Process shards; yields the number of points read from each finished shard.

    Args:
        job: what to do with each shard.
        shards: the shards to process.
        engine: ``joblib`` or ``ray``.
        workers: number of processes; 0 for one per core.
        address: of the Ray cluster; see `RayEngine`.

    Raises:
        SpinalError: if a shard cannot be read, or workers keep dying. Finished shards are kept.
    """
    if engine not in ENGINES:
        raise SpinalError(f"no engine {engine!r}: {suggestion(engine, ENGINES)}")
    if engine == "ray":
        yield from _on_cluster(job, shards, workers, address)
        return
    if address is not None:
        raise SpinalError("an address is for --engine ray: joblib stays on this machine")
    processes = min(workers or os.cpu_count() or 1, len(shards))
    if processes <= 1:
        model = load_model(job.model) if shards else None
        yield from (process(job, shard, model) for shard in shards)
        return
    pool = joblib.Parallel(processes, batch_size=1, return_as="generator_unordered")
    try:
        yield from pool(joblib.delayed(process)(job, shard) for shard in shards)
    except BrokenProcessPool as error:
        raise SpinalError(
            f"a worker died, perhaps for lack of memory ({error}): the same command continues; "
            "fewer --workers need less memory"
        ) from error


class _Worker:
    """A Ray actor that loads the model once, and processes one shard after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._model = load_model(job.model)

    def ready(self) -> None:
        """Return as soon as the model is loaded."""

    def process(self, shard: Shard) -> int:
        """See `process`."""
        return process(self._job, shard, self._model)


def _on_cluster(
    job: Job, shards: Sequence[Shard], workers: int, address: str | None
) -> Iterator[int]:
    """Process shards with actors, one per core; the shard of a dead actor goes to another one."""
    with RayEngine(workers, address) as cluster:
        ray = cluster._ray
        actor_class = ray.remote(num_cpus=1, max_restarts=0)(_Worker)
        stored = ray.put(job)
        left, crashes = deque(shards), Counter[str]()
        # Shards are only given to actors that are ready: an actor may wait for a core forever.
        at_work: dict[Any, tuple[Any, Shard | None]] = {}
        try:
            while left or any(shard for _, shard in at_work.values()):
                busy = sum(shard is not None for _, shard in at_work.values())
                while len(at_work) < min(cluster.workers, len(left) + busy):
                    actor = actor_class.remote(stored)
                    at_work[actor.ready.remote()] = actor, None
                # A node may die or join: check again after a while.
                finished, _ = ray.wait(list(at_work), num_returns=1, timeout=5)
                for future in finished:
                    actor, shard = at_work.pop(future)
                    try:
                        found = ray.get(future)
                    except ray.exceptions.RayTaskError as error:
                        raise SpinalError(str(error.cause or error)) from error
                    except ray.exceptions.RayError as error:
                        at = "the model" if shard is None else f"{shard.path}, row {shard.start}"
                        crashes[at] += 1
                        if crashes[at] == _MOST_CRASHES:
                            raise SpinalError(f"{_MOST_CRASHES} workers died at {at}") from error
                        left.extend(() if shard is None else (shard,))
                        continue
                    if shard is not None:
                        yield found
                    if left:
                        shard = left.popleft()
                        at_work[actor.process.remote(shard)] = actor, shard
                    else:
                        ray.kill(actor)
        finally:
            for actor, _ in at_work.values():
                ray.kill(actor)
