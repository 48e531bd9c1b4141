"""Engines execute the runs of a grid in parallel, on this machine or on a cluster.

An engine decides only where a run is executed: results are the same with all engines.
"""

from spinal.errors import SpinalError, suggestion
from spinal.experiments.engines.attempts import Ended
from spinal.experiments.engines.cluster import RayEngine
from spinal.experiments.engines.local import JoblibEngine

ENGINES = ("joblib", "ray")


def make_engine(
    name: str, workers: int = 0, address: str | None = None
) -> JoblibEngine | RayEngine:
    """The engine of that name, to be entered with ``with``.

    Args:
        name: one of `ENGINES`.
        workers: number of parallel runs; 0 for one per core.
        address: address of the Ray cluster.

    Raises:
        SpinalError: if there is no such engine, or if an address is given to one that needs none.
    """
    if name not in ENGINES:
        raise SpinalError(f"no engine {name!r}: {suggestion(name, ENGINES)}")
    if name == "ray":
        return RayEngine(workers, address)
    if address is not None:
        raise SpinalError("an address is for --engine ray: joblib stays on this machine")
    return JoblibEngine(workers)


__all__ = ["ENGINES", "Ended", "JoblibEngine", "RayEngine", "make_engine"]
