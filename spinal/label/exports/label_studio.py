"""Tasks for Label Studio, with annotations and predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from spinal.files import write_text
from spinal.label.exports.labels import Labels, write_json

#: Names of the control, and of the image or the text, in Label Studio's configuration.
CONTROL, SHOWN, TEXT = "label", "image", "text"


def write(labels: Labels, path: Path) -> list[Path]:
    """Write tasks for import into Label Studio, and their labelling configuration.

    Images are given as local files: LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT must be their folder.
    Texts are in the tasks themselves.
    """
    shown = TEXT if TEXT in labels.keys else SHOWN
    outcomes = 2 ** len(labels.classes) if labels.multi else len(labels.classes)
    tasks = [
        {
            "data": _task_data(row, labels.keys) | _marks(row),
            "annotations": [
                {"result": choice(labels.names(row["label"]), shown=shown), "lead_time": 0}
            ],
        }
        for row in labels.given.to_dict("records")
    ]
    if labels.predicted is not None:
        for row in labels.predicted.to_dict("records"):
            data = _task_data(row, labels.keys)
            data |= {"uncertainty": row["uncertainty"], "confidence": row["confidence"]}
            prediction = {
                "model_version": "spinal",
                "result": choice(labels.names(row["predicted"]), shown=shown),
                "score": certainty(row["uncertainty"], outcomes),
            }
            tasks.append({"data": data, "predictions": [prediction]})
    configuration = path.with_suffix(".xml")
    text = labelling_configuration(labels.classes, shown, multi=labels.multi)
    write_text(configuration, text)
    write_json(path, tasks)
    return [path, configuration]


def _task_data(row: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    if TEXT in keys:
        return {key: row[key] for key in keys}
    return {SHOWN: f"/data/local-files/?d={quote(row['path'])}", "path": row["path"]}


def _marks(row: dict[str, Any]) -> dict[str, Any]:
    """Flag and note, if there are any."""
    return {name: row[name] for name in ("flagged", "note") if row[name]}


def choice(
    label: str | Sequence[str], control: str = CONTROL, shown: str = SHOWN
) -> list[dict[str, Any]]:
    """A class, or several, as the ``result`` of an annotation or a prediction in Label Studio."""
    if not label:
        return []  # none of them
    value = {"choices": [label] if isinstance(label, str) else list(label)}
    return [{"from_name": control, "to_name": shown, "type": "choices", "value": value}]


def certainty(uncertainty: float, n_classes: int) -> float:
    """Turn an entropy in nats into a score from 0 to 1: Label Studio asks for the lowest first."""
    return min(max(1 - uncertainty / math.log(n_classes), 0.0), 1.0)


def labelling_configuration(
    classes: Sequence[str], shown: str = SHOWN, *, multi: bool = False
) -> str:
    """The labelling configuration: an image or a text, and a choice of one or several classes."""
    several = "multiple" if multi else "single"
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in classes)
    return (
        f'<View>\n  <{shown.title()} name="{shown}" value="${shown}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{shown}" choice="{several}">\n{choices}'
        "  </Choices>\n</View>\n"
    )
