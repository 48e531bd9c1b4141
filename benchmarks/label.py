"""Accuracy and waiting times of `spinal label`, for a given number of answers.

    SPINAL_DATA=... python benchmarks/label.py --workers 2 --out results/label.md

CIFAR-10 images are written as PNG files, and their features are computed once. For each seed, a
simulated person with 5 % wrong answers labels in a new project through the HTTP interface of the
page. The final model is tested on other images. It is compared with the same learner and with
logistic regression, both trained on as many answers of the same person about random images. All use
the same features. The result of each seed is saved in a file, and not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from machine import commit
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinal import Pool, load_dataset
from spinal.encoders import FeatureCache, load_encoder
from spinal.files import write_text
from spinal.label.exports.fitted import load_classifier
from spinal.label.learning.rounds import make_learner
from spinal.label.store.project import Project, open_project
from spinal.label.store.settings import ProjectSettings
from spinal.label.web.serving import Page
from spinal.label.web.simulate import Person, Session

LABEL = "spinal label, as it is left"
WITHOUT = "the same, without the answers of the audit"
RANDOM = "the same learner, random answers"
LOGISTIC = "logistic regression, random answers"
LOGISTIC_ASKED = "logistic regression, answers that spinal asked for"


@dataclass
class Images:
    """Image files, their classes ``[N]``, and their features ``[N, D]``."""

    folder: Path
    names: list[str]
    labels: NDArray[np.int64]
    features: NDArray[np.float32]


def main() -> None:
    """Measure what is not measured yet, and write the tables."""
    options = read_options()
    options.place.mkdir(parents=True, exist_ok=True)
    prepare(options)  # once, before any other process needs them
    os.environ["OMP_NUM_THREADS"] = "1"  # in the processes that follow
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as processes:
        runs = list(processes.map(measure, range(options.seeds), [options] * options.seeds))
    text = "\n".join(report(runs, options)) + "\n"
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
    parser.add_argument("--workers", type=int, default=1, help="seeds at a time, a thread each")
    parser.add_argument("--mistakes", type=float, default=0.05)
    parser.add_argument("--pace", type=float, default=1.0, help="seconds for an answer")
    parser.add_argument("--features", default="efficientnet-lite0")
    parser.add_argument("--place", type=Path, default=Path("label-benchmark"))
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


# One seed


def measure(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """All that is measured with one seed; from its file, if it was measured before."""
    settings = {
        name: getattr(options, name)
        for name in ("images", "tests", "budget", "mistakes", "pace", "features")
    }
    file = options.place / f"seed-{seed}.json"
    if file.is_file():
        kept = json.loads(file.read_text())
        if kept["settings"] == settings:
            return kept
    train, test, classes = prepare(options)
    began = time.monotonic()
    project, session, person = label(train, classes, seed, options)
    found = {
        "seed": seed,
        "settings": settings,
        "commit": commit("spinal"),
        "workers": options.workers,
        "accuracies": compare(project, person, train, test, classes, seed),
        "waits": [1000 * wait for wait in session.waits],
        "states": session.states,
        "fits": [row["seconds"] for row in project.store.rounds()],
    }
    project.close()
    write_text(file, json.dumps(found))
    say(f"seed {seed}: measured in {time.monotonic() - began:.0f} s: {found['accuracies']}")
    return found


def prepare(options: argparse.Namespace) -> tuple[Images, Images, list[str]]:
    """Images to be labelled, and others to test on, with their features; made if need be."""
    data = load_dataset("cifar10")
    cache = FeatureCache(options.place / "features", load_encoder(options.features))
    made = []
    for part, n, points, labels in (
        ("train", options.images, data.train_images, data.train_labels),
        ("test", options.tests, data.test_images, data.test_labels),
    ):
        chosen = np.sort(np.random.default_rng(0).choice(len(labels), n, replace=False))
        folder = (options.place / f"{part}-{n}").absolute()
        names = write_images(folder, points[chosen])
        paths = [folder / name for name in names]
        cache.compute(paths, lambda done, of: say_some("features", done, of))
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
        encoder=options.features, seed=seed,
    )  # fmt: skip
    project.scan()
    # The same for all seeds. Nobody writes: what SQLite keeps beside its file holds nothing more.
    shutil.copytree(
        options.place / "features", project.features_folder,
        ignore=shutil.ignore_patterns("*-wal", "*-shm"),
    )  # fmt: skip
    truth = {name: classes[c] for name, c in zip(train.names, train.labels, strict=True)}
    person = Person(truth, classes, mistakes=options.mistakes, seed=seed)
    with Page(project, "127.0.0.1", 0) as page:
        while page.supervisor.status["state"] in ("starting", "features"):
            time.sleep(0.2)
        session = person.label(
            page.link, options.budget, pace=options.pace,
            on_answer=lambda n: say_some(f"seed {seed}: answers", n, options.budget, 50),
        )  # fmt: skip
        while not learnt_all(project):
            time.sleep(0.5)
    return project, session, person


def learnt_all(project: Project) -> bool:
    """Whether the model that is kept was told all answers."""
    file = project.model_folder / "pool.npz"
    try:
        with np.load(file) as kept:
            return len(kept["labels"]) == project.store.progress()["labelled"]
    except FileNotFoundError:  # also for the moment in which a newer model takes its place
        return False


def compare(
    project: Project, person: Person, train: Images, test: Images, classes: list[str], seed: int
) -> dict[str, float]:
    """Accuracy of each model on the test images."""
    number = {name: i for i, name in enumerate(classes)}
    row_of = {name: i for i, name in enumerate(train.names)}
    rows = project.store.labelled()
    asked = np.array([row_of[row["path"]] for row in rows])
    said = np.array([number[row["label"]] for row in rows])
    learnt = np.array([not row["reserved"] for row in rows])
    drawn = np.random.default_rng(seed).choice(len(train.names), len(rows), replace=False)
    told = np.array([number[str(person.answer(train.names[i]))] for i in drawn])
    pool = train.features, classes
    kept = load_classifier(project).predict(test.features)[0].argmax(1)
    return {
        LABEL: float((kept == test.labels).mean()),
        WITHOUT: refit(pool, asked[learnt], said[learnt], test, seed),
        RANDOM: refit(pool, drawn, told, test, seed),
        LOGISTIC: logistic(train, drawn, told, test),
        LOGISTIC_ASKED: logistic(train, asked[learnt], said[learnt], test),
    }


def refit(
    pool: tuple[NDArray[np.float32], list[str]],
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    test: Images,
    seed: int,
) -> float:
    """Accuracy of spinal's learner on these labels."""
    learner = make_learner(Pool(*pool), ProjectSettings(tuple(pool[1])), seed)
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
            scoring="accuracy",
            use_legacy_attributes=False,
        ),
    )
    model.fit(train.features[rows], labels)
    return float(model.score(test.features, test.labels))


