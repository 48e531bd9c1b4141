"""Speed and memory of acquisition functions: spinal, other libraries, and the bare arithmetic.

    python benchmarks/acquisition.py --batchbald PYTHON --skactiveml PYTHON --baal PYTHON

A library whose Python is not given is left out. Every measurement has a process of its own, with
one thread; time is that of the CPU, memory the growth of the peak over what is resident before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from circuits import PEERS, ROOT, processor

SPINAL, REDUX, SKACTIVEML, BAAL = "spinal", "batchbald_redux", "scikit-activeml", "baal"
FLOOR = "matrix-vector products"
MODULES = {
    SPINAL: "acquisition_spinal",
    REDUX: "acquisition_batchbald",
    SKACTIVEML: "acquisition_skactiveml",
    BAAL: "acquisition_baal",
    FLOOR: "acquisition_spinal",
}
#: Typical of MC Dropout, and samples that disagree about nearly everything; see acquisition_data.
USUAL, WILD = 0.3, 1.0

Case = dict[str, Any]


def batchbald(n: int, k: int, b: int, doubt: float = USUAL, labellings: int = 10_000) -> Case:
    """BatchBALD with ten classes."""
    return {
        "what": "batchbald", "n": n, "k": k, "c": 10, "b": b, "labellings": labellings,
        "doubt": doubt,
    }  # fmt: skip


#: Cases, and who takes part beside spinal.
COMPARED: list[tuple[Case, list[str]]] = [
    (batchbald(2_000, 20, 5), [REDUX, SKACTIVEML, BAAL]),
    (batchbald(10_000, 50, 10), [REDUX]),
    ({"what": "frank_wolfe", "n": 40_000, "j": 100, "b": 1_000}, [FLOOR]),
    ({"what": "k_center", "n": 60_000, "d": 512, "b": 1_000}, []),
    ({"what": "badge", "n": 60_000, "d": 128, "c": 10, "b": 1_000}, []),
    # MC Dropout scores, N = 10,000, K = 100, belong here once they are compared.
]
SCALING: list[Case] = [
    *(batchbald(n, 50, 10) for n in (5_000, 10_000, 20_000, 40_000)),
    *(batchbald(10_000, k, 10) for k in (25, 100, 200)),
    *(batchbald(30_000, 50, b) for b in (10, 50, 100, 200)),
    batchbald(30_000, 200, 200),
    batchbald(30_000, 50, 200, doubt=WILD),
]


def measure(python: str, name: str, case: Case, repeats: int = 1) -> dict[str, Any]:
    """Run one case once, or several times if it is quick."""
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(threads, "1")}
    if MODULES[name] == MODULES[SPINAL]:
        environment["PYTHONPATH"] = str(ROOT)
    asked = {**case, "repeats": repeats, "what": "matvec" if name == FLOOR else case["what"]}
    run = subprocess.run(
        [python, str(PEERS / "acquisition_worker.py"), MODULES[name], json.dumps(asked)],
        env=environment, text=True, capture_output=True,
    )  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"{name} failed at {describe(case)}:\n{run.stderr[-2000:]}")
    answer = json.loads(run.stdout)
    answer["median"] = statistics.median(answer["seconds"])
    print(describe(case), name, f"{answer['median']:.2f} s", sep="  ", file=sys.stderr)
    return answer


def assert_parity(pythons: dict[str, str]) -> dict[str, float]:
    """The same batch and scores as the peers where all are exact; the greatest differences."""
    case = batchbald(300, 12, 4, labellings=100_000)
    ours = measure(pythons[SPINAL], SPINAL, case)
    differences = {}
    for name in (REDUX, SKACTIVEML):
        if name in pythons:
            theirs = measure(pythons[name], name, case)
            difference = np.abs(np.subtract(ours["scores"], theirs["scores"])).max()
            assert ours["picks"] == theirs["picks"], f"{name} picks another batch"
            assert difference < 1e-4, f"{name} differs by {difference} in scores"
            differences[name] = float(difference)
    return differences


def compare(pythons: dict[str, str], repeats: int) -> Iterator[dict[str, Any]]:
    """Rows of the comparison, with sampled scores checked against the first peer's."""
    for case, peers in COMPARED:
        names = [SPINAL, *(name for name in peers if name in pythons)]
        results = {name: measure(pythons[name], name, case, repeats) for name in names}
        scores = [result["scores"] for result in results.values() if "scores" in result]
        for other in scores[1:]:
            # Both are greedy on estimates: the information of the batches agrees, not each pick.
            assert abs(scores[0][-1] - other[-1]) < 0.1, f"{scores[0][-1]} and {other[-1]} nats"
        yield {"case": case, **numbers(results)}


