"""Comparison of recipes for the SPN by their learning curves.

MNIST and Fashion-MNIST, with a pool of 6,000 points, and 20 labels, then 10 per round up to 200.
All recipes have the same initial sets, networks and test points, so that only the chosen points
(and the predicting model) differ. Random and Deterministic are included. Finished runs are skipped.

    python benchmarks/picking.py --out runs/picking --data-dir DIR
    python benchmarks/picking.py --out runs/picking --data-dir DIR --summary results/picking
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats
from scipy.spatial.distance import cdist

from spinal.data import Dataset, load_dataset
from spinal.experiments.grid import make_runs, run_grid
from spinal.experiments.protocol import NetworkProtocol, Protocol
from spinal.experiments.runs import Run
from spinal.report.read import area_under_curve
from spinal.runs import read_rounds

DATASETS = ("mnist", "fashion-mnist")
ACQUISITIONS = ("max-entropy", "variation-ratio")
ROUNDS = 18
#: The recipes in the picture: those that were run with both acquisition functions.
CURVES = ("soft", "sharp", "narrow", "short")

_SHORT = {
    "start": "random", "units": "each", "scale": 1.0, "learn_scale": True, "weight_spread": 1.0,
    "balance": 0.0,
    "fit": {
        "generative": 0.0, "learning_rate": 0.03, "schedule": "constant", "steps": 150,
        "batch_size": 10**6, "leaf_dropout": 0.1,
    },
}  # fmt: skip
_RANDOM = {
    "start": "random", "units": "each", "scale": 3.0, "weight_spread": 1.5, "balance": 0.0,
    "fit": {"generative": 0.5, "learning_rate": 0.05, "leaf_dropout": 0.3},
}  # fmt: skip

#: For each recipe, the tables ``[posterior]`` and ``[acquisition]`` of its protocol.
RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "soft": ({"preset": "default"}, {}),
    "sharp": ({"preset": "default"}, {"sharpness": 30.0}),
    "sharp 10": ({"preset": "default"}, {"sharpness": 10.0}),
    "unbalanced": ({"recipe": {"balance": 0.0}}, {}),
    "narrow": ({"recipe": {"scale": 2.0}}, {}),
    "narrow unbalanced": ({"recipe": {"scale": 2.0, "balance": 0.0}}, {}),
    "narrower": ({"recipe": {"scale": 1.0}}, {}),
    "short": ({"recipe": _SHORT}, {}),
    "random start": ({"recipe": _RANDOM}, {}),
    "paper": ({"preset": "paper"}, {}),
}


def protocol(
    dataset: str, posterior: dict[str, Any] | None = None, acquisition: dict[str, Any] | None = None
) -> Protocol:
    """The experiment, for any method."""
    return Protocol(
        name=dataset, dataset=dataset, initial=20, batch=10, rounds=ROUNDS, pool=6000,
        validation=1000, test=4000, network=NetworkProtocol(name="lenet"),
        posterior={"grid": (16, 8), **(posterior or {})}, acquisition=acquisition or {},
    )  # fmt: skip


def describe_run(path: Path, dataset: Dataset) -> dict[str, Any]:
    """A row for one run: its curve, and what it picked.

    ``novelty`` is the mean distance of a pick to the nearest point labelled before, ``apart`` that
    to the nearest other pick of its batch, both in pixels; ``balance`` the entropy of the classes
    of all picks, over that of equal shares.
    """
    recipe, name, method, seed = path.parts[-5:-1]
    rounds = read_rounds(path)
    labels = np.array([line.labels for line in rounds])
    row: dict[str, Any] = {
        "dataset": name, "recipe": recipe, "method": method, "seed": int(seed[5:]),
    }  # fmt: skip
    for by in ("", "network_"):
        accuracy = np.array([getattr(line, f"{by}accuracy") for line in rounds])
        row[f"{by}area"] = area_under_curve(labels, accuracy)
        for at in (100, 200):
            row[f"{by}accuracy_{at}"] = accuracy[labels == at][0]
        row[f"{by}nll"] = np.mean([getattr(line, f"{by}nll") for line in rounds])
    splits = json.loads((path.parents[2] / "splits" / f"{seed}.json").read_text())
    known = splits["initial"]
    novelty, apart = [], []
    for line in rounds[:-1]:
        picks = list(line.picks)
        distances = cdist(_pixels(dataset, picks), _pixels(dataset, known + picks))
        novelty.append(distances[:, : len(known)].min(1).mean())
        among = distances[:, len(known) :]
        np.fill_diagonal(among, np.inf)
        apart.append(among.min(1).mean())
        known = known + picks
    counts = np.bincount(dataset.train_labels[known[20:]], minlength=len(dataset.classes))
    row |= {"novelty": np.mean(novelty), "apart": np.mean(apart)}
    row["balance"] = stats.entropy(counts) / np.log(len(counts))
    picked = [line.picked for line in rounds if line.picked is not None]
    if picked:
        row["pick_entropy"] = np.mean([p["entropy"] for p in picked])
        row["pool_entropy"] = np.mean([p["pool_entropy"][2] for p in picked])
        row["spread"] = np.mean([p["pool_entropy"][4] - p["pool_entropy"][0] for p in picked])
        row["density_rank"] = np.mean([p.get("density_rank", np.nan) for p in picked])
    return row


def _pixels(dataset: Dataset, indices: list[int]) -> np.ndarray:
    return dataset.train_images[np.array(indices)].reshape(len(indices), -1) / 255


def summarise(out: Path, into: Path, data_dir: Path | None) -> None:
    """Write a row for each run, and a table and a picture of their means, into a folder."""
    datasets = {name: load_dataset(name, data_dir) for name in DATASETS}
    finished = [
        p for p in sorted(out.glob("*/*/*/seed-*/rounds.jsonl")) if len(read_rounds(p)) > ROUNDS
    ]
    runs = pd.DataFrame([describe_run(path, datasets[path.parts[-4]]) for path in finished])
    into.mkdir(parents=True, exist_ok=True)
    runs.round(4).to_csv(into / "runs.csv", index=False)
    random = runs[runs["method"] == "random"].set_index(["dataset", "seed"])
    for name in ("area", "network_area"):
        paired = random[name].reindex(pd.MultiIndex.from_frame(runs[["dataset", "seed"]]))
        runs[f"{name}_gain"] = 100 * (runs[name].to_numpy() - paired.to_numpy())
    for name in ("novelty", "apart"):
        paired = random[name].reindex(pd.MultiIndex.from_frame(runs[["dataset", "seed"]]))
        runs[name] = runs[name].to_numpy() / paired.to_numpy()
    (into / "table.md").write_text(table(runs))
    plot(out, into / "curves.svg")


def table(runs: pd.DataFrame) -> str:
    """The means over seeds as Markdown, gains over Random with 95 % intervals by Student's t."""
    header = [
        "dataset", "picks by", "recipe", "seeds", "area", "gain", "area, network", "gain, network",
        "NLL", "entropy: pool", "picks", "density rank", "novelty", "apart", "balance",
    ]  # fmt: skip
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for (dataset, method, recipe), of in runs.groupby(["dataset", "method", "recipe"]):
        mean = of.mean(numeric_only=True)
        cells = [
            dataset, method, "" if recipe == "baselines" else recipe, str(len(of)),
            f"{100 * mean['area']:.1f}", _interval(of["area_gain"]),
            f"{100 * mean['network_area']:.1f}", _interval(of["network_area_gain"]),
        ]  # fmt: skip
        cells += [
            "" if np.isnan(mean[name]) else f"{mean[name]:.{digits}f}"
            for name, digits in (
                ("nll", 2), ("pool_entropy", 2), ("pick_entropy", 2), ("density_rank", 2),
                ("novelty", 2), ("apart", 2), ("balance", 3),
            )
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _interval(gains: pd.Series) -> str:
    if not gains.abs().max():
        return ""  # Random itself
    text = f"{gains.mean():+.1f}"
    if len(gains) > 1:
        half = stats.t.ppf(0.975, len(gains) - 1) * stats.sem(gains)
        text += f" ± {half:.1f}"
    return text


def plot(out: Path, path: Path) -> None:
    """Mean accuracy of the method by number of labels, for recipes that have all seeds."""
    figure, axes = plt.subplots(
        len(DATASETS), len(ACQUISITIONS), figsize=(9, 7), sharex=True, sharey="row",
        layout="constrained",
    )  # fmt: skip
    for row, dataset in zip(axes, DATASETS, strict=True):
        for axis, acquisition in zip(row, ACQUISITIONS, strict=True):
            shown = {"random": out / "baselines" / dataset / "random"}
            shown["deterministic"] = out / "baselines" / dataset / f"deterministic-{acquisition}"
            for name in CURVES:
                shown[f"SPN, {name}"] = out / name / dataset / f"spn-cnn-{acquisition}"
            for colour, (name, folder) in enumerate(shown.items()):
                runs = [read_rounds(p) for p in sorted(folder.glob("seed-*/rounds.jsonl"))]
                runs = [rounds for rounds in runs if len(rounds) > ROUNDS]
                if not runs:
                    continue
                labels = [line.labels for line in runs[0]]
                accuracy = np.mean([[line.accuracy for line in r] for r in runs], axis=0)
                axis.plot(
                    labels, 100 * accuracy, color=f"C{colour}", label=name,
                    linestyle="--" if name == "random" else "-",
                )  # fmt: skip
            axis.set_title(f"{dataset}, {acquisition}", fontsize=10)
            axis.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("accuracy, %")
    for axis in axes[-1]:
        axis.set_xlabel("labels")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run what is left of the grid, or sum it up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/picking"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--baselines", nargs="*", default=["random", "deterministic"])
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--acquisitions", nargs="+", default=ACQUISITIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summary", type=Path, help="sum up what is finished, into this folder")
    args = parser.parse_args()
    if args.summary is not None:
        summarise(args.out, args.summary, args.data_dir)
        return

    runs: list[Run] = []
    for seed in args.seeds:
        baselines = [protocol(dataset) for dataset in args.datasets]
        runs += make_runs(
            baselines, args.baselines, args.acquisitions, [seed], args.out / "baselines"
        )
        for name in args.recipes:
            protocols = [protocol(dataset, *RECIPES[name]) for dataset in args.datasets]
            runs += make_runs(
                protocols, ["spn-cnn"], args.acquisitions, [seed], args.out / name.replace(" ", "-")
            )
    run_grid(runs, workers=args.workers, data_dir=args.data_dir)


if __name__ == "__main__":
    main()
