"""The grid of runs: several protocols, methods and seeds, executed in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from spinal.data import Dataset, load_dataset
from spinal.errors import SpinalError
from spinal.experiments.engines import make_engine
from spinal.experiments.progress import Progress
from spinal.experiments.protocol import Protocol
from spinal.experiments.runs import Run
from spinal.methods import METHODS, find_method
from spinal.registry import is_own


def make_runs(
    protocols: Iterable[Protocol],
    methods: Sequence[str],
    acquisitions: Sequence[str],
    seeds: Sequence[int],
    out: Path,
) -> list[Run]:
    """All valid combinations, ordered by seed, so that all methods advance evenly.

    The method ``all`` stands for all methods. Without acquisition functions, each method uses that
    of the protocol if it is compatible, or else its default. A method without a choice (Random)
    occurs once.

    Raises:
        SpinalError: for a method or an acquisition function that does not exist; for two
            protocols of the same name.
    """
    runs = []
    if "all" in methods:
        methods = list(METHODS)
    for seed in seeds:
        for protocol in protocols:
            for method in methods:
                runs += [
                    Run(protocol, method, name, seed, out)
                    for name in _acquisitions(protocol, method, acquisitions)
                ]
    unique = {run.folder: run for run in runs}
    for run in runs:
        if run != unique[run.folder]:
            raise SpinalError(
                f"two different protocols are named {run.protocol.name!r}, and their runs would "
                "share a folder: rename one of the files"
            )
    return list(unique.values())


def _acquisitions(protocol: Protocol, method: str, requested: Sequence[str]) -> Sequence[str]:
    """The acquisition functions that a method is run with."""
    default, choices = find_method(method).acquisition, find_method(method).choices
    if len(choices) == 1:
        return [default]
    if not requested:
        named = protocol.acquisition.get("name", default)
        return [named if named in choices or is_own("acquisition", named) else default]
    for name in requested:
        if name not in choices and not is_own("acquisition", name):
            raise SpinalError(
                f"{method} does not go with {name!r}; choose one of {', '.join(choices)}"
            )
    return requested


def run_grid(
    runs: Sequence[Run],
    *,
    workers: int = 0,
    data_dir: str | Path | None = None,
    engine: str = "joblib",
    address: str | None = None,
    dataset: Dataset | None = None,
) -> None:
    """Execute the runs that are not finished, ``workers`` in parallel.

    A run that fails does not stop the others. Each finished round is on disk: after an
    interruption, the same call resumes, even with another engine.

    Args:
        runs: in the order in which to start them.
        workers: number of parallel runs; 0 for one per core.
        data_dir: the first folder to search for datasets.
        engine: ``joblib`` for this machine, ``ray`` for a cluster.
        address: of the Ray cluster; see `spinal.experiments.engines.RayEngine`.
        dataset: your own data for all runs, instead of those that the protocols name; see
            `spinal.data.make_dataset`.

    Raises:
        SpinalError: at the end, if runs failed, with the reasons.
    """
    # Workers have other working directories.
    runs = [replace(run, out=run.out.resolve()) for run in runs]
    loaded = {run.protocol.data_key: dataset for run in runs} if dataset else {}
    for run in runs:
        p = run.protocol
        if p.data_key not in loaded and p.dataset_is_own:
            loaded[p.data_key] = load_dataset(p.dataset, data_dir, data=p.data)
    # Own data may have changed since a run was begun, or even finished.
    prints = {key: own.fingerprint() for key, own in loaded.items()}
    runs = [replace(run, fingerprint=prints.get(run.protocol.data_key)) for run in runs]
    left = [run for run in runs if not _is_finished(run)]
    failed: dict[str, str] = {}
    with make_engine(engine, workers, address) as chosen:
        for key in sorted({run.protocol.data_key for run in left} - loaded.keys()):
            loaded[key] = load_dataset(key, data_dir)
        with Progress(runs, chosen.workers) as progress:
            for run, message in chosen.execute(left, loaded):
                progress.ended(run, message)
                if message is not None:
                    failed[run.title] = message
    if failed:
        listed = "".join(f"\n  {name}: {message}" for name, message in failed.items())
        raise SpinalError(
            f"{len(failed)} of {len(runs)} runs failed; the same command tries them again:{listed}"
        )


def _is_finished(run: Run) -> bool:
    try:
        if run.is_finished:
            run.store.check_settings()
        return run.is_finished
    except SpinalError:  # damaged, or other settings: executing it will raise the error
        return False
