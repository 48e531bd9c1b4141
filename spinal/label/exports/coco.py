"""COCO's JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from spinal.label.exports.labels import Labels, write_json
from spinal.label.store.pictures import locate


def write(labels: Labels, path: Path) -> list[Path]:
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
        write_json(written[-1], results)
    categories = [{"id": i, "name": name} for name, i in category.items()]
    write_json(path, {"images": images, "annotations": annotations, "categories": categories})
    return written


def _coco_image(images: list[dict[str, Any]], folder: Path, name: str) -> dict[str, Any]:
    """Add an image to the list; what refers to it, and to all of it."""
    with Image.open(locate(folder, name)) as image:
        width, height = image.size
    number = len(images) + 1
    images.append({"id": number, "file_name": name, "width": width, "height": height})
    return {"image_id": number, "bbox": [0, 0, width, height]}
