r"""Uncertainty alone: train on one dataset, then measure the uncertainty on another.

This is the paper's experiment on SVHN and CIFAR-10. Test points of the training dataset are
*inside*, test points of the other dataset *outside*, where a good posterior has a higher entropy.
One network is trained for each seed and shared by all methods; the ensemble trains further members.

The entropy of the prediction is measured, :math:`H[\frac1K \sum_k p(y \mid x, \omega_k)]`, with the
average over samples if there are several; the SPN's posterior is exact. Other scores of a method,
such as the density, are measured too.
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

from spinal import networks
from spinal.acquisition.scores import bald, margin, max_entropy
from spinal.data import dataset_name, dataset_names, load_dataset, make_splits
from spinal.data.inputs import as_points
from spinal.data.splits import shuffled
from spinal.errors import SpinalError, suggestion
from spinal.experiments.detection import detection, histogram
from spinal.experiments.measurements import Measurement, StepBar
from spinal.experiments.protocol import NetworkProtocol, Trained
from spinal.experiments.scales import ExperimentFiles
from spinal.experiments.tables import check_posteriors
from spinal.methods import find_method
from spinal.networks import NETWORKS, Network, build_network, compute_features
from spinal.networks.network import choose_device, derived_seed
from spinal.posteriors import FitContext, Posterior, View, make_posterior
from spinal.runs.metrics import evaluate
from spinal.runs.records import UNCERTAINTY_METHODS as METHODS
from spinal.settings import to_mapping

#: An outside set without another dataset: each pixel is taken from another test image.
PERMUTED = "permuted"

# What a seed is used for; see `derived_seed`.
_NETWORK, _POSTERIOR, _SAMPLES, _OUTSIDE = range(4)


@dataclass(frozen=True)
class Pair(Trained):
    """The settings of an experiment; the seed comes with each measurement.

    Attributes:
        name: Name of the folder with the seeds.
        title: Title for tables and plots.
        dataset: The training dataset; its test set is inside.
        outside: The dataset whose test set is outside; or ``permuted`` for the test images of
            ``dataset``, with each pixel taken from another test image.
        labels: Number of training points, drawn at random; None for all.
        test: Number of points inside and of points outside, drawn at random; None for all.
        network: The network, as in a protocol. It is neither retrained nor stopped early.
        posterior: Settings of posteriors, as in a protocol.
    """

    name: str
    title: str = ""
    dataset: str = "digits"
    outside: str = PERMUTED
    labels: int | None = None
    test: int | None = None
    network: NetworkProtocol = field(default_factory=NetworkProtocol)
    posterior: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, name, names in (
            ("dataset", dataset_name(self.dataset), dataset_names()),
            ("outside", dataset_name(self.outside), (*dataset_names(), PERMUTED)),
            ("network", self.network.name, NETWORKS),
        ):
            if name not in names:
                raise SpinalError(f"{self.name}: no {key} {name!r}: {suggestion(name, names)}")
        if self.network.early_stopping or self.network.retrain != "scratch":
            raise SpinalError(
                f"{self.name}: the network is trained once, to the end: leave out early-stopping "
                "and retrain"
            )
        # Mistakes in a file are reported before anything is trained.
        self.training()
        check_posteriors(self.posterior, f"{self.name}: posterior")

    def make_posterior(self, method: str) -> Posterior:
        """The posterior of a method, not yet fitted."""
        name = find_method(method).posterior
        return make_posterior(name, **self.posterior_settings(name))

    def to_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for TOML or JSON."""
        return to_mapping(self)


#: The pairs that come with spinal, and any others in a TOML file.
PAIRS = ExperimentFiles(Pair, "pairs", "pair")


def run_pairs(
    pairs: Sequence[Pair], seeds: Sequence[int], out: Path, data_dir: str | Path | None = None
) -> None:
    """Execute the unfinished measurements of all pairs and seeds."""
    measurements = [Measurement(pair, seed, out) for seed in seeds for pair in pairs]
    with StepBar() as bar:
        for measurement in measurements:
            missing = [
                m for m in METHODS if m not in {part["method"] for part in measurement.parts()}
            ]
            if not missing:
                bar.say(f"{measurement.experiment.name} seed {measurement.seed}: done before")
                continue
            with measurement.working():
                _Setting(measurement, data_dir, bar).compare(missing)


