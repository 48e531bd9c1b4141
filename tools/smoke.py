"""Use an installed spinal as a new user would; the argument is the extra that was installed.

Run by `tools/release_check.py` in an empty environment, outside the repository.
"""

from __future__ import annotations

import csv
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import spinal
from spinal import ActiveLearner, Pool, SPNClassifier, load_dataset

#: Exit code of a check that is not possible here; the last line says why.
NOT_TESTED = 77


def command(*arguments: str) -> str:
    """Run ``spinal`` and return its output; the script ends if the command fails."""
    done = subprocess.run(
        [sys.executable, "-m", "spinal", *arguments], capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        sys.exit(f"spinal {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_base() -> None:
    """The library, the command line and the types."""
    assert (Path(spinal.__file__).parent / "py.typed").exists()
    assert command("--version").strip() == importlib.metadata.version("spinal")
    command("doctor")
    assert "1297" in command("datasets")

    digits = load_dataset("digits")
    pool = Pool(digits.train_images, digits.classes)
    learner = ActiveLearner(pool, "dense", method="spn-cnn")
    batch = learner.ask(30)
    for _ in range(3):
        learner.tell(batch, digits.train_labels[batch])
        learner.fit()
        batch = learner.ask(10)
    learner.save("learner")
    loaded = ActiveLearner.load("learner", Pool(digits.train_images, digits.classes))
    same = loaded.predict_proba(digits.test_images)
    np.testing.assert_allclose(learner.predict_proba(digits.test_images), same, atol=1e-5)

    vectors = digits.train_images[:300].reshape(300, -1) / 16.0
    spn = SPNClassifier().fit(vectors, digits.train_labels[:300])
    assert spn.score(vectors, digits.train_labels[:300]) > 0.9
    check_types()


def check_types() -> None:
    """Mypy sees the annotations of the installed package."""
    Path("uses_spinal.py").write_text(
        "from spinal import load_dataset\nreveal_type(load_dataset('digits').classes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "uses_spinal.py"],
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert re.search(r"tuple\[(builtins\.)?str, \.\.\.\]", done.stdout), done.stdout


def check_label() -> None:
    """A simulated person answers; labels are exported, and images are predicted."""
    folder = Path("photographs")
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for i in range(40):
        colour = ("dark", "light")[i % 2]
        pixels = rng.integers(0, 80, (32, 32, 3)) + (160 if colour == "light" else 0)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
        rows.append((f"{i}.png", colour))
    with Path("answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    command(
        "label", "photographs", "--classes", "dark,light", "--budget", "20", "--no-browser",
        "--port", "0", "--simulate", "answers.csv", "--pace", "0",
    )  # fmt: skip
    command("export", "photographs", "--to", "labels.csv")
    with Path("labels.csv").open() as file:
        assert len(list(csv.DictReader(file))) >= 20
    command("predict", "photographs", "photographs")


def check_ray() -> None:
    """Two short runs on a cluster of this machine."""
    options = ("--rounds", "0", "--method", "random", "--set", "network.name=dense")
    command("run", "digits", *options, "--engine", "ray", "--workers", "1")


def check_parquet() -> None:
    """A saved learner ranks a pool in a file."""
    digits = load_dataset("digits")
    vectors = digits.train_images.reshape(len(digits.train_images), -1).astype(np.float32)
    learner = ActiveLearner(Pool(vectors, digits.classes), "dense", method="logistic")
    batch = learner.ask(20)
    learner.tell(batch, digits.train_labels[batch])
    learner.fit()
    learner.save("model")
    np.save("pool.npy", vectors)
    command("rank", "pool.npy", "--model", "model", "--out", "ranked.parquet", "--workers", "1")
    assert Path("ranked.parquet").stat().st_size > 1000


def check_tune() -> None:
    """Optuna is found."""
    assert "optuna" in command("tune", "--help")
    import optuna  # noqa: F401


def check_onnx() -> None:
    """A classifier is written as an ONNX file, which computes the same results."""
    import torch

    from spinal.label.exports.onnx_file import write_onnx

    class Classifier(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            log_joint = super().forward(x)
            return log_joint.softmax(1), log_joint.logsumexp(1)

    write_onnx(Classifier(8, 3), torch.rand(4, 8), "features", Path("classifier.onnx"), {})


def check_tracker() -> None:
    """The callback of the extra logs a round."""
    from spinal.learner import MLflow, TensorBoard

    uri = f"sqlite:///{Path('logs.db').resolve()}"
    callback = MLflow(tracking_uri=uri) if sys.argv[1] == "mlflow" else TensorBoard(Path("logs"))
    digits = load_dataset("digits")
    pool = Pool(digits.train_images, digits.classes)
    learner = ActiveLearner(pool, "dense", method="logistic", callbacks=[callback])
    batch = learner.ask(20)
    learner.tell(batch, digits.train_labels[batch])
    learner.fit()


def check_timm() -> None:
    """A network from timm, with random weights, is wrapped as the network of a learner."""
    import timm

    from spinal.networks import wrap

    module = timm.create_model("resnet18", num_classes=10, in_chans=1)
    assert wrap(module, None, (32, 32, 1)) is not None


def require_torchvision() -> None:
    """End the script if torchvision was built for another PyTorch; timm does not work without."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError) as error:
        print(f"torchvision does not work with this PyTorch ({error})")
        sys.exit(NOT_TESTED)


def check_imports(extra: str) -> None:
    """Every package of the extra is installed and can be imported."""
    requirements = importlib.metadata.requires("spinal") or []
    wanted = [r for r in requirements if re.search(rf"extra == ['\"]{extra}['\"]", r)]
    assert wanted, f"no requirements of {extra!r}"
    distributions = importlib.metadata.packages_distributions()
    for requirement in wanted:
        name = _normal(re.split(r"[^\w.-]", requirement)[0])
        modules = [m for m, owners in distributions.items() if name in map(_normal, owners)]
        assert modules, f"{name} is not installed"
        for module in modules:
            if re.fullmatch(r"[a-zA-Z]\w*", module) and module != "tests":
                importlib.import_module(module)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Check the extra, or without one the base installation."""
    extra = sys.argv[1] if len(sys.argv) > 1 else ""
    if not extra:
        check_base()
        return
    if extra == "timm":
        require_torchvision()
    check_imports(extra)
    checks = {
        "label": check_label, "mlflow": check_tracker, "onnx": check_onnx,
        "parquet": check_parquet, "ray": check_ray, "tensorboard": check_tracker,
        "timm": check_timm, "tune": check_tune,
    }  # fmt: skip
    if extra in checks:
        checks[extra]()


if __name__ == "__main__":
    main()
