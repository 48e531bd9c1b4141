"""What another batch of labels would change, from the forecast of the last round."""

from __future__ import annotations

import pandas as pd

from spinal.report.experiment import Experiment
from spinal.report.names import title
from spinal.report.numbers import count, decimal, percent
from spinal.report.parts import Table


def more_labels(experiment: Experiment) -> Table | None:
    """The forecast of each method, mean over seeds; None if no forecasts were stored."""
    rows, shown = [], []
    for method in experiment.methods:
        last = [run.rounds[-1].advice for run in experiment.of(method)]
        forecasts = pd.DataFrame([advice for advice in last if advice is not None])
        if len(forecasts):
            mean = forecasts[["more", "changes", "low", "high", "kappa"]].mean()
            rows.append({"method": method, "seeds": len(forecasts), **mean})
            shown.append({
                "method": title(method),
                "further labels": count(mean.more),
                "predictions changed (%)": percent(mean.changes, 1),
                "from": percent(mean.low, 1),
                "to": percent(mean.high, 1),
                "kappa": decimal(mean.kappa),
            })  # fmt: skip
    if not rows:
        return None
    caption = (
        "What another batch would change: the share of the predictions for unlabelled points, with "
        "an 80 % interval, forecast from how much each batch so far has changed; Cohen's kappa of "
        "the last two models. Means over seeds. Where little changes, more labels are hardly worth "
        "their price."
    )
    return Table("more-labels", caption, pd.DataFrame(rows), pd.DataFrame(shown))
