"""The same comparison for the network, trained on the labels that each method chose."""

from __future__ import annotations

from dataclasses import replace

from spinal.report.accuracy_tests import accuracy_tests
from spinal.report.comparison import areas
from spinal.report.curves import learning_curves
from spinal.report.experiment import Experiment
from spinal.report.parts import Drawing, Section
from spinal.report.savings import labels_needed
from spinal.report.significance import area_tests


def section(experiment: Experiment) -> Section | None:
    """Curves, areas, labels needed and tests for the network; None if all methods use it."""
    by_network = experiment.by_network()
    if by_network is None:
        return None
    caption = "Test accuracy by the softmax of the network over the labels, mean over seeds."
    tables = [
        replace(table, name=f"network-{table.name}", caption=f"By the network. {table.caption}")
        for table in (
            areas(by_network),
            labels_needed(by_network),
            accuracy_tests(by_network),
            area_tests(by_network),
        )
        if table is not None
    ]
    text = [
        "The same runs, but every method predicts by its network. So these are comparisons of the "
        "labels that methods chose; above, of choosing and predicting together."
    ]
    drawing = Drawing("network-curves", caption, learning_curves(by_network, band=False))
    return Section("By the network", text, [drawing, *tables])