# The tables


def report(runs: list[dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """Accuracies, latencies and seconds over all seeds."""
    waits = np.concatenate([run["waits"] for run in runs])
    states = np.concatenate([run["states"] for run in runs])
    seconds = np.concatenate([run["fits"] for run in runs])
    lines = [
        f"`python benchmarks/label.py {' '.join(sys.argv[1:])}`, commit "
        f"{', '.join(sorted({run['commit'] for run in runs}))}",
        "",
        f"Accuracy on {options.tests} other CIFAR-10 images, percent: {options.budget} answers "
        f"about {options.images} images, {options.mistakes:.0%} of them wrong, features "
        f"{options.features}. Mean, and each seed; the difference to `{RANDOM}` with its standard "
        "error over seeds.",
        "",
        "| | accuracy | each seed | difference |",
        "|---|---|---|---|",
    ]
    base = np.array([run["accuracies"][RANDOM] for run in runs])
    for name in runs[0]["accuracies"]:
        values = np.array([run["accuracies"][name] for run in runs])
        each = ", ".join(f"{100 * value:.1f}" for value in values)
        lines.append(f"| {name} | **{100 * values.mean():.1f}** | {each} | {gain(values - base)} |")
    lines += [
        "",
        f"The person takes {options.pace:g} s for an answer; {runs[0]['workers']} at a time on "
        f"{os.cpu_count()} cores.",
        "",
        "| | number | median | 99th percentile | most |",
        "|---|---|---|---|---|",
    ]
    rows = {
        "next image while a fit ran, ms": waits[states == "fitting"],
        "next image at rest, ms": waits[np.isin(states, ("idle", "waiting"))],
        "next image, all, ms": waits,
        "a fit, s": seconds,
    }
    for name, values in rows.items():
        if len(values):
            middle, last = np.quantile(values, (0.5, 0.99))
            digits = 0 if "ms" in name else 1
            lines.append(
                f"| {name} | {len(values)} | {middle:.{digits}f} | {last:.{digits}f} | "
                f"{values.max():.{digits}f} |"
            )
    return lines


def gain(differences: NDArray[np.float64]) -> str:
    """Mean and standard error, in points; nothing for no difference at all."""
    if not differences.any():
        return ""
    text = f"{100 * differences.mean():+.1f}"
    if len(differences) > 1:
        text += f" ± {100 * differences.std(ddof=1) / np.sqrt(len(differences)):.1f}"
    return text


def say_some(what: str, done: int, of: int, every: int = 32 * 25) -> None:
    """Say how far it is, now and then."""
    if done % every == 0 and 0 < done < of:
        say(f"{what}: {done} of {of}")


def say(text: str) -> None:
    """A line for whoever waits."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
