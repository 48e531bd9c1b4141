"""Areas under the curve and final accuracies, with intervals over paired seeds."""

from __future__ import annotations

import pandas as pd

from spinal.report.experiment import Experiment, gain
from spinal.report.forecast import more_labels
from spinal.report.names import BASELINE, title
from spinal.report.numbers import count, with_deviation, with_interval
from spinal.report.parts import Section, Table
from spinal.report.savings import labels_needed


def section(experiment: Experiment) -> Section:
    """Areas and final accuracies with intervals, labels needed, and the effect of more labels."""
    tables = [areas(experiment), labels_needed(experiment), more_labels(experiment)]
    return Section("Differences in accuracy", (), [table for table in tables if table is not None])


def areas(experiment: Experiment) -> Table:
    """Area and final accuracy of each method, and gains over Random with paired intervals."""
    rows, shown = [], []
    last = count(experiment.labels[-1])
    for method in experiment.methods:
        row = {"method": method, "seeds": len(experiment.of(method))}
        cells = {"method": title(method), "seeds": str(row["seeds"])}
        for name, values, heading in (
            ("area", experiment.areas, "area"),
            ("final", experiment.final, f"at {last} labels"),
        ):
            mean, deviation = values[method].mean(), values[method].std()
            row |= {name: mean, f"{name}_deviation": deviation}
            cells[heading] = with_deviation(mean, deviation)
            if experiment.has_baseline and method != BASELINE:
                mean, low, high = gain(values, method)
                row |= {f"{name}_gain": mean, f"{name}_low": low, f"{name}_high": high}
                cells[f"{heading}: gain"] = with_interval(mean, low, high)
        rows.append(row)
        shown.append(cells)
    first = count(experiment.labels[0])
    caption = (
        f"Area under the accuracy curve from {first} to {last} labels, over its width, and "
        f"accuracy at {last} labels: percent, mean ± standard deviation over seeds. Gains over "
        "Random are of paired seeds, in percentage points, with 95 % intervals by Student's t, "
        "from three seeds on."
    )
    return Table("areas", caption, pd.DataFrame(rows), pd.DataFrame(shown).fillna(""))
