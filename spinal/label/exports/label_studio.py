"""Labels as files: CSV, folders by class, COCO, Label Studio. Written whole, or not at all."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pandas as pd
from PIL import Image

from spinal.errors import SpinalError
from spinal.files import replacing, write_text
from spinal.label.store.pictures import locate

#: Names of the control and of the image in Label Studio's configuration.
CONTROL, SHOWN = "label", "image"


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the images of a folder.

    Attributes:
        folder: where the images are.
        classes: names of the classes.
        given: by people, a row for each image: ``path`` (in the folder), ``label``, ``person``,
            ``at``, ``round``, ``reason``, ``holdout``.
        predicted: by the model, for other images: ``path``, ``predicted``, ``confidence``,
            ``uncertainty``, ``log_density``, and a probability for each class.
    """

    folder: Path
    classes: tuple[str, ...]
    given: pd.DataFrame
    predicted: pd.DataFrame | None = None


class Format(NamedTuple):
    """A form to write labels in: where, if nothing else is said, and how."""

    default: str
    write: Callable[[Labels, Path], list[Path]]


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV file; numbers with six digits."""
    with replacing(path) as partial:
        table.to_csv(partial, index=False, float_format="%.6g", encoding="utf-8")


def write_csv(labels: Labels, path: Path) -> list[Path]:
    """One table: the labels, then the images that have only a prediction."""
    table = labels.given
    if labels.predicted is not None:
        table = pd.concat([table, labels.predicted]).reindex(
            columns=[*table.columns, *labels.predicted.columns.drop("path")]
        )
        table["round"] = table["round"].astype("Int64")
    write_table(table, path)
    return [path]


def write_folders(labels: Labels, folder: Path) -> list[Path]:
    """A folder for each class, with copies of its images.

    With predictions, there are two such trees, ``labelled`` and ``predicted``, and a table of the
    confidences.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpinalError(f"{folder} is there already: choose another with --out, or remove it")
    partial = folder.with_name(folder.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    names = folder_names(labels.classes)
    given = zip(labels.given["path"], labels.given["label"], strict=True)
    if labels.predicted is None:
        _copy(labels.folder, given, names, partial)
    else:
        _copy(labels.folder, given, names, partial / "labelled")
        pairs = zip(labels.predicted["path"], labels.predicted["predicted"], strict=True)
        _copy(labels.folder, pairs, names, partial / "predicted")
        write_table(labels.predicted, partial / "predictions.csv")
    if folder.exists():
        folder.rmdir()
    partial.rename(folder)
    return [folder]


def _copy(source: Path, pairs: Any, names: dict[str, str], target: Path) -> None:
    for name in names.values():  # a class without an example is one, too
        (target / name).mkdir(parents=True)
    for path, label in pairs:
        copy = target / names[label] / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(locate(source, path), copy)


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """For each class the name of a folder, safe on any system and different from the others."""
    names: dict[str, str] = {}
    for label in classes:
        name = re.sub(r'[/\\:*?"<>|\0]', "_", label).strip(". ") or "_"
        while name.lower() in {taken.lower() for taken in names.values()}:
            name += "_"
        names[label] = name
    return names


def write_coco(labels: Labels, path: Path) -> list[Path]:
    """COCO's JSON: a category for each class, and a box around the whole image for each label.

    Predictions go to a second file, as COCO keeps results: with scores.
    """
    category = {name: i for i, name in enumerate(labels.classes, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for row in labels.given.itertuples():
        box = _coco_image(images, labels.folder, str(row.path))
        annotations.append(
            {
                "id": len(annotations) + 1,
                **box,
                "category_id": category[str(row.label)],
                "area": box["bbox"][2] * box["bbox"][3],
                "iscrowd": 0,
            }
        )
    written = [path]
    if labels.predicted is not None:
        for row in labels.predicted.itertuples():
            box = _coco_image(images, labels.folder, str(row.path))
            score = round(float(row.confidence), 6)
            results.append({**box, "category_id": category[str(row.predicted)], "score": score})
        written.append(path.with_name(f"{path.stem}-predictions.json"))
        _write_json(written[-1], results)
    categories = [{"id": i, "name": name} for name, i in category.items()]
    _write_json(path, {"images": images, "annotations": annotations, "categories": categories})
    return written


def _coco_image(images: list[dict[str, Any]], folder: Path, name: str) -> dict[str, Any]:
    """Add an image to the list; what refers to it, and to all of it."""
    with Image.open(locate(folder, name)) as image:
        width, height = image.size
    number = len(images) + 1
    images.append({"id": number, "file_name": name, "width": width, "height": height})
    return {"image_id": number, "bbox": [0, 0, width, height]}


def write_label_studio(labels: Labels, path: Path) -> list[Path]:
    """Tasks for Label Studio's import, and the labelling configuration that goes with them.

    Images are named as it serves local files: LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT has to be
    their folder.
    """
    tasks = [
        {
            "data": _task_data(str(row.path)),
            "annotations": [{"result": choice(str(row.label)), "lead_time": 0}],
        }
        for row in labels.given.itertuples()
    ]
    if labels.predicted is not None:
        for row in labels.predicted.to_dict("records"):
            data = _task_data(row["path"])
            data |= {"uncertainty": row["uncertainty"], "confidence": row["confidence"]}
            prediction = {
                "model_version": "spinal",
                "result": choice(row["predicted"]),
                "score": certainty(row["uncertainty"], len(labels.classes)),
            }
            tasks.append({"data": data, "predictions": [prediction]})
    configuration = path.with_suffix(".xml")
    write_text(configuration, labelling_configuration(labels.classes))
    _write_json(path, tasks)
    return [path, configuration]


def _task_data(path: str) -> dict[str, Any]:
    return {SHOWN: f"/data/local-files/?d={quote(path)}", "path": path}


def choice(label: str, control: str = CONTROL, shown: str = SHOWN) -> list[dict[str, Any]]:
    """A class as the ``result`` of an annotation or a prediction in Label Studio."""
    value = {"choices": [label]}
    return [{"from_name": control, "to_name": shown, "type": "choices", "value": value}]


def certainty(uncertainty: float, classes: int) -> float:
    """An entropy in nats as a score from 0 to 1: Label Studio asks for the lowest first."""
    return min(max(1 - uncertainty / math.log(classes), 0.0), 1.0)


def labelling_configuration(classes: Sequence[str]) -> str:
    """Label Studio's configuration: an image, and a choice of one class."""
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in classes)
    return (
        f'<View>\n  <Image name="{SHOWN}" value="${SHOWN}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{SHOWN}" choice="single">\n{choices}'
        "  </Choices>\n</View>\n"
    )


def _write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


FORMATS: dict[str, Format] = {
    "csv": Format("labels.csv", write_csv),
    "imagefolder": Format("labelled", write_folders),
    "coco": Format("labels.coco.json", write_coco),
    "label-studio": Format("label-studio.json", write_label_studio),
}
