"""The mean-field last layer of Bayesian Batch, against what its weights say when sampled."""

from __future__ import annotations

import math

import numpy as np
import torch

from spinal.networks.network import seeded
from spinal.posteriors import FitContext, NeuralLinear, View
from spinal.posteriors.neural_linear import MeanFieldHead
from tests.posteriors.test_posteriors import make_view


def make_head() -> MeanFieldHead:
    with seeded(0), torch.no_grad():
        head = MeanFieldHead(6, 4, 3, scale=0.5)
        head.rho.fill_(0.3).add_(torch.randn_like(head.rho))
    return head


def test_noise_on_logits_has_the_moments_of_noise_on_weights() -> None:
    head = make_head()
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), seeded(2):
        local = torch.stack([head(z) for _ in range(20_000)])
        theta = head.sample(20_000, torch.Generator().manual_seed(3))
        h = torch.cat([head.hidden(z), torch.ones(5, 1)], 1)
    whole = torch.einsum("nh,khc->knc", h, theta)
    torch.testing.assert_close(local.mean(0), whole.mean(0), atol=0.1, rtol=0)
    torch.testing.assert_close(local.std(0), whole.std(0), atol=0, rtol=0.04)


def test_the_divergence_is_that_of_normals() -> None:
    head = make_head()
    expected = 0.0
    prior = 2 / 3
    for mean, rho in zip(head.mean.flatten().tolist(), head.rho.flatten().tolist(), strict=True):
        variance = math.log1p(math.exp(rho)) ** 2
        expected += 0.5 * ((variance + mean**2) / prior - 1 + math.log(prior / variance))
    torch.testing.assert_close(head.divergence().item(), expected, rtol=1e-4, atol=0)


def test_samples_are_softmaxes_of_drawn_last_layers_with_their_biases() -> None:
    view, y = make_view()
    posterior = NeuralLinear(draws=4, epochs=20)
    posterior.fit(view, y, FitContext(3))
    head = posterior.head
    assert head is not None
    with torch.no_grad():
        theta = head.sample(4, torch.Generator().manual_seed(7))
        h = head.hidden(view.features)
        expected = torch.stack([h @ t[:-1] + t[-1] for t in theta], 1).log_softmax(2)
    torch.testing.assert_close(posterior.sample(view, seed=7), expected)


def test_it_learns() -> None:
    view, y = make_view(n=120)
    posterior = NeuralLinear()
    posterior.fit(view, y, FitContext(3))
    right = posterior.predict(view).argmax(1) == y
    assert right.float().mean() > 0.9
    other, z = make_view(n=120, seed=5)
    assert (posterior.predict(other).argmax(1) == z).float().mean() > 0.8


def test_the_prior_counts_as_one_point_in_n() -> None:
    """The same points, many times over, take the last layer farther from its prior."""
    view, y = make_view(n=12)

    def divergence(times: int) -> float:
        more = View(
            view.network, view.points, np.tile(view.indices, times), view.features.repeat(times, 1)
        )
        posterior = NeuralLinear(learning_rate=0.05, batch_size=12 * times)
        posterior.fit(more, y.repeat(times), FitContext(3))
        assert posterior.head is not None
        return posterior.head.divergence().item()

    few, many = divergence(1), divergence(50)
    assert many > 2 * few
