"""The grid of runs: several protocols, methods and seeds, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from spinal.data import dataset_name, load_dataset
from spinal.errors import SpinalError
from spinal.experiments.engines import make_engine
from spinal.experiments.progress import Progress
from spinal.experiments.protocol import Protocol
from spinal.experiments.runs import Run
from spinal.methods import METHODS, find_method


def make_runs(
    protocols: Iterable[Protocol],
    methods: Sequence[str],
    acquisitions: Sequence[str],
    seeds: Sequence[int],
    out: Path,
) -> list[Run]:
    """All combinations that make sense, seed by seed, so that comparisons fill up evenly.

    The method ``all`` stands for all of them. Without acquisition functions, each method takes that
    of the protocol, if it goes with it, or else its own. A method that has no choice (Random)
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


def _acquisitions(protocol: Protocol, method: str, wanted: Sequence[str]) -> Sequence[str]:
    """The acquisition functions that a method is run with."""
    own, choices = find_method(method).acquisition, find_method(method).choices
    if len(choices) == 1:
        return [own]
    if not wanted:
        named = protocol.acquisition.get("name")
        return [named if named in choices else own]
    for name in wanted:
        if name not in choices:
            raise SpinalError(
                f"{method} does not go with {name!r}; it goes with {', '.join(choices)}"
            )
    return wanted


def run_grid(
    runs: Sequence[Run],
    *,
    workers: int = 0,
    data_dir: str | Path | None = None,
    engine: str = "joblib",
    address: str | None = None,
) -> None:
    """Execute the runs that are not finished, ``workers`` at a time.

    A run that fails does not stop the others. What is done is on disk at every moment: the same
    call goes on where this one was stopped, and with another engine, too.

    Args:
        runs: in the order in which they are to be begun.
        workers: 0: one for each core.
        data_dir: where datasets are looked for first.
        engine: ``joblib`` for this machine, ``ray`` for a cluster.
        address: of the Ray cluster; see `spinal.experiments.engines.RayEngine`.

    Raises:
        SpinalError: at the end, if runs failed: which, and why.
    """
    runs = [replace(run, out=run.out.resolve()) for run in runs]  # workers have other folders
    left = [run for run in runs if not _is_finished(run)]
    datasets = {dataset_name(run.protocol.dataset) for run in left}
    failed: dict[str, str] = {}
    with make_engine(engine, workers, address) as chosen:
        loaded = {name: load_dataset(name, data_dir) for name in sorted(datasets)}
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
    except SpinalError:  # damaged, or other settings: when its turn comes, it fails, and says why
        return False
