r"""Leaves for tables: normal ones for numbers, categorical ones for categories.

A categorical leaf over a variable of M values has a probability :math:`\theta_m` for each of them.
Its logarithm is linear in the indicators of the values,

.. math::
    \log p(z) = \sum_m [z = m] \log \theta_m ,

so these leaves are a matrix product too, and a missing value is summed out by setting all its
indicators to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spinal.circuits.leaves import Natural, NormalLeaves
from spinal.errors import StructureError

#: Added to the expected count of every value in EM, so that no value becomes impossible.
_PSEUDO_COUNT = 1e-3


class MixedLeaves(NormalLeaves):
    """Regions of independent normal and categorical leaves.

    The values of a category are the numbers 0 to M - 1. Any other number counts as missing, for
    example a value that did not occur in the training table.

    Args:
        variables: see `NormalLeaves`.
        n_features: see `NormalLeaves`.
        components: see `NormalLeaves`.
        sizes: for each of the D variables, M if it is a category, 0 if it is a number.
        location_spread: standard deviation of the random initial locations and logits.
        generator: draws the initial locations and logits.
        **settings: settings of the normal leaves, see `NormalLeaves`.
    """

    is_category: Tensor
    _category_slots: Tensor
    _category_owner: Tensor
    _possible: Tensor

    def __init__(
        self,
        variables: Tensor,
        n_features: int,
        components: int,
        sizes: Sequence[int],
        *,
        location_spread: float = 1.0,
        generator: torch.Generator | None = None,
        **settings: Any,
    ) -> None:
        if len(sizes) != n_features or min(sizes) < 0 or max(sizes) < 1:
            raise StructureError(
                f"sizes has the number of values of each of {n_features} variables, 0 for a number "
                f"and 1 or more for a category: got {list(sizes)}"
            )
        counts = torch.tensor(list(sizes))
        # The last entry is for -1, where a region has fewer variables than others.
        is_category = torch.cat([counts > 0, torch.tensor([False])])[variables]
        super().__init__(
            torch.where(is_category, -1, variables),
            n_features,
            components,
            location_spread=location_spread,
            generator=generator,
            **settings,
        )
        slots = is_category.flatten().nonzero().flatten()
        owner = variables.flatten()[slots]
        possible = torch.arange(int(counts.max())) < counts[owner, None]
        self.register_buffer("is_category", counts > 0, persistent=False)
        self.register_buffer("_category_slots", slots, persistent=False)
        self.register_buffer("_category_owner", owner, persistent=False)
        self.register_buffer("_possible", possible, persistent=False)  # [slots, M]
        start = torch.randn(len(slots), components, possible.size(1), generator=generator)
        self.logits = nn.Parameter(location_spread * start)

    def log_theta(self) -> Tensor:
        """Log-probabilities of all values, ``[slots, K, M]``; -inf for values that do not exist."""
        return self.logits.masked_fill(~self._possible[:, None], -torch.inf).log_softmax(-1)

    def scopes(self) -> Tensor:
        return super().scopes() | self._scopes(self._category_slots, self._category_owner)

    def natural(self) -> Natural:
        """The parameters of `NormalLeaves`, and the log-probabilities of all values by region."""
        natural = super().natural()
        # A category has no normal leaves, so it has no mean and no maximum.
        centre, common = (
            part.masked_fill(self.is_category, 0) for part in (natural.centre, natural.common)
        )
        table = self.log_theta().masked_fill(~self._possible[:, None], 0).transpose(1, 2)
        table = self._by_region(table, 0, self._category_slots).flatten(1, 2)  # [A B, V M, K]
        return Natural([*natural.eta, table], centre, common)

    def forward(
        self, z: Tensor, keep: Tensor | None = None, natural: Natural | None = None
    ) -> tuple[Tensor, Tensor]:
        *eta, table = (natural := self.natural() if natural is None else natural).eta
        numbers = z.masked_fill(self.is_category, torch.nan)
        log_p, common = super().forward(numbers, keep, natural._replace(eta=eta))
        indicators = self._indicators(z, keep).to(z.dtype)  # [N, slots, M]
        indicators = self._by_region(indicators, 1, self._category_slots).flatten(2)
        by_value = torch.bmm(indicators.transpose(0, 1), table)
        return log_p + by_value.unflatten(0, self.cells), common

    def peak_log_density(self, z: Tensor) -> Tensor:
        missing = ~self._indicators(z).any(-1)  # [N, slots]
        missing = self._by_region(missing.to(z.dtype), 1, self._category_slots)
        peak = self._by_region(self.log_theta().amax(-1), 0, self._category_slots)
        at_peak = torch.bmm(missing.transpose(0, 1), peak).unflatten(0, self.cells)
        return super().peak_log_density(z) + at_peak

    def fill(self, z: Tensor, component: Tensor, noise: Tensor | None = None) -> Tensor:
        numbers = super().fill(z, component, noise)
        chosen = component.flatten(0, 1)[self._category_slots // self.variables.size(2)]
        index = chosen.clamp_min(0)[..., None].expand(-1, -1, self.logits.size(2))
        theta = self.log_theta().exp().gather(1, index)  # [slots, N, M]
        if noise is None:
            value = theta.argmax(-1)
        else:
            # The value at which the cumulative distribution exceeds a uniform number.
            uniform = torch.special.ndtr(noise.T[self._category_owner])
            value = (theta.cumsum(-1) < uniform[..., None]).sum(-1)
            value = value.clamp_max(self._possible.sum(1, keepdim=True) - 1)
        value = torch.where(chosen >= 0, value, 0).to(z.dtype)
        filled = value.new_zeros(self.n_features, len(z))
        filled = filled.index_add(0, self._category_owner, value).T
        return torch.where(z.isnan() & self.is_category, filled, numbers)

    @torch.no_grad()
    def blend(self, statistics: Sequence[Tensor], step: float) -> None:
        """Move towards the EM estimate; the last statistic counts values, see `natural`."""
        *of_numbers, counts = statistics
        super().blend(of_numbers, step)
        width, values = self.variables.size(2), self._possible.size(1)
        counts = counts.unflatten(1, (width, values)).flatten(0, 1)[self._category_slots]
        counts = (counts.transpose(1, 2) + _PSEUDO_COUNT) * self._possible[:, None]
        target = counts / counts.sum(-1, keepdim=True)
        theta = (1 - step) * self.log_theta().exp() + step * target
        self.logits.copy_(theta.clamp_min(torch.finfo(theta.dtype).tiny).log())

    @torch.no_grad()
    def standardise(self, z: Tensor, weights: Tensor | None = None, **settings: Any) -> None:
        """Standardise the numbers; see `NormalLeaves.standardise`."""
        super().standardise(z.masked_fill(self.is_category, torch.nan), weights, **settings)
        self.shift.masked_fill_(self.is_category, 0)
        self.stretch.masked_fill_(self.is_category, 1)

    @torch.no_grad()
    def start_from_classes(
        self,
        z: Tensor,
        y: Tensor,
        weights: Tensor,
        n_classes: int,
        jitter: float,
        generator: torch.Generator | None,
    ) -> None:
        """Initialise component k near the means and frequencies of class ``k mod n_classes``.

        The frequencies of a class are smoothed by one more point with the overall frequencies.
        """
        super().start_from_classes(z, y, weights, n_classes, jitter, generator)
        in_class = nn.functional.one_hot(y, n_classes).to(z) * weights[:, None]
        counts = torch.einsum("nc,nsm->scm", in_class, self._indicators(z).to(z))
        overall = counts.sum(1, keepdim=True) + self._possible[:, None]
        overall = overall / overall.sum(-1, keepdim=True)
        frequencies = (counts + overall) / (counts.sum(-1, keepdim=True) + 1)
        of_component = torch.arange(self.components, device=z.device) % n_classes
        noise = torch.randn(self.logits.shape, generator=generator).to(z)
        tiny = torch.finfo(z.dtype).tiny
        self.logits.copy_(frequencies.clamp_min(tiny).log()[:, of_component] + jitter * noise)

    def _indicators(self, z: Tensor, keep: Tensor | None = None) -> Tensor:
        """Which value each slot has, ``[N, slots, M]`` booleans; all False where it is missing."""
        codes = z[:, self._category_owner, None]
        values = torch.arange(self._possible.size(1), device=z.device)
        known = (codes == values) & self._possible
        return known if keep is None else known & keep[:, self._category_owner, None]

    def _leaf_values(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        numbers, slots, owner = super()._leaf_values(z.masked_fill(self.is_category, torch.nan))
        table = self.log_theta().masked_fill(~self._possible[:, None], 0).double()
        values = torch.einsum("nsm,skm->snk", self._indicators(z).double(), table)
        return (
            torch.cat([numbers, values]),
            torch.cat([slots, self._category_slots]),
            torch.cat([owner, self._category_owner]),
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {int(self.is_category.sum())} categories"


def make_leaves(
    variables: Tensor, n_features: int, components: int, sizes: Sequence[int], **settings: Any
) -> NormalLeaves:
    """Leaves for these variables: normal, unless ``sizes`` says that some are categories."""
    if any(sizes):
        return MixedLeaves(variables, n_features, components, sizes, **settings)
    return NormalLeaves(variables, n_features, components, **settings)
