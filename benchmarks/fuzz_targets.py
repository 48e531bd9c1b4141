"""The targets of `benchmarks.fuzz`: each loader of spinal, with a sample file to damage."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SIDE = 8


class Target(NamedTuple):
    """A loader: what writes a whole sample into a folder, and what reads it."""

    make: Callable[[Path], None]
    load: Callable[[Path], Any]


def make_arrays(n: int = 12) -> tuple[Any, Any]:
    """Images and labels."""
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, SIDE, SIDE, 3), np.uint8), np.arange(n) % 3


def sign(path: Path) -> None:
    """Give half of the damaged models a checksum that fits, as by a program with a fault."""
    from safetensors import SafetensorError, safe_open

    from spinal.files import sign_tensors

    if random.random() < 0.5:
        try:
            with safe_open(path, framework="np") as file:
                said = (file.metadata() or {}).get("sha256")
        except (SafetensorError, OSError):
            return
        if said:
            sign_tensors(path, said)


def make_images(folder: Path) -> None:
    """An image in each format."""
    from PIL import Image

    for ending in ("png", "jpg", "webp", "gif", "bmp", "tif"):
        Image.fromarray(make_arrays()[0][0]).resize((40, 30)).save(folder / f"a.{ending}")
    Image.fromarray(make_arrays()[0][1]).resize((40, 30)).save(folder / "b.jpg", progressive=True)


def load_images(folder: Path) -> None:
    """Decode each."""
    from spinal.data.images import read_image
    from spinal.errors import SpinalError

    errors = []
    for path in sorted(folder.iterdir()):
        try:
            read_image(path, SIDE)
        except SpinalError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def make_csv(folder: Path) -> None:
    """A table of images."""
    make_images(folder)
    (folder / "a.csv").write_text("path,label\na.png,cat\nb.jpg,dog\n")


def load_csv(folder: Path) -> None:
    """The table, as data and as a simulated person's answers."""
    from spinal.data import load_csv
    from spinal.label.known.table import read_table

    read_table(folder / "a.csv")
    load_csv(folder / "a.csv", size=SIDE)


def make_protocol(folder: Path) -> None:
    """A protocol that comes with spinal."""
    from spinal.experiments.protocol import protocol_text

    (folder / "a.toml").write_text(protocol_text("digits"))


def load_protocol(folder: Path) -> None:
    """Read it."""
    from spinal.experiments.protocol import load_protocol

    load_protocol(folder / "a.toml")


def make_npz(folder: Path) -> None:
    """A dataset of our own."""
    import numpy as np

    images, labels = make_arrays()
    for part in ("train", "test"):
        np.savez(folder / f"{part}.npz", images=images, labels=labels)


def load_npz(folder: Path) -> None:
    """Read it."""
    from spinal.data.formats import DataFile, read_npz

    read_npz([DataFile(folder / "train.npz"), DataFile(folder / "test.npz")])


def make_circuit(folder: Path) -> None:
    """A circuit."""
    from spinal.circuits import RandomSPN

    RandomSPN(4, 3).save(folder / "a.safetensors")


def load_circuit(folder: Path) -> None:
    """Read it."""
    from spinal.circuits import Circuit

    sign(folder / "a.safetensors")
    Circuit.load(folder / "a.safetensors")


def make_network(folder: Path) -> None:
    """A network."""
    from spinal import networks

    networks.save(networks.build_network("dense", (SIDE,), 3), folder / "a.safetensors")


def load_network(folder: Path) -> None:
    """Read it."""
    from spinal import networks

    sign(folder / "a.safetensors")
    networks.load(folder / "a.safetensors")


def _pool() -> Any:
    import numpy as np

    from spinal import Pool

    return Pool(np.random.default_rng(0).normal(size=(30, SIDE)).astype("f4"), ("a", "b", "c"))


