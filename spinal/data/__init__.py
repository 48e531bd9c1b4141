"""Datasets, image folders, splits, and the pool of labelled and unlabelled points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinal.data.dataset import Dataset
    from spinal.data.datasets import DatasetRow, list_datasets, load_dataset
    from spinal.data.folders import load_csv, load_folder
    from spinal.data.images import ImageFiles
    from spinal.data.inputs import as_points, from_arrays
    from spinal.data.names import dataset_name, dataset_names
    from spinal.data.own import DataSettings, make_dataset
    from spinal.data.points import (
        UNLABELLED,
        ArrayPoints,
        LabelledPoints,
        Points,
        Skipped,
        iter_batches,
    )
    from spinal.data.pool import Pool
    from spinal.data.splits import Splits, make_splits

__all__ = [
    "UNLABELLED",
    "ArrayPoints",
    "DataSettings",
    "Dataset",
    "DatasetRow",
    "ImageFiles",
    "LabelledPoints",
    "Points",
    "Pool",
    "Skipped",
    "Splits",
    "as_points",
    "dataset_name",
    "dataset_names",
    "from_arrays",
    "iter_batches",
    "list_datasets",
    "load_csv",
    "load_dataset",
    "load_folder",
    "make_dataset",
    "make_splits",
]

_HOMES = {
    "UNLABELLED": "spinal.data.points",
    "ArrayPoints": "spinal.data.points",
    "DataSettings": "spinal.data.own",
    "Dataset": "spinal.data.dataset",
    "DatasetRow": "spinal.data.datasets",
    "ImageFiles": "spinal.data.images",
    "LabelledPoints": "spinal.data.points",
    "Points": "spinal.data.points",
    "Pool": "spinal.data.pool",
    "Skipped": "spinal.data.points",
    "Splits": "spinal.data.splits",
    "as_points": "spinal.data.inputs",
    "dataset_name": "spinal.data.names",
    "dataset_names": "spinal.data.names",
    "from_arrays": "spinal.data.inputs",
    "iter_batches": "spinal.data.points",
    "list_datasets": "spinal.data.datasets",
    "load_csv": "spinal.data.folders",
    "load_dataset": "spinal.data.datasets",
    "load_folder": "spinal.data.folders",
    "make_dataset": "spinal.data.own",
    "make_splits": "spinal.data.splits",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that reading images does not import scikit-learn and torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'spinal.data' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
