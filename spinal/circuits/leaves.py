r"""Normal leaves, with the first product that joins them into regions.

A region holds a few variables, and ``K`` components: fully factorised normals over those variables.
In natural parameters the log-density of a component is linear in the sufficient statistics,

.. math::
    \log \prod_{v \in r} \mathcal N(z_v; \mu_{vk}, \sigma_{vk})
      = \sum_{v \in r} \Big( -\tfrac{1}{2 \sigma^2} z_v^2 + \tfrac{\mu}{\sigma^2} z_v
        - \tfrac{\mu^2}{2 \sigma^2} - \log \sigma - \tfrac12 \log 2 \pi \Big),

so all leaves and their product are one matrix product, and a missing variable is integrated out by
setting its statistics :math:`(z^2, z, 1)` to 0: log 1. Its derivative is 0 as well, not NaN.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spinal.errors import StructureError

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class NormalLeaves(nn.Module):
    """Regions of independent normals, in units of the standardised variables.

    Args:
        variables: ``[A, B, V]`` the variables of each region; -1 where a region has fewer than V.
        features: how many variables there are; those in no region are an error.
        components: K, the components of every region.
        scale: standard deviation of each leaf (at the start, if it is learned).
        learn_scale: train the standard deviations too.
        min_scale: floor under learned standard deviations; without one, a normal that sits on a
            single point grows without bound.
        location_spread: standard deviation of the random locations at the start.
    """

    variables: Tensor
    shift: Tensor
    stretch: Tensor
    fixed_scale: Tensor
    _slots: Tensor
    _owner: Tensor

    def __init__(
        self,
        variables: Tensor,
        features: int,
        components: int,
        *,
        scale: float = 1.0,
        learn_scale: bool = False,
        min_scale: float = 0.1,
        location_spread: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if scale <= 0 or min_scale <= 0 or (learn_scale and scale <= min_scale):
            raise StructureError(
                f"leaves need a scale above 0 and, if it is learned, above min_scale: "
                f"got scale={scale}, min_scale={min_scale}"
            )
        self.features, self.components, self.min_scale = features, components, min_scale
        self.learn_scale = learn_scale
        flat = variables.flatten()
        slots = (flat >= 0).nonzero().flatten()
        # A slot is one variable in one region: it has K locations of its own.
        self.register_buffer("variables", variables, persistent=False)
        self.register_buffer("_slots", slots, persistent=False)
        self.register_buffer("_owner", flat[slots], persistent=False)
        self.register_buffer("shift", torch.zeros(features))
        self.register_buffer("stretch", torch.ones(features))
        self.register_buffer("fixed_scale", torch.tensor(float(scale)))
        start = torch.randn(len(slots), components, generator=generator)
        self.location = nn.Parameter(location_spread * start)
        if learn_scale:
            raw = math.log(math.expm1(scale - min_scale))
            self.raw_scale = nn.Parameter(torch.full_like(self.location, raw))

    @property
    def cells(self) -> tuple[int, int]:
        """The grid of regions."""
        return self.variables.size(0), self.variables.size(1)

    def scale(self) -> Tensor:
        """Standard deviations ``[slots, K]``, in standardised units."""
        if self.learn_scale:
            return self.min_scale + F.softplus(self.raw_scale)
        return self.fixed_scale.expand_as(self.location)

    def scopes(self) -> Tensor:
        """The variables of every region as ``[A, B, D]`` booleans.

        Raises:
            StructureError: if a region names a variable twice, or one that does not exist.
        """
        if self._owner.numel() and int(self._owner.max()) >= self.features:
            raise StructureError(f"a region names variable {int(self._owner.max())} "
                                 f"of only {self.features}")
        counts = torch.zeros(self.variables.size(0) * self.variables.size(1), self.features)
        region = self._slots // self.variables.size(2)
        counts.index_put_((region, self._owner), torch.ones(len(region)), accumulate=True)
        if (counts > 1).any():
            raise StructureError("not decomposable: a region holds the same variable twice")
        return (counts > 0).view(*self.cells, self.features)

    def natural(self) -> tuple[Tensor, Tensor]:
        r"""Natural parameters ``[A B, 3 V, K]``, and the centre of each slot ``[slots]``.

        Locations and inputs are taken relative to the mean location of the slot: far from 0,
        :math:`z^2` and :math:`\mu^2` would cancel and leave only rounding.
        """
        centre = self.location.detach().mean(1)
        location, scale = self.location - centre[:, None], self.scale()
        precision = scale**-2
        constant = -0.5 * location**2 * precision - scale.log() - _HALF_LOG_TWO_PI
        constant = constant - self.stretch.log()[self._owner, None]
        eta = torch.stack([-0.5 * precision, location * precision, constant], dim=1)
        return self._by_region(eta, 0).flatten(1, 2), centre

    def statistics(self, z: Tensor, centre: Tensor, keep: Tensor | None = None) -> Tensor:
        """``(z^2, z, 1)`` of every slot ``[A B, N, 3 V]``, and 0 where the variable is missing.

        Args:
            z: ``[N, D]``; NaN is missing.
            centre: from `natural`.
            keep: ``[N, D]`` or ``[1, D]`` booleans; False marks more variables as missing.
        """
        seen = ~z.isnan()
        if keep is not None:
            seen = seen & keep
        # The input is masked before any arithmetic: 0 * NaN would be NaN, also in the gradient.
        z = torch.where(seen, (z - self.shift) / self.stretch, 0)
        seen = seen[:, self._owner]
        z = torch.where(seen, z[:, self._owner] - centre, 0)
        t = torch.stack([z * z, z, seen.to(z.dtype)], dim=-1)
        return self._by_region(t, 1).flatten(2, 3).transpose(0, 1)

    def forward(
        self, z: Tensor, keep: Tensor | None = None, natural: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Log-densities ``[A, B, N, K]`` of every component; see `statistics` for the arguments."""
        eta, centre = self.natural() if natural is None else natural
        return torch.bmm(self.statistics(z, centre, keep), eta).unflatten(0, self.cells)

    def peak_log_density(self, z: Tensor) -> Tensor:
        """As `forward`, but with every missing variable at its most likely value: ``[A, B, N, K]``."""
        peak = -self.scale().log() - _HALF_LOG_TWO_PI - self.stretch.log()[self._owner, None]
        missing = z.isnan()[:, self._owner].to(peak.dtype)
        at_peak = torch.bmm(self._by_region(missing, 1).transpose(0, 1), self._by_region(peak, 0))
        return self(z) + at_peak.unflatten(0, self.cells)

    def log_moments(self, z: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
        """Logarithms of the mean and the mean square of every component, ``[A, B, N, K]`` float64.

        Each leaf is on its own replaced by 1 with probability ``dropout``.
        """
        u = ((z - self.shift) / self.stretch).double()[:, self._owner].T.unsqueeze(-1)
        leaf = torch.distributions.Normal(
            self.location[:, None].double(), self.scale()[:, None].double(), validate_args=False
        )
        density = leaf.log_prob(u) - self.stretch.double().log()[self._owner, None, None]
        density = torch.where(u.isnan(), 0, density)
        log_p = math.log(dropout) if dropout else -math.inf
        log_p = torch.full_like(density, log_p)
        region = self._slots // self.variables.size(2)
        moments = []
        for power in (1, 2):
            moment = torch.logaddexp(log_p, math.log1p(-dropout) + power * density)
            total = moment.new_zeros(self.variables.size(0) * self.variables.size(1), *moment.shape[1:])
            moments.append(total.index_add(0, region, moment).unflatten(0, self.cells))
        return moments[0], moments[1]

    def fill(self, z: Tensor, component: Tensor, noise: Tensor | None = None) -> Tensor:
        """Complete ``z [N, D]`` from the component that each region was given.

        Args:
            component: ``[A, B, N]``, -1 where a region has no say. Every variable must belong to
                exactly one region that has, for every point.
            noise: ``[N, D]`` standard normal, to draw from the leaves; without, their modes.
        """
        chosen = component.flatten(0, 1)[self._slots // self.variables.size(2)]  # [slots, N]
        index = chosen.clamp_min(0)
        value = self.location.gather(1, index)
        if noise is not None:
            value = value + self.scale().gather(1, index) * noise.T[self._owner]
        value = torch.where(chosen >= 0, value, 0)
        filled = value.new_zeros(self.features, len(z)).index_add(0, self._owner, value).T
        return torch.where(z.isnan(), filled * self.stretch + self.shift, z)

    def _by_region(self, values: Tensor, dim: int) -> Tensor:
        """Turn dimension ``dim`` from slots into ``A B, V``, with 0 where a region has no variable."""
        a, b, width = self.variables.shape
        if len(self._slots) < a * b * width:
            shape = list(values.shape)
            shape[dim] = a * b * width
            values = values.new_zeros(shape).index_copy(dim, self._slots, values)
        return values.unflatten(dim, (a * b, width))

    @torch.no_grad()
    def standardise(self, z: Tensor, min_stretch: float = 1e-3) -> None:
        """Measure in units of the deviations in ``z [N, D]``, about its means; NaN is left out.

        Densities stay those of the original variables. A variable that hardly varies (a dead ReLU
        unit) is not blown up: the deviation is at least ``min_stretch`` times the median one.
        """
        seen = ~z.isnan()
        count = seen.sum(0).clamp_min(1)
        mean = torch.where(seen, z, 0).sum(0) / count
        deviation = (torch.where(seen, z - mean, 0).square().sum(0) / count).sqrt()
        typical = deviation[deviation > 0]
        floor = min_stretch * typical.median() if len(typical) else deviation.new_tensor(1.0)
        self.shift.copy_(mean)
        self.stretch.copy_(deviation.clamp_min(floor))

    @torch.no_grad()
    def start_from_data(self, z: Tensor) -> None:
        """Locations from the data: sort each variable, cut it into K equal parts, take the means.

        With fewer points than components, parts share a point and count it by its share.
        """
        u = (z - self.shift) / self.stretch
        edges = torch.linspace(0, 1, self.components + 1, dtype=torch.float64, device=z.device)
        for variable in range(self.features):
            column = u[:, variable]
            column = column[~column.isnan()].sort().values.double()
            if not len(column):
                continue
            # The integral of the quantile function, at the edges of the parts.
            total = F.pad(column.cumsum(0), (1, 0))
            at = edges * len(column)
            low = at.floor().long().clamp_max(len(column) - 1)
            integral = total[low] + (at - low) * column[low]
            means = integral.diff() * self.components / len(column)
            self.location[self._owner == variable] = means.to(self.location.dtype)

    def extra_repr(self) -> str:
        kind = "learned" if self.learn_scale else "fixed"
        return f"{self.features} variables, cells={self.cells}, K={self.components}, scale {kind}"
