"""Sampling, conditioning and the most probable explanation, against the explicit mixtures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spinal.circuits import DGCSPN
from spinal.circuits.circuit import Circuit
from spinal.errors import SpinalError
from tests.circuits import mixtures
from tests.circuits.conftest import build, trained_on_blobs

DRAWS = 20_000


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_moments(z: torch.Tensor, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Within four standard errors of the mean, and four of each covariance (about)."""
    deviation = np.sqrt(np.diag(covariance))
    assert (abs(z.mean(0).numpy() - mean) < 4 * deviation / len(z) ** 0.5 + 1e-12).all()
    error = abs(np.cov(z.T.numpy()) - covariance) / np.outer(deviation, deviation)
    assert error.max() < 8 / len(z) ** 0.5


def test_samples_have_the_moments_of_the_mixture(spn: Circuit) -> None:
    z, c = spn.sample(DRAWS, generator=generator(), return_classes=True)
    components = [part for of_class in mixtures.expand(spn) for part in of_class]
    assert_moments(z, *mixtures.moments(components, spn.n_features))
    share = torch.bincount(c, minlength=spn.n_classes) / DRAWS
    torch.testing.assert_close(
        share.double(), spn.prior_logits.softmax(0).detach(), atol=0.02, rtol=0
    )


def test_samples_of_a_class_have_the_moments_of_its_mixture(spn: Circuit) -> None:
    z = spn.sample(DRAWS, classes=1, generator=generator())
    assert_moments(z, *mixtures.moments(mixtures.expand(spn)[1], spn.n_features))


@pytest.mark.parametrize("name", ["dgc", "dgc-padded", "random"])
def test_conditional_samples_follow_joint_over_marginal(name: str) -> None:
    spn = build(name)
    known = torch.full((spn.n_features,), torch.nan, dtype=torch.float64)
    known[0], known[2] = 0.7, -0.9
    z, c = spn.sample(DRAWS, given=known, generator=generator(), return_classes=True)
    assert (z[:, 0] == 0.7).all()
    assert (z[:, 2] == -0.9).all()
    posterior = spn.log_posterior(known[None]).exp()[0].detach()
    share = torch.bincount(c, minlength=spn.n_classes) / DRAWS
    torch.testing.assert_close(share.double(), posterior, atol=0.02, rtol=0)
    # The conditional of a mixture: the same components, each reweighted by its evidence.
    weighted = []
    for part in (p for of_class in mixtures.expand(spn) for p in of_class):
        evidence = mixtures.log_joint([[part]], known[None].numpy())[0, 0]
        fixed = {0: (0.7, 0.0), 2: (-0.9, 0.0)}
        weighted.append((evidence, part[1] | fixed))
    mean, covariance = mixtures.moments(weighted, spn.n_features)
    free = [v for v in range(spn.n_features) if v not in (0, 2)]
    assert_moments(z[:, free], mean[free], covariance[np.ix_(free, free)])


def test_samples_score_as_their_entropy_says() -> None:
    """In the paper's structure: E[log p] over samples, and over importance-weighted wide draws."""
    spn = DGCSPN((4, 4), 3, weight_spread=3, seed=1)
    with torch.no_grad():
        by_samples = spn.log_prob(spn.sample(4000, generator=generator()))
        wide = torch.distributions.Normal(0.0, 1.5)
        torch.manual_seed(0)
        draws = wide.sample((15_000, 16))
        log_p = spn.log_prob(draws)
        ratio = (log_p - wide.log_prob(draws).sum(1)).exp()
    expected = (ratio * log_p).sum() / ratio.sum()
    error = ((ratio / ratio.sum()) ** 2 * (log_p - expected) ** 2).sum().sqrt()
    assert error < 0.2
    assert abs(by_samples.mean() - expected) < 4 * error + 0.05


def test_sampling_repeats_with_its_generator(spn: Circuit) -> None:
    first, again = (spn.sample(9, generator=generator(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, spn.sample(9, generator=generator(4)))
    assert spn.sample(0).shape == (0, spn.n_features)


def test_mpe_is_the_best_component(spn: Circuit) -> None:
    """By enumeration: the largest weighted peak, given what is known."""
    known = torch.full((2, spn.n_features), torch.nan, dtype=torch.float64)
    known[1, 0] = 0.3
    parts = [p for of_class in mixtures.expand(spn) for p in of_class]
    for row, filled in zip(known, spn.mpe(known), strict=True):
        free = [v for v in range(spn.n_features) if row[v].isnan()]
        evidence = [mixtures.log_joint([[p]], row[None].numpy())[0, 0] for p in parts]
        peaks = [
            e - sum(np.log(leaves[v][1]) + 0.5 * np.log(2 * np.pi) for v in free)
            for e, (_, leaves) in zip(evidence, parts, strict=True)
        ]
        leaves = parts[int(np.argmax(peaks))][1]
        np.testing.assert_allclose(filled[free].detach(), [leaves[v][0] for v in free])
        seen = ~row.isnan()
        assert torch.equal(filled[seen], row[seen])


def test_mpe_of_a_class_is_of_that_class() -> None:
    spn, _ = trained_on_blobs()
    unknown = torch.full((5, 64), torch.nan)
    filled = spn.mpe(unknown, classes=torch.arange(5))
    assert spn.log_posterior(filled).argmax(1).tolist() == [0, 1, 2, 3, 4]


def test_classes_that_do_not_exist_are_refused(spn: Circuit) -> None:
    with pytest.raises(SpinalError, match=f"0 to {spn.n_classes - 1}"):
        spn.sample(2, classes=spn.n_classes)
