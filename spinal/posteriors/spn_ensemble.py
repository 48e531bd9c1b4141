r"""A sum-product network on each member of an ensemble, combined into one.

Member m has features :math:`z_m` and a circuit :math:`p_m(z_m, y)`. The mixture

.. math::
    p(z_1, \dots, z_M, y) = \frac1M \sum_m p_m(z_m, y) \prod_{j \ne m} p_j(z_j)

is one sum-product network over the features of all members: a sum of products with disjoint
variables. In every term the features have the same density, so

.. math::
    p(z_1, \dots, z_M) = \prod_m p_m(z_m), \qquad
    p(y \mid z_1, \dots, z_M) = \frac1M \sum_m p_m(y \mid z_m) .
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.circuits import Circuit
from spinal.classifiers import label_frequencies
from spinal.classifiers.blend import Blend, refit_on_network
from spinal.classifiers.priors import overcorrected
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.files import read_tensors, write_tensors
from spinal.networks import Network, compute_features, predict_logits
from spinal.posteriors.ensemble import Ensemble
from spinal.posteriors.held_out import Held, Reserve, fit_mixture, load_held, save_held
from spinal.posteriors.posterior import FitContext, View
from spinal.probabilities import mean_log_probs

_HELD_FILE, _FORMAT = "spn-ensemble-held-out.safetensors", "spinal.blend/1"


@dataclass
class SPNEnsemble(Ensemble):
    """An ensemble with an SPN in closed form on the features of each member.

    Settings are chosen for the first member, and used for all members. They are chosen with a
    network that did not see a fifth of the labels, so M members cost M + 1 networks (up to M + 3 if
    there are fewer than 200 labels), or, with ``reserve``, with the first member itself.

    Attributes:
        members: M.
        training: how the others are trained; None for the learner's settings.
        snapshots: see `spinal.posteriors.Ensemble`.
        reserve: see `spinal.posteriors.SPN`. The first member does not learn from these points.
        shares: after `fit`, the weight of each classifier in the predictions of every member.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples", "log_density"})

    reserve: int = 0
    shares: dict[str, float] = field(default_factory=dict, init=False)
    _blends: list[Blend] = field(default_factory=list, init=False, repr=False)
    _held: Sequence[Held] = field(default=(), init=False, repr=False)
    _reserve: Reserve = field(init=False, repr=False)
    #: The last points, and their features from members 1, 2 and so on: predictions and densities of
    #: the same points are usually computed one after the other.
    _last: tuple[View, list[Tensor]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reserve = Reserve(self.reserve)

    def reserved(
        self, network: Network, indices: NDArray[np.int64], labels: NDArray[np.int64], seed: int
    ) -> Tensor | None:
        return self._reserve.among(indices, labels, seed)

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        super().fit(labelled, labels, context)
        self._last = None
        first, self._held = fit_mixture(labelled, labels, context, self._held)
        blends = [first]
        for view in self._views(labelled, self.members, first=1):
            features = view.features.cpu()
            blends.append(refit_on_network(features, labels, context.n_classes, first))
        counts = torch.bincount(labels, minlength=context.n_classes)
        after = overcorrected(label_frequencies(counts), first.before)
        self._blends = [blend.with_prior(after) for blend in blends]
        self.shares = first.shares()

    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """The first K members, as ``log_probs_N_K_C``; all members if K is None."""
        said = []
        for blend, seen in zip(self._blends, self._views(view, self._checked(k)), strict=False):
            head = predict_logits(seen.network, seen.features).log_softmax(1)
            said.append(blend.log_probs(seen.features, head))
        return torch.stack(said, 1).to(view.features.dtype)

    def predict_part(self, view: View, name: str) -> Tensor:
        """The exact posterior of the mixture of circuits, ``spn``, as ``log_probs_N_C``."""
        if name != "spn":
            return super().predict_part(view, name)
        said = [by_class.log_softmax(1) for by_class, _ in self._values(view)]
        return mean_log_probs(torch.stack(said, 1)).to(view.features.dtype)

    def log_density(self, view: View) -> Tensor:
        """``log p(z_1, ..., z_M)``, ``[N]``."""
        each = [by_class.logsumexp(1) + common for by_class, common in self._values(view)]
        return torch.stack(each).sum(0).to(view.features.dtype)

    def save(self, folder: Path) -> None:
        super().save(folder)
        for number, blend in enumerate(self._blends):
            circuit, rest = _files(folder, number)
            blend.gaussian.circuit.save(circuit)
            write_tensors(rest, to_tensors(blend), _FORMAT, {})
        if self._held:
            save_held(folder / _HELD_FILE, self._held)
        self._reserve.save(folder)

    def load(self, folder: Path) -> None:
        super().load(folder)
        self._last, self._blends = None, []
        for number in range(self.members):
            circuit, rest = _files(folder, number)
            _, tensors = read_tensors(rest, _FORMAT)
            self._blends.append(from_tensors(Blend, tensors, str(rest), Circuit.load(circuit)))
        self._held = load_held(folder / _HELD_FILE) if (folder / _HELD_FILE).exists() else ()
        self._reserve.load(folder)
        self.shares = self._blends[0].shares()

    def load_for_fit(self, folder: Path) -> None:
        if _files(folder, self.members - 1)[1].exists():
            self.load(folder)

    def _values(self, view: View) -> Iterator[tuple[Tensor, Tensor]]:
        """`Circuit.class_values` of each member."""
        for blend, seen in zip(self._blends, self._views(view, self.members), strict=True):
            with torch.no_grad():
                yield blend.gaussian.circuit.class_values(blend.gaussian.variables(seen.features))

    def _views(self, view: View, k: int, first: int = 0) -> Iterator[View]:
        """The points as seen by each of the first k members, from number ``first`` on."""
        if first == 0:
            yield view
        if self._last is None or self._last[0] is not view:
            self._last = view, []
        _, computed = self._last
        for number, member in enumerate(islice(self._others(view.network), k - 1)):
            if number == len(computed):
                computed.append(compute_features(member, view.points, view.indices))
            yield View(member, view.points, view.indices, computed[number])


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    """The files for the circuit of a member, and for the rest of its mixture."""
    name = f"spn-ensemble-{number}"
    return folder / f"{name}-circuit.safetensors", folder / f"{name}.safetensors"
