"""The grid of runs: several protocols, methods and seeds, executed in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spinal.data import Dataset, load_dataset
from spinal.errors import SpinalError, suggestion
from spinal.experiments.engines import make_engine
from spinal.experiments.progress import Progress
from spinal.experiments.protocol import Protocol
from spinal.experiments.runs import MakeCallbacks, Run
from spinal.methods import METHODS, find_method
from spinal.registry import is_own


def make_runs(
    protocols: Sequence[Protocol],
    methods: Sequence[str],
    acquisitions: Sequence[str],
    seeds: Sequence[int] | None,
    out: Path,
) -> list[Run]:
    """All valid combinations, ordered by seed, so that all methods advance evenly.

    The method ``all`` stands for all methods, each with the acquisition functions that go with it.
    If none are given, each method uses those of the protocol that go with it, or otherwise its
    default. A method without a choice (Random) occurs once.

    Args:
        protocols: the protocols to run.
        methods: names of methods, or ``all``.
        acquisitions: names of acquisition functions; empty for the defaults.
        seeds: None for `Protocol.default_seeds`.
        out: folder of the runs.

    Raises:
        SpinalError: for a method or an acquisition function that does not exist, or a method named
            with an acquisition function that does not go with it; for two protocols of the same
            name.
    """
    by_protocol = [(p, p.default_seeds if seeds is None else seeds) for p in protocols]
    pairs = left_out(methods, acquisitions)
    if "all" in methods:
        methods = list(METHODS)
    runs = []
    for seed in dict.fromkeys(seed for _, its_seeds in by_protocol for seed in its_seeds):
        for protocol in (p for p, its_seeds in by_protocol if seed in its_seeds):
            runs += [
                Run(protocol, method, name, seed, out)
                for method in methods
                for name in _acquisitions(protocol, method, acquisitions, pairs)
            ]
    unique = {run.folder: run for run in runs}
    for run in runs:
        if run != unique[run.folder]:
            raise SpinalError(
                f"two different protocols are named {run.protocol.name!r}, and their runs would "
                "share a folder: rename one of the files"
            )
    return list(unique.values())


def left_out(methods: Sequence[str], acquisitions: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of method and acquisition function that ``all`` leaves out, as they do not match.

    Raises:
        SpinalError: for an acquisition function that goes with no method.
    """
    if "all" not in methods:
        return []
    for name in acquisitions:
        if not any(_match(method, name) for method in METHODS):
            names = {choice for method in METHODS.values() for choice in method.choices}
            raise SpinalError(f"no method goes with {name!r}: {suggestion(name, sorted(names))}")
    return [
        (method, name)
        for method in METHODS
        for name in acquisitions
        if len(find_method(method).choices) > 1 and not _match(method, name)
    ]


def _match(method: str, acquisition: str) -> bool:
    return acquisition in find_method(method).choices or is_own("acquisition", acquisition)


def _acquisitions(
    protocol: Protocol,
    method: str,
    requested: Sequence[str],
    excluded: Sequence[tuple[str, str]],
) -> Sequence[str]:
    """The acquisition functions that a method is run with."""
    default, choices = find_method(method).acquisition, find_method(method).choices
    if len(choices) == 1:
        return [default]
    if not requested:
        return [name for name in protocol.acquisition_names if _match(method, name)] or [default]
    requested = [name for name in requested if (method, name) not in excluded]
    for name in requested:
        if not _match(method, name):
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
    callbacks: MakeCallbacks | None = None,
) -> None:
    """Execute the runs that are not finished, ``workers`` in parallel.

    A run that fails does not stop the others. Each finished round is on disk: after an
    interruption, the same call resumes, even with another engine.

    Args:
        runs: the runs, in the order in which to start them.
        workers: number of parallel runs; 0 for one per core.
        data_dir: the first folder to search for datasets.
        engine: ``joblib`` for this machine, ``ray`` for a cluster.
        address: address of the Ray cluster; see `spinal.experiments.engines.RayEngine`.
        dataset: your own data for all runs, instead of the datasets that the protocols name; see
            `spinal.data.make_dataset`.
        callbacks: a function that makes the callbacks of a run, such as
            ``lambda run: [MLflow(run.title)]``. It is called in the process that executes the run,
            also when the run is resumed.

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
    # The user's own data may have changed since a run was started, or even finished.
    prints = {key: own.fingerprint() for key, own in loaded.items()}
    runs = [replace(run, fingerprint=prints.get(run.protocol.data_key)) for run in runs]
    left = [run for run in runs if not _is_finished(run)]
    failed: dict[str, str] = {}
    with make_engine(engine, workers, address) as chosen:
        for key in sorted({run.protocol.data_key for run in left} - loaded.keys()):
            loaded[key] = load_dataset(key, data_dir)
        with Progress(runs, chosen.workers) as progress:
            for run, message in chosen.execute(left, loaded, callbacks):
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
