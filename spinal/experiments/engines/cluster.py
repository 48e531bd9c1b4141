"""Runs on a Ray cluster."""

from __future__ import annotations

import os
import platform
import socket
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spinal.data import Dataset
from spinal.errors import SpinalError
from spinal.experiments.engines.attempts import WAIT, CrashCounter, Ended, attempt
from spinal.experiments.runs import MakeCallbacks, Run

#: Seconds to wait for the lock of a run whose worker died. If its node still runs, the lock is
#: released at once; if not, a file server releases it only when its lease expires.
LEASE = 180.0


class RayEngine:
    """Tasks on a Ray cluster, one core and one thread each.

    All nodes need the same version of spinal, and the folder of the runs at the same path. When a
    worker or its node dies, its run is resumed from that folder.

    Args:
        workers: number of parallel runs; 0 for one per core of the cluster.
        address: address of the cluster; by default, the one in ``RAY_ADDRESS``. If there is none, a
            cluster on this machine alone is started.

    Raises:
        SpinalError: if Ray is not installed.
    """

    def __init__(self, workers: int = 0, address: str | None = None) -> None:
        self._wanted = workers
        self._address = address or os.environ.get("RAY_ADDRESS") or "local"
        self._started = False
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
        try:
            import ray
        except ImportError as error:
            raise SpinalError(
                f"--engine ray needs the package ray: pip install 'spinal[ray]' ({error})"
            ) from error
        self._ray: Any = ray

    def __enter__(self) -> RayEngine:
        ray, local = self._ray, self._address == "local"
        if ray.is_initialized():  # by the caller, who keeps using it
            return self
        settings = {"num_cpus": self._wanted or None, "include_dashboard": False} if local else {}
        try:
            _check_reachable(self._address)
            ray.init(self._address, logging_level="error", log_to_driver=False, **settings)
        except (OSError, RuntimeError, ValueError) as error:
            raise SpinalError(
                f"no Ray cluster at {self._address} ({error}): `ray start --head` starts one"
            ) from error
        self._started = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._started:
            self._ray.shutdown()

    @property
    def workers(self) -> int:
        """Number of parallel runs; it changes with the nodes of the cluster unless it is fixed."""
        return self._wanted or max(1, int(self._ray.cluster_resources().get("CPU", 0)))

    def execute(
        self,
        runs: Sequence[Run],
        datasets: Mapping[str, Dataset],
        callbacks: MakeCallbacks | None = None,
    ) -> Iterator[Ended]:
        """Execute runs in order; each is yielded when it has ended.

        A dataset is put into the object store once: it is sent to every node once, and the workers
        of a node share its memory. A run whose worker died is given to another worker.

        Args:
            runs: the runs to execute.
            datasets: the datasets of their protocols, by `Protocol.data_key`.
            callbacks: makes the callbacks of a run.
        """
        ray = self._ray
        stored = {name: ray.put(dataset) for name, dataset in datasets.items()}
        # Ray's own retries would be silent, and endless for a run that kills its workers.
        task = ray.remote(num_cpus=1, max_retries=0)(_attempt)
        waiting, crashes, died = deque(runs), CrashCounter(), set[Path]()
        at_work: dict[Any, Run] = {}
        with _marked({run.out for run in runs}) as mark:
            while waiting or at_work:
                while waiting and len(at_work) < self.workers:
                    run = waiting.popleft()
                    wait = LEASE if run.folder in died else WAIT
                    dataset = stored[run.protocol.data_key]
                    job = task.remote(run, dataset, callbacks, wait, mark)
                    at_work[job] = run
                [job], _ = ray.wait(list(at_work), num_returns=1)
                run = at_work.pop(job)
                try:
                    message = ray.get(job)
                except ray.exceptions.RayTaskError as error:  # before it started
                    message = f"Ray could not execute it: {error.cause or error}"
                except ray.exceptions.RayError:
                    message = crashes.count(run)
                    if message is None:
                        died.add(run.folder)
                        waiting.appendleft(run)
                        continue
                yield run, message


def _check_reachable(address: str) -> None:
    """Fail at once if nothing listens at ``[ray://]host:port``; Ray would try for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _attempt(
    run: Run, dataset: Dataset, callbacks: MakeCallbacks | None, wait: float, mark: str
) -> str | None:
    """An attempt on a node; an error if the node does not share the folder of the runs."""
    if not (run.out / mark).exists():
        return (
            f"{platform.node()} does not see the {run.out} of the machine that started the "
            "grid: --out must be a folder that all nodes share, at the same path"
        )
    return attempt(run, dataset, callbacks, wait)


@contextmanager
def _marked(folders: set[Path]) -> Iterator[str]:
    """Put a marker file into folders, by which nodes check that they share them; yield its name."""
    name = f".grid-{uuid.uuid4().hex}"
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    try:
        yield name
    finally:
        for folder in folders:
            (folder / name).unlink(missing_ok=True)
