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
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spinal.errors import StructureError

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def wide(x: Tensor) -> torch.dtype:
    """The type for sums of many logarithms: float64, if the device supports it."""
    return x.dtype if x.device.type == "mps" else torch.float64


class Natural(NamedTuple):
    r"""Natural parameters, arranged for accuracy in float32.

    Attributes:
        eta: the coefficients of :math:`z`, of 1 and, if scales are learned, of :math:`z^2` in
            each component, ``[A B, V, K]`` each.
        centre: ``[D]``, the mean location of each variable, which is subtracted from ``z``. Without
            it, :math:`z^2` and :math:`\mu^2` would cancel far from 0 and leave only rounding
            errors.
        common: ``[D]``, the coefficient of :math:`z^2` that all components of a variable share. It
            multiplies every node over all variables by the same factor, so it is added once, at the
            root. Far from the data, it is the largest term by far.
    """

    eta: list[Tensor]
    centre: Tensor
    common: Tensor


class NormalLeaves(nn.Module):
    """Regions of independent normals, in units of the standardised variables.

    Args:
        variables: ``[A, B, V]`` the variables of each region; -1 where a region has fewer than V.
        n_features: number of variables; each must be in a region.
        components: K, the number of components of every region.
        scale: standard deviation of each leaf (its initial value, if it is learned).
        learn_scale: train the standard deviations too.
        min_scale: lower bound of learned standard deviations; without it, the density at a single
            point could grow without bound.
        location_spread: standard deviation of the random initial locations.
        generator: draws the initial locations.
    """

    variables: Tensor
    shift: Tensor
    stretch: Tensor
    fixed_scale: Tensor
    _slots: Tensor
    _owner: Tensor
    _slots_of: Tensor

    def __init__(
        self,
        variables: Tensor,
        n_features: int,
        components: int,
        *,
        scale: float = 1.0,
        learn_scale: bool = False,
        min_scale: float = 0.1,
        location_spread: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if components < 1:
            raise StructureError(f"a region needs 1 or more components, not {components}")
        if not (scale > 0 and min_scale > 0) or (learn_scale and not scale > min_scale):
            raise StructureError(
                f"leaves need a scale above 0 and, if it is learned, above min_scale: "
                f"got scale={scale}, min_scale={min_scale}"
            )
        self.n_features, self.components, self.min_scale = n_features, components, min_scale
        self.learn_scale = learn_scale
        flat = variables.flatten()
        slots = (flat >= 0).nonzero().flatten()
        # A slot is one variable in one region, with K locations.
        self.register_buffer("variables", variables, persistent=False)
        self.register_buffer("_slots", slots, persistent=False)
        self.register_buffer("_owner", flat[slots], persistent=False)
        self.register_buffer(
            "_slots_of", torch.bincount(flat[slots], minlength=n_features), persistent=False
        )
        self.register_buffer("shift", torch.zeros(n_features))
        self.register_buffer("stretch", torch.ones(n_features))
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
        return self._scopes(self._slots, self._owner)

    def _scopes(self, slots: Tensor, owner: Tensor) -> Tensor:
        if owner.numel() and int(owner.max()) >= self.n_features:
            raise StructureError(
                f"a region names variable {int(owner.max())} of only {self.n_features}"
            )
        counts = torch.zeros(self.variables.size(0) * self.variables.size(1), self.n_features)
        region = slots // self.variables.size(2)
        counts.index_put_((region, owner), torch.ones(len(region)), accumulate=True)
        if (counts > 1).any():
            raise StructureError("not decomposable: a region holds the same variable twice")
        return (counts > 0).view(*self.cells, self.n_features)

    def natural(self) -> Natural:
        """The parameters in the form that `forward` uses; see `Natural`."""
        scale = self.scale() if self.learn_scale else self.fixed_scale
        with torch.no_grad():
            total = torch.zeros_like(self.shift)
            centre = total.index_add(0, self._owner, self.location.mean(1)) / self._slots_of
            if self.learn_scale:
                widest = -0.5 * scale.amax(1) ** -2
                common = torch.full_like(total, -torch.inf)
                common = common.scatter_reduce(0, self._owner, widest, "amax")
            else:  # with one scale for all, the whole of z^2 is common
                common = (-0.5 * scale**-2).expand_as(total)
            unit = self.stretch.log().add(_HALF_LOG_TWO_PI)
        location = self.location - centre[self._owner, None]
        linear = location * scale**-2
        at_centre = scale.log() + unit[self._owner, None]
        parts = [linear, torch.addcmul(-at_centre, location, linear, value=-0.5)]
        if self.learn_scale:
            parts.append(-0.5 * scale**-2 - common[self._owner, None])
        eta = [self._by_region(part, 0) for part in parts]
        return Natural(eta, centre, common)

    def forward(
        self, z: Tensor, keep: Tensor | None = None, natural: Natural | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-densities of every component, in two parts to be added.

        Args:
            z: ``[N, D]``; NaN is missing.
            keep: ``[N, D]`` or ``[1, D]`` booleans; False marks more variables as missing.
            natural: the current value of `natural`, if it is already computed.

        Returns:
            ``[A, B, N, K]``, and a part ``[N]`` that is common to every node over all variables.
        """
        natural = self.natural() if natural is None else natural
        z = (z - self.shift) / self.stretch - natural.centre
        linear, constant, *square = natural.eta
        # A sum shows whether anything is missing, several times as fast as isnan on each number.
        if keep is None and z.device.type == "cpu" and bool(z.sum().isfinite()):
            at_centre = constant.sum(1, keepdim=True)
        else:
            seen = ~z.isnan() if keep is None else keep & ~z.isnan()
            # The input is masked before any other arithmetic: 0 * NaN would be NaN, also in the
            # gradient.
            z = torch.where(seen, z, 0)
            at_centre = torch.bmm(self._of_points(seen.to(z.dtype)), constant)
        value = self._of_points(z)
        log_p = torch.baddbmm(at_centre, value, linear)
        if square:
            log_p = torch.baddbmm(log_p, value * value, square[0])
        common = (z * z * natural.common).sum(1, dtype=wide(z))
        return log_p.unflatten(0, self.cells), common

    def peak_log_density(self, z: Tensor) -> Tensor:
        """The first part of `forward`, with every missing variable at the mode of its leaf."""
        peak = -self.scale().log() - _HALF_LOG_TWO_PI - self.stretch.log()[self._owner, None]
        missing = z.isnan()[:, self._owner].to(peak.dtype)
        at_peak = torch.bmm(self._by_region(missing, 1).transpose(0, 1), self._by_region(peak, 0))
        return self(z)[0] + at_peak.unflatten(0, self.cells)

    def log_moments(self, z: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
        """Logarithms of the mean and the mean square of every component, ``[A, B, N, K]`` float64.

        Each leaf is independently replaced by 1 with probability ``dropout``, and otherwise divided
        by the mean of all leaves of its variable. Every term of a root contains a variable once, so
        this divides all classes by the same factor. Without the division, a change that is common
        to all classes would look like uncertainty between them.
        """
        leaf, slots, owner = self._leaf_values(z)
        of_variable = owner == torch.arange(self.n_features, device=z.device)[:, None]
        typical = torch.stack([leaf[mine].logsumexp((0, 2)) for mine in of_variable])
        typical = typical - (of_variable.sum(1) * self.components).double().log()[:, None]
        leaf = leaf - typical[owner, :, None]
        log_dropped = torch.full_like(leaf, math.log(dropout) if dropout else -math.inf)
        region = slots // self.variables.size(2)
        total = leaf.new_zeros(self.cells[0] * self.cells[1], *leaf.shape[1:])
        first, second = (
            total.index_add(
                0, region, torch.logaddexp(log_dropped, math.log1p(-dropout) + log_leaf)
            )
            for log_leaf in (leaf, 2 * leaf)
        )
        return first.unflatten(0, self.cells), second.unflatten(0, self.cells)

    def _leaf_values(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-densities of every leaf, ``[slots, N, K]`` float64, their slots and variables.

        Densities are in standardised units; 0 where a variable is missing.
        """
        u = ((z - self.shift) / self.stretch).double()[:, self._owner].T.unsqueeze(-1)
        mean, scale = self.location[:, None].double(), self.scale()[:, None].double()
        leaf = torch.distributions.Normal(mean, scale, validate_args=False).log_prob(u)
        return torch.where(u.isnan(), 0, leaf), self._slots, self._owner

    def fill(self, z: Tensor, component: Tensor, noise: Tensor | None = None) -> Tensor:
        """Fill missing entries of ``z`` from the chosen component of each region.

        Args:
            z: ``[N, D]``; NaN entries are filled.
            component: ``[A, B, N]``, -1 where a region is not used. For every point, every variable
                must belong to exactly one region that is used.
            noise: ``[N, D]`` standard normal, to draw from the leaves; if None, their modes are
                filled in.
        """
        chosen = component.flatten(0, 1)[self._slots // self.variables.size(2)]  # [slots, N]
        index = chosen.clamp_min(0)
        value = self.location.gather(1, index)
        if noise is not None:
            value = value + self.scale().gather(1, index) * noise.T[self._owner]
        value = torch.where(chosen >= 0, value, 0)
        filled = value.new_zeros(self.n_features, len(z)).index_add(0, self._owner, value).T
        return torch.where(z.isnan(), filled * self.stretch + self.shift, z)

    def _of_points(self, x: Tensor) -> Tensor:
        """``x [N, D]`` arranged by region, ``[A B, N, V]``."""
        return self._by_region(x.index_select(1, self._owner), 1).transpose(0, 1)

    def _by_region(self, values: Tensor, dim: int, slots: Tensor | None = None) -> Tensor:
        """Turn dimension ``dim`` from slots into ``A B, V``, padded with 0."""
        a, b, width = self.variables.shape
        slots = self._slots if slots is None else slots
        if len(slots) < a * b * width:
            shape = list(values.shape)
            shape[dim] = a * b * width
            values = values.new_zeros(shape).index_copy(dim, slots, values)
        return values.unflatten(dim, (a * b, width))

    @torch.no_grad()
    def blend(self, statistics: Sequence[Tensor], step: float) -> None:
        """Move towards the EM estimate.

        Args:
            statistics: the derivatives of the log-likelihood with respect to the natural
                parameters. For each leaf, these are the sums of ``z``, 1 and ``z^2`` over the
                points, weighted by responsibility.
            step: 0 changes nothing, 1 moves all the way.
        """
        total, count, *square = (s.flatten(0, 1)[self._slots] for s in statistics)
        centre = self.natural().centre[self._owner, None]
        used = count > 1e-6
        count = count.clamp_min(1e-6)
        mean = total / count
        move = torch.where(used, mean + centre - self.location, 0)
        if self.learn_scale:
            # Around the new location, so that the likelihood cannot decrease.
            away = mean - (self.location + step * move - centre)
            variance = (square[0] / count - mean**2).clamp_min(0) + away**2
            target = torch.where(used, variance, self.scale() ** 2).sqrt()
            scale = ((1 - step) * self.scale() + step * target).clamp_min(self.min_scale + 1e-6)
            self.raw_scale.copy_(torch.log(torch.expm1(scale - self.min_scale)))
        self.location.add_(step * move)

    @torch.no_grad()
    def standardise(
        self,
        z: Tensor,
        weights: Tensor | None = None,
        *,
        common: bool = False,
        min_stretch: float = 1e-3,
    ) -> None:
        """Standardise variables by their means and standard deviations in ``z [N, D]``.

        Densities remain those of the original variables.

        Args:
            z: features; NaN is ignored.
            weights: weight of each point, ``[N]``.
            common: use one standard deviation for all variables, the root mean square over them.
                This suits comparable variables, such as the features of a network, where variables
                that vary more also matter more. Otherwise each variable has its own.
            min_stretch: lower bound of a standard deviation, as a fraction of the median, so that
                a nearly constant variable (a dead ReLU unit) is not magnified.

        Raises:
            StructureError: if features are infinite, or too large to be squared.
        """
        seen = ~z.isnan()
        share = seen.to(z.dtype) if weights is None else seen * weights[:, None]
        share = share / share.sum(0).clamp_min(torch.finfo(z.dtype).tiny)
        mean = (torch.where(seen, z, 0) * share).sum(0)
        deviation = (torch.where(seen, z - mean, 0).square() * share).sum(0).sqrt()
        if not bool(deviation.isfinite().all()):
            raise StructureError("features are infinite, or too large to be squared: scale them")
        typical = deviation[deviation > 0]
        floor = min_stretch * typical.median() if len(typical) else deviation.new_tensor(1.0)
        self.shift.copy_(mean)
        if common:
            of_leaves = deviation[self._slots_of > 0]
            deviation = of_leaves.square().mean().sqrt().expand_as(deviation)
        self.stretch.copy_(deviation.clamp_min(floor))

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
        """Initialise locations near the class means, component k at class ``k mod n_classes``.

        A class without any value of a variable gets the mean over all classes.
        """
        u = (z - self.shift) / self.stretch
        seen = ~u.isnan()
        in_class = torch.nn.functional.one_hot(y, n_classes).to(u.dtype) * weights[:, None]
        total = in_class.T @ torch.where(seen, u, 0)
        count = in_class.T @ seen.to(u.dtype)
        mean = total / count.clamp_min(torch.finfo(u.dtype).tiny)  # [C, D]
        of_component = torch.arange(self.components, device=u.device) % n_classes
        noise = torch.randn(self.location.shape, generator=generator).to(u)
        self.location.copy_(mean[of_component][:, self._owner].T + jitter * noise)

    @torch.no_grad()
    def start_from_data(self, z: Tensor) -> None:
        """Initialise the K locations of each variable to the means of K equal parts of its values.

        The values are sorted first. With fewer points than components, parts share a point, each
        with a fraction of its weight.
        """
        u = (z - self.shift) / self.stretch
        edges = torch.linspace(0, 1, self.components + 1, dtype=wide(z), device=z.device)
        for variable in range(self.n_features):
            column = u[:, variable]
            column = column[~column.isnan()].sort().values.to(wide(z))
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
        return f"{self.n_features} variables, cells={self.cells}, K={self.components}, scale {kind}"
