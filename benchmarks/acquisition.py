r"""Speed and memory of acquisition functions: spinal, other libraries, and the bare arithmetic.

    python benchmarks/acquisition.py --batchbald PYTHON --skactiveml PYTHON --baal PYTHON \
        --modal PYTHON --save results/benchmarks/acquisition

A library whose Python is not given is left out. Every measurement runs in its own process with one
thread. Time is CPU time; memory is the peak minus the resident memory before. With
``--only mc_dropout k_center`` only these are measured; the other results are those saved before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acquisition_cases import (
    BAAL,
    FLAGS,
    FLOOR,
    MODAL,
    REDUX,
    SKACTIVEML,
    SPINAL,
    WHOLE,
    WILD,
    Case,
    badge,
    batchbald,
    choosing,
    describe,
    herding,
    k_center,
    mc_dropout,
    measure,
)
from acquisition_parity import assert_parity
from machine import commit, processor

#: What a change of makes a measurement another one.
MEASURED = ("spinal/acquisition", "spinal/networks", "spinal/posteriors")
#: Those that are measured in a large pool of pretrained features alone.
CHOOSING = ("uncertainty_herding", "bait", "drop_query")
#: Cases, and who takes part beside spinal.
COMPARED: list[tuple[Case, list[str]]] = [
    (batchbald(2_000, 20, 5), [REDUX, SKACTIVEML, BAAL]),
    (batchbald(10_000, 50, 10), [REDUX]),
    ({"what": "frank_wolfe", "n": 40_000, "j": 100, "b": 1_000}, [FLOOR]),
    (mc_dropout(10_000, 100), [BAAL, MODAL]),
    (k_center(10_000, 512, 100), [SKACTIVEML]),
    (k_center(60_000, 512, 1_000), []),
    (badge(10_000, 128, 100), [SKACTIVEML]),
    (badge(30_000, 128, 1_000), []),
    (badge(60_000, 128, 1_000), []),
    (herding(5_000, 1_280, 100, sample=5_000), [WHOLE]),
    (herding(100_000, 1_280, 10), []),
    (herding(100_000, 1_280, 100), []),
    *((choosing(what, 100_000, 1_280, 10), []) for what in CHOOSING),
]
SCALING: list[Case] = [
    *(batchbald(n, 50, 10) for n in (5_000, 10_000, 20_000, 40_000)),
    *(batchbald(10_000, k, 10) for k in (25, 100, 200)),
    *(batchbald(30_000, 50, b) for b in (10, 50, 100, 200)),
    batchbald(30_000, 200, 200),
    batchbald(30_000, 50, 200, doubt=WILD),
]


def compare(pythons: dict[str, str], repeats: int, wanted: set[str]) -> Iterator[dict[str, Any]]:
    """Rows of the comparison, with sampled scores checked against the first peer's."""
    for case, peers in COMPARED:
        if case["what"] not in wanted:
            continue
        names = [SPINAL, *(name for name in peers if name in pythons)]
        results = {name: measure(pythons[name], name, case, repeats) for name in names}
        scores = [result["scores"] for result in results.values() if "scores" in result]
        for other in scores[1:]:
            # Both are greedy on estimates: the information of the batches agrees, not each pick.
            assert abs(scores[0][-1] - other[-1]) < 0.1, f"{scores[0][-1]} and {other[-1]} nats"
        yield {"case": case, "commit": commit(*MEASURED), **numbers(results)}


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
    dropout = by.get(describe(mc_dropout(10_000, 100)), {}).get("seconds", {})
    half, whole = (
        by.get(describe(badge(n, 128, 1_000)), {}).get("memory", {}).get(SPINAL)
        for n in (30_000, 60_000)
    )

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
        *(
            target(
                f"MC Dropout scores, N = 10,000, K = 100: at least 20 x faster than {name}",
                dropout[name] / dropout[SPINAL] if name in dropout else None, 20, True,
            )
            for name in (BAAL, MODAL)
        ),
        target(
            "BADGE, N = 60,000, C = 10, D = 128: peak MB, of 307 that N x C x D floats would take",
            whole, 150, False,
        ),
        target(
            "BADGE: MB by which that is more than with N = 30,000, of 154 for N x C x D floats",
            None if whole is None or half is None else whole - half, 75, False,
        ),
        *(
            target(
                f"{describe(case)}: peak under 1,000 MB above the pool's 512",
                by.get(describe(case), {}).get("memory", {}).get(SPINAL), 1000, False,
            )
            for case in (
                herding(100_000, 1_280, 10),
                *(choosing(what, 100_000, 1_280, 10) for what in CHOOSING),
            )
        ),
    ]  # fmt: skip


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
    parity = {
        what: ", ".join(f"{name} {value:.1g}" for name, value in found.items()) or "no peer"
        for what, found in {
            "batchbald": {},
            "mc_dropout": {},
            "badge": {},
            **record["parity"],
        }.items()
    }
    commits = sorted({row["commit"] for row in [*record["rows"], *record["scaling"]]})
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
            "used up: spinal goes on as with another batch, whose nats are added.",
            "",
            "Parity, asserted first. BatchBALD in the exact regime: the same picks; greatest",
            f"difference in nats {parity['batchbald']}. MC Dropout, each with its own masks: 1 -",
            f"correlation of scores {parity['mc_dropout']}. k-center and max-herding: the same",
            "picks. BADGE: the",
            "same first pick; the mean squared distance that is left after 50 picks is greater, by",
            f"a share of {parity['badge']}.",
            "",
            f"One thread of {record['cpu']}, process-CPU time, median of {record['repeats']} where",
            f"a run takes less than 5 s. Measured at commit {', '.join(commits)}.",
        ]
    )


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description="Speed and memory of acquisition functions.")
    for flag in FLAGS:
        variable = f"SPINAL_{flag.upper()}_PYTHON"
        parser.add_argument(f"--{flag}", default=os.environ.get(variable), help=f"or {variable}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", type=Path, help="write the table to SAVE.md and SAVE.json")
    kinds = list(dict.fromkeys(case["what"] for case, _ in COMPARED))
    parser.add_argument(
        "--only", nargs="+", choices=kinds, help="take the rest from SAVE.json, as it was"
    )
    options = parser.parse_args()
    if options.only and not options.save:
        parser.error("--only needs --save, where the rest is")

    given = {name: getattr(options, flag) for flag, name in FLAGS.items()}
    pythons = dict.fromkeys((SPINAL, FLOOR, WHOLE), sys.executable)
    pythons |= {name: python for name, python in given.items() if python}
    wanted = set(options.only or kinds)
    before = json.loads(options.save.with_suffix(".json").read_text()) if options.only else {}

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the workers inherit it
    parity = before.get("parity", {}) | assert_parity(pythons, wanted)
    rows = list(compare(pythons, options.repeats, wanted))
    new = {describe(row["case"]): row for row in rows}
    kept = {describe(row["case"]): row for row in before.get("rows", [])}
    both = {**kept, **new}
    rows = [both[name] for case, _ in COMPARED if (name := describe(case)) in both]
    scaling = before.get("scaling", [])
    if "batchbald" in wanted:
        scaling = [
            {
                "case": case,
                "commit": commit(*MEASURED),
                **numbers({SPINAL: measure(sys.executable, SPINAL, case)}),
            }
            for case in SCALING
        ]
    used = [flag for flag, name in FLAGS.items() if any(name in row["seconds"] for row in rows)]
    record = {
        "command": " ".join(["python benchmarks/acquisition.py", *(f"--{f} PYTHON" for f in used)]),
        "cpu": processor(),
        "repeats": options.repeats,
        "left_out": [name for flag, name in FLAGS.items() if flag not in used],
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