def make_learner(folder: Path) -> None:
    """A learner, fitted."""
    import numpy as np

    from spinal import ActiveLearner

    learner = ActiveLearner(_pool(), "dense", device="cpu")
    learner.tell(np.arange(12), np.arange(12) % 3)
    learner.fit()
    shutil.rmtree(folder)
    learner.save(folder)


def load_learner(folder: Path) -> None:
    """Read it; half of the damaged ones get checksums that fit, as by a program with a fault."""
    from spinal import ActiveLearner
    from spinal.files import write_checksums

    if len((folder / "learner.json").read_bytes()) % 2 or random.random() < 0.5:
        write_checksums(folder)
    ActiveLearner.load(folder, _pool(), device="cpu")


def make_project(folder: Path) -> None:
    """A project of the page, with answers and beliefs."""
    import numpy as np

    from spinal.label.learning.beliefs import Beliefs
    from spinal.label.store.project import open_project
    from spinal.label.store.store import Answer

    make_images(folder)
    project = open_project(folder, classes=("cat", "dog"), encoder="pixels")
    project.scan()
    project.store.answer([Answer("t", 1, "cat")], "ada")
    images, probs = np.arange(1, 8), np.full((7, 2), 0.5, np.float32)
    beliefs = Beliefs(1, ("cat", "dog"), images, probs, probs[:, 0], images, probs)
    beliefs.save(project.beliefs_file)
    project.learnt_file.write_text('{"model": "", "labels": {"1": "cat"}}')
    project.close()


def make_text_project(folder: Path) -> None:
    """A project of texts."""
    from spinal.label.store.project import open_project

    for i in range(8):
        (folder / f"{i}.txt").write_text(f"a text about {'cats' if i % 2 else 'dogs'}, {i}\n")
    project = open_project(folder, classes=("cat", "dog"))
    project.scan()
    project.close()


def load_project(folder: Path) -> None:
    """Open it, and ask for what the page shows."""
    from spinal.label.learning.learnt import model_age
    from spinal.label.store.project import open_project
    from spinal.label.web.views import Views

    project = open_project(folder)
    try:
        project.scan()
        project.check(sorted(project.store.paths()))
        views = Views(project)
        views.outliers(0, 10)
        views.mistakes()
        project.store.questions.ask("c", "ada", 4)
        model_age(project)
        project.store.check()
    finally:
        project.close()


def make_run(folder: Path) -> None:
    """Settings and lines of a run."""
    from spinal.runs.lines import write_lines

    write_lines(folder / "rounds.jsonl", [{"round": i, "accuracy": 0.5} for i in range(4)])
    (folder / "run.toml").write_text('[protocol]\nname = "digits"\n')


def load_run(folder: Path) -> None:
    """Read them."""
    from spinal.runs.folder import read_settings
    from spinal.runs.lines import read_lines

    read_settings(folder)
    read_lines(folder / "rounds.jsonl")


def make_idx(folder: Path) -> None:
    """MNIST's four files, two of them compressed."""
    import gzip

    import numpy as np

    images, labels = make_arrays()
    for name, array in (("i", images[..., 0]), ("l", labels.astype(np.uint8))):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (folder / name).write_bytes(header + array.tobytes())
        (folder / f"{name}.gz").write_bytes(gzip.compress(header + array.tobytes()))


def load_idx(folder: Path) -> None:
    """Read them."""
    from spinal.data.formats import DataFile, read_idx

    read_idx([DataFile(folder / name) for name in ("i", "l", "i.gz", "l.gz")])


def make_cifar(folder: Path) -> None:
    """Batches of CIFAR-10, pickled and binary, and an archive of them."""
    import pickle
    import tarfile

    import numpy as np

    pixels = np.random.default_rng(0).integers(0, 256, (2, 3072), np.uint8)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        batch = {b"data": pixels, b"labels": [1, 2]}
        (folder / f"python-{protocol}").write_bytes(pickle.dumps(batch, protocol))
    (folder / "a.bin").write_bytes(np.insert(pixels, 0, 1, axis=1).tobytes())
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            archive.add(folder / "python-2", f"cifar/{name}")


