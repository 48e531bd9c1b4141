"""Datasets of texts, found as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spinal import ActiveLearner, Pool
from spinal.data import list_datasets, load_dataset
from spinal.errors import DataError
from spinal.experiments import load_protocol, make_runs, run_grid
from tests.label.texts import CLASSES, make_texts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "text" / "topics"
    folder.mkdir(parents=True)
    for name, n, seed in (("train", 60, 0), ("test", 40, 1)):
        texts, labels = make_texts(n, seed)
        pd.DataFrame({"text": texts, "label": labels}).to_csv(folder / f"{name}.csv", index=False)
    return tmp_path / "data"


def test_they_are_found_by_name(data: Path) -> None:
    topics = load_dataset("topics", data)
    assert topics.name == "topics"
    assert topics.classes == tuple(sorted(CLASSES))
    assert len(topics.train_labels) == 60
    assert topics.test_images.shape == (40, topics.train_images.shape[1])
    row = list_datasets(data)[-1]
    assert (row.name, row.train_shape, row.test_shape) == ("topics", (60,), (40,))
    pool = Pool(topics.train_images, topics.classes)
    learner = ActiveLearner(pool, "dense", seed=0)
    learner.tell(np.arange(20), topics.train_labels[:20])
    learner.fit()
    said = learner.predict_proba(topics.test_images).argmax(1)
    assert (said == topics.test_labels).mean() > 0.9


def test_a_missing_one_says_where_it_should_be(data: Path) -> None:
    with pytest.raises(
        DataError, match=r"no text/news in .*data \(with train\.csv and test\.csv\)"
    ):
        load_dataset("news", data)


def test_a_protocol_names_one(data: Path, tmp_path: Path) -> None:
    changes = ["dataset=topics", "initial=8", "batch=2", "rounds=1", "network.width=0.125"]
    steps = ["network.training.min-steps=3", "network.training.max-steps=3"]
    protocol = load_protocol("newsgroups", [*changes, *steps])
    runs = make_runs([protocol], ["spn-cnn"], [], [0], tmp_path / "runs")
    run_grid(runs, workers=1, data_dir=data)
    (settings,) = (tmp_path / "runs").rglob("run.toml")
    assert "topics" in settings.read_text()
    assert "fingerprint" in settings.read_text()
