"""The classifier without its learner: the same numbers from a file, from ONNX, from elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from spinal import ActiveLearner, Pool, load_dataset
from spinal.circuits import DGCSPN, Circuit, RandomSPN, Recipe
from spinal.circuits.training import FitSettings
from spinal.encoders import encode, load_encoder
from spinal.errors import FileFormatError, SpinalError
from spinal.files import write_tensors
from spinal.label.exports import standalone
from spinal.label.exports.classifier import ImageClassifier
from spinal.label.exports.onnx_file import ExportError, write_onnx
from spinal.networks import TrainSettings, build_network
from spinal.posteriors import SPN

DIGITS = load_dataset("digits")


#: All labels but those of one class, which then has to be guessed at.
KNOWN = np.flatnonzero(DIGITS.train_labels[:100] != 9)
QUICK = TrainSettings(min_steps=60, max_steps=60)
#: Encoder and settings of the posterior, and the classifiers that it consists of.
CASES: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "blend with trees": ("pixels@8", {}, {"spn", "logistic", "trees"}),
    "blend, many features": ("pixels@12", {"prior": "uniform"}, {"spn", "logistic"}),
    "trained circuit": ("pixels@8", {"recipe": Recipe(fit=FitSettings(steps=100))}, {"spn"}),
}


def fit(pool: Pool, network: Any, posterior: dict[str, Any]) -> ActiveLearner:
    learner = ActiveLearner(pool, network, posterior=posterior, training=QUICK, device="cpu")
    learner.tell(KNOWN, DIGITS.train_labels[KNOWN])
    learner.fit()
    return learner


@pytest.fixture(scope="module")
def cases() -> dict[str, tuple[ActiveLearner, ImageClassifier]]:
    """A learner, and the classifier that is left of it."""
    made = {}
    for case, (name, posterior, parts) in CASES.items():
        encoder = load_encoder(name, device="cpu")
        pool = Pool(encode(encoder, DIGITS.train_images[:150]), DIGITS.classes)
        learner = fit(pool, ("dense", {"width": 0.25}), posterior)
        assert isinstance(learner.posterior, SPN)
        assert set(learner.posterior.shares) == parts
        classifier = ImageClassifier.from_dense_network(
            learner.network, learner.posterior, DIGITS.classes, encoder
        )
        made[case] = (learner, classifier)
    return made


@pytest.fixture
def classifier(cases: dict[str, tuple[ActiveLearner, ImageClassifier]]) -> ImageClassifier:
    return cases["blend with trees"][1]


@pytest.fixture
def learner(cases: dict[str, tuple[ActiveLearner, ImageClassifier]]) -> ActiveLearner:
    return cases["blend with trees"][0]


@pytest.mark.parametrize(
    "circuit",
    [
        DGCSPN((4, 8), 5, seed=1),
        DGCSPN(n_features=30, n_classes=3, learn_scale=True, scale=0.7),
        RandomSPN(13, 4, depth=3, repetitions=3),
    ],
    ids=["grid", "padded, scales learned", "random"],
)
@pytest.mark.parametrize("far", [1, 1e4])
def test_plain_operations_say_what_the_circuit_says(circuit: Circuit, far: float) -> None:
    z = 3 + 2 * torch.randn(50, circuit.n_features, generator=torch.Generator().manual_seed(0))
    circuit.standardise(z)
    with torch.no_grad():
        log_probs, log_density = standalone.SumProduct(circuit.to_plain_arrays())(far * z)
        torch.testing.assert_close(log_probs, circuit.log_posterior(far * z), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(log_density, circuit.log_prob(far * z), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    "case",
    [
        "blend, many features",
        *(pytest.param(c, marks=pytest.mark.long) for c in ("blend with trees", "trained circuit")),
    ],
)
def test_says_what_the_learner_says(
    tmp_path: Path, cases: dict[str, tuple[ActiveLearner, ImageClassifier]], case: str
) -> None:
    learner, classifier = cases[case]
    features = learner.pool.points[np.arange(150)]
    said = classifier.predict(features)
    check_says_the_same(said, learner, features)
    assert (said[0][KNOWN].argmax(1) == DIGITS.train_labels[KNOWN]).mean() > 0.8
    classifier.to_onnx(tmp_path / "c.onnx", images=False)
    check_says_the_same(run_onnx(tmp_path / "c.onnx", features=features), learner, features)


@pytest.mark.long
def test_a_whole_network_says_what_the_learner_says(tmp_path: Path) -> None:
    images = DIGITS.train_images[:150].repeat(2, 1).repeat(2, 2).repeat(3, 3)
    learner = fit(Pool(images, DIGITS.classes), ("lenet", {"width": 0.25}), {})
    assert isinstance(learner.posterior, SPN)
    assert set(learner.posterior.shares) == {"spn", "logistic", "network"}
    classifier = ImageClassifier.from_whole_network(
        learner.network, learner.posterior, DIGITS.classes, "lenet@16"
    )
    check_says_the_same(classifier.predict(classifier.encoder.embed(images)), learner, images)
    classifier.to_onnx(tmp_path / "c.onnx")
    check_says_the_same(run_onnx(tmp_path / "c.onnx", pixels=images), learner, images)


def check_says_the_same(said: Sequence[Any], learner: ActiveLearner, points: Any) -> None:
    np.testing.assert_allclose(said[0], learner.predict_proba(points), atol=1e-5)
    np.testing.assert_allclose(said[1], learner.assess(points).log_density, rtol=1e-4)


def run_onnx(path: Path, **inputs: Any) -> Sequence[Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["probabilities", "log_density"], inputs)


def test_comes_back_from_its_file(
    tmp_path: Path, classifier: ImageClassifier, learner: ActiveLearner
) -> None:
    features = learner.pool.points[np.arange(20)]
    classifier.save(tmp_path / "c.safetensors")
    again = ImageClassifier.load(tmp_path / "c.safetensors")
    assert again.classes == DIGITS.classes
    assert again.encoder.name == "pixels@8"
    for a, b in zip(again.predict(features), classifier.predict(features), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_file_of_the_earlier_format_has_no_power(
    tmp_path: Path, classifier: ImageClassifier, learner: ActiveLearner
) -> None:
    tensors = classifier.module.tensors()
    power = float(tensors.pop("mixture/power"))
    header = {"classes": list(classifier.classes), "backbone": classifier.module.backbone}
    write_tensors(tmp_path / "c.safetensors", tensors, standalone.EARLIER[0], header)
    features = learner.pool.points[np.arange(20)]
    probs, expected = (
        c.predict(features)[0]
        for c in (ImageClassifier.load(tmp_path / "c.safetensors"), classifier)
    )
    assert power != 1
    powered = (probs / tensors["mixture/ratio"].numpy()) ** power * tensors["mixture/ratio"].numpy()
    np.testing.assert_allclose(powered / powered.sum(1, keepdims=True), expected, atol=1e-5)
    standalone.load(tmp_path / "c.safetensors")


def test_the_module_needs_no_spinal(
    tmp_path: Path, classifier: ImageClassifier, learner: ActiveLearner
) -> None:
    classifier.save(tmp_path / "c.safetensors")
    shutil.copy(standalone.__file__, tmp_path / "standalone.py")
    script = (
        "import sys, json, torch; sys.modules['spinal'] = None\n"
        "import standalone\n"
        "classifier = standalone.load('c.safetensors')\n"
        "probabilities, _ = classifier(torch.linspace(-1, 1, 192)[None])\n"
        "print(json.dumps([probabilities[0].tolist(), classifier.classes, classifier.backbone]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    probabilities, classes, backbone = json.loads(done.stdout)
    expected = classifier.predict(np.linspace(-1, 1, 192, dtype=np.float32)[None])[0][0]
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    assert tuple(classes) == DIGITS.classes
    assert (backbone["name"], backbone["size"]) == ("pixels@8", 8)


def test_onnx_takes_pixels(tmp_path: Path, classifier: ImageClassifier) -> None:
    path = tmp_path / "c.onnx"
    classifier.to_onnx(path)
    shown = DIGITS.test_images[:40]
    pixels = np.stack([classifier.encoder.prepare(image) for image in shown])
    probabilities, log_density = run_onnx(path, pixels=pixels)
    expected = classifier.predict(encode(classifier.encoder, shown))
    np.testing.assert_allclose(probabilities, expected[0], atol=1e-4)
    np.testing.assert_allclose(log_density, expected[1], rtol=1e-4)
    notes = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map
    assert notes["classes"].splitlines() == list(DIGITS.classes)
    assert list(tmp_path.iterdir()) == [path]


class Small(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.softmax(1), x.sum(1)


def test_an_export_that_differs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(onnxruntime.InferenceSession):
        def run(self, *arguments):
            return [output + 0.01 for output in super().run(*arguments)]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Wrong)
    with pytest.raises(ExportError, match=r"differs from PyTorch by 0\.01"):
        write_onnx(Small(), torch.zeros(2, 3), "x", tmp_path / "small.onnx", {})


def test_onnx_says_what_to_install(
    tmp_path: Path, classifier: ImageClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ExportError, match=r"pip install 'spinal\[onnx\]'"):
        classifier.to_onnx(tmp_path / "c.onnx")


def test_what_cannot_be_exported() -> None:
    encoder, posterior = load_encoder("pixels@8", device="cpu"), SPN()
    with pytest.raises(ExportError, match="one dense layer"):
        ImageClassifier.from_dense_network(
            build_network("lenet", (8, 8, 1), 10), posterior, "ab", encoder
        )
    with pytest.raises(ExportError, match="10 classes on 100 features, but pixels@8 has 192"):
        ImageClassifier.from_dense_network(
            build_network("dense", (100,), 10), posterior, DIGITS.classes, encoder
        )


def test_foreign_files_and_encoders(tmp_path: Path, classifier: ImageClassifier) -> None:
    path = tmp_path / "c.safetensors"
    classifier.save(path)
    with pytest.raises(SpinalError, match="other weights"):
        ImageClassifier.load(path, load_encoder("pixels", device="cpu"))
    path.write_bytes(b"something else")
    with pytest.raises(FileFormatError, match="not a safetensors file"):
        ImageClassifier.load(path)


def test_code_is_not_run_because_a_file_names_it(
    tmp_path: Path, classifier: ImageClassifier
) -> None:
    code = tmp_path / "own.py"
    code.write_text("raise SystemExit('it was run')")
    named = {**classifier.module.backbone, "name": f"{code}:make"}
    module = standalone.Classifier(classifier.module.tensors(), classifier.classes, named)
    ImageClassifier(classifier.encoder, module).save(tmp_path / "c.safetensors")
    with pytest.raises(SpinalError, match="pass that encoder"):
        ImageClassifier.load(tmp_path / "c.safetensors")
