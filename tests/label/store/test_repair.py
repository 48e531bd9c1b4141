"""A file of labels that is damaged, full, read-only or gone; its copies, and its repair."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from spinal.errors import SpinalError
from spinal.label.store import repair as repairing
from spinal.label.store.database import DamagedStoreError, StoreError
from spinal.label.store.project import Project, open_project, repair_project
from spinal.label.store.repair import copies_in, keep_copy, repair
from spinal.label.store.store import Answer, Store
from spinal.label.web.security import Rules
from spinal.label.web.server import Server
from tests.label.conftest import CLASSES
from tests.label.people import label

IMAGES, ANSWERS = 3000, 2000


def seeds(n: int) -> list[Any]:
    """Seeds of the damage, all but two of them for ``make test-long``."""
    return [pytest.param(i, marks=[pytest.mark.long] if i > 1 else []) for i in range(n)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of labels with many pages."""
    path = tmp_path_factory.mktemp("filled") / "labels.sqlite"
    store = Store(path)
    store.classes.begin(CLASSES)
    store.add_images(f"folder/{i:04}.png" for i in range(IMAGES))
    answers = [Answer(f"token-{i}", i + 1, CLASSES[i % 3]) for i in range(ANSWERS)]
    store.answer(answers, "ada")
    store.add_round(1, 100, 2.0)
    store.add_audit(1, 10, 8, (0.8, 0.5, 0.9))
    store.close()
    return path


def damage(path: Path, seed: int) -> None:
    """Overwrite a part of the file, anywhere."""
    rng = np.random.default_rng(seed)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(int(rng.integers(0, size)))
        file.write(rng.bytes(int(rng.integers(1, 3 * 4096))))


def said(path: Path) -> dict[str, tuple[str, str]]:
    store = Store(path)
    answers = {row["token"]: (row["path"], row["label"]) for row in store.answers()}
    store.check()
    store.close()
    return answers


@pytest.mark.parametrize("seed", seeds(12))
def test_damage_is_found_and_repaired(filled: Path, tmp_path: Path, seed: int) -> None:
    truth = said(filled)
    path = Path(shutil.copy(filled, tmp_path / "labels.sqlite"))
    damage(path, seed)
    result = repair(path, tmp_path / "copies", CLASSES)
    saved = said(path)
    assert len(saved) == result.answers
    assert result.old.exists()
    wrong = [token for token in saved.keys() & truth.keys() if saved[token] != truth[token]]
    assert len(wrong) <= 3  # bytes that were overwritten inside a text
    labelled = Store(path)
    assert labelled.progress()["labelled"] >= len(saved) - 3
    labelled.close()


def test_images_are_found_by_their_paths_alone(filled: Path, tmp_path: Path) -> None:
    truth = said(filled)
    path = Path(shutil.copy(filled, tmp_path / "labels.sqlite"))
    with sqlite3.connect(path) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'images'").fetchone()
    with path.open("r+b") as file:
        file.seek(size * (root - 1))
        file.write(b"\xff" * size)
    repair(path, tmp_path / "copies", CLASSES)
    assert said(path) == truth
    before, after = Store(filled), Store(path)
    assert [tuple(row) for row in before.images()] == [tuple(row) for row in after.images()]
    before.close()
    after.close()


@pytest.mark.parametrize("seed", seeds(4))
def test_with_a_copy_nothing_older_than_it_is_lost(filled: Path, tmp_path: Path, seed: int) -> None:
    truth = said(filled)
    path = Path(shutil.copy(filled, tmp_path / "labels.sqlite"))
    store = Store(path)
    keep_copy(store, tmp_path / "copies")
    store.answer([Answer("later", IMAGES, "red")], "bob")
    store.close()
    path.write_bytes(b"\0" * 8192 + path.read_bytes()[8192:])  # not even its head is left
    damage(path, seed)
    repair(path, tmp_path / "copies", CLASSES)
    assert truth.items() <= said(path).items()


