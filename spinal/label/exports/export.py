"""`spinal export`: writes the labels of a project in some format, or its classifier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from spinal.errors import SpinalError, suggestion
from spinal.files import write_text
from spinal.label.exports import standalone
from spinal.label.exports.classifier import FILE, TRUNK
from spinal.label.exports.fitted import load_classifier, load_text_classifier
from spinal.label.exports.labels import Labels
from spinal.label.exports.predictions import Progress, predict_rest
from spinal.label.exports.table import FORMATS
from spinal.label.exports.text_predictions import predict_other_texts, with_texts
from spinal.label.store.notes import is_flagged, joined
from spinal.label.store.project import Project
from spinal.label.store.sets import Label, join


def export(
    project: Project,
    to: str,
    out: Path | None = None,
    *,
    predictions: bool = False,
    on_progress: Progress | None = None,
) -> list[Path]:
    """Write the labels of a project.

    Args:
        project: the project.
        to: the name of a CSV or JSONL file, or one of `FORMATS`.
        out: the file or folder to write; by default, that of the format, in the current folder.
        predictions: add predictions for images without a label.
        on_progress: called with the number of images that have features, and that of all.

    Returns:
        The files and folders that were written.
    """
    suffix = Path(to).suffix[1:]
    name = suffix if suffix in ("csv", "jsonl") else to
    if name not in FORMATS:
        known = ["labels.csv", *(other for other in FORMATS if other != "csv"), "model"]
        raise SpinalError(f"no format {to!r}: {suggestion(to, known)}")
    texts = project.texts
    if project.settings.multi and not FORMATS[name].for_sets:
        raise SpinalError(
            f"{to} needs one class for each image, and here an image can have several: "
            "export to labels.csv, jsonl, coco or label-studio"
        )
    if texts is not None and not FORMATS[name].for_texts:
        raise SpinalError(f"{to} is for images: texts go to labels.csv, jsonl or label-studio")
    target = out or Path(to if suffix == name else FORMATS[name].default)
    labels = labels_of(project)
    if predictions:
        predict = predict_rest if texts is None else predict_other_texts
        labels = replace(labels, predicted=predict(project, on_progress))
    elif not len(labels.given) and name != "notes":
        raise SpinalError(f"{project.home}: no labels yet (spinal label {project.folder})")
    if texts is not None:
        texts.refresh()
        labels = with_texts(labels, texts)
    target.parent.mkdir(parents=True, exist_ok=True)
    return FORMATS[name].write(labels, target)


def export_model(project: Project, folder: Path) -> list[Path]:
    """Write the newest classifier: safetensors with a standalone module to read it, and ONNX.

    Raises:
        ExportError: if the packages for ONNX are missing; the other files are written.
    """
    if project.texts is not None:
        return load_text_classifier(project).save(folder)
    classifier = load_classifier(project)
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / name for name in (FILE, "standalone.py", "classifier.onnx")]
    if classifier.has_own_trunk:
        written.append(folder / TRUNK)
    classifier.save(written[0])
    write_text(written[1], Path(standalone.__file__).read_text(encoding="utf-8"))
    classifier.to_onnx(written[2])
    return written


def labels_of(project: Project) -> Labels:
    """The agreed labels: a row for each image, with the last answer that gave the label."""
    last = {
        (row["image"], row["label"]): row
        for row in project.store.answers()
        if row["undone"] is None
    }
    store, classes = project.store, project.settings.classes
    notes, unsaid, rows = store.notes.all(), store.unsaid(), []
    for image in store.labelled():
        noted = notes.get(image["id"], [])
        answer = last[image["twin"] or image["id"], image["label"]]
        label = store.shown(image["label"])
        marks: dict[str, Any] = {}
        if isinstance(label, tuple):
            silent = unsaid.get(image["twin"] or image["id"], ())
            marks = {f"y({c})": pd.NA if c in silent else int(c in label) for c in classes}
        rows.append(
            {
                "path": image["path"],
                "label": _in_table(label),
                "person": answer["person"],
                "at": answer["at"],
                "round": answer["round"],
                "reason": answer["reason"],
                "audit": bool(image["reserved"]),
                "flagged": is_flagged(noted),
                "note": joined(noted),
                **marks,
            }
        )
    said = [
        {
            "path": row["path"], "label": _in_table(store.shown(row["label"])),
            "flagged": bool(row["flagged"]), "note": row["note"] or None, "person": row["person"],
            "at": row["at"],
        }
        for several in notes.values() for row in several
    ]  # fmt: skip
    marked = [f"y({c})" for c in classes] if store.multi else []
    columns = ["path", "label", "person", "at", "round", "reason", "audit", "flagged", "note"]
    table = pd.DataFrame(rows, columns=[*columns, *marked])
    return Labels(
        project.folder,
        classes,
        table.astype(dict.fromkeys(marked, "Int64")),
        notes=pd.DataFrame(said, columns=["path", "label", "flagged", "note", "person", "at"]),
        multi=store.multi,
    )


def _in_table(label: Label | None) -> str | None:
    """A label as the cell of a table."""
    return join(label) if isinstance(label, tuple) else label
