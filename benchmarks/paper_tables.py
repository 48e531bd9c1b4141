"""The paper's tables of accuracies compared with ours, one page for each dataset.

They are made from the finished runs under `results` whose protocol names a table of the paper.
Usage::

    python -m benchmarks.paper_tables
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from spinal.files import write_text
from spinal.report.experiment import Experiment, experiments
from spinal.report.names import order, title
from spinal.report.numbers import count, percent, points
from spinal.report.paper import accuracies
from spinal.report.read import stored_runs

RESULTS = Path(__file__).parents[1] / "results"
PAGES = RESULTS / "paper-tables"
#: Folders of runs, the most like the paper's first.
FOLDERS = ("small/runs", "vgg-five-seeds/runs")
TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "svhn": "SVHN",
}


def pages() -> dict[str, str]:
    """The pages, by the names of their files."""
    runs = {
        folder: experiments([run for run in stored_runs(RESULTS / folder) if run.is_finished])
        for folder in FOLDERS
        if (RESULTS / folder).exists()
    }
    index = [
        "# The paper's tables beside ours", "",
        "Written by `python -m benchmarks.paper_tables` from the runs in this repository.", "",
    ]  # fmt: skip
    texts = {}
    for table, name in TITLES.items():
        sources = [(f, e) for f, found in runs.items() for e in found if e.paper == table]
        texts[f"{table}.md"] = "\n".join(_page(table, name, sources))
        index.append(f"- [{name}]({table}.md)")
    return {**texts, "README.md": "\n".join([*index, ""])}


def _page(table: str, name: str, sources: list[tuple[str, Experiment]]) -> Iterator[str]:
    yield f"# {name}: the paper's table beside ours"
    yield ""
    yield (
        "Mean test accuracy in percent by number of labels: the paper's (five runs), ours by the "
        "posterior of the method and by its network, and both minus the paper's, in points."
    )
    yield ""
    for folder, experiment in sources:
        shown = beside(table, experiment)
        if shown.empty:
            continue
        network = experiment.protocol["network"]
        yield f"## `{experiment.name}`: {network['name']}, width {network['width']:g}"
        yield ""
        yield f"Runs: `results/{folder}`."
        yield ""
        yield "| " + " | ".join(shown.columns) + " |"
        yield "|---|---|" + "--:|" * (shown.shape[1] - 2)
        for row in shown.to_numpy():
            yield "| " + " | ".join(map(str, row)) + " |"
        yield ""


def beside(table: str, experiment: Experiment) -> pd.DataFrame:
    """Lines of the paper and of ours, at the paper's numbers of labels; empty if we have none."""
    printed = accuracies()
    printed = printed[printed["table"] == table]
    theirs = printed.pivot(index="method", columns="labels", values="accuracy")
    columns = [labels for labels in theirs.columns if labels in experiment.accuracy.index]
    if not columns:
        return pd.DataFrame()
    network = experiment.measure("network_accuracy")
    rows = []
    for method in sorted({*theirs.index, *experiment.methods}, key=order):
        lines: dict[str, pd.Series] = {}
        if method in theirs.index:
            lines["paper"] = theirs.loc[method]
        if method in experiment.methods:
            by_method = experiment.mean_curve(method)
            by_network = experiment.mean_curve(method, network)
            seeds = len(experiment.of(method))
            lines[f"ours, {seeds} seed{'s' if seeds > 1 else ''}"] = by_method
            if "paper" in lines:
                lines["difference"] = by_method - lines["paper"]
            lines["ours, by the network"] = by_network
            if "paper" in lines:
                lines["difference, by the network"] = by_network - lines["paper"]
        for who, values in lines.items():
            text = points if who.startswith("difference") else percent
            at_budgets = values.reindex(theirs.columns)
            cells = {count(labels): text(value) for labels, value in at_budgets.items()}
            rows.append({"method": title(method), "": who, **cells})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for file_name, text in pages().items():
        write_text(PAGES / file_name, text)
