"""Labels in the JSON format of COCO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from spinal.label.exports.labels import Labels, write_json
from spinal.label.store.pictures import locate


def write(labels: Labels, path: Path) -> list[Path]:
    """Write a category for each class, and a box around the whole image for each label.

    An image has one box for each of its classes. Predictions go to a second file, in COCO's format
    of results with scores.
    """
    category = {name: i for i, name in enumerate(labels.classes, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for row in labels.given.itertuples():
        box = _coco_image(images, labels.folder, str(row.path))
        images[-1] |= {"flagged": True} if row.flagged else {}
        images[-1] |= {"note": row.note} if row.note else {}
        for name in labels.names(str(row.label)):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    **box,
                    "category_id": category[name],
                    "area": box["bbox"][2] * box["bbox"][3],
                    "iscrowd": 0,
                }
            )
    written = [path]
    if labels.predicted is not None:
        for row in labels.predicted.to_dict("records"):
            box = _coco_image(images, labels.folder, row["path"])
            scores = {row["predicted"]: row["confidence"]} if not labels.multi else {
                name: row[f"p({name})"] for name in labels.classes
            }  # fmt: skip
            results += [
                {**box, "category_id": category[name], "score": round(float(score), 6)}
                for name, score in scores.items()
            ]
        written.append(path.with_name(f"{path.stem}-predictions.json"))
        write_json(written[-1], results)
    categories = [{"id": i, "name": name} for name, i in category.items()]
    write_json(path, {"images": images, "annotations": annotations, "categories": categories})
    return written


def _coco_image(images: list[dict[str, Any]], folder: Path, name: str) -> dict[str, Any]:
    """Add an image to the list; return its id and the box around it."""
    with Image.open(locate(folder, name)) as image:
        width, height = image.size
    number = len(images) + 1
    images.append({"id": number, "file_name": name, "width": width, "height": height})
    return {"image_id": number, "bbox": [0, 0, width, height]}