def load_cifar(folder: Path) -> None:
    """Read them all."""
    from spinal.data import formats

    pickled = sorted(folder.glob("python-*"))
    readers = [(formats.read_cifar_python, pickled), (formats.read_cifar_archive, ["a.tar.gz"]),
               (formats.read_cifar_binary, ["a.bin", "a.bin"])]  # fmt: skip
    _read_each(folder, readers)


def make_matlab(folder: Path) -> None:
    """SVHN's files, compressed and not."""
    import numpy as np
    import scipy.io

    images, labels = make_arrays()
    variables = {"X": np.moveaxis(images, 0, 3), "y": (labels + 1).astype(np.uint8)[:, None]}
    for name, compressed in (("a", True), ("b", False)):
        scipy.io.savemat(folder / f"{name}.mat", variables, do_compression=compressed)


def load_matlab(folder: Path) -> None:
    """Read them."""
    from spinal.data import formats

    _read_each(folder, [(formats.read_svhn_mat, [name, name]) for name in ("a.mat", "b.mat")])


def _read_each(folder: Path, readers: Any) -> None:
    """Read with all readers, whatever others refuse."""
    from spinal.data.formats import DataFile
    from spinal.errors import SpinalError

    errors = []
    for read, names in readers:
        try:
            read([DataFile(folder / name) for name in names])
        except SpinalError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def make_classifier(folder: Path) -> None:
    """An exported classifier of images."""
    import numpy as np

    from spinal import ActiveLearner, Pool
    from spinal.encoders import build_from_scratch
    from spinal.label.exports.classifier import ImageClassifier
    from spinal.networks import TrainSettings

    classes = ("a", "b", "c")
    network = build_from_scratch("lenet", 16, 3)
    images = np.random.default_rng(0).integers(0, 256, (24, 16, 16, 3), np.uint8)
    training = TrainSettings(min_steps=5, max_steps=5)
    learner = ActiveLearner(Pool(images, classes), network, training=training, device="cpu")
    learner.tell(np.arange(24), np.arange(24) % 3)
    learner.fit()
    classifier = ImageClassifier.from_whole_network(
        learner.network, learner.posterior, classes, "lenet@16"
    )
    classifier.save(folder / "classifier.safetensors")


def load_classifier(folder: Path) -> None:
    """Read it, and predict."""
    import numpy as np

    from spinal.label.exports.classifier import ImageClassifier

    sign(folder / "classifier.safetensors")
    classifier = ImageClassifier.load(folder / "classifier.safetensors")
    classifier.predict(classifier.encoder.embed([np.zeros((16, 16, 3), np.uint8)]))


def make_body() -> Any:
    """A small network for images."""
    from torch import nn

    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU(), nn.Flatten())


def make_weights(folder: Path) -> None:
    """Weights of an encoder."""
    from safetensors.torch import save_file

    save_file(make_body().state_dict(), folder / "weights.safetensors")


def load_weights(folder: Path) -> None:
    """Read them."""
    from spinal.encoders import load_encoder

    name = "benchmarks.fuzz_targets:make_body"
    load_encoder(name, folder / "weights.safetensors", device="cpu")


TARGETS = {
    "images": Target(make_images, load_images),
    "csv": Target(make_csv, load_csv),
    "protocol": Target(make_protocol, load_protocol),
    "npz": Target(make_npz, load_npz),
    "circuit": Target(make_circuit, load_circuit),
    "network": Target(make_network, load_network),
    "learner": Target(make_learner, load_learner),
    "project": Target(make_project, load_project),
    "run": Target(make_run, load_run),
    "idx": Target(make_idx, load_idx),
    "cifar": Target(make_cifar, load_cifar),
    "matlab": Target(make_matlab, load_matlab),
    "classifier": Target(make_classifier, load_classifier),
    "weights": Target(make_weights, load_weights),
}
