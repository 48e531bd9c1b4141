"""Classifiers side by side on many kinds of features, with few labels drawn at random.

The sets are in ``suite.toml``, half to develop on, half to report on; each as it is, and with a
long tail; see ``benchmarks/README.md``. A result is a line of ``results.jsonl``. What is there is
not computed again, so the run can be stopped and started.

    python -m benchmarks.anywhere --half develop --out results/anywhere --cache DIR
    python -m benchmarks.anywhere --out results/anywhere --report
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from benchmarks.anywhere.cells import LABELS, TAILS, CellName, cell_names, make_cell
from benchmarks.anywhere.contenders import CONTENDERS, FOR_TABLES
from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.report import write_report
from benchmarks.anywhere.sets import Points, SuiteEntry, read_suite
from benchmarks.machine import commit
from benchmarks.results import Results

#: Cheap sets first.
ORDER = [*KINDS, "lenet", "vgg"]


def main() -> None:
    """Compute what is missing, or write the report."""
    options = _parse()
    if options.report:
        write_report(options.out)
        return
    results = Results(options.out / "results.jsonl", ("set", "tail", "labels", "seed", "contender"))
    jobs = list(_jobs(options, results))
    print(f"{len(jobs)} cells", flush=True)
    common = {"commit": commit("spinal", "benchmarks/anywhere")}
    for lines in _results(jobs, options):
        results.add(line | common for line in lines)
        for line in lines:
            print(line, flush=True)


Job = tuple[SuiteEntry, CellName, list[str]]


def _jobs(options: argparse.Namespace, results: Results) -> Iterator[Job]:
    """Cells with the contenders that are missing, cheap ones first."""
    entries = read_suite(options.half, options.only)
    for entry in sorted(entries, key=lambda entry: ORDER.index(entry.features)):
        points = _points(entry, options.cache, options.text_encoder)
        for name in cell_names(entry, points, options.labels, options.tails, options.seeds):
            wanted = [
                contender
                for contender in options.contenders
                if (contender not in FOR_TABLES or entry.features == "table")
                and asdict(name) | {"contender": _renamed(contender, options)} not in results
            ]
            if wanted:
                yield entry, name, wanted


def _results(jobs: list[Job], options: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    if options.workers == 1:
        yield from (_run(job, options) for job in jobs)
        return
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as workers:
        futures = [workers.submit(_run, job, options) for job in jobs]
        yield from (future.result() for future in as_completed(futures))


def _run(job: Job, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of a cell, one for each contender."""
    entry, name, contenders = job
    torch.set_num_threads(1)
    cell, truth = make_cell(entry, _points(entry, options.cache, options.text_encoder), name)
    results = []
    with threadpool_limits(1):
        start = time.process_time()
        if cell.network != "dense" and contenders != ["spn"]:
            cell.features  # noqa: B018  # trains the network, for all but the SPN
        shared = time.process_time() - start
        for contender in contenders:
            start = time.process_time()
            probs = CONTENDERS[contender](cell)
            seconds = time.process_time() - start + (shared if contender != "spn" else 0)
            values = measure(probs, truth.labels, truth.weights)
            fields = {"half": entry.half, "classes": cell.n_classes}
            results.append(
                asdict(name)
                | {"contender": _renamed(contender, options)}
                | fields
                | {key: round(value, 5) for key, value in values.items()}
                | {"seconds": round(seconds, 3)}
            )
    return results


@lru_cache(maxsize=1)
def _points(entry: SuiteEntry, cache: Path, encoder: Path | None) -> Points:
    return load_points(entry, cache, encoder)


def _renamed(contender: str, options: argparse.Namespace) -> str:
    return options.spn_name if contender == "spn" else contender


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anywhere")
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of results.jsonl and of the report")
    add("--report", action="store_true", help="write the page and the pictures, and no more")
    add("--half", choices=["develop", "report"], default="develop")
    add("--only", nargs="*", metavar="SET", help="sets, such as iris or newsgroups--sentences")
    add("--contenders", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    add("--labels", nargs="*", type=int, default=list(LABELS))
    add("--tails", nargs="*", type=int, default=list(TAILS))
    add("--seeds", nargs="*", type=int, default=[0, 1, 2])
    add("--workers", type=int, default=1, help="processes, each with one thread")
    add("--cache", type=Path, default=Path("features"), help="folder where features are kept")
    add("--text-encoder", type=Path, help="folder with tokenizer.json and onnx/model.onnx")
    add("--spn-name", default="spn", help="the name of the SPN of this commit in the results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
