"""Use an installed spinal as a newcomer would; the argument is the extra that was installed.

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


def command(*arguments: str) -> str:
    """What ``spinal`` prints; the script ends if the command fails."""
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
    """The annotations of the installed package are seen by mypy."""
    Path("uses_spinal.py").write_text(
        "from spinal import load_dataset\nreveal_type(load_dataset('digits').classes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "uses_spinal.py"],
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert re.search(r"tuple\[(builtins\.)?str, \.\.\.\]", done.stdout), done.stdout


def check_label() -> None:
    """A simulated person answers; labels, predictions and (with onnx) the classifier come out."""
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


def check_tune() -> None:
    """Optuna is found."""
    assert "optuna" in command("tune", "--help")
    import optuna  # noqa: F401


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
    """Check what the extra brings, and what needs none."""
    extra = sys.argv[1] if len(sys.argv) > 1 else ""
    if not extra:
        check_base()
        return
    check_imports(extra)
    own = {"label": check_label, "ray": check_ray, "tune": check_tune}.get(extra)
    if own is not None:
        own()


if __name__ == "__main__":
    main()
