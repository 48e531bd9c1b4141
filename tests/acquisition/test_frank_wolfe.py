"""ACS-FW against direct solutions of its optimisation problem, and where a closed form exists."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import Tensor

from spinal.acquisition import AcquisitionError, Candidates, make_acquisition
from spinal.acquisition.frank_wolfe import fill, frank_wolfe, project


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(n: int, j: int, seed: int = 0) -> Tensor:
    """Vectors with something in common, as log-likelihoods have."""
    generator = seeded(seed)
    return torch.randn(n, j, generator=generator).double() + torch.randn(j, generator=generator)


def quadratic_program(vectors: Tensor, target: Tensor) -> float:
    """The least residual norm over w >= 0, sum_n sigma_n w_n <= sigma, by another solver."""
    sigma = (vectors.square().sum(1) + 1e-6).sqrt()
    corners = (vectors / sigma.unsqueeze(1) * sigma.sum()).T.numpy()
    n = corners.shape[1]
    solution = scipy.optimize.minimize(
        lambda u: float(np.square(target.numpy() - corners @ u).sum()),
        np.full(n, 0.5 / n),
        jac=lambda u: -2 * corners.T @ (target.numpy() - corners @ u),
        bounds=[(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda u: 1 - u.sum(), "jac": lambda u: -np.ones(n)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return float(solution.fun) ** 0.5


@pytest.mark.parametrize("seed", range(4))
def test_many_steps_reach_the_solution_of_the_quadratic_program(seed):
    vectors = draw(8, 5, seed)
    # Of a target that 8 of 12 points cannot make up, and one that all of them can.
    for target in (draw(12, 5, seed).sum(0) + torch.tensor([9.0, 0, 0, 0, 0]), vectors.sum(0)):
        _, _, residuals = frank_wolfe(vectors, target, 5000, seeded())
        best = quadratic_program(vectors, target)
        assert best - 1e-4 <= residuals[-1].item() <= best + 0.01 * target.norm().item()


@pytest.mark.parametrize("b", [1, 2, 3])
def test_a_small_batch_is_no_better_than_the_best_and_better_than_most(b):
    vectors = draw(9, 4, seed=2)
    target = vectors.sum(0)
    chosen, weights, residuals = frank_wolfe(vectors, target, b, seeded())
    torch.testing.assert_close((target - weights @ vectors[chosen]).norm(), residuals[-1])
    least = [
        scipy.optimize.nnls(vectors[list(subset)].T.numpy(), target.numpy())[1]
        for subset in itertools.combinations(range(9), len(chosen))
    ]
    assert min(least) - 1e-9 <= residuals[-1].item() <= np.quantile(least, 0.6)


def test_the_first_step_is_the_best_single_point():
    vectors = draw(30, 6)
    chosen, weights, residuals = frank_wolfe(vectors, vectors.sum(0), 1, seeded())
    least = [scipy.optimize.nnls(v[:, None].numpy(), vectors.sum(0).numpy())[1] for v in vectors]
    assert chosen.item() == int(np.argmin(least))
    assert residuals.item() == pytest.approx(min(least), rel=1e-4)
    assert weights.item() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_residual_falls_at_every_step(dtype):
    vectors = draw(200, 10).to(dtype)
    target = vectors.sum(0, dtype=torch.float64)
    _, _, residuals = frank_wolfe(vectors, target, 150, seeded())
    assert residuals[0] < target.norm()
    assert (residuals.diff() < 0).all()
    assert residuals[-1] < 0.05 * target.norm()


def test_weights_are_within_their_bounds():
    vectors = draw(50, 8)
    _, weights, _ = frank_wolfe(vectors, vectors.sum(0), 40, seeded())
    sigma = (vectors.square().sum(1) + 1e-6).sqrt()
    assert (weights > 0).all()
    chosen, weights, _ = frank_wolfe(vectors, vectors.sum(0), 40, seeded())
    assert (weights * sigma[chosen]).sum() <= sigma.sum() * (1 + 1e-9)


def test_projections_of_linear_regression_choose_as_its_closed_form_does():
    """<L_n, L_m> = (x_n . x_m)(x_n Sigma x_m) / sigma0^4 needs no projection.

    The kernel is that of the vectors vec(x_n (Sigma^(1/2) x_n)^T) / sigma0^2, which stand in for
    infinitely many random projections of them.
    """
    generator = seeded(1)
    x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    noise = 0.5
    covariance = torch.linalg.inv(torch.eye(3, dtype=torch.float64) + x[:10].T @ x[:10] / noise)
    root = torch.linalg.cholesky(covariance)
    exact = torch.einsum("ni,nj->nij", x, x @ root).flatten(1) / noise
    kernel = (x @ x.T) * (x @ covariance @ x.T) / noise**2
    torch.testing.assert_close(exact @ exact.T, kernel)

    j = 20_000
    directions = torch.randn(exact.shape[1], j, generator=generator, dtype=torch.float64)
    projected = exact @ directions / j**0.5
    closed, _, residuals = frank_wolfe(exact, exact.sum(0), 8, seeded())
    sampled, _, close = frank_wolfe(projected, projected.sum(0), 8, seeded())
    assert sampled.tolist()[:3] == closed.tolist()[:3]
    np.testing.assert_allclose(close.numpy(), residuals.numpy(), rtol=0.05)

    # Frank-Wolfe on the kernel alone, as the closed form is used.
    sigma = (kernel.diagonal() + 1e-6).sqrt()
    w = torch.zeros(60, dtype=torch.float64)
    for expected in residuals:
        r = kernel @ (1 - w)
        f = int((r / sigma).argmax())
        corner = torch.zeros_like(w)
        corner[f] = sigma.sum() / sigma[f]
        d = corner - w
        w = w + (d @ r / (d @ kernel @ d)).clamp(0, 1) * d
        assert ((1 - w) @ kernel @ (1 - w)).sqrt().item() == pytest.approx(expected.item())
    assert set(w.nonzero().flatten().tolist()) == set(closed.tolist())


def test_the_batch_is_full_even_if_a_few_points_say_it_all():
    vectors = draw(100, 2)  # three points at most are needed for two numbers
    assert len(set(fill(vectors, 40, seeded()).tolist())) == 40


@pytest.mark.parametrize("vectors", [torch.zeros(20, 3), torch.eye(3).repeat(8, 1)[:20] * 1e-9])
def test_points_without_likelihood_are_chosen_at_random(vectors):
    batches = {tuple(fill(vectors, 7, seeded(seed)).tolist()) for seed in range(5)}
    assert all(len(set(batch)) == 7 for batch in batches)
    assert len(batches) == 5


def test_projections_are_expected_log_likelihoods_by_their_definition():
    log_probs = torch.randn(5, 6, 3, generator=seeded(), dtype=torch.float64).log_softmax(2)
    found = project(log_probs, 4, gamma=0.7)
    for n in range(5):
        mean = [sum(log_probs[n, k, c].exp().item() for k in range(6)) / 6 for c in range(3)]
        entropy = -sum(p * math.log(p) for p in mean)
        for j in range(4):
            expected = sum(mean[c] * log_probs[n, j, c].item() for c in range(3)) + 0.7 * entropy
            assert found[n, j].item() == pytest.approx(expected / 2)


def test_fewer_samples_than_projections_are_enough_and_impossible_classes_are_borne():
    log_probs = torch.tensor([[[0.0, -torch.inf], [-torch.inf, 0.0]]]).expand(9, -1, -1)
    assert project(log_probs, 10, gamma=0.7).shape == (9, 2)
    chosen = make_acquisition("acs-fw").select(Candidates(log_probs), 4, seeded())
    assert len(set(chosen.tolist())) == 4
    with pytest.raises(AcquisitionError, match="1 or more"):
        make_acquisition("acs-fw", projections=0)
