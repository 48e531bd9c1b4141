"""How old the saved model is, and the fit of what it has not learnt."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from spinal.circuits import Recipe
from spinal.circuits.training import FitSettings
from spinal.commands.app import app
from spinal.errors import SpinalError
from spinal.label.learning import rounds
from spinal.label.learning.fitting import bring_up_to_date, fit_project
from spinal.label.learning.learnt import Age, model_age
from spinal.label.learning.worker import Worker
from spinal.label.store.locking import InUseError
from spinal.label.store.project import Project, open_project
from spinal.learner import ActiveLearner
from spinal.networks import TrainSettings, build_network
from tests.label.people import label, work


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short trainings of a narrow layer: what is tested here is what happens around them."""

    def quick(*arguments: Any, **settings: Any) -> ActiveLearner:
        short = {
            "training": TrainSettings(min_steps=20, max_steps=20),
            "posterior": {"recipe": Recipe(fit=FitSettings(steps=20))},
        }
        return ActiveLearner(*arguments, **settings | short)

    monkeypatch.setattr(rounds, "ActiveLearner", quick)
    monkeypatch.setattr(rounds, "build_network", partial(build_network, width=0.25))


def fitted_to(project: Project) -> int:
    """Number of labels of the saved model, by its own file."""
    with np.load(project.model_folder / "pool.npz") as pool:
        return len(pool["labels"])


def test_a_fit_on_request_learns_all_labels_once(project: Project) -> None:
    label(project, 20)
    assert model_age(project) == Age(20, 20, 0)
    steps: list[tuple[str, int, int]] = []
    assert fit_project(project, lambda *step: steps.append(step))
    assert model_age(project) == Age(20, 0, 0)
    assert fitted_to(project) == 20
    assert ("Computing features", 20, 20) in steps
    assert not fit_project(project)
    label(project, 3)
    assert str(model_age(project)) == "the model was fitted to 20 of 23 labels"
    last = project.store.last_answer("ada")
    assert last is not None
    project.store.undo(last["token"], "ada")
    assert model_age(project) == Age(22, 2, 0)
    assert fit_project(project)
    assert fitted_to(project) == 22
    last = project.store.last_answer("ada")
    assert last is not None
    project.store.undo(last["token"], "ada")
    assert str(model_age(project)) == (
        "the model was fitted to 21 of 21 labels and to 1 withdrawn ones"
    )


def test_too_few_labels_are_not_fitted(project: Project) -> None:
    label(project, 9)
    assert not fit_project(project)
    assert not project.model_folder.exists()


def test_a_round_learns_from_all_answers(project: Project) -> None:
    busy = Worker(project, lambda _: None)
    work(busy)
    label(project, 20)
    work(busy)
    assert model_age(project) == Age(20, 0, 0)
    label(project, 3)
    assert model_age(project) == Age(23, 3, 0)
    assert fit_project(project)
    assert fitted_to(project) == 23


def test_a_record_that_is_damaged_or_of_another_model_counts_for_nothing(project: Project) -> None:
    label(project, 12)
    fit_project(project)
    record = project.learnt_file.read_text()
    for damaged in ("", "[]", "{}", '{"model": 1}', record.replace('"model": "', '"model": "0')):
        project.learnt_file.write_text(damaged)
        assert model_age(project) == Age(12, 12, 0)
    project.learnt_file.write_text(record)
    assert model_age(project) == Age(12, 0, 0)
    changed = open_project(project.folder, encoder="pixels@8")
    assert model_age(changed) == Age(12, 12, 0)
    changed.close()


def test_beside_an_open_page_nothing_is_fitted_but_said(project: Project) -> None:
    label(project, 12)
    fit_project(project)
    label(project, 5)
    other = open_project(project.folder)
    with project.locked():
        with pytest.raises(InUseError, match="open in another"):
            fit_project(other)
        warning = str(bring_up_to_date(other))
    assert warning.startswith("the model was fitted to 12 of 17 labels; `spinal label` is open")
    assert bring_up_to_date(other) is None
    assert fitted_to(project) == 17
    other.close()


@pytest.mark.parametrize(
    "arguments",
    [["fit"], ["predict", "image-0000.png"], ["export", "--to", "p.csv", "--predictions"]],
    ids=["fit", "predict", "export"],
)
def test_commands_fit_first(
    project: Project, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    label(project, 12)
    fit_project(project)
    label(project, 6)
    command, *rest = arguments
    result = CliRunner().invoke(app, [command, str(project.folder), *rest])
    assert result.exit_code == 0, result.output
    assert fitted_to(project) == 18
    if command == "fit":
        assert result.stdout == "the model was fitted to 18 of 18 labels\n"


def test_a_fit_needs_labels(project: Project) -> None:
    label(project, 4)
    result = CliRunner().invoke(app, ["fit", str(project.folder)])
    assert isinstance(result.exception, SpinalError)
    assert "4 labels; 10 are needed" in str(result.exception)
