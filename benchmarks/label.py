"""What a person gets from `spinal label`: accuracy for the same number of answers, and no waiting.

    SPINAL_DATA=... python benchmarks/label.py --out results/label.md

CIFAR-10 images are written as PNG files. For each seed a simulated person, wrong in 5 % of the
answers, labels through the HTTP interface of the page. The model that is left in the project is
tested on other images, beside the same learner and logistic regression that have as many answers
of the same person about images drawn at random. All see the same features. Then: latencies, seconds
for a fit, and the memory of server and worker with 100,000 files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinal import ActiveLearner, Pool, load_dataset
from spinal.label.cli import Page
from spinal.label.export import load_classifier
from spinal.label.project import Project, open_project
from spinal.label.simulate import Connection, Person, Session
from spinal.pretrained import FeatureCache, load_backbone


@dataclass
class Images:
    """Image files, their classes ``[N]``, and their features ``[N, D]``."""

    folder: Path
    names: list[str]
    labels: NDArray[np.int64]
    features: NDArray[np.float32]


def main() -> None:
    """Measure, and write a table."""
    options = read_options()
    options.place.mkdir(parents=True, exist_ok=True)
    lines = [f"`{' '.join(['python', 'benchmarks/label.py', *sys.argv[1:]])}`", ""]
    if options.seeds:
        lines += measure_accuracy(options)
    if options.files:
        lines += measure_memory(options)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--mistakes", type=float, default=0.05)
    parser.add_argument("--pace", type=float, default=1.0, help="seconds for an answer")
    parser.add_argument("--features", default="efficientnet-lite0")
    parser.add_argument("--files", type=int, default=100_000, help="for memory; 0: leave out")
    parser.add_argument("--place", type=Path, default=Path("label-benchmark"))
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


# Accuracy and latency


def measure_accuracy(options: argparse.Namespace) -> list[str]:
    """Tables of accuracies, latencies and seconds, over all seeds."""
    train, test, classes = prepare(options)
    accuracies: dict[str, list[float]] = {}
    waits: list[float] = []
    in_fits: list[bool] = []
    seconds: list[float] = []
    for seed in range(options.seeds):
        project, session, person = label(train, classes, seed, options)
        for name, value in compare(project, person, train, test, classes, seed).items():
            accuracies.setdefault(name, []).append(value)
        waits += session.waits
        in_fits += session.during_fits
        seconds += [row["seconds"] for row in project.store.rounds()]
        project.close()
    lines = [
        f"Accuracy on {options.tests} other images, percent; {options.budget} answers, "
        f"{options.mistakes:.0%} wrong, features {options.features}; mean (each seed)",
        "",
        "| | accuracy |",
        "|---|---|",
    ]
    for name, values in accuracies.items():
        each = ", ".join(f"{100 * value:.1f}" for value in values)
        lines.append(f"| {name} | **{100 * np.mean(values):.1f}** ({each}) |")
    lines += ["", "| | median | 99th percentile |", "|---|---|---|"]
    fitting = np.array(waits)[np.array(in_fits)]
    for name, values in (("all answers", np.array(waits)), ("while a fit ran", fitting)):
        if len(values):
            middle, last = 1000 * np.quantile(values, (0.5, 0.99))
            lines.append(f"| next image, ms, {name} ({len(values)}) | {middle:.0f} | {last:.0f} |")
    middle, last = np.quantile(seconds, (0.5, 0.99))
    lines.append(f"| a fit, s ({len(seconds)}) | {middle:.1f} | {last:.1f} |")
    return [*lines, ""]


def prepare(options: argparse.Namespace) -> tuple[Images, Images, list[str]]:
    """Images to be labelled, and others to test on, with their features."""
    data = load_dataset("cifar10")
    rng = np.random.default_rng(0)
    cache = FeatureCache(options.place / "features", load_backbone(options.features))
    made = []
    for part, n, points, labels in (
        ("train", options.images, data.train_images, data.train_labels),
        ("test", options.tests, data.test_images, data.test_labels),
    ):
        chosen = np.sort(rng.choice(len(labels), n, replace=False))
        folder = (options.place / part).absolute()
        names = write_images(folder, points[chosen])
        paths = [folder / name for name in names]
        cache.compute(paths, lambda done, of: show(f"features: {done} of {of}"))
        made.append(Images(folder, names, np.asarray(labels)[chosen], cache.get(paths)[0]))
    cache.close()
    return made[0], made[1], list(data.classes)


def write_images(folder: Path, images: NDArray[np.uint8]) -> list[str]:
    """Write images as PNG files, unless they are there; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{i:06}.png" for i in range(len(images))]
    for name, image in zip(names, images, strict=True):
        if not (folder / name).exists():
            Image.fromarray(image).save(folder / name)
    return names


