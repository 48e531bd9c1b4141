"""Write `results/small/README.md`: the template with tables from the runs at the scale ``small``.

Usage: ``python -m benchmarks.small_report``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.claims.runs import (
    BATCHBALD,
    PHASES,
    RANDOM,
    RESULTS,
    SOFTMAX,
    SPN,
    SPN_ENTROPY,
    after_a_choice,
    area,
    batches,
    cost,
    experiment,
    markdown_table,
    phase_costs,
    seconds,
    shown,
    small,
    timed,
    timed_ratio,
)
from spinal.files import write_text
from spinal.report.curves import learning_curves
from spinal.report.experiment import Experiment, paired
from spinal.report.names import is_spn, title
from spinal.report.numbers import count, decimal, percent
from spinal.report.paper import accuracies
from spinal.report.plots import save
from spinal.report.statistics import MIN_SEEDS, holm, paired_t_test

PAGE = RESULTS / "small" / "README.md"
TEMPLATE = Path(__file__).with_name("small_template.md")
#: What is compared for every dataset.
PAIRS = ((SPN, RANDOM), (SOFTMAX, RANDOM), (SPN, SOFTMAX))
BATCH_PAIRS = (*((method, RANDOM) for method in BATCHBALD), BATCHBALD)


def page() -> str:
    """The text of the page."""
    found, by_batches = list(small().values()), list(batches().values())
    sections = [line for e in found for line in _section(e, (RANDOM, SPN_ENTROPY))]
    batch_sections = [line for e in by_batches for line in _section(e, (RANDOM, *BATCHBALD))]
    reserved = experiment("small/reserved", name="svhn-batchbald@small")
    return TEMPLATE.read_text(encoding="utf-8").format(
        results="\n".join(sections),
        differences="\n".join(_differences(found, PAIRS)),
        best="\n".join(best_competitors(found)),
        others="\n".join(_others(found)),
        batches="\n".join(batch_sections),
        reserved=area(reserved, BATCHBALD[0]),
        not_reserved=area(batches()["svhn-batchbald@small"], BATCHBALD[1]),
        batch_differences="\n".join(_differences(by_batches, BATCH_PAIRS)),
        costs="\n".join(_costs(found)),
        timed="\n".join(_timed()),
        reserve="\n".join(_reserve()),
    )


def _section(e: Experiment, in_the_paper: Sequence[str]) -> Iterator[str]:
    """Accuracies of every method at the paper's numbers of labels, and means over them."""
    printed = accuracies()
    printed = printed[printed["table"] == e.paper].pivot(
        index="method", columns="labels", values="accuracy"
    )
    labels = printed.columns
    yield f"### {e.title}"
    yield ""
    yield f"![Accuracy against the number of labels, and the paper's](small-{e.paper}.svg)"
    yield ""
    rows = []
    for method in in_the_paper:
        rows.append([f"the paper: {title(method)}", "5", *_percents(printed.loc[method])])
    for method in e.methods:
        curve = e.mean_curve(method)[labels]
        rows.append([title(method), str(len(e.of(method))), *_percents(curve)])
        if method.startswith("spn"):
            network = e.mean_curve(method, e.measure("network_accuracy"))[labels]
            rows.append(["its network", "", *_percents(network)])
    yield from markdown_table(["accuracy", "seeds", "mean", *map(count, labels)], rows)
    yield ""
    names = ("nll", "ece", "network_nll", "network_ece")
    names += ("logistic_accuracy", "logistic_nll", "logistic_ece", "fitted_share")
    rows = []
    for method in e.methods:
        means = {name: e.mean_curve(method, e.measure(name))[labels].mean() for name in names}
        texts = [
            percent(value, 1) if name in ("logistic_accuracy", "fitted_share") else decimal(value)
            for name, value in means.items()
        ]
        rows.append([title(method), percent(e.mean_curve(method)[labels].mean(), 1), *texts])
    head = ["mean over the labels", "accuracy", "NLL", "ECE", "network: NLL", "ECE"]
    head += ["logistic: accuracy", "NLL", "ECE", "fitted"]
    yield from markdown_table(head, rows)
    yield ""
    commits = sorted({run.settings["versions"]["commit"][:7] for run in e.runs})
    yield f"Commits: {', '.join(commits)}."
    yield ""


