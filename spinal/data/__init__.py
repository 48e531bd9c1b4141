"""Datasets, image folders, splits, and the pool of labelled and unlabelled points."""

from spinal.data.datasets import (
    Dataset,
    DatasetRow,
    dataset_names,
    list_datasets,
    load_dataset,
)
from spinal.data.folders import load_csv, load_folder
from spinal.data.images import ImageFiles
from spinal.data.points import (
    UNLABELLED,
    ArrayPoints,
    LabelledPoints,
    Points,
    Skipped,
    as_points,
    from_arrays,
    iter_batches,
)
from spinal.data.pool import Pool
from spinal.data.splits import Splits, make_splits

__all__ = [
    "UNLABELLED",
    "ArrayPoints",
    "Dataset",
    "DatasetRow",
    "ImageFiles",
    "LabelledPoints",
    "Points",
    "Pool",
    "Skipped",
    "Splits",
    "as_points",
    "dataset_names",
    "from_arrays",
    "iter_batches",
    "list_datasets",
    "load_csv",
    "load_dataset",
    "load_folder",
    "make_splits",
]