def numbers(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is kept of the results."""
    return {
        "seconds": {name: result["median"] for name, result in results.items()},
        "all": {name: result["seconds"] for name, result in results.items()},
        "memory": {name: result["memory"] for name, result in results.items()},
        "information": {
            name: result["scores"][-1] for name, result in results.items() if "scores" in result
        },
        "versions": {name: result["versions"] for name, result in results.items()},
    }


def judge(rows: list[dict[str, Any]], scaling: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Targets: met, not met, or not measured."""
    by = {describe(row["case"]): row for row in [*scaling, *rows]}
    large, huge = by[describe(batchbald(10_000, 50, 10))], by[describe(batchbald(30_000, 50, 200))]
    coreset = next(row for row in rows if row["case"]["what"] == "frank_wolfe")

    def target(text: str, value: float | None, bound: float, at_least: bool) -> dict[str, Any]:
        met = None if value is None else value >= bound if at_least else value <= bound
        return {"target": text, "value": value, "met": met}

    ours, theirs = large["seconds"][SPINAL], large["seconds"].get(REDUX)
    return [
        target(
            f"BatchBALD, N = 10,000, K = 50, b = 10: at least 8 x faster than {REDUX}",
            theirs and theirs / ours, 8, True,
        ),
        target(
            "the same: peak memory under 1,000 MB", large["memory"][SPINAL], 1000, False
        ),
        target(
            "BatchBALD, b = 200 of 30,000: within 600 s", huge["seconds"][SPINAL], 600, False
        ),
        target(
            "ACS-FW, N = 40,000, J = 100, b = 1,000: at most 3 x its matrix-vector products",
            coreset["seconds"][SPINAL] / coreset["seconds"][FLOOR], 3, False,
        ),
    ]  # fmt: skip


def describe(case: Case) -> str:
    """A case in words."""
    titles = {
        "batchbald": "BatchBALD", "frank_wolfe": "ACS-FW", "k_center": "k-center", "badge": "BADGE"
    }  # fmt: skip
    sizes = [f"{key.upper()} = {case[key]:,}" for key in "nkcjd" if key in case]
    wild = ", samples that disagree" if case.get("doubt") == WILD else ""
    return f"{titles[case['what']]}, {', '.join(sizes)}, b = {case['b']:,}{wild}"


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The comparison in Markdown."""
    yield "| case | contender | seconds | x spinal | peak MB | nats |"
    yield "|---|---|--:|--:|--:|--:|"
    for row in rows:
        ours = row["seconds"][SPINAL]
        for name, seconds in row["seconds"].items():
            nats = row["information"].get(name)
            cells = [
                describe(row["case"]) if name == SPINAL else "",
                f"**{name}**" if name == SPINAL else name,
                f"{seconds:,.2f}",
                "" if name == SPINAL else _ratio(seconds / ours),
                f"{row['memory'][name]:,.0f}",
                "" if nats is None else f"{nats:.3f}",
            ]
            yield "| " + " | ".join(cells) + " |"


def _ratio(x: float) -> str:
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def report(record: dict[str, Any]) -> str:
    """All that was found, in Markdown."""
    words = {True: "met", False: "NOT met", None: "not measured"}
    targets = [
        f"- {target['target']}: {words[target['met']]}"
        + ("" if target["value"] is None else f" ({target['value']:,.3g})")
        for target in record["targets"]
    ]
    parity = [f"{name} {value:.1g}" for name, value in record["parity"].items()]
    return "\n".join(
        [
            *table(record["rows"]),
            "",
            *(f"{name}: left out, no Python given for it." for name in record["left_out"]),
            *targets,
            "",
            "## Scaling of BatchBALD",
            "",
            *table(record["scaling"]),
            "",
            "Nats: what the labels of the batch tell about the model, by each library's estimate.",
            "Where a point would add less than a hundredth of the first, the posterior samples are",
            "used up: spinal goes on as with another batch, whose nats are added. Parity in the",
            f"exact regime, greatest difference in nats: {', '.join(parity) or 'no peer'}.",
            f"One thread of {record['cpu']}, process-CPU time, median of {record['repeats']} where",
            f"a run takes less than 5 s. Measured in {record['took']:.0f} s at commit "
            f"{record['commit']}.",
        ]
    )


def commit() -> str:
    """The commit that was measured, and whether the package had changes on top of it."""

    def git(*arguments: str) -> str:
        run = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
        return run.stdout.strip()

    changed = git("status", "--porcelain", "--", "spinal/acquisition")
    return git("rev-parse", "--short", "HEAD") + (" with uncommitted changes" if changed else "")


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description="Speed and memory of acquisition functions.")
    for flag in ("batchbald", "skactiveml", "baal"):
        variable = f"SPINAL_{flag.upper()}_PYTHON"
        parser.add_argument(f"--{flag}", default=os.environ.get(variable), help=f"or {variable}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", type=Path, help="write the table to SAVE.md and SAVE.json")
    options = parser.parse_args()

    given = {REDUX: options.batchbald, SKACTIVEML: options.skactiveml, BAAL: options.baal}
    pythons = {SPINAL: sys.executable, FLOOR: sys.executable}
    pythons |= {name: python for name, python in given.items() if python}

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the workers inherit it
    start, measured_commit = time.time(), commit()
    parity = assert_parity(pythons)
    rows = list(compare(pythons, options.repeats))
    scaling = [
        {"case": case, **numbers({SPINAL: measure(sys.executable, SPINAL, case)})}
        for case in SCALING
    ]
    flags = [f for f in ("batchbald", "skactiveml", "baal") if getattr(options, f)]
    record = {
        "command": " ".join(
            ["python benchmarks/acquisition.py", *(f"--{f} PYTHON" for f in flags)]
        ),
        "commit": measured_commit,
        "cpu": processor(),
        "repeats": options.repeats,
        "took": time.time() - start,
        "left_out": [name for name in given if not given[name]],
        "parity": parity,
        "targets": judge(rows, scaling),
        "rows": rows,
        "scaling": scaling,
    }
    print(report(record))
    if options.save:
        options.save.parent.mkdir(parents=True, exist_ok=True)
        heading = f"# Speed and memory of acquisition functions\n\n`{record['command']}`\n\n"
        options.save.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        options.save.with_suffix(".md").write_text(heading + report(record) + "\n")


if __name__ == "__main__":
    main()
