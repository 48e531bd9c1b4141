"""A Ray cluster on this machine, whose nodes can be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes with a core each; nodes that died are noticed within a second."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    quick = {
        "worker_niceness": 0,  # Ray gives way to others on the machine, for minutes if it is busy
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 200,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1)
        yield made
    finally:
        made.shutdown()


def raylet(node: Any) -> int:
    """The process of a node whose children are its workers."""
    return int(node.all_processes["raylet"][0].process.pid)


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(after_name[1]) == process:
            found.append(int(folder.name))
    return found


def send(process: int, number: int) -> None:
    """Send a signal to a process; nothing happens if it has just ended."""
    with suppress(ProcessLookupError):
        os.kill(process, number)


def sigkill(process: int) -> None:
    """End a process at once."""
    send(process, signal.SIGKILL)
