"""A circuit: leaves, layers of products and sums, one root per class, a class prior."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from spinal.circuits import plain, queries, storage
from spinal.circuits.dropout import dropout_moments
from spinal.circuits.flows import paths_to_roots, root_values
from spinal.circuits.leaves import Natural, NormalLeaves, wide
from spinal.circuits.sums import Layer, log_sum
from spinal.errors import StructureError
from spinal.html import html_table

#: Points per evaluation: enough to amortise the cost of calls, few enough for the CPU's caches.
CHUNK = 384

SomeCircuit = TypeVar("SomeCircuit", bound="Circuit")


@cache
def _warm_up_allocator() -> None:
    """Allocate a large block once, and free it.

    glibc returns freed memory to the system, and requests it again page by page, until a large
    block has been allocated and freed once. That costs a tenth of a training step and half of a
    forward pass.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


@dataclass(frozen=True)
class Evaluated:
    """Quantities that depend only on the parameters, computed once for all points of a call.

    Attributes:
        natural: `NormalLeaves.natural`.
        mixtures: `Sum.mixtures` of each layer.
        log_prior: ``[C]``.
    """

    natural: Natural
    mixtures: list[Tensor]
    log_prior: Tensor


class Circuit(nn.Module):
    """A sum-product network over D variables and a class: ``p(z, c) = p(c) p(z | c)``.

    Variables are numbers, or categories with the values 0 to M - 1 (see `MixedLeaves`). NaN in the
    input marks a missing variable, which is integrated out exactly, at no extra cost.

    Args:
        leaves: regions of variables.
        layers: products and sums; the last layer holds the roots, one dense sum per class.
        leaf_dropout: the default rate at which `log_posterior` drops variables under ``masks``. A
            dropped variable is treated as missing.

    Raises:
        StructureError: if the structure is not decomposable and complete, or does not reach every
            variable.
    """

    paths: Tensor

    def __init__(
        self, leaves: NormalLeaves, layers: Sequence[Layer], *, leaf_dropout: float = 0.0
    ) -> None:
        super().__init__()
        _warm_up_allocator()
        if not 0 <= leaf_dropout < 1:
            raise StructureError(f"leaf_dropout must be in [0, 1), not {leaf_dropout}")
        self.leaves = leaves
        self.layers: list[Layer] = nn.ModuleList(layers)  # type: ignore[assignment]
        self.n_classes = layers[-1].sum.outputs
        self.leaf_dropout = leaf_dropout
        self.prior_logits = nn.Parameter(torch.zeros(self.n_classes))
        self.prove()
        self.register_buffer("paths", paths_to_roots(layers), persistent=False)

    def _repr_html_(self) -> str:
        return html_table(
            type(self).__name__,
            {
                "features": self.n_features,
                "classes": self.n_classes,
                "layers": len(self.layers),
                "parameters": f"{sum(p.numel() for p in self.parameters()):,}",
            },
        )

    @property
    def n_features(self) -> int:
        """D, the number of variables."""
        return self.leaves.n_features

    def config(self) -> dict[str, Any]:
        """The constructor arguments of this structure, which `save` writes with the weights."""
        raise NotImplementedError

    def prove(self) -> None:
        """Check from the scopes, bottom up, that this is a density over all its variables.

        Raises:
            StructureError: if a product shares a variable between factors (not decomposable), a sum
                mixes different scopes (not complete), or no root reaches a variable.
        """
        scopes = self.leaves.scopes()
        for layer in self.layers:
            scopes = layer.scopes(scopes)
        if scopes.shape[:2] != (1, 1):
            raise StructureError("the last layer must be a dense sum: one root for each class")
        lost = (~scopes[0, 0]).nonzero().flatten().tolist()
        if lost:
            raise StructureError(f"variables {lost} are reached by no root")

    # Densities

    def forward(self, z: Tensor, keep: Tensor | None = None) -> Tensor:
        """The joint log-density ``log p(z, c)``.

        Args:
            z: ``[N, D]``; NaN is missing.
            keep: ``[N, D]`` or ``[1, D]`` booleans; False drops a variable (marginalises it).

        Returns:
            ``[N, C]``.
        """
        by_class, common = self.class_values(z, keep)
        return (by_class + common[:, None]).to(by_class.dtype)

    def log_prob(self, z: Tensor) -> Tensor:
        """The log-density ``log p(z)`` of ``z [N, D]``: ``[N]``."""
        by_class, common = self.class_values(z)
        return (by_class.logsumexp(1) + common).to(by_class.dtype)

    def log_posterior(
        self,
        z: Tensor,
        *,
        masks: int | None = None,
        dropout: float | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The class probabilities ``log p(c | z)``.

        Args:
            z: ``[N, D]``; NaN is missing.
            masks: draw this many sets of dropped variables. Set k is the same for every point, so
                it is one sample of the model, as BALD and BatchBALD need.
            dropout: the rate for ``masks``; by default, `leaf_dropout`.
            generator: draws the masks.

        Returns:
            ``[N, C]``, or ``[N, masks, C]``.
        """
        if masks is None:
            return self.class_values(z)[0].log_softmax(1)
        rate = self.leaf_dropout if dropout is None else dropout
        if masks < 1 or not 0 <= rate < 1:
            raise StructureError(
                f"masks must be 1 or more and dropout from 0 to below 1, not {masks} and {rate}"
            )
        keep = draw_kept((masks, self.n_features), rate, generator).to(z.device)
        theta = self.evaluate()
        samples = [self.class_values(z, mask[None], theta)[0] for mask in keep]
        return torch.stack(samples, dim=1).log_softmax(2)

    def dropout_posterior(
        self, z: Tensor, dropout: float | None = None, *, on: str = "leaves"
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance ``[N, C]`` of ``p(c | z)`` under dropout, in one pass.

        An approximation: see `spinal.circuits.dropout`.
        """
        return dropout_moments(self, z, self.leaf_dropout if dropout is None else dropout, on=on)

    def class_values(
        self, z: Tensor, keep: Tensor | None = None, theta: Evaluated | None = None
    ) -> tuple[Tensor, Tensor]:
        """``log p(z, c)`` in two parts, ``[N, C]`` and ``[N]``, to be added.

        The second part is common to all classes. It may be so large that the sum in float32 would
        lose the differences between classes; posteriors are computed from the first part alone.
        """
        if z.ndim != 2 or z.size(1) != self.n_features:
            raise StructureError(f"expected [N, {self.n_features}] features, got {list(z.shape)}")
        theta = theta or self.evaluate()
        z = z.to(self.prior_logits.dtype)
        if not len(z):
            return z.new_zeros(0, self.n_classes), z.new_zeros(0, dtype=wide(z))
        if len(z) <= CHUNK:
            return _finite(*self._class_values(z, keep, theta))
        pieces: Iterable[Tensor | None] = repeat(None)
        if keep is not None:
            pieces = keep.expand(len(z), -1).split(CHUNK)
        parts = [
            self._class_values(piece, mask, theta)
            for piece, mask in zip(z.split(CHUNK), pieces, strict=False)
        ]
        by_class, common = zip(*parts, strict=True)
        return _finite(torch.cat(by_class), torch.cat(common))

    def _class_values(
        self, z: Tensor, keep: Tensor | None, theta: Evaluated
    ) -> tuple[Tensor, Tensor]:
        log_p, common = self.leaves(z, keep, theta.natural)
        if self.exact_logs:
            top = self.product_values(log_p)[-1]
            by_class = (top.unsqueeze(-1) + self.root_log_weights()).logsumexp((0, 1, 3))
        else:
            by_class, m = root_values(log_p, self.layers, theta.mixtures, self.paths)
            common = common + m
        return by_class + theta.log_prior, common

    @property
    def exact_logs(self) -> bool:
        """Whether weights may be 0 (no floor), which requires evaluation in the log domain."""
        return any(layer.sum.floor == 0 for layer in self.layers)

    def evaluate(self) -> Evaluated:
        """Normalise the parameters, to reuse in several calls."""
        return Evaluated(
            self.leaves.natural(),
            [layer.sum.mixtures() for layer in self.layers],
            self.prior_logits.log_softmax(0),
        )

    def product_values(self, log_p: Tensor, *, maximum: bool = False) -> list[Tensor]:
        """The products below the sums of every layer, in the log domain: ``[A, B, N, I]`` each.

        Args:
            log_p: the values of the leaves.
            maximum: replace every sum by its largest term (for the most probable explanation).
        """
        values = [self.layers[0].product.combine(log_p, torch.add)]
        for below, layer in zip(self.layers, self.layers[1:], strict=False):
            s = log_sum(values[-1], below.sum, maximum=maximum)
            values.append(layer.product.combine(s, torch.add))
        return values

    def root_log_weights(self) -> Tensor:
        """Log-weights of the roots, to be added to their product values: ``[A, B, 1, I, C]``."""
        root = self.layers[-1].sum
        return root.log_weights().unflatten(0, root.cells).unsqueeze(2)

    # Queries

    def sample(
        self,
        n: int,
        *,
        given: Tensor | None = None,
        classes: int | Tensor | None = None,
        generator: torch.Generator | None = None,
        return_classes: bool = False,
    ) -> Any:
        """Draw points exactly from the model, or from a conditional of it.

        Args:
            n: number of points.
            given: ``[D]`` or ``[n, D]``, observed values; NaN entries are drawn.
            classes: one class, or ``[n]`` classes; drawn as well if None.
            generator: draws the points.
            return_classes: also return the classes ``[n]``.

        Returns:
            ``[n, D]``.
        """
        z = self.prior_logits.new_full((n, self.n_features), torch.nan)
        if given is not None:
            z = torch.as_tensor(given).to(z).expand(n, self.n_features).clone()
        return queries.sample(self, z, classes, generator, return_classes)

    def mpe(self, z: Tensor, *, classes: int | Tensor | None = None) -> Tensor:
        """Fill the NaN entries of ``z [N, D]`` with approximately the most probable values.

        A circuit is a large mixture. This finds its best single component, by taking the best child
        of every sum. Finding the mode of the mixture itself is NP-hard.
        """
        return queries.most_probable(self, z.to(self.prior_logits.dtype), classes)

    # Starts

    def standardise(
        self, z: Tensor, weights: Tensor | None = None, *, common: bool = False
    ) -> None:
        """Standardise the variables; see `NormalLeaves.standardise`."""
        like = self.leaves.location
        weights = None if weights is None else weights.to(like)
        self.leaves.standardise(z.to(like), weights, common=common)

    def start_from_data(self, z: Tensor) -> None:
        """Initialise the leaves from data; see `NormalLeaves.start_from_data`."""
        self.leaves.start_from_data(z.to(self.leaves.location))

    def start_from_classes(
        self,
        z: Tensor,
        y: Tensor,
        weights: Tensor | None = None,
        *,
        strength: float = 4.0,
        jitter: float = 0.3,
        generator: torch.Generator | None = None,
    ) -> None:
        """Initialise as a simple classifier: one normal distribution at the mean of each class.

        Channel j of every layer is assigned to class ``j mod C``: its leaves start at the mean of
        that class, and sums favour children that are assigned to the same class. With equal scales
        this is a linear classifier, much like the softmax head of a network; training refines it.
        From random initialisations, fits with few labels end in very different solutions.

        Args:
            z: features ``[N, D]``; NaN is missing.
            y: classes ``[N]``.
            weights: how much each point counts.
            strength: added to the logits of the favoured children.
            jitter: standard deviation of the locations around the class means.
            generator: draws the jitter.
        """
        like = self.leaves.location
        weights = torch.ones_like(z[:, 0]) if weights is None else weights
        self.leaves.start_from_classes(
            z.to(like), y, weights.to(like), self.n_classes, jitter, generator
        )
        for layer in self.layers:
            layer.sum.favour_same_class(self.n_classes, strength)

    @torch.no_grad()
    def set_prior(self, probabilities: Tensor) -> None:
        """Set the class prior ``[C]``; a probability of 0 is replaced by a small positive one."""
        self.prior_logits.copy_(probabilities.clamp_min(1e-6).log())

    # Storage

    def to_plain_arrays(self) -> dict[str, Tensor]:
        """The arrays from which `log_prob` and `log_posterior` are computed, for export.

        See `spinal.circuits.plain` for the formulas.

        Returns:
            Tensors on the CPU, with A cells, K components, V variables per cell:

            - ``shift [D]`` and ``stretch [D]``, which standardise: ``u = (z - shift) / stretch``;
            - ``square [D]``: the coefficients of ``u^2`` that all components share;
            - ``slots [A, V]``: the variables of each cell, padded with D;
            - ``eta.0 [A, 1, K]``, ``eta.1 [A, V, K]`` and, if scales are learned, ``eta.2``: the
              coefficients of 1, ``u`` and ``u^2`` in the log-density of each component;
            - ``children.i [A', J]``: the cells that each product of layer i multiplies, padded
              with A;
            - ``weights.i [A', inputs, outputs]``: the normalised weights of the sums above them;
            - ``log_prior [C]``.

        Raises:
            StructureError: if weights may be 0 (``weight_floor=0``), or leaves are categorical.
        """
        return plain.to_plain_arrays(self)

    def save(self, path: str | Path) -> None:
        """Write weights and structure to one safetensors file, atomically."""
        storage.save(self, Path(path))

    @classmethod
    def load(cls: type[SomeCircuit], path: str | Path) -> SomeCircuit:
        """Read a circuit that `save` wrote. Nothing is unpickled; other files are refused."""
        circuit = storage.load(Path(path), Circuit.__subclasses__())
        if not isinstance(circuit, cls):
            raise StructureError(f"{path} holds a {type(circuit).__name__}, not a {cls.__name__}")
        return circuit


def _finite(by_class: Tensor, common: Tensor) -> tuple[Tensor, Tensor]:
    """Check that values are finite; skipped with gradients, where it would slow every step."""
    if not torch.is_grad_enabled():
        largest = by_class.amax(1)
        if not bool(largest.isfinite().all() & common.isfinite().all()):
            raise StructureError("features are infinite, or too large for the circuit: scale them")
    return by_class, common


def draw_kept(
    shape: tuple[int, ...], dropout: float, generator: torch.Generator | None = None
) -> Tensor:
    """Booleans, True with probability ``1 - dropout``; drawn on the CPU, for any device."""
    return torch.rand(shape, generator=generator) >= dropout
