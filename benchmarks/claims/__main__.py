"""Write `RESULTS.md`: the template with figures from the runs under `results`.

Usage: ``python -m benchmarks.claims``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.claims import choosing, predicting
from benchmarks.claims.runs import RESULTS

#: What the names of figures in the template begin with, and what computes them.
CLAIMS: dict[str, Callable[[], dict[str, object]]] = {
    "random": choosing.better_than_random,
    "small": choosing.at_the_paper_s_counts,
    "competitors": choosing.against_competitors,
    "ensemble": choosing.ensembles,
    "dropout": choosing.mc_dropout_on_mnist,
    "batchbald": choosing.spn_batchbald,
    "bayesian": choosing.bayesian_batch,
    "plain": predicting.as_they_are,
    "entropy": predicting.entropies,
    "few": predicting.few_labels,
    "cost": predicting.costs,
    "doubt": predicting.doubts,
}


def page() -> str:
    """The text of `RESULTS.md`."""
    template = Path(__file__).with_name("template.md").read_text(encoding="utf-8")
    figures = {
        f"{prefix}_{name}": figure
        for prefix, claim in CLAIMS.items()
        for name, figure in claim().items()
    }
    return template.format_map(figures)


if __name__ == "__main__":
    RESULTS.with_name("RESULTS.md").write_text(page(), encoding="utf-8")
