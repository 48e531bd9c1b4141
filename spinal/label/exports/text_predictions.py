"""Predictions of the newest model of a project for texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from spinal.data.text_files import find_text_files, is_table, read_column, read_text_file
from spinal.errors import DataError
from spinal.label.exports.fitted import load_text_classifier
from spinal.label.exports.labels import Labels
from spinal.label.exports.predictions import Predictions, Progress
from spinal.label.learning.features import TextCache
from spinal.label.store.project import Project
from spinal.label.store.texts import Texts

#: Number of texts that are encoded at once.
_CHUNK = 1000


def texts_in(places: Iterable[Path], column: str) -> pd.DataFrame:
    """The texts of tables, of ``.txt`` files, and of all such files in folders.

    Returns:
        A table with the columns ``path`` (of the file), ``row`` (in a table, from 1) and ``text``.
    """
    rows: list[tuple[Path, int | None, str]] = []
    for place in places:
        if place.is_dir():
            inside = [place / name for name in find_text_files(place)]
            if not inside:
                raise DataError(f"{place}: no .txt files in it")
            rows += [(path, None, read_text_file(path)) for path in inside]
        elif is_table(place):
            rows += [(place, i, text) for i, text in enumerate(read_column(place, column), 1)]
        else:
            rows.append((place, None, read_text_file(place)))
    table = pd.DataFrame(rows, columns=["path", "row", "text"])
    return table.astype({"path": str, "row": "Int64"})


def predict_texts(
    project: Project, texts: pd.DataFrame, on_progress: Progress | None = None
) -> pd.DataFrame:
    """The table of predictions for texts, which need not belong to the project.

    Args:
        project: the project.
        texts: see `texts_in`.
        on_progress: called with the number of texts that were predicted, and that of all.
    """
    classifier = load_text_classifier(project)
    parts = []
    for start in range(0, len(texts), _CHUNK):
        chunk = texts.iloc[start : start + _CHUNK]
        said = classifier.predict_texts(chunk["text"].tolist())
        predictions = Predictions([], classifier.classes, *said, [], project.settings.multi)
        parts.append(predictions.table(chunk["path"].tolist()))
        if on_progress is not None:
            on_progress(start + len(chunk), len(texts))
    table = pd.concat(parts, ignore_index=True)
    if texts["row"].notna().any():
        table.insert(1, "row", texts["row"].array)
    return table


def predict_other_texts(project: Project, on_progress: Progress | None = None) -> pd.DataFrame:
    """The table of predictions for all texts of a project without an agreed label."""
    assert project.texts is not None
    classifier = load_text_classifier(project)
    names = [
        row["path"] for row in project.store.images()
        if row["label"] is None and row["problem"] is None
    ]  # fmt: skip
    cache = TextCache(project.features_folder, classifier.encoder, project.texts)
    try:
        cache.compute(names, on_progress)
        points, _ = cache.points(names)
        said = classifier.predict(points)
    finally:
        cache.close()
    return Predictions([], classifier.classes, *said, [], project.settings.multi).table(names)


def with_texts(labels: Labels, texts: Texts) -> Labels:
    """Labels with a row for each occurrence of a text (``row`` or ``path``), and the text."""
    keys = (texts.place_name, "text")
    predicted = None
    if labels.predicted is not None:
        predicted = _spread(labels.predicted, texts, keys)
    notes = None if labels.notes is None else _spread(labels.notes, texts, keys)
    given = _spread(labels.given, texts, keys)
    return replace(labels, given=given, predicted=predicted, keys=keys, notes=notes)


def _spread(table: pd.DataFrame, texts: Texts, keys: Sequence[str]) -> pd.DataFrame:
    rows = []
    for record in table.to_dict("records"):
        name = record.pop("path")
        rows += [
            {keys[0]: place, keys[1]: texts.text(name), **record}
            for place in texts.places(name)  # empty if the text is no longer there
        ]
    columns = [*keys, *table.columns.drop("path")]
    result = pd.DataFrame(rows, columns=columns).astype(
        {name: "Int64" for name in columns if name.startswith("y(")}
    )
    if keys[0] == "row":
        result = result.astype({"row": int}).sort_values("row", ignore_index=True)
    return result
