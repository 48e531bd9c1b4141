"""Commands and versions: versions and machines, of runs that kept them and of runs that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from spinal.experiments import Protocol
from spinal.experiments.protocol import tomllib
from spinal.report.experiment import experiments
from spinal.report.origin import section
from spinal.report.parts import Table
from spinal.report.read import stored_runs
from tests.report.made import write_runs

PROTOCOL = Protocol("tiny", "Tiny", initial=20, batch=10, rounds=2, test=50)
NOW = {
    "versions": {
        "spinal": "0.2", "commit": "0123456789abcdef", "changed": False, "python": "3.11",
        "torch": "2.13", "numpy": "2.4",
    },
    "machine": {"system": "Linux", "processor": "Fast CPU"},
}  # fmt: skip
CHANGED = {**NOW, "versions": {**NOW["versions"], "changed": True}}


def keep(folder: Path, method: str, seed: int, tables: dict[str, Any]) -> None:
    path = folder / "tiny" / method / f"seed-{seed}" / "run.toml"
    path.write_text(tomli_w.dumps({**tomllib.loads(path.read_text()), **tables}))


def tables(folder: Path) -> dict[str, Table]:
    [experiment] = experiments(stored_runs(folder))
    return {part.name: part for part in section(experiment).parts if isinstance(part, Table)}


def test_what_is_alike_is_said_once(tmp_path: Path) -> None:
    write_runs(tmp_path, PROTOCOL, {"random": 1.0, "deterministic": 1.1}, [0, 1])
    for seed in (0, 1):
        keep(tmp_path, "random", seed, NOW)
        keep(tmp_path, "deterministic", seed, NOW if seed else CHANGED)
    found = tables(tmp_path)
    assert found["made-with"].data.to_numpy().tolist() == [
        ["spinal", "0.2"], ["python", "3.11"], ["torch", "2.13"], ["numpy", "2.4"],
        ["processor", "Fast CPU"], ["system", "Linux"],
    ]  # fmt: skip
    runs = found["runs"]
    assert list(runs.shown.columns) == ["method", "seeds", "labels", "commit"]
    commits = runs.data.set_index("method")["commit"]
    assert commits["random"] == "012345678"
    assert commits["deterministic"] == "012345678, 012345678 with changes"
    assert set(runs.data["torch"]) == {"2.13"}


def test_rounds_that_something_else_made_are_counted(tmp_path: Path) -> None:
    write_runs(tmp_path, PROTOCOL, {"random": 1.0}, [0])
    before = {"rounds": 1, "versions": {"python": "3.10"}, "machine": {"system": "Linux"}}
    keep(tmp_path, "random", 0, {**NOW, "earlier": [before]})
    row = tables(tmp_path)["runs"].data.iloc[0]
    assert row["python"] == "3.10, 3.11"
    assert row["commit"] == "012345678, not kept"
    assert row["system"] == "Linux"


def test_runs_that_kept_less_are_readable(tmp_path: Path) -> None:
    write_runs(tmp_path / "some", PROTOCOL, {"random": 1.0}, [0])
    assert tables(tmp_path / "some")["made-with"].data.to_numpy().tolist() == [
        ["python", "3.11"], ["system", "Linux"],
    ]  # fmt: skip
    write_runs(tmp_path / "none", PROTOCOL, {"random": 1.0}, [0], old=True)
    assert set(tables(tmp_path / "none")) == {"runs"}
