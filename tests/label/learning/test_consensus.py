"""The consensus of several people: by hand, and against the majority."""

from __future__ import annotations

import numpy as np
import pytest

from spinal.label.learning.consensus import NO_ANSWER, find_consensus


def test_a_small_case_worked_by_hand() -> None:
    """Four images, three people, two classes.

    Majorities: 0, 1, 0 (the model decides a draw), 1. Three images are shared.
    """
    votes = np.array([[0, 0, 1], [1, 1, NO_ANSWER], [0, 1, NO_ANSWER], [NO_ANSWER, 1, NO_ANSWER]])
    probs = np.array([[0.8, 0.2], [0.3, 0.7], [0.9, 0.1], [0.6, 0.4]])
    found = find_consensus(votes, probs)
    reliability = (2 / 3 + 1 + 1 / 2) / 3
    # Of eight answers, three are 0 and five are 1, which is the majority of one shared image.
    base = 1 / 3
    # Ada: 1 of 2, 1 of 1, 0 of 1. Bob: the same images, the same. Eve: 0 of 2.
    agreement = [2 / 4, 2 / 4, 0 / 2]
    weights = [max(1 - (1 - s) / (1 - base), 1e-6) for s in agreement]
    model = (1 - (1 - 3 / 3) / (1 - base)) * (8 / 4) ** 0.5
    assert found.weights == pytest.approx(weights)
    assert found.model_weight == pytest.approx(model)
    ada, bob, eve = weights
    first = (model * 0.8 + ada * reliability + bob * reliability + eve * (1 - reliability)) / (
        model + ada + bob + eve
    )
    third = (model * 0.9 + ada * reliability + bob * (1 - reliability)) / (model + ada + bob)
    last = (model * 0.6 + bob * (1 - reliability)) / (model + bob)
    assert found.probs[[0, 2, 3], 0] == pytest.approx([first, third, last])
    assert found.probs.sum(1) == pytest.approx(1)


def test_it_transcribes_the_published_formulas() -> None:
    """A second implementation, with loops, as the formulas are written."""
    random = np.random.default_rng(0)
    n, people, n_classes = 60, 5, 4
    votes = np.where(
        random.random((n, people)) < 0.5, random.integers(n_classes, size=(n, people)), NO_ANSWER
    )
    votes[:, 0] = random.integers(n_classes, size=n)  # everybody's images have an answer
    probs = random.dirichlet(np.ones(n_classes), n)
    votes[: n // 2] = np.where(votes[: n // 2] >= 0, probs[: n // 2].argmax(1)[:, None], NO_ANSWER)

    who = [[j for j in range(people) if votes[i, j] >= 0] for i in range(n)]
    majority = []
    for i in range(n):
        tally = [sum(votes[i, j] == c for j in who[i]) for c in range(n_classes)]
        best = [c for c in range(n_classes) if tally[c] == max(tally)]
        majority.append(max(best, key=lambda c: probs[i, c]))
    shared = [i for i in range(n) if len(who[i]) > 1]
    reliability = np.mean([np.mean([votes[i, j] == majority[i] for j in who[i]]) for i in shared])
    flat = [votes[i, j] for i in range(n) for j in who[i]]
    common = max(range(n_classes), key=flat.count)
    base = np.mean([majority[i] == common for i in shared])
    model = np.mean([probs[i].argmax() == majority[i] for i in shared])
    model_weight = (1 - (1 - model) / (1 - base)) * np.sqrt(np.mean([len(w) for w in who]))
    weights = []
    for j in range(people):
        pairs = [(i, k) for i in range(n) if j in who[i] for k in who[i] if k != j]
        agreement = np.mean([votes[i, j] == votes[i, k] for i, k in pairs])
        weights.append(1 - (1 - agreement) / (1 - base))
    found = find_consensus(votes, probs)
    assert found.weights == pytest.approx(weights)
    assert found.model_weight == pytest.approx(model_weight)
    for i in range(n):
        total = model_weight * probs[i]
        for j in who[i]:
            vote = np.full(n_classes, (1 - reliability) / (n_classes - 1))
            vote[votes[i, j]] = reliability
            total = total + weights[j] * vote
        expected = total / (model_weight + sum(weights[j] for j in who[i]))
        assert found.probs[i] == pytest.approx(expected)


def test_it_beats_the_majority_of_two_people_who_often_disagree() -> None:
    random = np.random.default_rng(1)
    n, n_classes = 2000, 5
    true = random.integers(n_classes, size=n)

    def answers(skill: float) -> np.ndarray:
        other = (true + random.integers(1, n_classes, n)) % n_classes
        return np.where(random.random(n) < skill, true, other)

    votes = np.stack([answers(0.8), answers(0.8)], 1)
    predicted = answers(0.9)
    sure = random.uniform(0.5, 1, n) - 0.15 * (predicted != true)
    probs = np.repeat((1 - sure)[:, None] / (n_classes - 1), n_classes, 1)
    probs[np.arange(n), predicted] = sure
    counts = np.eye(n_classes)[votes].sum(1)
    by_chance = (counts + 0.1 * random.random((n, n_classes))).argmax(1)
    by_model = (counts + 0.1 * probs).argmax(1)
    right = (find_consensus(votes, probs).probs.argmax(1) == true).mean()
    assert right > (by_chance == true).mean() + 0.1  # who decides between equals
    assert right > (by_model == true).mean() + 0.005


def test_people_who_all_agree_on_one_class() -> None:
    found = find_consensus(np.zeros((4, 2), np.int64), np.full((4, 2), 0.5))
    assert np.isfinite(found.probs).all()
    assert (found.probs.argmax(1) == 0).all()
