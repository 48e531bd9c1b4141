"""The worker: first questions, fits, features, mistakes; and what happens when it dies."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spinal.circuits import Recipe
from spinal.circuits.training import FitSettings
from spinal.data import as_points
from spinal.errors import SpinalError
from spinal.label.learning import rounds, worker
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.checking import check_method
from spinal.label.learning.learnt import learnt_classes, model_age
from spinal.label.learning.rounds import Snapshot, audit, check_labels, first_questions, fit
from spinal.label.learning.supervisor import Supervisor
from spinal.label.learning.suspicion import suspect_answers
from spinal.label.learning.worker import Worker
from spinal.label.store.project import Project
from spinal.label.store.settings import ProjectSettings
from spinal.label.store.store import Answer
from spinal.learner import ActiveLearner
from spinal.networks import TrainSettings, build_network
from tests.label.conftest import CLASSES
from tests.label.people import label, truth, work


def snapshot(n: int = 90, labelled: int = 0, seed: int = 0) -> Snapshot:
    """Three clusters of features; every seventh point is reserved for the audit."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    points = 4 * np.eye(16)[classes] + rng.normal(0, 0.5, (n, 16))
    labels = np.where(np.arange(n) < labelled, classes, -1)
    reserved = np.arange(n) % 7 == 0
    return Snapshot(
        np.arange(n) * 10 + 7, as_points(points.astype(np.float32)), labels, reserved, labels < 0
    )


