"""What each part of the closed-form SPN is worth, on the half of the suite that it was chosen by.

Every cell of the develop half with vectors is fitted once; variants differ in which of the same
classifiers are mixed, how, and under which class frequencies.

    python -m benchmarks.anywhere.ablation --out results/anywhere --cache DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.anywhere.cells import LABELS, TAILS, Cell, CellName, cell_names, make_cell
from benchmarks.anywhere.contenders import logistic as reference_logistic
from benchmarks.anywhere.features import KINDS, load_points
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import Points, SuiteEntry, read_suite
from benchmarks.machine import commit
from benchmarks.results import Results
from spinal.classifiers import held_out_parts, label_frequencies, pool_frequencies
from spinal.classifiers.blend import FOLDS, MOST_FOR_TREES
from spinal.classifiers.gaussian import fit_gaussian
from spinal.classifiers.logistic import fit_logistic
from spinal.classifiers.mixing import mix, mixing_weights
from spinal.classifiers.parts import held_out_labels, held_out_loss
from spinal.classifiers.priors import add_one, shift_prior
from spinal.classifiers.sharpness import fit_sharpness
from spinal.classifiers.trees import fit_trees
from spinal.classifiers.units import plausible_kinds
from spinal.posteriors.vectors import UNLABELLED
from spinal.probabilities import sharpened

DEFAULT = "circuit + logistic + trees (the default)"


def variants(cell: Cell) -> Iterator[tuple[str, Tensor]]:
    """Names of variants, and their log-probabilities ``[N, C]`` for the test points."""
    known = torch.zeros(len(cell.x_pool), dtype=torch.bool)
    known[cell.labelled] = True
    generator = torch.Generator().manual_seed(cell.name.seed)
    others = (~known).nonzero().flatten()
    others = others[torch.randperm(len(others), generator=generator)[:UNLABELLED]]
    x = torch.as_tensor(cell.x_pool[cell.labelled])
    pool, test = torch.as_tensor(cell.x_pool[others.numpy()]), torch.as_tensor(cell.x_test)
    y, n_classes = torch.as_tensor(cell.labels), cell.n_classes
    reference = torch.cat([x, pool])
    parts = held_out_parts(x, y, FOLDS, 0)
    kinds = plausible_kinds(reference)
    held_y = held_out_labels(y, parts)

    gaussian, held_gaussian = fit_gaussian(x, y, n_classes, parts, kinds, reference)
    few = x.shape[1] <= MOST_FOR_TREES
    own = gaussian.coordinates.units.kind
    logistic, held_logistic = fit_logistic(
        x, y, n_classes, parts, (own, "each") if few and own != "each" else (own,), reference
    )
    models, held = [gaussian, logistic], [held_gaussian, held_logistic]
    if few:
        trees, held_trees = fit_trees(x, y, n_classes, 0)
        models.append(trees)
        held.append(torch.cat([held_trees[part.held] for part in parts]))
    said = [model.log_probs(test) for model in models]
    of_pool = [model.log_probs(pool) for model in models]

    counts = torch.bincount(y, minlength=n_classes)
    before, after = add_one(counts), label_frequencies(counts)
    weights = mixing_weights(held, held_y)
    blend, held_blend = mix(said, weights), mix(held, weights)
    yield DEFAULT, mix([shift_prior(p, before, after) for p in said], weights)
    yield "circuit alone", shift_prior(said[0], before, after)
    yield "logistic alone", shift_prior(said[1], before, after)
    pair = mixing_weights(held[:2], held_y)
    yield "circuit + logistic", mix([shift_prior(p, before, after) for p in said[:2]], pair)
    best = min(range(len(held)), key=lambda i: float(held_out_loss(held[i], held_y)))
    yield "the best of the three alone", shift_prior(said[best], before, after)
    equal = torch.full_like(weights, 1 / len(weights))
    yield "equal weights", mix([shift_prior(p, before, after) for p in said], equal)
    power = fit_sharpness(held_blend, held_y)
    yield "default, and a temperature", sharpened(shift_prior(blend, before, after), power)
    yield "frequencies: add-one", blend
    yield "frequencies: equal", shift_prior(blend, before, torch.full_like(before, 1 / n_classes))
    shifted = pool_frequencies(mix(of_pool, weights), before, after, len(y))
    yield "frequencies: of the pool by EM", shift_prior(blend, before, shifted)
    plain, _ = fit_gaussian(x, y, n_classes, [], (own,), reference)
    yield "circuit alone, settings not chosen", shift_prior(plain.log_probs(test), before, after)
    for kind in ("each", "common"):
        if kind in kinds:
            fixed, _ = fit_gaussian(x, y, n_classes, parts, (kind,), reference)
            yield f"circuit alone, units: {kind}", shift_prior(fixed.log_probs(test), before, after)


def main() -> None:
    """Compute the cells that are missing, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anywhere.ablation")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--cache", type=Path, required=True, help="folder where features are kept")
    parser.add_argument("--labels", nargs="*", type=int, default=list(LABELS))
    parser.add_argument("--tails", nargs="*", type=int, default=list(TAILS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = Results(options.out / "ablation.jsonl", ("set", "tail", "labels", "seed"))
    measured = {"commit": commit("spinal", "benchmarks/anywhere")}
    with threadpool_limits(1):
        for entry in read_suite("develop", features=KINDS):
            points = load_points(entry, options.cache, None)
            names = cell_names(entry, points, options.labels, options.tails, options.seeds)
            for name in names:
                if asdict(name) not in results:
                    results.add(line | measured for line in _lines(entry, points, name))
                    print(name, flush=True)
    write(pd.DataFrame(results.lines), options.out / "ablation.md")


def _lines(entry: SuiteEntry, points: Points, name: CellName) -> Iterator[dict[str, Any]]:
    """The results of a cell, one for each variant."""
    cell, truth = make_cell(entry, points, name)
    said = [("logistic", reference_logistic(cell))]
    said += [(variant, p.exp().numpy()) for variant, p in variants(cell)]
    for variant, probs in said:
        values = measure(probs, truth.labels, truth.weights)
        yield asdict(name) | {"variant": variant} | {k: round(v, 5) for k, v in values.items()}


def write(lines: pd.DataFrame, path: Path) -> None:
    """The table, as Markdown."""
    cell = ["set", "tail", "labels"]
    means = lines.groupby([*cell, "variant"])[["accuracy", "balanced", "nll", "ece"]].mean()
    wide = means.unstack("variant")
    obvious = wide["accuracy"]["logistic"]
    best = wide["accuracy"].max(axis=1)
    long_tailed = wide.index.get_level_values("tail") > 1
    text = [
        "# What each part of the classifier is worth\n",
        "`python -m benchmarks.anywhere.ablation --out results/anywhere`, seeds "
        f"{', '.join(map(str, sorted(lines['seed'].unique())))}, commit "
        f"{', '.join(sorted(set(lines['commit'])))}: the {len(wide)} cells of the develop half "
        "with vectors (as they are, 10 : 1 and 100 : 1; 30 to 1,000 labels). The recipe was "
        "chosen on these sets, so the figures flatter it; those of the other half are in "
        "[README.md](README.md). `logistic` is scikit-learn's, with C by cross-validation, as "
        "among the contenders. Regret: points of accuracy below the best variant of the cell.\n",
        "| variant | mean regret | worst gap to `logistic` | NLL below `logistic` | mean NLL | "
        "mean ECE | long-tailed: balanced accuracy |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for variant in lines["variant"].unique():
        accuracy, nll = wide["accuracy"][variant].dropna(), wide["nll"][variant].dropna()
        lower = (
            ""
            if variant == "logistic"
            else f"{100 * (nll < wide['nll']['logistic'][nll.index]).mean():.0f} %"
        )
        text.append(
            f"| {variant} | {100 * (best - accuracy).mean():.2f} | "
            f"{100 * (accuracy - obvious).min():+.1f} | {lower} | {nll.mean():.3f} | "
            f"{wide['ece'][variant].mean():.3f} | "
            f"{100 * wide['balanced'][variant][long_tailed].mean():.1f} |"
        )
    path.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