class _Setting:
    """The network of a measurement, and features of points under it."""

    def __init__(self, measurement: Measurement, data_dir: str | Path | None, bar: StepBar) -> None:
        assert isinstance(measurement.experiment, Pair)
        self.measurement, self.bar, self.pair = measurement, bar, measurement.experiment
        self.name = f"{self.pair.name} seed {measurement.seed}"
        pair, seed = self.pair, measurement.seed
        dataset = load_dataset(pair.dataset, data_dir)
        n = len(dataset.train_labels)
        splits = make_splits(
            n, len(dataset.test_labels), validation=0, seed=seed, test=pair.test,
            initial=n if pair.labels is None else pair.labels,
        )  # fmt: skip
        self.n_classes = len(dataset.classes)
        self.labels = torch.as_tensor(dataset.train_labels[splits.initial])
        self.test_labels = dataset.test_labels[splits.test]
        train, inside = dataset.train_images[splits.initial], dataset.test_images[splits.test]
        outside = self._outside(inside, data_dir)
        self.network = self._trained(train)
        self.bar.begin(f"{self.name}: features")
        self.train, self.inside, self.outside = map(self._view, (train, inside, outside))

    def compare(self, methods: Sequence[str]) -> None:
        """Fit and measure each method, and store the results."""
        for method in methods:
            part = self._measure(method)
            self.measurement.add(part)
            self.bar.say(
                f"{self.name}: {method}: accuracy {part['accuracy']:.4f}, "
                f"AUROC of entropy {part['scores']['entropy']['auroc']:.4f}"
            )
        self._network_file.unlink()

    @property
    def _network_file(self) -> Path:
        """The file of the network, deleted when the measurement is finished."""
        return self.measurement.folder / "network.safetensors"

    def _outside(self, inside: NDArray, data_dir: str | Path | None) -> NDArray:
        seed = derived_seed(self.measurement.seed, _OUTSIDE)
        if self.pair.outside == PERMUTED:
            return np.random.default_rng(seed).permuted(inside, axis=0)
        images = load_dataset(self.pair.outside, data_dir).test_images
        if images.shape[1:] != inside.shape[1:]:
            raise SpinalError(
                f"{self.pair.name}: images of {self.pair.outside} are {images.shape[1:]}, those "
                f"of {self.pair.dataset} {inside.shape[1:]}: they have to be alike"
            )
        return images[np.sort(shuffled(len(images), seed)[: self.pair.test])]

    def _trained(self, train: NDArray) -> Network:
        pair, seed = self.pair, derived_seed(self.measurement.seed, _NETWORK)
        network = build_network(
            pair.network.name, train.shape[1:], self.n_classes, seed=seed, **pair.network.options
        )
        rate = pair.training().dropout
        if rate is not None:
            networks.set_dropout(network, rate)
        if self._network_file.exists():
            networks.load_weights(network, self._network_file)
            return network.to(choose_device()).eval()
        network.preprocess.fit(train)
        networks.train(
            network, train, self.labels, pair.training(), seed=seed, device=choose_device(),
            on_step=self.bar.begin(f"{self.name}: network"),
        )  # fmt: skip
        networks.save(network, self._network_file)
        return network

    def _view(self, images: NDArray) -> View:
        features = compute_features(self.network, images)
        return View(self.network, as_points(images), np.arange(len(images)), features)

    def _measure(self, method: str) -> dict[str, Any]:
        posterior, seed = self.pair.make_posterior(method), self.measurement.seed
        start = time.perf_counter()
        context = FitContext(
            self.n_classes,
            derived_seed(seed, _POSTERIOR),
            self.pair.training(),
            on_step=self.bar.begin(f"{self.name}: {method}"),
        )
        posterior.fit(self.train, self.labels, context)
        fitted = time.perf_counter()
        seed = derived_seed(seed, _SAMPLES)
        views = {"inside": self.inside, "outside": self.outside}
        log_probs = {
            where: posterior.predict(view, seed=seed).unsqueeze(1) for where, view in views.items()
        }
        seconds = {"fit": fitted - start, "predict": time.perf_counter() - fitted}
        scores = {
            "entropy": {where: max_entropy(p) for where, p in log_probs.items()},
            "margin": {where: margin(p) for where, p in log_probs.items()},
        }
        if "samples" in posterior.provides:
            scores["mutual-information"] = {
                where: bald(posterior.sample(view, seed=seed)) for where, view in views.items()
            }
        if "log_density" in posterior.provides:
            scores["log-density"] = {
                where: -posterior.log_density(view) for where, view in views.items()
            }
        entropies = {where: values.numpy() for where, values in scores["entropy"].items()}
        return {
            "method": method,
            "classes": self.n_classes,
            **evaluate(log_probs["inside"][:, 0].numpy(), self.test_labels),
            "entropy": {
                where: {"mean": float(h.mean()), "histogram": histogram(h, self.n_classes)}
                for where, h in entropies.items()
            },
            "scores": {
                name: detection(values["inside"].numpy(), values["outside"].numpy())
                for name, values in scores.items()
            },
            "seconds": {phase: round(value, 2) for phase, value in seconds.items()},
        }
