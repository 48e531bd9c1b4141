"""Ranking on a local Ray cluster of two nodes: same results, one and two workers, a killed node.

    python benchmarks/rank.py --sizes 24000 96000 --folder DIR --save results/rank

First, the parts of the work are timed in this process: reading, scoring, merging. They give a cost
model. Then the command runs on the cluster, and the CPU seconds of its workers are compared with
the model. Wall-clock seconds depend on other load on the machine; CPU seconds hardly do.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from machine import commit, processor

from spinal import ActiveLearner, Pool
from spinal.acquisition import make_acquisition
from spinal.ranking import load_model, rank
from spinal.ranking.merge import merged
from spinal.ranking.parts import MANIFEST, Job, process
from spinal.ranking.pools import find_pool, read_shard
from spinal.ranking.shards import Columns
from spinal.threads import single_thread

WIDTH, CLASSES, SHARDS = 128, 10, 12
TICKS = os.sysconf("SC_CLK_TCK")


def make_pool(folder: Path, n: int) -> Path:
    """Vectors around the centres of classes, in files of equal size; each is there twice."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, WIDTH)).astype(np.float32)
    for i in range(SHARDS // 2):
        rows = np.arange(n // SHARDS)
        points = centres[rows % CLASSES] + 2 * rng.standard_normal((len(rows), WIDTH), np.float32)
        for copy in range(2):  # ties
            np.save(folder / f"{i + copy * SHARDS // 2:03d}.npy", points.astype(np.float32))
    return folder


def make_model(folder: Path) -> Path:
    """A learner with 200 labels."""
    rng = np.random.default_rng(1)
    centres = np.random.default_rng(0).normal(size=(CLASSES, WIDTH)).astype(np.float32)
    labels = np.arange(2_000) % CLASSES
    points = centres[labels] + 2 * rng.standard_normal((2_000, WIDTH), np.float32)
    learner = ActiveLearner(Pool(points, CLASSES), "dense", "spn-cnn", "margin", seed=0)
    learner.tell(np.arange(200), labels[:200])
    learner.fit()
    learner.save(folder)
    return folder


def parts_of_the_work(pool: Path, model: Path, folder: Path) -> dict[str, float]:
    """CPU seconds for a million points: reading, encoding and scoring, merging; of a start."""
    folder.mkdir()
    (folder / MANIFEST).write_text("{}")
    began = time.process_time()
    loaded = load_model(model)
    start = time.process_time() - began
    files = find_pool(pool, Columns())
    job = Job(model, make_acquisition("margin"), folder)
    with single_thread():
        began = time.process_time()
        for shard in files.shards:
            for _ in read_shard(shard, Columns()):
                pass
        read = time.process_time() - began
        began = time.process_time()
        for shard in files.shards:
            process(job, shard, loaded)
        whole = time.process_time() - began
        began = time.process_time()
        for _ in merged([job.part(shard) for shard in files.shards], 0):
            pass
        merge = time.process_time() - began
    million = 1e6 / len(files)
    size = sum(job.part(shard).stat().st_size for shard in files.shards)
    return {
        "load": start, "read": read * million, "score": (whole - read) * million,
        "merge": merge * million, "part_bytes": size / len(files),
    }  # fmt: skip


class Watch(threading.Thread):
    """The CPU seconds of the cluster's workers; on request, kills a node in the middle."""

    def __init__(self, raylets: list[int], kill: tuple[int, Path, int] | None = None) -> None:
        super().__init__(daemon=True)
        self.raylets, self.kill, self.stopped = raylets, kill, False
        self.seconds: dict[int, float] = {}
        self.killed_at: int | None = None

    def run(self) -> None:
        """Look at the workers ten times a second."""
        while not self.stopped:
            for process_id, parent, seconds in workers():
                if parent in self.raylets:
                    self.seconds[process_id] = seconds
            if self.kill is not None:
                node, parts, after = self.kill
                done = len(list(parts.glob("*.arrow")))
                if done >= after and any(parent == node for _, parent, _ in workers()):
                    victims = [node, *(pid for pid, parent, _ in workers() if parent == node)]
                    for victim in victims:
                        os.kill(victim, signal.SIGKILL)
                    self.kill, self.killed_at = None, done
            time.sleep(0.1)


def workers() -> list[tuple[int, int, float]]:
    """Process, parent and CPU seconds of the actors that rank."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"_Worker" in (folder / "cmdline").read_bytes():
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                found.append((int(folder.name), int(stat[1]), sum(map(int, stat[11:13])) / TICKS))
        except OSError:
            continue
    return found


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, one core each; and their processes."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "600")
    from ray.cluster_utils import Cluster

    quick = {
        "worker_niceness": 0,  # Ray gives way to others on the machine, for minutes if it is busy
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 4,
    }
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = (cluster.head_node, cluster.add_node(num_cpus=1))
        yield cluster, [node.all_processes["raylet"][0].process.pid for node in nodes]
    finally:
        cluster.shutdown()


def on_cluster(
    cluster: tuple[Any, list[int]], pool: Path, model: Path, out: Path, n_workers: int, kill: bool
) -> dict[str, Any]:
    """Rank on the cluster; on request, the second node is killed after a quarter of the shards."""
    nodes = cluster[1]
    victim = (nodes[1], out.with_name(out.name + ".parts"), SHARDS // 4) if kill else None
    watch = Watch(nodes, victim)
    watch.start()
    began = time.perf_counter()
    rank(pool, model, out, engine="ray", address=cluster[0].address, workers=n_workers)
    seconds = time.perf_counter() - began
    watch.stopped = True
    watch.join(1)
    return {
        "workers": n_workers, "seconds": round(seconds, 1), "killed_at": watch.killed_at,
        "cpu_seconds": round(sum(watch.seconds.values()), 1), "processes": len(watch.seconds),
    }  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[24_000, 96_000])
    parser.add_argument("--folder", type=Path, required=True, help="for pools and rankings")
    parser.add_argument("--save", type=Path, help="stem of the .json to write")
    args = parser.parse_args()
    model = make_model(args.folder / "model")
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {
        "commit": commit("spinal", "benchmarks"), "processor": processor(), "rows": rows,
    }  # fmt: skip
    with two_nodes() as cluster:
        for n in args.sizes:
            pool = make_pool(args.folder / f"pool-{n}", n)
            here = rank(pool, model, args.folder / f"here-{n}.parquet", workers=1).read()
            ties = int(here["score"].duplicated().sum())
            is_last = n == args.sizes[-1]
            if is_last:
                result["parts"] = parts_of_the_work(pool, model, args.folder / "parts")
                print(json.dumps(result["parts"]), flush=True)
            for n_workers, kill in ((1, False), (2, False), *([(2, True)] * is_last)):
                out = args.folder / f"there-{n}-{n_workers}-{kill}.parquet"
                row = on_cluster(cluster, pool, model, out, n_workers, kill)
                pd.testing.assert_frame_equal(here, pd.read_parquet(out))
                load = round(os.getloadavg()[0], 1)
                rows.append({"points": n, "ties": ties, **row, "machine_load": load})
                print(json.dumps(rows[-1]), flush=True)
                if args.save is not None:
                    text = json.dumps(result, indent=2) + "\n"
                    args.save.with_suffix(".json").write_text(text)


if __name__ == "__main__":
    main()
