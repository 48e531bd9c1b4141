r"""The model of Bayesian Batch: a mean-field Gaussian last layer on the network's features.

Pinsler et al., 2019. A dense layer of 32 units and a ReLU map the features to :math:`h(z)`. Each
weight of the last layer has a normal distribution instead of a value:

.. math::
    p(y \mid z, \theta) = \mathrm{softmax}(\theta^\top [h(z), 1]), \qquad
    q(\theta) = \prod_i \mathcal N(\theta_i \mid \mu_i, \mathrm{softplus}(\rho_i)^2).

Fitting maximises the evidence lower bound, divided by the number N of labelled points:

.. math::
    \tfrac1N \sum_n \mathbb E_q \log p(y_n \mid z_n, \theta) - \tfrac1N \mathrm{KL}(q \,\|\, p),
    \qquad p(\theta) = \mathcal N(0, 2 / C).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import cross_entropy, softplus

from spinal.files import read_tensors, write_tensors
from spinal.networks.network import derived_seed, seeded
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.probabilities import mean_log_probs

_FILE, _FORMAT = "neural-linear.safetensors", "spinal.neural-linear/1"
#: Points per chunk: each point has K x C logits.
_CHUNK = 2048


class MeanFieldHead(nn.Module):
    """A dense layer, a ReLU, and a last layer with uncertain weights: from features to logits.

    Args:
        features: F.
        hidden: H, the units of the dense layer.
        classes: C.
        scale: factor on the features.
    """

    scale: Tensor

    def __init__(self, features: int, hidden: int, classes: int, scale: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))
        self.dense = nn.Linear(features, hidden)
        # The last row holds the biases.
        self.mean = nn.Parameter(0.05 * torch.randn(hidden + 1, classes))
        self.rho = nn.Parameter(-4 + 0.05 * torch.randn(hidden + 1, classes))

    def hidden(self, z: Tensor) -> Tensor:
        """``h(z)``, ``[N, H]``."""
        return self.dense(self.scale * z).relu()

    def forward(self, z: Tensor) -> Tensor:
        """Logits ``[N, C]``, drawn again for each point.

        They are normal for normal weights. Drawing them instead of the weights gives gradients with
        less noise (local reparametrisation; Kingma et al., 2015).
        """
        h, variance = self.hidden(z), softplus(self.rho).square()
        mean_N_C = h @ self.mean[:-1] + self.mean[-1]
        variance_N_C = h.square() @ variance[:-1] + variance[-1]
        return mean_N_C + variance_N_C.sqrt() * torch.randn_like(mean_N_C)

    def divergence(self) -> Tensor:
        """KL(q || p), in nats."""
        q = Normal(self.mean, softplus(self.rho))
        return kl_divergence(q, Normal(0.0, (2 / self.mean.shape[1]) ** 0.5)).sum()

    def sample(self, samples: int, generator: torch.Generator) -> Tensor:
        """Last layers, ``[K, H + 1, C]``."""
        noise = torch.randn(samples, *self.mean.shape, generator=generator)
        return self.mean + softplus(self.rho) * noise


@dataclass
class NeuralLinear(Posterior):
    """K last layers drawn from a mean-field posterior, the same for every point.

    Only the two layers are fitted, on fixed features, so the network is the same as in every other
    method; the authors train the complete network with this bound. The settings are the authors'.
    On MNIST and Fashion-MNIST, with 20 to 200 labels, accuracy is within 2 % of the network's own
    head.

    Attributes:
        draws: K, the number of last layers drawn.
        hidden: units of the dense layer before the last.
        learning_rate: initial value; it decays to a hundredth along half a cosine.
        epochs: passes over the labelled points.
        batch_size: points per step; all points if there are fewer.
        weight_decay: weight decay of the dense layer.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples"})

    draws: int = 100
    hidden: int = 32
    learning_rate: float = 1e-3
    epochs: int = 250
    batch_size: int = 256
    weight_decay: float = 5e-4
    head: MeanFieldHead | None = field(default=None, init=False, repr=False)

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        z, n = labelled.features, len(labels)
        scale = float(z.square().mean().clamp_min(1e-12).rsqrt())  # to a mean square of 1
        batches = -(-n // self.batch_size)
        steps = self.epochs * batches
        with seeded(derived_seed(context.seed, 0)):
            head = MeanFieldHead(z.shape[1], self.hidden, context.n_classes, scale)
            groups: list[dict[str, Any]] = [
                {"params": [head.dense.weight], "weight_decay": self.weight_decay},
                {"params": [head.dense.bias, head.mean, head.rho], "weight_decay": 0.0},
            ]
            optimiser = torch.optim.AdamW(groups, lr=self.learning_rate)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
                optimiser, steps, self.learning_rate / 100
            )
            for step in range(steps):
                if step % batches == 0:
                    epoch = torch.randperm(n).tensor_split(batches)
                rows = epoch[step % batches]
                loss = cross_entropy(head(z[rows]), labels[rows]) + head.divergence() / n
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                if context.on_step is not None:
                    context.on_step(step + 1, steps, float(loss.detach()))
        self.head = head

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The mean over K samples, as ``log_probs_N_C``."""
        return mean_log_probs(self.sample(view, seed=seed))

    @torch.no_grad()
    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        head = self._fitted()
        k = self.draws if k is None else k
        theta_K_H_C = head.sample(k, torch.Generator().manual_seed(seed))
        weights_H_KC = theta_K_H_C[:, :-1].transpose(0, 1).flatten(1)
        bias_K_C = theta_K_H_C[:, -1]
        parts = []
        for z in view.features.split(_CHUNK):
            logits_n_K_C = (head.hidden(z) @ weights_H_KC).view(len(z), *bias_K_C.shape)
            parts.append(logits_n_K_C.add_(bias_K_C).log_softmax(2))
        return torch.cat(parts)

    def save(self, folder: Path) -> None:
        write_tensors(folder / _FILE, self._fitted().state_dict(), _FORMAT, {})

    def load(self, folder: Path) -> None:
        _, tensors = read_tensors(folder / _FILE, _FORMAT)
        hidden, features = tensors["dense.weight"].shape
        self.head = MeanFieldHead(features, hidden, tensors["mean"].shape[1])
        self.head.load_state_dict(tensors)

    def _fitted(self) -> MeanFieldHead:
        if self.head is None:
            raise RuntimeError("the last layer has not been fitted yet")
        return self.head
