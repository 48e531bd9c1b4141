"""Several classes for an image: what the worker learns, asks, audits and doubts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, cohen_kappa_score, f1_score

from spinal.label.learning.agreement import find_set_agreements
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.learnt import model_age
from spinal.label.learning.scores import average_precision, f1, with_interval
from spinal.label.learning.sets import confidence, predicted, set_codes, suspect_sets
from spinal.label.learning.worker import Worker
from tests.label.people import work
from tests.label.sets import CLASSES, give, label_all, make_project


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinal.label.learning.worker.QUIET", 0.0)


def test_from_answers_to_a_model_that_is_audited(tmp_path: Path) -> None:
    project, labels = make_project(tmp_path / "images", 60)
    said: list[str] = []
    worker = Worker(project, lambda status: said.append(status["state"]))
    work(worker)
    assert project.store.questions.waiting()  # they cover the images
    label_all(project, labels, 44)
    wrong = next(row for row in project.store.labelled() if not row["reserved"])
    bits = set(labels[wrong["path"]]) ^ {"red"}
    give(project, wrong["id"], tuple(bits))
    work(worker)
    beliefs = Beliefs.load(project.beliefs_file)
    assert beliefs.multi
    assert beliefs.classes == CLASSES
    rows = {row["id"]: row["path"] for row in project.store.images()}
    truth = np.array([[c in labels[rows[i]] for c in CLASSES] for i in beliefs.images])
    assert (predicted(beliefs.probs) == truth).mean() > 0.9
    last = project.store.rounds()[-1]
    assert last["audited"] >= 5
    assert last["low"] <= last["accuracy"] <= last["high"]
    assert beliefs.audited_probs.shape == (last["audited"], 3)
    assert wrong["id"] in beliefs.checked
    queue = [q.image for q in project.store.questions.ask("other", "ada", 20)]
    assert wrong["id"] in queue  # it is asked once more
    assert model_age(project).is_current
    assert set(said) >= {"features", "fitting", "auditing", "checking"}
    project.close()


@pytest.mark.long
def test_a_class_that_comes_later_is_learnt_from_later_answers(tmp_path: Path) -> None:
    project, labels = make_project(tmp_path / "images", 60, classes=("red", "green"))
    worker = Worker(project, lambda _: None)
    work(worker)
    without = {name: tuple(c for c in said if c != "blue") for name, said in labels.items()}
    label_all(project, without, 15)
    work(worker)
    project.store.classes.add("blue", "ada")
    label_all(project, labels, 20)
    work(worker)
    beliefs = Beliefs.load(project.beliefs_file)
    assert beliefs.classes == CLASSES
    rows = {row["id"]: row["path"] for row in project.store.images()}
    blue = np.array(["blue" in labels[rows[i]] for i in beliefs.images])
    # If the first fifteen counted as not blue, a third of the blue ones would be missed.
    assert (predicted(beliefs.probs)[:, 2] == blue).mean() > 0.9
    project.close()


def test_what_is_predicted_and_how_sure_it_is() -> None:
    probs = np.array([[0.9, 0.2], [0.5, 0.4]])
    assert predicted(probs).tolist() == [[True, False], [False, False]]
    assert confidence(probs) == pytest.approx([0.9 * 0.8, 0.5 * 0.6])
    sets = np.random.default_rng(0).random((300, 70)) < 0.5
    sets[200:] = sets[:100]
    codes = set_codes(sets)
    assert (codes[200:] == codes[:100]).all()
    assert len(np.unique(codes)) == 200


def test_suspect_sets_by_hand() -> None:
    labels = np.array([[1, 0], [1, 0], [1, 1], [0, -1], [0, 0]])
    probs = np.array([[0.9, 0.1], [0.3, 0.2], [0.8, np.nan], [0.1, 0.9], [0.6, 0.7]])
    rows, which = suspect_sets(probs, labels)
    # Class 0 said: usual (.9 + .3 + .8) / 3, ratio .3 / .667 = .45. Class 0 not said: usual
    # (.9 + .4) / 2, ratio .4 / .65 = .62. Class 1 not said: (.9 + .8 + .3) / 3, .3 / .667 = .45.
    assert rows.tolist() == [1, 4]
    assert which.tolist() == [[True, False], [True, True]]
    nothing, _ = suspect_sets(np.empty((0, 2)), np.empty((0, 2), np.int64))
    assert not len(nothing)


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y = rng.random((80, 4)) < 0.3
    p = np.round(np.clip(0.5 * y + 0.6 * rng.random((80, 4)), 0, 1), 1)  # with ties
    weights = np.vstack([np.ones(80), rng.integers(0, 3, (5, 80))]).astype(float)
    for c in range(4):
        for b, w in enumerate(weights):
            ap = average_precision_score(y[:, c], p[:, c], sample_weight=w)
            assert average_precision(p[:, c], y[:, c], weights)[b] == pytest.approx(ap)
            expected = f1_score(y[:, c], p[:, c] > 0.5, sample_weight=w)
            assert f1(p[:, c], y[:, c], weights)[b] == pytest.approx(expected)
    found = with_interval(f1, p, y.astype(np.int64))
    assert found is not None
    assert found["value"] == pytest.approx(f1_score(y, p > 0.5, average="macro"))
    assert found["low"] < found["value"] < found["high"]
    assert with_interval(f1, p[:5], y[:5].astype(np.int64)) is None
    assert with_interval(f1, np.full((20, 2), np.nan), np.ones((20, 2), np.int64)) is None


def test_the_interval_covers_the_score_of_all_images() -> None:
    rng = np.random.default_rng(1)
    y = (rng.random((5000, 3)) < 0.4).astype(np.int64)
    p = np.clip(0.4 * y + 0.7 * rng.random((5000, 3)), 0, 1)
    true = float(np.mean(f1_score(y, p > 0.5, average=None)))
    held = 0
    for _ in range(60):
        rows = rng.choice(5000, 80, replace=False)
        found = with_interval(f1, p[rows], y[rows])
        assert found is not None
        held += found["low"] <= true <= found["high"]
    assert held >= 51  # 95 % would be 57


def test_agreement_class_by_class_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    one = rng.random((30, 3)) < 0.5
    two = one ^ (rng.random((30, 3)) < 0.2)

    def sets(rows: np.ndarray) -> list[tuple[str, ...]]:
        return [tuple(c for c, on in zip(CLASSES, row, strict=True) if on) for row in rows]

    answers = [(i, "ann", names) for i, names in enumerate(sets(one))]
    answers += [(i, "bob", names) for i, names in enumerate(sets(two))]
    (found,) = find_set_agreements(answers, CLASSES)
    kappas = [cohen_kappa_score(one[:, c], two[:, c]) for c in range(3)]
    assert (found.images, found.agreed) == (30, int((one == two).all(1).sum()))
    assert [name for name, *_ in found.classes] == list(CLASSES)
    assert [kappa for *_, kappa in found.classes] == pytest.approx(kappas)
    assert found.kappa == pytest.approx(np.mean(kappas))
    assert dict(found.confused) == {
        (name,): int((one[:, c] != two[:, c]).sum()) for c, name in enumerate(CLASSES)
    }
