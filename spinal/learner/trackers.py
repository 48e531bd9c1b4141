"""Callbacks that log to MLflow and to TensorBoard; both packages are optional."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinal.errors import SpinalError
from spinal.learner.callbacks import Callback

if TYPE_CHECKING:
    from spinal.learner.learner import ActiveLearner


class MLflow(Callback):
    """Logs each round as a step of an MLflow run; the step is the number of labels.

    Args:
        name: name of the run; None for MLflow's default.
        experiment: the MLflow experiment; created if it does not exist.
        tracking_uri: address of the server or folder; None for MLflow's default.

    Raises:
        SpinalError: if MLflow is not installed.
    """

    def __init__(
        self,
        name: str | None = None,
        experiment: str = "spinal",
        tracking_uri: str | None = None,
    ) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise SpinalError(
                f"MLflow is missing: pip install 'spinal[mlflow]' ({error})"
            ) from error
        # A client instead of MLflow's functions, which set a run for the complete process.
        self._client: Any = MlflowClient(tracking_uri=tracking_uri)
        known = self._client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else self._client.create_experiment(experiment)
        self.run_id: str = self._client.create_run(number, run_name=name).info.run_id

    def on_round(self, learner: ActiveLearner) -> None:
        self.on_measured(learner, _times(learner))

    def on_measured(self, learner: ActiveLearner, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            self._client.log_metric(self.run_id, key, value, step=_n_labels(learner))


class TensorBoard(Callback):
    """Writes each round to a folder for TensorBoard; the step is the number of labels.

    Args:
        folder: where to write.

    Raises:
        SpinalError: if TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise SpinalError(
                f"TensorBoard is missing: pip install 'spinal[tensorboard]' ({error})"
            ) from error
        self._writer: Any = SummaryWriter(str(folder))

    def on_round(self, learner: ActiveLearner) -> None:
        self.on_measured(learner, _times(learner))

    def on_measured(self, learner: ActiveLearner, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, _n_labels(learner))
        self._writer.flush()


def _n_labels(learner: ActiveLearner) -> int:
    return len(learner.pool.labelled_indices)


def _times(learner: ActiveLearner) -> dict[str, float]:
    """The seconds of each phase of the last round."""
    return {f"seconds/{phase}": seconds for phase, seconds in learner.seconds.items()}
