"""The cases for the benchmark of acquisition functions, and one measurement of one contender."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from typing import Any

from circuits import PEERS, ROOT

SPINAL, REDUX, SKACTIVEML = "spinal", "batchbald_redux", "scikit-activeml"
BAAL, MODAL = "baal", "modAL"
#: Options that name a Python, and the library that it has.
FLAGS = {"batchbald": REDUX, "skactiveml": SKACTIVEML, "baal": BAAL, "modal": MODAL}
FLOOR = "matrix-vector products"
WHOLE = "whole kernel, NumPy"
MODULES = {
    SPINAL: "acquisition_spinal",
    REDUX: "acquisition_batchbald",
    SKACTIVEML: "acquisition_skactiveml",
    BAAL: "acquisition_baal",
    MODAL: "acquisition_modal",
    FLOOR: "acquisition_spinal",
    WHOLE: "acquisition_numpy",
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


def mc_dropout(n: int, k: int) -> Case:
    """Scores (BALD) by MC Dropout of a LeNet."""
    return {"what": "mc_dropout", "n": n, "k": k}


def k_center(n: int, d: int, b: int) -> Case:
    """k-center greedy from one labelled point."""
    return {"what": "k_center", "n": n, "d": d, "b": b}


def badge(n: int, d: int, b: int) -> Case:
    """BADGE with ten classes."""
    return {"what": "badge", "n": n, "d": d, "c": 10, "b": b}


def herding(n: int, d: int, b: int, sample: int = 2_000) -> Case:
    """Max-herding without labels; ``sample`` points of the pool are to be covered."""
    return {"what": "herding", "n": n, "d": d, "b": b, "sample": sample}


def choosing(what: str, n: int, d: int, b: int) -> Case:
    """Uncertainty herding, BAIT or DropQuery, with ten classes and 100 labelled points."""
    samples = {"k": 20} if what == "drop_query" else {}
    return {"what": what, "n": n, "d": d, "c": 10, "b": b, **samples}


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


def describe(case: Case) -> str:
    """A case in words."""
    titles = {
        "batchbald": "BatchBALD", "frank_wolfe": "ACS-FW", "k_center": "k-center",
        "badge": "BADGE", "mc_dropout": "MC Dropout, LeNet", "herding": "max-herding",
        "uncertainty_herding": "uncertainty herding", "bait": "BAIT", "drop_query": "DropQuery",
    }  # fmt: skip
    sizes = [f"{key.upper()} = {case[key]:,}" for key in "nkcjd" if key in case]
    wild = ", samples that disagree" if case.get("doubt") == WILD else ""
    batch = f", b = {case['b']:,}" if "b" in case else ""
    covered = f", {case['sample']:,} to be covered" if "sample" in case else ""
    return f"{titles[case['what']]}, {', '.join(sizes)}{batch}{covered}{wild}"
