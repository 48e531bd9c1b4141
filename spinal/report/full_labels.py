"""The report of `spinal.experiments.full_labels`: one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spinal.report.measurements import StoredSeed, origin, stored_seeds, write_pages
from spinal.report.numbers import count, decimal, with_deviation
from spinal.report.parts import Section, Table
from spinal.report.statistics import deviation
from spinal.runs import read_lines

#: From the paper: mean and deviation in percent of SPN-CNN at 1,000 labels of MNIST, and the
#: accuracy that it cites for SPNs on pixels.
_PAPER = {"mnist": ("97.6 ± 0.045", "about 98 (cited)")}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The seeds of the SPN on pixels, and the accuracies of SPN-CNN with few labels."""

    seeds: list[StoredSeed]
    chosen: list[dict[str, Any]]

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return self.seeds[0].title

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the experiment."""
        return self.seeds[0].settings["experiment"]


def finished(folder: str | Path) -> list[Comparison]:
    """The results under ``folder``, by experiment."""
    return [
        Comparison(seeds, read_lines(Path(folder) / name / "chosen.jsonl"))
        for name, seeds in stored_seeds(folder, 2).items()
    ]


def write_full_labels_report(folder: str | Path, out: str | Path) -> list[Path]:
    """Write a page on all finished seeds under ``folder``; return the paths of its files.

    The same seeds give the same files, byte for byte.
    """
    chapters = []
    for results in finished(folder):
        name = results.seeds[0].experiment
        sections = [
            Section("Accuracy", _text(results), [comparison(results)]),
            origin(results.seeds, f"spinal full-mnist {name}"),
        ]
        chapters.append((name.replace("@", "-"), results.title, sections))
    return write_pages(chapters, "Few chosen labels against all", Path(out))


def comparison(results: Comparison) -> Table:
    """One row per model and number of labels."""
    rows: list[dict[str, Any]] = []
    if results.chosen:
        protocol, labels = results.chosen[0]["protocol"], results.chosen[0]["labels"]
        # Older files do not name the function: it was max entropy.
        picked = results.chosen[0].get("acquisition", "max-entropy").replace("-", " ")
        common = {"labels": labels, "picked": picked, "source": f"runs of {protocol}"}
        for model, key in (("SPN-CNN", "accuracy"), ("its CNN", "network_accuracy")):
            rows.append({"model": model, **common, **_over([line[key] for line in results.chosen])})
    for part, picked in ((0, "all"), (1, "at random")):
        parts = [seed.parts[part] for seed in results.seeds]
        rows.append({
            "model": "SPN on pixels", "labels": parts[0]["labels"], "picked": picked,
            "source": "trained here", **_over([p["accuracy"] for p in parts]),
            "nll": float(np.mean([p["nll"] for p in parts])),
            "ece": float(np.mean([p["ece"] for p in parts])),
            "seconds": float(np.mean([p["seconds"] for p in parts])),
        })  # fmt: skip
    data = pd.DataFrame(rows)
    for column in ("nll", "ece", "seconds"):
        data[column] = data.get(column, np.nan)
    data["paper"] = [_paper(results, row) for row in rows]
    accuracies = zip(data["accuracy"], data["sd"], strict=True)
    shown = pd.DataFrame({
        "model": data["model"], "labels picked": data["picked"],
        "labels": data["labels"].map(count), "seeds": data["seeds"].astype(str),
        "accuracy": [with_deviation(mean, sd) for mean, sd in accuracies],
        "paper": data["paper"],
        "NLL": data["nll"].map(decimal), "ECE": data["ece"].map(decimal),
        "s to train": data["seconds"].map(count),
    })  # fmt: skip
    caption = (
        "Accuracy on the test set in percent, mean and standard deviation over seeds. The last "
        "line, and our SPN on pixels itself, are not the paper's: for all labels it cites others."
    )
    return Table("accuracy", caption, data, shown, words=2)


def _over(values: list[float]) -> dict[str, Any]:
    mean, spread = float(np.mean(values)), deviation(values)
    return {"seeds": len(values), "accuracy": mean, "sd": spread}


def _paper(results: Comparison, row: dict[str, Any]) -> str:
    few, all_labels = _PAPER.get(results.settings["dataset"], ("", ""))
    if row["model"] == "SPN-CNN":
        return few
    return all_labels if row["picked"] == "all" else ""


def _text(results: Comparison) -> list[str]:
    parameters = count(results.seeds[0].parts[0]["parameters"])
    text = [
        f"The SPN on pixels is a DGC-SPN with {parameters} parameters on the grid of pixels: no "
        "network below it, and no augmentation.",
    ]
    if results.settings["dataset"] == "mnist":
        text.append(
            "The paper's text has 97.6 % for SPN-CNN; its table of the same experiment has 97.77 %."
        )
    if results.chosen and "@" in results.chosen[0]["protocol"]:
        text.append(
            f"SPN-CNN is from runs of {results.chosen[0]['protocol']}, with a smaller network and "
            "pool than the paper's."
        )
    if not results.chosen:
        text.append("There are no runs of SPN-CNN to compare with yet.")
    return text
