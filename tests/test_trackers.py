"""MLflow and TensorBoard as callbacks, with modules that only take notes in their place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spinal import ActiveLearner, Pool
from spinal.data import make_dataset
from spinal.errors import SpinalError
from spinal.experiments import Protocol, Run, make_runs, run_grid
from spinal.experiments.protocol import NetworkProtocol
from spinal.learner import Callback, MLflow, TensorBoard
from spinal.networks import TrainSettings

Y = np.arange(60) % 2
X = (np.random.default_rng(0).normal(size=(60, 3)) + 4 * Y[:, None]).astype(np.float32)


def fit(callback: Callback) -> None:
    training = TrainSettings(min_steps=3, max_steps=3)
    learner = ActiveLearner(Pool(X, 2), "dense", training=training, callbacks=[callback])
    learner.tell(np.arange(12), Y[:12])
    learner.fit()


class FakeClient:
    def __init__(self, tracking_uri: str | None) -> None:
        self.uri, self.logged = tracking_uri, []

    def get_experiment_by_name(self, name: str) -> None:
        return None

    def create_experiment(self, name: str) -> str:
        return f"number of {name}"

    def create_run(self, experiment: str, run_name: str | None) -> Any:
        return SimpleNamespace(info=SimpleNamespace(run_id=f"{run_name} in {experiment}"))

    def log_metric(self, run: str, key: str, value: float, step: int) -> None:
        self.logged.append((run, key, value, step))


def test_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mlflow")
    module.MlflowClient = FakeClient  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", module)
    callback = MLflow("mine", tracking_uri="here")
    assert callback._client.uri == "here"
    fit(callback)
    runs, keys, values, steps = zip(*callback._client.logged, strict=True)
    assert set(runs) == {"mine in number of spinal"}
    assert {"seconds/network", "seconds/posterior"} <= set(keys)
    assert min(values) >= 0
    assert set(steps) == {12}


def test_tensorboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notes: list[tuple] = []

    class FakeWriter:
        def __init__(self, folder: str) -> None:
            assert folder == str(tmp_path)

        def add_scalar(self, key: str, value: float, step: int) -> None:
            notes.append((key, step))

        def flush(self) -> None:
            notes.append(("flushed", 0))

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = FakeWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    fit(TensorBoard(tmp_path))
    assert ("seconds/network", 12) in notes
    assert notes[-1] == ("flushed", 0)


@pytest.mark.parametrize("make", [MLflow, lambda: TensorBoard("logs")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    for name in ("mlflow", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SpinalError, match=r"pip install 'spinal\[(mlflow|tensorboard)\]'"):
        make()


class Notes(Callback):
    """Writes what it is told to a file, as callbacks of a grid are in other processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_measured(self, learner: ActiveLearner, values: Any) -> None:
        with self.path.open("a") as file:
            print(len(learner.pool.labelled_indices), values["accuracy"], file=file)


def test_each_run_of_a_grid_has_callbacks_of_its_own(tmp_path: Path) -> None:
    network = NetworkProtocol("dense", width=0.125, training={"min-steps": 3, "max-steps": 3})
    protocol = Protocol("own", initial=8, batch=2, rounds=1, network=network)
    runs = make_runs([protocol], ["deterministic"], [], [0, 1], tmp_path / "runs")

    def make(run: Run) -> Sequence[Callback]:
        return [Notes(tmp_path / f"seed-{run.seed}.txt")]

    run_grid(runs, workers=1, dataset=make_dataset(X, Y), callbacks=make)
    for run in runs:
        lines = (tmp_path / f"seed-{run.seed}.txt").read_text().splitlines()
        assert [line.split()[0] for line in lines] == ["8", "10"]
        assert [float(line.split()[1]) for line in lines] == [r.accuracy for r in run.rounds()]
