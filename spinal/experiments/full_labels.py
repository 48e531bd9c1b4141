"""A few chosen labels compared with all labels: SPN-CNN, and an SPN on raw pixels.

The paper compares the accuracy of SPN-CNN on MNIST, with 1,000 labels that it chose, with the
accuracy of SPNs on pixels with the complete training set. Here both are measured: the first in runs
of a protocol, the second by training a DGC-SPN on the grid of pixels, in mini-batches. The SPN on
pixels is also trained with the same small number of labels, drawn at random.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinal.circuits import Circuit, Recipe, train_circuit
from spinal.data import dataset_name, dataset_names, load_dataset, make_splits
from spinal.errors import SpinalError, suggestion
from spinal.experiments.grid import run_grid
from spinal.experiments.measurements import Measurement, StepBar
from spinal.experiments.protocol import load_protocol
from spinal.experiments.runs import Run
from spinal.experiments.scales import ExperimentFiles
from spinal.experiments.tables import check_keys, circuit_recipe
from spinal.networks.network import derived_seed
from spinal.runs import seed_of, write_lines
from spinal.runs.metrics import evaluate
from spinal.settings import to_mapping

METHOD, ACQUISITION = "spn-cnn", "margin"


@dataclass(frozen=True)
class FullLabels:
    """The settings of an experiment; the seed comes with each measurement.

    Attributes:
        name: Name of the folder with the seeds.
        title: Title for tables.
        dataset: A dataset of images with one channel.
        few: The small number of labels, for SPN-CNN and for the second SPN on pixels.
        chosen: Protocols whose runs of SPN-CNN are used, in order of preference. If there are no
            runs, the runs of the last protocol are executed.
        test: Number of test points, drawn at random; None for all.
        circuit: ``preset`` and ``recipe`` of the SPN on pixels. Its grid is the grid of pixels.
    """

    name: str
    title: str = ""
    dataset: str = "mnist"
    few: int = 1000
    chosen: tuple[str, ...] = ("mnist",)
    test: int | None = None
    circuit: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if dataset_name(self.dataset) not in dataset_names():
            hint = suggestion(self.dataset, dataset_names())
            raise SpinalError(f"{self.name}: no dataset {self.dataset!r}: {hint}")
        if not self.chosen or self.few < 1:
            raise SpinalError(f"{self.name}: chosen names a protocol or more, few is 1 or more")
        # Mistakes in a file are reported before anything is trained.
        check_keys(self.circuit, ("preset", "recipe"), f"{self.name}: circuit")
        self.recipe()
        for protocol in self.chosen:
            load_protocol(protocol)

    def recipe(self) -> Recipe:
        """The settings of the circuit."""
        return circuit_recipe(self.circuit, f"{self.name}: circuit")

    def to_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for TOML or JSON."""
        return to_mapping(self)


#: The experiments that come with spinal, and any others in a TOML file.
EXPERIMENTS = ExperimentFiles(FullLabels, "full", "experiment")


def run_experiment(
    experiment: FullLabels,
    seeds: Sequence[int],
    out: Path,
    runs: Path,
    data_dir: str | Path | None = None,
) -> None:
    """Execute the unfinished parts; write results of SPN-CNN to ``<out>/<name>/chosen.jsonl``.

    Args:
        experiment: The settings.
        seeds: Seeds of the SPNs on pixels, and of runs that have to be executed.
        out: The folder of the seeds.
        runs: The folder of runs of active learning, as written by `spinal run`.
        data_dir: The first folder to search for datasets.
    """
    with StepBar() as bar:
        for seed in seeds:
            _train(Measurement(experiment, seed, out), data_dir, bar)
    chosen_file = out / experiment.name / "chosen.jsonl"
    lines = chosen_runs(experiment, runs)
    if not lines and not chosen_file.exists():
        protocol = load_protocol(experiment.chosen[-1])
        grid = [Run(protocol, METHOD, ACQUISITION, seed, runs) for seed in seeds]
        run_grid(grid, data_dir=data_dir)
        lines = chosen_runs(experiment, runs)
    if lines:
        write_lines(chosen_file, lines)


def chosen_runs(experiment: FullLabels, runs: Path) -> list[dict[str, Any]]:
    """Accuracies of SPN-CNN with ``few`` labels, from runs of the first protocol that has any."""
    for name in experiment.chosen:
        protocol, lines = load_protocol(name), []
        folders = runs.glob(f"{protocol.name}/{METHOD}-{ACQUISITION}/seed-*")
        seeds = [seed for seed in map(seed_of, folders) if seed is not None]
        for run in (Run(protocol, METHOD, ACQUISITION, seed, runs) for seed in seeds):
            lines += [
                {
                    "protocol": protocol.name, "acquisition": ACQUISITION, "seed": run.seed,
                    "labels": record.labels,
                    "accuracy": record.accuracy, "network_accuracy": record.network_accuracy,
                }
                for record in run.rounds()
                if record.labels == experiment.few
            ]  # fmt: skip
        if lines:
            return sorted(lines, key=lambda line: line["seed"])
    return []


def pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images ``[N, H, W, 1]`` as features ``[N, H W]`` from 0 to 1, row by row."""
    if images.shape[3] != 1:
        raise SpinalError(f"images of shape {images.shape[1:]}: they must have one channel")
    return images.reshape(len(images), -1) / np.float32(255)


def _train(measurement: Measurement, data_dir: str | Path | None, bar: StepBar) -> None:
    """Train the SPN on pixels with all labels and with few, and store its accuracy."""
    experiment, seed = measurement.experiment, measurement.seed
    assert isinstance(experiment, FullLabels)
    if len(measurement.parts()) == 2:
        bar.say(f"{experiment.name} seed {seed}: done before")
        return
    with measurement.working():
        dataset = load_dataset(experiment.dataset, data_dir)
        n = len(dataset.train_labels)
        height, width = dataset.train_images.shape[1:3]
        for labels in (n, experiment.few)[len(measurement.parts()) :]:
            splits = make_splits(
                n, len(dataset.test_labels), validation=0, initial=labels, test=experiment.test,
                seed=seed,
            )  # fmt: skip
            start = time.perf_counter()
            circuit = train_circuit(
                torch.from_numpy(pixels(dataset.train_images[splits.initial])),
                torch.as_tensor(dataset.train_labels[splits.initial]),
                len(dataset.classes),
                experiment.recipe(),
                grid=(height, width),
                seed=derived_seed(seed, labels),
                on_step=bar.begin(f"{experiment.name} seed {seed}: {labels} labels"),
            )
            seconds = time.perf_counter() - start
            test = pixels(dataset.test_images[splits.test])
            part = {
                "labels": labels,
                **evaluate(_log_probs(circuit, test), dataset.test_labels[splits.test]),
                "parameters": sum(p.numel() for p in circuit.parameters()),
                "seconds": round(seconds, 1),
            }
            measurement.add(part)
            bar.say(
                f"{experiment.name} seed {seed}: SPN on pixels, {labels} labels, "
                f"accuracy {part['accuracy']:.4f}"
            )


@torch.no_grad()
def _log_probs(circuit: Circuit, z: NDArray[np.float32]) -> NDArray:
    return circuit.log_posterior(torch.from_numpy(z)).numpy()
