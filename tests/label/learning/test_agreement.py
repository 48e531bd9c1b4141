"""Cohen's kappa, against scikit-learn, and what counts as an opinion."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from starlette.testclient import TestClient

from spinal.label.learning.agreement import cohen_kappa, find_agreements
from spinal.label.store.project import Project
from spinal.label.store.store import Answer


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers, said = [], np.full((3, 200), "", object)
    for i, person in enumerate(("ada", "bob", "eve")):
        for image in range(200):
            if rng.random() < 0.7:
                said[i, image] = f"class {(image + (rng.random() < 0.3) * rng.integers(4)) % 4}"
                answers.append((image, person, said[i, image]))
    found = {agreement.people: agreement for agreement in find_agreements(answers)}
    people = ("ada", "bob", "eve")
    assert len(found) == 3
    for one, two in ((0, 1), (0, 2), (1, 2)):
        both = (said[one] != "") & (said[two] != "")
        first, second = said[one][both].tolist(), said[two][both].tolist()
        agreement = found[people[one], people[two]]
        assert agreement.images == both.sum()
        assert agreement.agreed == sum(a == b for a, b in zip(first, second, strict=True))
        assert agreement.kappa == pytest.approx(cohen_kappa_score(first, second))
        assert sum(n for _, n in agreement.confused) == agreement.images - agreement.agreed


def test_kappa_by_hand() -> None:
    assert cohen_kappa([("a", "a"), ("b", "b")]) == 1
    assert cohen_kappa([("a", "b"), ("b", "a")]) == -1
    assert cohen_kappa([("a", "a"), ("a", "a")]) is None
    assert cohen_kappa([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]) == 0
    assert find_agreements([(1, "ada", "a"), (2, "bob", "b")]) == []


def test_a_review_is_no_opinion(client: TestClient, project: Project) -> None:
    say = project.store.answer
    for image, ada, bob in ((1, "red", "red"), (2, "red", "blue"), (3, "blue", "blue")):
        say([Answer(f"a{image}", image, ada)], "ada")
        say([Answer(f"b{image}", image, bob)], "bob")
    say([Answer("first", 4, "red"), Answer("second", 4, "blue")], "ada")  # the last one counts
    say([Answer("skip", 5, None)], "bob")
    say([Answer("decided", 2, "blue", reason="disagreement", decides=True)], "ada")
    (pair,) = client.get("/api/agreement").json()["pairs"]
    assert pair["people"] == ["ada", "bob"]
    assert (pair["images"], pair["agreed"]) == (3, 2)
    assert pair["confused"] == [[["blue", "red"], 1]]
    expected = cohen_kappa_score(["red", "red", "blue"], ["red", "blue", "blue"])
    assert pair["kappa"] == pytest.approx(expected)