def _reserve() -> Iterator[str]:
    """Accuracy, likelihood and calibration with settings chosen on reserved points."""
    lines = (RESULTS / "small" / "reserve.jsonl").read_text(encoding="utf-8").splitlines()
    table = pd.DataFrame(map(json.loads, lines)).pivot(index="labels", columns="by")
    names = {"spn": "SPN-CNN", "network": "its network", "logistic": "logistic regression"}
    rows = []
    for by, name in names.items():
        for measure, shown_name in (("accuracy", ""), ("nll", "NLL"), ("ece", "ECE")):
            values = table[measure, by]
            text = [percent(v, 1) if measure == "accuracy" else decimal(v) for v in values]
            rows.append([f"{name}, {shown_name}".removesuffix(", "), *text])
    yield from markdown_table(["", *map(count, table.index)], rows)


def _percents(curve: pd.Series) -> list[str]:
    """The mean of the values, and every value."""
    return [percent(float(curve.mean()), 2), *(percent(value, 1) for value in curve)]


def _differences(found: Sequence[Experiment], pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Differences of paired seeds, by the method and by its network."""
    rows, tested = [], []
    for e in found:
        network = e.by_network()
        assert network is not None
        for first, second in pairs:
            later = after_a_choice(e, first, second)
            tested.append(later)
            rows.append([
                e.title, f"{title(first)} over {title(second)}", str(len(later)),
                shown(paired(e.areas, first, second)), shown(later),
                shown(after_a_choice(network, first, second)),
            ])  # fmt: skip
    head = [
        "",
        "",
        "seeds",
        "area",
        "after the first choice",
        "the same, by the network",
        "p (Holm)",
    ]
    yield from markdown_table(head, _with_p_values(rows, tested), words=2)


def _with_p_values(rows: list[list[str]], tested: list[NDArray[np.float64]]) -> list[list[str]]:
    """Rows with p-values of paired differences, corrected over all rows; empty for few seeds."""
    tests = [paired_t_test(values) if len(values) >= MIN_SEEDS else np.nan for values in tested]
    texts = ["" if np.isnan(p) else decimal(p) for p in holm(tests)]
    return [[*row, text] for row, text in zip(rows, texts, strict=True)]


def best_competitors(found: Sequence[Experiment]) -> Iterator[str]:
    """SPN-CNN against the method without an SPN that has the largest area on the same seeds."""
    rows, tested = [], []
    for e in found:
        seeds = {run.seed for run in e.of(SPN)}
        rivals = [m for m in e.methods if not is_spn(m) and {run.seed for run in e.of(m)} == seeds]
        best = max(rivals, key=lambda method: e.areas[method].mean())
        leads = paired(e.areas, SPN, best)
        tested.append(leads)
        others = ", ".join(title(m) for m in rivals if m != best)
        rows.append([e.title, title(best), others, str(len(leads)), shown(leads)])
    head = ["", "best competitor", "the others", "seeds", "SPN-CNN over it, area", "p (Holm)"]
    yield from markdown_table(head, _with_p_values(rows, tested), words=3)


def _others(found: Sequence[Experiment]) -> Iterator[str]:
    """Differences of the other methods after the first choice, for the seeds that they have."""
    rows = [
        [e.title, title(method), str(len(e.of(method))),
         *(shown(after_a_choice(e, method, other)) for other in (RANDOM, SOFTMAX, SPN)),
         f"{cost(e, method):.2f}"]
        for e in found
        for method in e.methods
        if method not in (RANDOM, SOFTMAX, SPN)
    ]  # fmt: skip
    head = ["", "", "seeds", *(f"over {title(m)}" for m in (RANDOM, SOFTMAX, SPN)), "cost"]
    yield from markdown_table(head, rows, words=2)


def _costs(found: Sequence[Experiment]) -> Iterator[str]:
    """Costs of each phase, in units of training the network."""
    rows = []
    for e in found:
        for method in (RANDOM, SOFTMAX, SPN):
            costs = phase_costs(e, method)
            cells = [f"{cost:.3f}" for cost in costs.values()]
            rows.append([e.title, title(method), *cells, f"{sum(costs.values()):.2f}"])
    yield from markdown_table(["", "", *PHASES, "all"], rows, words=2)


def _timed() -> Iterator[str]:
    """Seconds of pairs of runs on an otherwise idle machine."""
    rows = []
    for e in timed().values():
        for method in (RANDOM, SPN):
            spent = seconds(e, method)
            ratio = f"{timed_ratio(e):.2f}" if method == SPN else ""
            cells = [f"{value:.1f}" for value in (*spent.values(), sum(spent.values()))]
            rows.append([e.title, title(method), *cells, ratio])
    yield from markdown_table(["", "", *PHASES, "all", "ratio"], rows, words=2)


if __name__ == "__main__":
    write_text(PAGE, page())
    for e in (*small().values(), *batches().values()):
        save(learning_curves(e, paper=True), PAGE.with_name(f"small-{e.paper}.svg"))
