"""Categorical leaves beside normal ones, against enumeration of all values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from spinal.circuits import DGCSPN, Circuit, FitSettings, RandomSPN, Recipe, fit, train_circuit
from spinal.errors import SpinalError, StructureError

SIZES = (2, 0, 3, 1, 2)
BUILDERS: dict[str, Callable[[], Circuit]] = {
    "dgc": lambda: DGCSPN(
        n_features=5, n_classes=2, leaves=2, sums=(2, 2), strided=1, categories=SIZES, seed=1
    ),
    "random": lambda: RandomSPN(
        5, 3, depth=2, repetitions=2, leaves=2, sums=2, categories=SIZES, seed=2
    ),
    "random-scales": lambda: RandomSPN(
        5, 2, depth=1, repetitions=2, leaves=3, sums=2, categories=SIZES, learn_scale=True, seed=3
    ),
}
WORLDS = torch.tensor(list(itertools.product(*(range(size) for size in SIZES if size))))


@pytest.fixture(params=BUILDERS)
def spn(request: pytest.FixtureRequest) -> Circuit:
    circuit = BUILDERS[request.param]().double()
    with torch.no_grad():
        circuit.prior_logits.copy_(torch.linspace(-0.5, 1, circuit.n_classes))
    return circuit


def worlds(number: float) -> torch.Tensor:
    """All combinations of values, with the same number in column 1: ``[12, 5]``."""
    return torch.cat([
        WORLDS[:, :1].double(),
        torch.full((len(WORLDS), 1), number, dtype=torch.float64),
        WORLDS[:, 1:].double(),
    ], dim=1)  # fmt: skip


@pytest.mark.parametrize("number", [0.4, torch.nan])
def test_missing_values_are_the_sum_over_all_values(spn: Circuit, number: float) -> None:
    joint = spn(worlds(number))
    for missing in itertools.product((False, True), repeat=5):
        hidden = torch.tensor(missing)
        hidden[1] = False
        one = worlds(number)[7].masked_fill(hidden, torch.nan)
        seen = ~one.isnan()
        same = (worlds(number)[:, seen] == one[seen]).all(1)
        torch.testing.assert_close(spn(one[None])[0], joint[same].logsumexp(0))


def test_probabilities_add_up_to_one(spn: Circuit) -> None:
    torch.testing.assert_close(
        spn.log_prob(worlds(torch.nan)).exp().sum(), torch.tensor(1.0, dtype=torch.float64)
    )
    line = torch.linspace(-12, 12, 201, dtype=torch.float64)
    every = torch.cat([worlds(float(x)) for x in line])
    density = spn.log_prob(every).exp().view(len(line), -1).sum(1)
    assert float(torch.trapezoid(density, line).detach()) == pytest.approx(1, abs=1e-6)


def test_values_that_do_not_exist_count_as_missing(spn: Circuit) -> None:
    point = worlds(0.2)[:1]
    for code in (-1.0, 0.5, 2.0, 7.0):
        unseen, missing = point.clone(), point.clone()
        unseen[0, 0], missing[0, 0] = code, torch.nan
        torch.testing.assert_close(spn(unseen), spn(missing))


def test_dropping_a_category_is_marginalising_it(spn: Circuit) -> None:
    keep = torch.rand(WORLDS.size(0), 5, generator=torch.Generator().manual_seed(0)) < 0.5
    z = worlds(0.3)
    torch.testing.assert_close(spn(z, keep), spn(z.where(keep, torch.nan)))


def test_samples_have_the_probabilities_of_the_circuit(spn: Circuit) -> None:
    draws = 4000
    given = torch.full((5,), torch.nan, dtype=torch.float64)
    given[2] = 1.0
    for known in (None, given):
        z = spn.sample(draws, given=known, generator=torch.Generator().manual_seed(0))
        expected = spn.log_prob(worlds(torch.nan)).exp().detach()
        if known is not None:
            expected = torch.where(worlds(0)[:, 2] == 1, expected, 0)
        expected = expected / expected.sum()
        drawn = z[:, [0, 2, 3, 4]]
        share = torch.stack([(drawn == world).all(1).double().mean() for world in WORLDS])
        error = (expected * (1 - expected) / draws).sqrt()
        assert ((share - expected).abs() <= 4 * error + 1e-12).all()


def test_mpe_is_the_best_component() -> None:
    """One product for each component: the largest weight times its most probable values."""
    spn = RandomSPN(3, 2, depth=0, repetitions=1, leaves=4, categories=(3, 2, 4), seed=1).double()
    leaves, order = spn.leaves, spn.leaves._category_owner
    best, values = leaves.log_theta().max(-1)  # [slots, K]
    weight = spn.layers[0].sum.log_weights()[0] + spn.prior_logits.log_softmax(0)  # [K, C]
    k = int((best.sum(0)[:, None] + weight).max(1).values.argmax())
    expected = torch.empty(3, dtype=torch.float64)
    expected[order] = values[:, k].double()
    unknown = torch.full((1, 3), torch.nan, dtype=torch.float64)
    torch.testing.assert_close(spn.mpe(unknown)[0], expected)


def test_gradients_are_the_finite_differences(spn: Circuit) -> None:
    names, start = zip(*spn.named_parameters(), strict=True)
    z = worlds(0.4)[:4]

    def joint(*parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(spn, dict(zip(names, parameters, strict=True)), z)

    assert torch.autograd.gradcheck(joint, start)


def test_a_saved_circuit_comes_back(spn: Circuit, tmp_path: Path) -> None:
    spn.save(tmp_path / "circuit")
    back = Circuit.load(tmp_path / "circuit")
    assert torch.equal(back(worlds(0.4)), spn(worlds(0.4)))


def blobs(n: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    """A number and two categories; the first and the number depend on the class."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 2
    noise = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    columns = [noise[:, 0] + y, (noise[:, 1] < 0.2 + 0.6 * y).double(), (3 * noise[:, 2]).floor()]
    return torch.stack(columns, 1), y


