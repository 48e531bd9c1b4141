"""Ranking on a Ray cluster: the same file as on one machine, whatever dies meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from spinal.ranking import BatchScorer, rank
from tests.cluster import children, raylet, send, sigkill, two_nodes  # noqa: F401
from tests.ranking.conftest import Example, write_npy

pytest.importorskip("pyarrow")
pytest.importorskip("ray")


class Killer(threading.Thread):
    """Kills a node while one of its workers ranks, after other workers have finished parts.

    The other workers are stopped until then: otherwise they could finish everything before the
    node has started its first worker.

    Attributes:
        parts: how many parts were there when the node died; 0 before.
    """

    def __init__(self, node: int, others: int, folder: Path) -> None:
        super().__init__(daemon=True)
        self.node, self.others, self.folder, self.parts = node, others, folder, 0

    def run(self) -> None:
        while self._finished() < 2:
            time.sleep(0.005)
        stopped = []
        while not any(map(is_ranking, children(self.node))):
            for process in children(self.others):
                if process not in stopped and is_ranking(process):
                    send(process, signal.SIGSTOP)
                    stopped.append(process)
            time.sleep(0.005)
        self.parts = self._finished()
        for process in (self.node, *children(self.node)):
            sigkill(process)
        for process in stopped:
            send(process, signal.SIGCONT)

    def _finished(self) -> int:
        return len(list(self.folder.glob("*.arrow")))


def is_ranking(process: int) -> bool:
    """Whether a process is an actor that has the model and ranks."""
    try:
        title = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return b"_Worker.process" in title


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_node_that_dies_costs_time_only(
    example: Example,
    two_nodes: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    write_npy(pool, np.tile(example.points, (300, 1)))  # 180,000 points, each 300 times or more
    here = rank(pool, example.model, tmp_path / "here.parquet", workers=1, rows_per_shard=3000)
    node = raylet(two_nodes.worker_nodes.copy().pop())
    out = tmp_path / "there.parquet"
    killer = Killer(node, raylet(two_nodes.head_node), tmp_path / "there.parquet.parts")
    killer.start()
    there = rank(pool, example.model, out, engine="ray", address=two_nodes.address,
                 rows_per_shard=3000)  # fmt: skip
    killer.join(1)
    assert 2 <= killer.parts < 60, "the node did not die in the middle"
    pd.testing.assert_frame_equal(here.read(), there.read())
    herded = [
        rank(pool, example.model, tmp_path / f"{name}-herded.parquet", acquisition="auto", top=20,
             candidates=2000, rows_per_shard=3000, **engine).read()
        for name, engine in {
            "here": {"workers": 1}, "there": {"engine": "ray", "address": two_nodes.address},
        }.items()
    ]  # fmt: skip
    pd.testing.assert_frame_equal(*herded)


@pytest.mark.long
def test_ray_data_scores_batches_by_actors(example: Example, tmp_path: Path) -> None:
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, logging_level="error")
    try:
        table = pd.DataFrame({"z": list(example.points), "row": range(600)})
        table.to_parquet(tmp_path / "pool.parquet", row_group_size=100)
        scored = (
            ray.data.read_parquet(str(tmp_path / "pool.parquet"))
            .map_batches(BatchScorer, fn_constructor_args=(example.model, "z"), concurrency=1)
            .to_pandas()
            .sort_values("row")
        )
    finally:
        ray.shutdown()
    np.testing.assert_allclose(scored["score"], example.scores(), atol=1e-6)