def label(
    train: Images, classes: list[str], seed: int, options: argparse.Namespace
) -> tuple[Project, Session, Person]:
    """Let the simulated person label in a new project, until the last answer is learnt from."""
    home = options.place / f"project-{seed}"
    shutil.rmtree(home, ignore_errors=True)
    project = open_project(
        train.folder, home, classes=tuple(classes), budget=options.budget,
        features=options.features, seed=seed,
    )  # fmt: skip
    project.scan()
    shutil.copytree(options.place / "features", project.features_folder)  # the same for all seeds
    truth = {name: classes[c] for name, c in zip(train.names, train.labels, strict=True)}
    person = Person(truth, classes, mistakes=options.mistakes, seed=seed)
    with Page(project, "127.0.0.1", 0) as page:
        while page.supervisor.status["state"] in ("starting", "features"):
            time.sleep(0.2)
        session = person.label(
            page.link, options.budget, pace=options.pace,
            on_answer=lambda n: show(f"seed {seed}: {n} answers"),
        )  # fmt: skip
        while not learnt_all(project):
            time.sleep(0.5)
    return project, session, person


def learnt_all(project: Project) -> bool:
    """Whether the last fit was told all answers that it may be told."""
    progress, rounds = project.store.progress(), project.store.rounds()
    return bool(rounds) and rounds[-1]["trained_on"] == progress["labelled"] - progress["held_out"]


def compare(
    project: Project, person: Person, train: Images, test: Images, classes: list[str], seed: int
) -> dict[str, float]:
    """Accuracy of each model on the test images."""
    number = {name: i for i, name in enumerate(classes)}
    row_of = {name: i for i, name in enumerate(train.names)}
    rows = project.store.labelled()
    asked = np.array([row_of[row["path"]] for row in rows])
    said = np.array([number[row["label"]] for row in rows])
    learnt = np.array([not row["holdout"] for row in rows])
    drawn = np.random.default_rng(seed).choice(len(train.names), len(rows), replace=False)
    told = np.array([number[str(person.answer(train.names[i]))] for i in drawn])
    pool = train.features, classes
    kept = load_classifier(project).predict(test.features)[0].argmax(1)
    return {
        "spinal label, as it is left": float((kept == test.labels).mean()),
        "the same, fitted to its test answers too": refit(pool, asked, said, test, seed),
        "the same learner, random answers": refit(pool, drawn, told, test, seed),
        "logistic regression, random answers": logistic(train, drawn, told, test),
        "logistic regression, answers that spinal asked for": logistic(
            train, asked[learnt], said[learnt], test
        ),
    }


def refit(
    pool: tuple[NDArray[np.float32], list[str]],
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    test: Images,
    seed: int,
) -> float:
    """Accuracy of spinal's learner on these labels."""
    learner = ActiveLearner(Pool(*pool), "dense", seed=seed)
    learner.tell(rows, labels)
    learner.fit()
    return float((learner.predict(test.features) == test.labels).mean())


def logistic(
    train: Images, rows: NDArray[np.int64], labels: NDArray[np.int64], test: Images
) -> float:
    """Accuracy of logistic regression on these labels, its strength cross-validated."""
    model = make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(
            Cs=np.logspace(-4, 0, 5),
            cv=3,
            max_iter=500,
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ),
    )
    model.fit(train.features[rows], labels)
    return float(model.score(test.features, test.labels))


# Memory


def measure_memory(options: argparse.Namespace) -> list[str]:
    """Most memory that server and worker took, with many small files and 60 answers."""
    folder = (options.place / f"files-{options.files}").absolute()
    rng = np.random.default_rng(0)
    write_images(folder, rng.integers(0, 256, (options.files, 8, 8, 3), np.uint8))
    shutil.rmtree(folder / ".spinal", ignore_errors=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.monotonic()
    server = subprocess.Popen(
        [sys.executable, "-m", "spinal.cli", "label", str(folder), "--classes", "a,b,c",
         "--features", "pixels", "--port", str(port), "--no-browser"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        while "label at" not in server.stderr.readline():
            pass
        started = time.monotonic() - began
        link = f"http://127.0.0.1:{port}/"
        truth = {f"{i:06}.png": "abc"[i % 3] for i in range(options.files)}
        session = Person(truth, "abc").label(link, 60, pace=0.5)
        state = Connection(link).get("/api/state")
        while not (state["rounds"] and state["worker"]["state"] == "idle"):
            show(f"{options.files} files: {state['worker']}")
            time.sleep(2)
            state = Connection(link).get("/api/state")
        workers = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.pid)], capture_output=True, text=True,
            check=True,
        ).stdout.split()  # fmt: skip
        ready = time.monotonic() - began
        used = [peak_memory(pid) for pid in (server.pid, *map(int, workers))]
    finally:
        server.terminate()
        server.wait()
    middle, last = 1000 * np.quantile(session.waits, (0.5, 0.99))
    return [
        f"{options.files:,} files, features `pixels`: the page is up after {started:.1f} s, all "
        f"features and the last fit are there after {ready:.0f} s; server {used[0]:.0f} MB, "
        f"worker {max(used[1:]):.0f} MB at most; next image after {middle:.0f} ms (median), "
        f"{last:.0f} ms (99th percentile); a fit {state['rounds'][-1]['seconds']:.1f} s.",
        "",
    ]


def peak_memory(pid: int) -> float:
    """The most memory that a process had, in MB (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def show(text: str) -> None:
    """A line that the next one takes the place of, on a terminal."""
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        print(f"\r\033[K{text}", end="", flush=True)


if __name__ == "__main__":
    main()