def test_em_never_decreases_the_likelihood() -> None:
    z, y = blobs()
    z[torch.rand(z.shape, generator=torch.Generator().manual_seed(1)) < 0.3] = torch.nan
    spn = RandomSPN(3, 2, depth=1, repetitions=2, leaves=3, sums=2, categories=(0, 2, 3)).double()
    settings = FitSettings(generative=1, optimiser="em", learning_rate=1, steps=12, batch_size=None)
    losses = fit(spn, z, y, settings).losses
    assert (np.diff(losses) < 1e-4).all()
    assert losses[-1] < losses[0] - 0.01


def test_em_of_one_leaf_for_each_class_counts() -> None:
    """The frequencies of values in each class, in one step."""
    z, y = blobs()
    spn = RandomSPN(1, 2, depth=0, repetitions=1, leaves=2, categories=(3,)).double()
    with torch.no_grad():
        spn.layers[0].sum.logits.copy_(40 * torch.eye(2)[:, None])
    settings = FitSettings(generative=1, optimiser="em", learning_rate=1, steps=1, batch_size=None)
    fit(spn, z[:, 2:], y, settings)
    expected = torch.stack([torch.bincount(z[y == c, 2].long(), minlength=3) for c in (0, 1)])
    theta = spn.leaves.log_theta().exp()[0].detach()  # type: ignore[operator]
    torch.testing.assert_close(theta, expected / 200.0, atol=1e-4, rtol=0, check_dtype=False)


def test_training_learns_from_categories() -> None:
    z, y = blobs()
    recipe = Recipe(sums=(4, 4), fit=FitSettings(steps=150))
    spn = train_circuit(z[:, 1:], y, 2, recipe, categories=(2, 3), dtype=torch.float64)
    table = torch.stack([
        torch.bincount(y[z[:, 1] == v], minlength=2) / (z[:, 1] == v).sum() for v in (0, 1)
    ])  # fmt: skip
    points = torch.tensor([[0.0, torch.nan], [1.0, torch.nan]], dtype=torch.float64)
    probs = spn.log_posterior(points).exp().detach()
    torch.testing.assert_close(probs, table.double(), atol=0.05, rtol=0)


@pytest.mark.parametrize("sizes", [(2, 3), (2, 0, -1)])
def test_sizes_that_cannot_be_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(StructureError, match="sizes"):
        RandomSPN(3, 2, categories=sizes)


def test_categorical_leaves_are_not_exported(spn: Circuit) -> None:
    with pytest.raises(SpinalError, match="categorical"):
        spn.to_plain_arrays()