def test_first_questions_cover_all_groups() -> None:
    """Random choice would miss a group in 3 * (2/3)^3 - 3 * (1/3)^3 = 78 % of all cases."""
    for seed in range(5):
        now = snapshot(seed=seed)
        asked = first_questions(now, 3, seed)
        assert {reason for _, reason in asked} == {"coverage"}
        rows = [(image - 7) // 10 for image, _ in asked]
        assert {row % 3 for row in rows} == {0, 1, 2}
        assert not now.reserved[rows].any()


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short trainings of a narrow layer: what is tested here is what happens around them."""

    def quick(*arguments: Any, **settings: Any) -> ActiveLearner:
        short = {
            "training": TrainSettings(min_steps=150, max_steps=150),
            "posterior": {"recipe": Recipe(fit=FitSettings(steps=150))},
        }
        return ActiveLearner(*arguments, **settings | short)

    monkeypatch.setattr(rounds, "ActiveLearner", quick)
    monkeypatch.setattr(rounds, "build_network", partial(build_network, width=0.25))
    monkeypatch.setattr(worker, "QUIET", 0.0)


@pytest.mark.usefixtures("fast")
def test_a_fit_learns_from_all_answers_and_the_audit_judges_without_them() -> None:
    now = snapshot(labelled=60)
    settings = ProjectSettings(CLASSES, encoder="pixels")
    found = fit(now, settings, round=1, n=8)
    assert found.trained_on == 60
    asked = [(image - 7) // 10 for image, _ in found.queue]
    assert len(set(asked)) == 8
    assert all(row >= 60 and not now.reserved[row] for row in asked)
    assert found.probs.shape == (90, 3)
    assert found.probs.sum(1) == pytest.approx(1, abs=1e-4)
    estimate = audit(now, settings, 1, found)
    assert estimate is not None
    assert estimate.accuracy.audited == 9
    assert estimate.accuracy.correct >= 8
    right = estimate.probs.argmax(1) == now.labels[(estimate.images - 7) // 10]
    assert right.sum() == estimate.accuracy.correct
    # Wrong answers of the audit are all found wrong: no model that judges was told them.
    labels = np.where(now.reserved & (now.labels >= 0), (now.labels + 1) % 3, now.labels)
    wrong = Snapshot(now.images, now.points, labels, now.reserved, now.open)
    estimate = audit(wrong, settings, 1, found)
    assert estimate is not None
    assert estimate.accuracy.correct <= 1
    nobody = Snapshot(now.images, now.points, now.labels, now.labels < -1, now.open)
    assert audit(nobody, settings, 1, found) is None


@pytest.mark.parametrize(
    ("method", "acquisition"), [("deterministic", None), ("logistic", "random"), ("random", None)]
)
def test_other_methods_fit_and_ask(method: str, acquisition: str | None) -> None:
    settings = ProjectSettings(CLASSES, encoder="pixels", method=method, acquisition=acquisition)
    found = fit(snapshot(labelled=60), settings, round=1, n=5)
    assert len(found.queue) == 5
    assert found.probs.shape == (90, 3)
    assert np.isfinite(found.log_density).all()


def test_wrong_methods_are_found_out_at_once() -> None:
    for method, acquisition, why in [
        ("spn-cn", None, "spn-cnn"),
        ("spn-cnn", "margn", "margin"),
        ("deterministic", "bald", "no samples"),
    ]:
        with pytest.raises(SpinalError, match=why):
            check_method(ProjectSettings(CLASSES, method=method, acquisition=acquisition))
    check_method(ProjectSettings(CLASSES, method="logistic", acquisition="margin"))


def test_wrong_labels_are_found() -> None:
    now = snapshot(labelled=60)
    labels = now.labels.copy()
    wrong = [1, 16, 31]
    labels[wrong] = (labels[wrong] + 1) % 3
    rows, probs = check_labels(
        Snapshot(now.images, now.points, labels, now.reserved, now.open), 3, seed=0
    )
    assert len(rows) == 60
    suspect, instead = suspect_answers(probs, labels[rows])
    assert set(rows[suspect[:3]].tolist()) == set(wrong)
    assert instead[:3].tolist() == (rows[suspect[:3]] % 3).tolist()
    few, _ = check_labels(snapshot(labelled=4), 3, seed=0)
    assert len(few) == 0


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_from_the_first_question_to_likely_mistakes(project: Project) -> None:
    said: list[dict[str, Any]] = []
    busy = Worker(project, said.append)
    work(busy)
    assert {"state": "features", "done": 40, "total": 40} in said
    assert project.store.rounds() == []
    asked = [row for row in project.store.images() if not row["reserved"]]
    assert project.store.questions.waiting() == len(asked)  # of many, ten and five batches

    label(project, 20, wrong=5)
    work(busy)
    (first,) = project.store.rounds()
    assert first["trained_on"] == 20
    assert first["audited"] >= 3
    assert first["low"] <= first["accuracy"] <= first["high"]
    beliefs = Beliefs.load(project.beliefs_file)
    assert len(beliefs.images) == 40
    assert len(beliefs.checked) > 0
    assert len(beliefs.audited) == len(beliefs.audited_probs) == first["audited"]
    with np.load(project.model_folder / "pool.npz") as kept:  # the model to be used knows them all
        assert len(kept["labels"]) == 20
    reasons = {a["reason"] for a in project.store.answers()}
    assert reasons == {"coverage", "audit"}
    question = next(q for q in project.store.questions.ask("tab", "ada", 5) if q.reason != "audit")
    assert question.reason in ("uncertain", "new")
    assert question.round == 1

    label(project, 1)
    work(busy)
    assert len(project.store.rounds()) >= 1
    again = Worker(project, said.append)  # as after a restart: features are there
    work(again)
    assert project.store.last_round() >= 2
    assert Beliefs.load(project.beliefs_file).advice == ""  # two models are too few to tell

    label(project, 10)
    work(again)
    assert "would change about" in Beliefs.load(project.beliefs_file).advice


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_the_most_suspect_answers_are_asked_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "AGAIN", 0.05)
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 29)
    question = next(
        q
        for q in project.store.questions.ask("tab", "ada", 9)
        if q.reason not in ("audit", "again")
    )
    wrong = CLASSES[(CLASSES.index(truth(question.path)) + 1) % 3]
    project.store.answer([Answer("wrong", question.image, wrong)], "ada")
    work(busy)
    first = project.store.questions.ask("another tab", "ada", 1)[0]
    assert (first.image, first.reason) == (question.image, "again")
    project.store.answer([Answer("better", first.image, truth(first.path))], "ada")
    assert project.store.image(first.image)["label"] == truth(first.path)
    work(busy)
    assert project.store.questions.ask("another tab", "ada", 1)[0].reason != "again"


@pytest.mark.usefixtures("fast")
def test_new_and_broken_files_while_it_runs(project: Project) -> None:
    busy = Worker(project, lambda _: None)
    work(busy)
    Image.new("RGB", (24, 24), "red").save(project.folder / "image-0060.png")
    (project.folder / "image-0061.png").write_bytes(b"nothing")
    content = io.BytesIO()
    Image.new("RGB", (240, 240), "blue").save(content, "PNG")
    whole = content.getvalue()
    (project.folder / "image-0062.png").write_bytes(whole[: len(whole) // 2])
    busy._next_scan = 0
    work(busy)
    assert {row["path"] for row in project.store.problems()} == {"image-0061.png", "image-0062.png"}
    assert len(busy.features.places) == 41
    (project.folder / "image-0062.png").write_bytes(whole)
    busy._next_scan = 0
    work(busy)
    assert len(busy.features.places) == 42  # what was repaired joins, too


@pytest.mark.usefixtures("fast")
def test_questions_are_chosen_before_the_first_fit(project: Project) -> None:
    label(project, 12)  # at random, before features are there
    busy = Worker(project, lambda _: None)
    while not project.store.questions.waiting():
        assert busy.step()
    assert project.store.last_round() == 0
    work(busy)
    assert project.store.last_round() >= 1


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_questions_do_not_run_out_where_fits_are_slow(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = rounds.fit
    monkeypatch.setattr(rounds, "fit", lambda *a: asked.append(a[3]) or real(*a))
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 12)
    work(busy)
    label(project, 26)  # while the next fit is not ready
    work(busy)
    assert asked == [50, 52]


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_questions_do_not_run_out_by_skipping(project: Project) -> None:
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 14)
    work(busy)
    before = project.store.last_round()
    for i, question in enumerate(project.store.questions.ask("tab", "ada", 40)):
        project.store.answer([Answer(f"skip-{i}", question.image, None)], "ada")
    work(busy)
    assert project.store.last_round() > before
    assert project.store.questions.waiting() == 0  # there is nothing left, and nothing turns


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_changed_classes_are_learnt_at_once(project: Project) -> None:
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 24)
    work(busy)
    before = Beliefs.load(project.beliefs_file)
    project.store.classes.add("grey", "ada")
    project.store.classes.rename("red", "crimson", "ada")
    project.store.classes.merge("green", "blue", "ada")
    work(busy)
    after = Beliefs.load(project.beliefs_file)
    assert after.classes == ("crimson", "blue", "grey")
    assert after.round > before.round
    crimson = [i for i, row in enumerate(project.store.images()) if truth(row["path"]) == "red"]
    assert (after.probs[crimson].argmax(1) == 0).mean() > 0.8
    assert after.checked_probs.shape[1] == 3
    assert learnt_classes(project) == after.classes
    assert model_age(project).is_current
    project.store.classes.undo()
    assert learnt_classes(project) == after.classes  # of the model, until it is fitted again
    work(busy)
    assert Beliefs.load(project.beliefs_file).classes == ("crimson", "green", "blue", "grey")


def eventually(true: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.fixture
def supervise(tmp_path: Path) -> Any:
    started: list[Supervisor] = []

    def start(code: str) -> Supervisor:
        supervisor = Supervisor(tmp_path, [sys.executable, "-c", code])
        supervisor.start()
        started.append(supervisor)
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop(1)


def test_a_crash_is_shown_and_the_worker_restarted(
    supervise: Callable[[str], Supervisor], tmp_path: Path
) -> None:
    code = (
        "import pathlib, sys\n"
        f"mark = pathlib.Path({str(tmp_path / 'mark')!r})\n"
        "if not mark.exists(): mark.touch(); raise MemoryError('too many photographs')\n"
        'print(\'{"state": "idle"}\', flush=True); sys.stdin.read()\n'
    )
    supervisor = supervise(code)
    eventually(lambda: supervisor.status["state"] == "crashed")
    assert "too many photographs" in supervisor.status["message"]
    assert "starting again" in supervisor.status["message"]
    eventually(lambda: supervisor.status["state"] == "idle")
    assert supervisor.restarts == 0  # it works again: the next failure has the first pause


def test_a_worker_that_is_killed_is_restarted(supervise: Callable[[str], Supervisor]) -> None:
    code = 'import sys; print(\'{"state": "idle"}\', flush=True); sys.stdin.read()'
    supervisor = supervise(code)
    eventually(lambda: supervisor.status["state"] == "idle")
    assert supervisor._worker is not None
    first = supervisor._worker.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: supervisor.status["state"] == "crashed")
    assert "signal 9" in supervisor.status["message"]
    eventually(lambda: supervisor._worker is not None and supervisor._worker.pid != first)


IDLE = 'import sys; print(\'{"state": "idle"}\', flush=True); sys.stdin.read()'


def test_answers_that_arrive_while_the_worker_dies(
    supervise: Callable[[str], Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinal.label.learning.supervisor.PAUSES", (0.01,))
    supervisor = supervise("import os, time; time.sleep(0.1); os._exit(3)")
    died = 0
    end = time.monotonic() + 3
    while time.monotonic() < end:
        before = supervisor.restarts
        supervisor.wake()
        died += supervisor.restarts != before
    assert died > 3
    assert supervisor._thread.is_alive()
    assert "ended with code 3" in supervisor.status["message"]


def test_a_folder_that_vanishes_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinal.label.learning.supervisor.PAUSES", (0.05,))
    home = tmp_path / "home"
    home.mkdir()
    supervisor = Supervisor(home, [sys.executable, "-c", IDLE])
    supervisor.start()
    try:
        eventually(lambda: supervisor.status["state"] == "idle")
        home.rename(tmp_path / "elsewhere")
        assert supervisor._worker is not None
        supervisor._worker.kill()
        eventually(lambda: supervisor.restarts > 2)
        assert "worker.log no longer exists" in supervisor.status["message"]
        (tmp_path / "elsewhere").rename(home)
        eventually(lambda: supervisor.status["state"] == "idle")
    finally:
        supervisor.stop(1)


def test_stopping_ends_the_worker(supervise: Callable[[str], Supervisor]) -> None:
    supervisor = supervise('import sys; print(\'{"state": "idle"}\', flush=True); sys.stdin.read()')
    eventually(lambda: supervisor.status["state"] == "idle")
    supervisor.wake()
    supervisor.stop()
    assert supervisor._worker is not None
    assert supervisor._worker.poll() == 0


@pytest.mark.long
def test_damaged_features_are_computed_again(project: Project, monkeypatch: Any) -> None:
    work(Worker(project, lambda _: None))
    (index,) = project.features_folder.rglob("index.sqlite")
    for left in project.features_folder.rglob("index.sqlite-*"):
        left.unlink()
    index.write_bytes(b"nothing" * 1000)
    monkeypatch.setattr("spinal.label.learning.supervisor.PAUSES", (0.1,))
    supervisor = Supervisor(project.home)
    supervisor.start()
    try:
        eventually(lambda: supervisor.status["state"] == "crashed")
        assert "are computed again" in supervisor.status["message"]
        eventually(lambda: supervisor.status["state"] == "waiting")
    finally:
        supervisor.stop()


@pytest.mark.long
@pytest.mark.usefixtures("fast")
def test_all_that_can_be_made_again_is_made_again(project: Project) -> None:
    """Whatever is damaged but the answers, the settings and the index of the features."""
    label(project, 30)
    work(Worker(project, lambda _: None))
    rounds_before = len(project.store.rounds())
    spared = ("labels.sqlite", "project.json", "lock", "token", "worker.log", "index.sqlite")
    files = [
        path for path in sorted(project.home.rglob("*"))
        if path.is_file() and not path.name.startswith(spared)
    ]  # fmt: skip
    names = {path.name for path in files}
    assert {"vectors.f32", "history.npz", "beliefs.npz", "likeness.npz", "learnt.json"} <= names
    for path in files:
        content = path.read_bytes()
        path.write_bytes(b"\xff" * 50 + content[50:])
    label(project, 10)
    work(Worker(project, lambda _: None))
    assert len(project.store.rounds()) > rounds_before
    (vectors,) = project.features_folder.rglob("vectors.f32")
    assert np.isnan(np.fromfile(vectors, "<f4")).any()  # still there, and used by nobody


def test_the_worker_itself_says_what_is_wrong(project: Project) -> None:
    file = project.home / "project.json"
    file.write_text(file.read_text().replace('"pixels"', '"pixel"'))
    supervisor = Supervisor(project.home)
    supervisor.start()
    try:
        eventually(lambda: supervisor.status["state"] == "crashed")
        assert supervisor.status["message"].startswith("no encoder 'pixel': did you mean 'pixels'")
    finally:
        supervisor.stop()