def test_copies_are_dated_and_few(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(filled)
    for day in range(1, 11):
        name = f"labels-2026-01-{day:02}.sqlite"
        (tmp_path / name).write_bytes(b"old")
    keep_copy(store, tmp_path)
    store.close()
    names = [path.name for path in copies_in(tmp_path)]
    assert len(names) == repairing.COPIES
    assert names[0] == "labels-2026-01-05.sqlite"
    assert said(tmp_path / names[-1]) == said(filled)


@pytest.mark.parametrize("seed", seeds(10))
def test_a_damaged_file_is_named_by_every_reply(filled: Path, project: Project, seed: int) -> None:
    """No traceback, no reply without a reason."""
    project.close()
    path = project.home / "labels.sqlite"
    shutil.copy(filled, path)
    damage(path, seed)
    try:
        opened = open_project(project.folder)
    except DamagedStoreError:
        return  # found at once
    client = TestClient(Server(opened, Rules("127.0.0.1", 8421, None)).app,
                        base_url="http://127.0.0.1:8421")  # fmt: skip
    who = {"client": "c", "person": "ada", "n": 3}
    replies = [client.get(f"/api/{name}") for name in ("state", "problems", "disagreements")]
    replies.append(client.post("/api/next", json=who))
    for image in (1, 1500, 2999):
        answer = {"token": f"new-{image}", "image": image, "label": "red"}
        replies.append(client.post("/api/answers", json={**who, "answers": [answer]}))
    for reply in replies:
        assert reply.status_code in (200, 400, 503)
        assert reply.status_code == 200 or reply.json()["error"]
    opened.close()


def test_damage_is_found_at_the_start_and_repaired_on_request(project: Project) -> None:
    label(project, 12)
    project.keep_copy()
    path = project.home / "labels.sqlite"
    project.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])
    with pytest.raises(DamagedStoreError, match="--repair"):  # noqa: PT012
        opened = open_project(project.folder)
        opened.keep_copy()
    assert "12 answers saved" in str(repair_project(project.home))
    again = open_project(project.folder)
    again.keep_copy()
    assert again.store.progress()["labelled"] == 12
    again.close()
    with pytest.raises(SpinalError, match="holds no project"):
        repair_project(project.folder)


def test_a_full_disk_is_named_and_nothing_half_is_stored(project: Project) -> None:
    database = project.store._database
    database.all("PRAGMA max_page_count = 1")  # as many pages as there are
    with pytest.raises(StoreError, match="disk is full; make room"):  # noqa: PT012
        for i in range(10_000):
            project.store.answer([Answer(f"t{i}" + "x" * 90, 1, "red")], "ada")
    n = len(project.store.answers())
    database.all("PRAGMA max_page_count = 1000000")
    project.store.answer([Answer("again", 1, "red")], "ada")
    assert len(project.store.answers()) == n + 1


def test_a_read_only_file_is_named(project: Project) -> None:
    project.store._database.all("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="is the folder read-only"):
        project.store.answer([Answer("t", 1, "red")], "ada")


def test_answers_do_not_go_into_a_file_that_was_moved(project: Project, tmp_path: Path) -> None:
    project.home.rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="no longer exists"):
        project.store.answer([Answer("t", 1, "red")], "ada")
    (tmp_path / "moved").rename(project.home)
    project.store.answer([Answer("t", 1, "red")], "ada")
    assert sqlite3.connect(project.home / "labels.sqlite").execute(
        "SELECT count(*) FROM answers"
    ).fetchone() == (1,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits on the size of files")
def test_a_limit_of_the_size_of_files_is_no_damage(project: Project) -> None:
    import resource

    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    wal = project.home / "labels.sqlite-wal"
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, old[1]))
    try:
        with pytest.raises(StoreError, match="full"):  # noqa: PT012
            for i in range(100):
                project.store.answer([Answer(f"t{i}", 1, "red")], "ada")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    n = len(project.store.answers())
    project.store.answer([Answer("again", 1, "red")], "ada")
    assert len(project.store.answers()) == n + 1
