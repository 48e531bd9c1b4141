"""Whole networks behind the page: from scratch, or fine-tuned, up to the exported classifier."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from rich.console import Console
from starlette.testclient import TestClient

from spinal.commands.label import _introduce
from spinal.encoders import build_fine_tuned, load_encoder
from spinal.encoders.trained import SCRATCH, SIZE
from spinal.errors import SpinalError
from spinal.label.exports import fitted
from spinal.label.exports.classifier import ImageClassifier
from spinal.label.exports.export import export_model
from spinal.label.exports.fitted import load_classifier
from spinal.label.exports.predictions import predict
from spinal.label.learning import rounds, worker
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.worker import Worker
from spinal.label.store.networks import (
    WHOLE_NETWORKS,
    WholeNetwork,
    describe_network,
    parse_network,
)
from spinal.label.store.project import Project, open_project
from spinal.label.store.settings import ProjectSettings
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from spinal.networks import NetworkError, TrainSettings
from tests.label.conftest import CLASSES
from tests.label.files import make_images
from tests.label.people import label, work

OWN = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 24, 3))
"""


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Projects that train a whole network: a narrow one, briefly."""
    for name in SCRATCH:
        monkeypatch.setitem(SCRATCH, name, 0.25 * SCRATCH[name])
    for module in (rounds, fitted):
        monkeypatch.setattr(module, "build_fine_tuned", partial(build_fine_tuned, width=32))
    quick = TrainSettings(min_steps=60, max_steps=60, learning_rate=3e-3)
    for settings in ("SCRATCH", "RESNET_SLIM", "FINE_TUNED"):
        monkeypatch.setattr(rounds, settings, quick)
    monkeypatch.setattr(worker, "QUIET", 0.0)
    (tmp_path / "own.py").write_text(OWN)
    make_images(tmp_path / "images", 40)

    def start(network: str) -> Project:
        encoder = f"{tmp_path / 'own.py'}:make@16"
        project = open_project(
            tmp_path / "images", classes=CLASSES, encoder=encoder, network=network
        )
        project.scan()
        return project

    return start


@pytest.mark.parametrize(
    "network",
    [
        "fine-tuned",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("lenet@16", "resnet-slim@16", "vgg@16")
        ),
    ],
)
def test_from_the_first_question_to_the_exported_classifier(
    tmp_path: Path, begin: Any, network: str
) -> None:
    project, said = begin(network), []
    busy = Worker(project, said.append)
    work(busy)
    assert "coverage" in {q.reason for q in project.store.questions.ask("tab", "ada", 9)}
    label(project, 24)
    work(busy)
    assert any(each["state"] == "fitting" and each.get("total") == 60 for each in said)
    last = project.store.rounds()[-1]
    assert last["correct"] >= last["audited"] - 1  # three colours
    beliefs = Beliefs.load(project.beliefs_file)

    # The same from the files, and from what is exported.
    rows = project.store.images()
    paths = [project.path(row["path"]) for row in rows]
    found = predict(project, paths).probabilities
    at = [i for i, row in enumerate(rows) if beliefs.row(row["id"]) is not None]
    assert len(at) >= 34  # all but those for testing that have no answer
    believed = beliefs.probs[[beliefs.row(rows[i]["id"]) for i in at]]
    np.testing.assert_allclose(found[at], believed, atol=1e-4)
    out = tmp_path / "out"
    out.mkdir()
    load_classifier(project).save(out / "classifier.safetensors")
    encoder = None
    if network == "fine-tuned":  # its code is the user's, and not run because a file names it
        with pytest.raises(SpinalError, match="pass that encoder"):
            ImageClassifier.load(out / "classifier.safetensors")
        encoder = load_encoder(f"{project.settings.encoder}={out / 'trunk.safetensors'}")
    again = ImageClassifier.load(out / "classifier.safetensors", encoder)
    pixels = np.stack([again.encoder.prepare(Image.open(path)) for path in paths[:5]])
    np.testing.assert_allclose(again.predict(again.encoder.embed(pixels))[0], found[:5], atol=1e-4)
    if network == "lenet@16":  # ONNX takes its time, and is the same for all
        export_model(project, out)
        assert {path.name for path in out.iterdir()} == {
            "classifier.safetensors", "standalone.py", "classifier.onnx", "trunk.safetensors",
        }  # fmt: skip
        session = onnxruntime.InferenceSession(out / "classifier.onnx")
        (from_onnx,) = session.run(["probabilities"], {"pixels": pixels})
        np.testing.assert_allclose(from_onnx, found[:5], atol=1e-4)
    project.close()

    changed = open_project(tmp_path / "images", network="dense")
    with pytest.raises(SpinalError, match="its model is not a dense layer on features by"):
        load_classifier(changed)
    changed.close()


def test_a_round_looks_at_some_of_many_images(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WHOLE_NETWORKS, "lenet", WholeNetwork(labels=100, candidates=7, size=16))
    project = begin("lenet")
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 14)
    work(busy)
    beliefs = Beliefs.load(project.beliefs_file)
    others = {r["id"] for r in project.store.images() if not r["label"] and not r["reserved"]}
    assert len(set(beliefs.images.tolist()) & others) == 7
    labelled = {row["id"] for row in project.store.labelled()}
    assert labelled <= set(beliefs.images.tolist())
    asked = {q.image for q in project.store.questions.ask("tab", "ada", 9) if q.round}
    assert len(asked) >= 5
    project.close()


def test_fine_tuning_starts_from_the_encoder_and_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    encoder = load_encoder(f"{tmp_path / 'own.py'}:make@16", device="cpu")
    before = encoder.fingerprint
    network = build_fine_tuned(encoder, 3).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), np.uint8)
    inside = network.body[1](network.body[0](network.to_input(pixels)))
    np.testing.assert_allclose(inside.detach(), encoder.embed(pixels), atol=1e-5)
    for parameter in network.parameters():
        assert parameter.requires_grad
        parameter.data.zero_()
    assert encoder._fingerprint(encoder.source) == before
    with pytest.raises(NetworkError, match="pixels@8 has no weights"):
        build_fine_tuned(load_encoder("pixels@8", device="cpu"), 3)


def test_too_few_labels_are_warned_of(begin: Any) -> None:
    """On the page and on the command line, until there are enough."""
    project = begin("lenet@16")
    client = TestClient(
        Server(project, Rules("127.0.0.1", 8421, None)).app, base_url="http://127.0.0.1:8421"
    )
    state = client.get("/api/state").json()
    assert state["model"] == "lenet, from scratch, on images of 16 px"
    assert "too few labels for that (0; some 300 would do)" in state["warning"]
    console = Console(record=True, width=500)
    _introduce(project, console)
    shown = console.export_text()
    assert "model: lenet, from scratch" in shown
    assert "warning: lenet learns from scratch: too few labels" in shown
    project.close()
    enough = ProjectSettings(CLASSES, network="lenet@16")
    assert enough.warning(299) is not None
    assert enough.warning(300) is None
    assert ProjectSettings(CLASSES, network="fine-tuned").warning(89) is not None
    assert ProjectSettings(CLASSES).warning(0) is None


def test_networks_by_name() -> None:
    assert parse_network("dense")[1] is None
    assert parse_network("vgg")[2] == SIZE
    assert set(SCRATCH) == {name for name, whole in WHOLE_NETWORKS.items() if whole.size}
    assert describe_network("fine-tuned", "timm:resnet18") == "timm:resnet18, fine-tuned"
    for wrong in ("lenett", "dense@32", "fine-tuned@64", "lenet@", "lenet@4", "lenet@x", ""):
        with pytest.raises(SpinalError, match=r"network|size"):
            ProjectSettings(CLASSES, network=wrong)
