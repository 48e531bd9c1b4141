"""`spinal label` and the simulated person."""

from __future__ import annotations

import importlib.util
import io
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console
from typer.testing import CliRunner

from spinal.commands.app import app
from spinal.commands.label import label
from spinal.errors import DataError, SpinalError
from spinal.label.known.table import read_table
from spinal.label.store.project import Project, open_project
from spinal.label.store.store import Answer
from spinal.label.web.serving import Page
from spinal.label.web.simulate import Connection, Person
from tests.label.conftest import CLASSES
from tests.label.files import make_images
from tests.label.sets import make_colours


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that does nothing: what it does is tested elsewhere."""
    from spinal.label.learning import supervisor

    first = supervisor.Supervisor.__init__

    def start(self: Any, home: Path, command: Any = None) -> None:
        idle = 'import sys; print(\'{"state": "idle"}\', flush=True); sys.stdin.read()'
        first(self, home, [sys.executable, "-c", idle])

    monkeypatch.setattr(supervisor.Supervisor, "__init__", start)


@pytest.mark.usefixtures("sleeping")
def test_a_simulated_person_labels_through_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = make_images(tmp_path / "images", 30)
    (tmp_path / "images" / "image-0003.png").write_bytes(b"broken")
    table = tmp_path / "labels.csv"
    table.write_text("path,label\n" + "".join(f"{k},{v}\n" for k, v in truth.items()))
    options: dict[str, Any] = {"features": "pixels", "port": 0, "simulate": table, "pace": 0.0}
    label(tmp_path / "images", "red, green,blue", budget=12, **options)
    shown = capsys.readouterr().err
    assert "12 answers" in shown
    assert "median" in shown
    label(tmp_path / "images", budget=29, **options)  # goes on: no classes needed
    assert "17 answers" in capsys.readouterr().err
    project = open_project(tmp_path / "images")
    assert {row["path"]: row["label"] for row in project.store.labelled()} == {
        path: of for path, of in truth.items() if path != "image-0003.png"
    }
    assert project.store.people() == {"simulated": 29}
    project.close()


@pytest.mark.usefixtures("sleeping")
def test_several_classes_from_known_labels_and_a_simulated_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = make_colours(tmp_path / "images", 20)
    known, table = tmp_path / "known.csv", tmp_path / "labels.csv"
    rows = [f"{name},{';'.join(said)}\n" for name, said in truth.items() if said][:3]
    known.write_text("path,label\n" + "".join(rows))
    marks = [f"{n},{','.join(str(int(c in said)) for c in CLASSES)}\n" for n, said in truth.items()]
    table.write_text(f"path,{','.join(CLASSES)}\n" + "".join(marks))
    options: dict[str, Any] = {"features": "pixels", "port": 0, "simulate": table, "pace": 0.0}
    label(tmp_path / "images", ",".join(CLASSES), multi=True, labels=known, budget=15, **options)
    shown = capsys.readouterr().err
    assert "3 labels" in shown
    assert "12 answers" in shown
    label(tmp_path / "images", budget=20, **options)  # the project knows
    project = open_project(tmp_path / "images")
    stored = {row["path"]: project.store.shown(row["label"]) for row in project.store.labelled()}
    project.close()
    assert {path: set(said or ()) for path, said in stored.items()} == {
        path: set(said) for path, said in truth.items()
    }
    refused = CliRunner().invoke(app, ["label", str(tmp_path / "images"), "--no-multi"])
    assert isinstance(refused.exception, SpinalError)
    assert "cannot be changed" in str(refused.exception)
    wrong = Person({"a": ("red",)}, CLASSES, mistakes=1.0).answer("a")
    assert isinstance(wrong, tuple)
    assert len({"red"} ^ set(wrong)) == 1


def test_the_simulated_person_is_wrong_at_the_given_rate_and_consistent() -> None:
    truth = {f"{i}.png": CLASSES[i % 3] for i in range(2000)}
    person = Person(truth, CLASSES, mistakes=0.05, seed=3)
    said = {path: person.answer(path) for path in truth}
    wrong = sum(said[path] != truth[path] for path in truth)
    assert 60 <= wrong <= 140  # 100 expected, standard deviation 9.7
    assert {path: person.answer(path) for path in truth} == said
    assert person.answer("unknown.png") is None


@pytest.mark.usefixtures("sleeping")
def test_a_person_may_take_long(project: Project) -> None:
    with Page(project, "127.0.0.1", 0) as page:
        connection = Connection(page.link)
        assert connection.get("/api/state")["progress"]["images"] == 40
        connection._connection.sock.shutdown(socket.SHUT_RDWR)  # as after seconds of silence
        assert connection.get("/api/state")["progress"]["images"] == 40


def test_wrong_tables_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("file,label\nx,y\n")
    with pytest.raises(DataError, match="no columns path and label, but file, label"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"missing\.csv"):
        read_table(tmp_path / "missing.csv")


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpinalError, match="no such folder"):
        label(tmp_path / "nothing", "cat,dog")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpinalError, match="to create one"):
        label(tmp_path / "empty")
    with pytest.raises(SpinalError, match="no images"):
        label(tmp_path / "empty", "cat,dog")
    lock = FileLock(tmp_path / "empty" / ".spinal" / "lock")
    with lock, pytest.raises(SpinalError, match="open in another"):
        label(tmp_path / "empty")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    with pytest.raises(SpinalError, match=r"pip install 'spinal\[label\]'"):
        label(tmp_path / "empty")


@pytest.mark.usefixtures("sleeping")
def test_a_port_that_is_taken(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(SpinalError, match="choose another --port"),
            Page(project, "127.0.0.1", taken.getsockname()[1]),
        ):
            pass


@pytest.mark.usefixtures("sleeping")
def test_another_address_needs_the_token_and_warns(project: Project) -> None:
    shown = io.StringIO()
    with Page(project, "0.0.0.0", 0) as page:
        page.announce(Console(file=shown, width=200), browser=False)
        token = page.link.partition("?token=")[2]
        assert len(token) == 32
        at = f"http://127.0.0.1:{page.port}/"
        with pytest.raises(SpinalError, match="403"):
            Connection(at).get("/api/state")
        assert Connection(f"{at}?token={token}").get("/api/state")["name"] == "images"
    assert "warning" in shown.getvalue()
    assert token in shown.getvalue()
    with Page(project, "127.0.0.1", 0) as page:
        assert "token" not in page.link
        page.announce(Console(file=(quiet := io.StringIO()), width=200), browser=False)
        assert "warning" not in quiet.getvalue()


@pytest.mark.usefixtures("sleeping")
def test_known_labels_begin_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = make_images(tmp_path / "images", 30)
    rows = [f"{path},{label}\n" for path, label in truth.items()]
    (tmp_path / "all.csv").write_text("path,label\n" + "".join(rows))
    (tmp_path / "known.csv").write_text("path,label\n" + "".join(rows[:20]))
    options: dict[str, Any] = {
        "features": "pixels", "port": 0, "simulate": tmp_path / "all.csv", "pace": 0.0,
        "labels": tmp_path / "known.csv",
    }  # fmt: skip
    label(tmp_path / "images", budget=25, **options)  # no classes: they are in the table
    shown = capsys.readouterr().err
    assert "20 labels from" in shown
    assert "(20 new)" in shown
    assert "5 answers" in shown
    label(tmp_path / "images" / ".spinal", budget=30, **options)
    assert "(0 new)" in capsys.readouterr().err
    project = open_project(tmp_path / "images")
    assert project.settings.classes == ("blue", "green", "red")
    assert {row["path"]: row["label"] for row in project.store.labelled()} == truth
    project.close()


def test_classes_are_changed_by_a_command(project: Project) -> None:
    project.store.answer([Answer("t", 1, "red")], "ada")

    def run(*options: str) -> list[list[str]]:
        done = CliRunner().invoke(app, ["classes", str(project.folder), *options])
        assert done.exit_code == 0, done.exception
        return [line.split() for line in done.stdout.splitlines()]

    options = ["--add", "grey", "--rename", "red=crimson", "--key", "grey=x"]
    assert run(*options, "--merge", "blue=crimson", "--remove", "green") == [
        ["class", "keys", "images"],
        ["crimson", "1", "C", "1"],
        ["grey", "2", "X", "0"],
    ]
    assert run("--undo")[0] == ["undone:", "gave", "grey", "the", "key", "X"]
    assert run("--undo")[0] == ["undone:", "removed", "green"]
    with pytest.raises(SpinalError, match="give two names"):
        CliRunner().invoke(app, ["classes", str(project.folder), "--rename", "red"],
                           catch_exceptions=False)  # fmt: skip


def test_encoders_that_are_not_checked_exist() -> None:
    from spinal.commands.label import _KNOWN_ENCODERS
    from spinal.encoders import is_encoder

    assert [name for name in _KNOWN_ENCODERS if not is_encoder(name)] == ["tfidf-svd"]  # of texts
