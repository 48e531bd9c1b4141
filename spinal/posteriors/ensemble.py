"""Deep ensembles: networks trained from different seeds (Lakshminarayanan et al., 2017)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spinal.errors import SpinalError
from spinal.files import read_tensors, write_tensors
from spinal.networks import Network, TrainSettings, compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.posteriors.posterior import FitContext, Posterior, View
from spinal.probabilities import mean_log_probs

_FILE, _FORMAT = "ensemble.safetensors", "spinal.ensemble/1"

State = dict[str, Tensor]


@dataclass
class Ensemble(Posterior):
    """K = M networks of the same kind, trained on the same labels.

    The learner's network is the first member. `fit` trains the others, each from its own seed for
    initial weights, order of points, dropout and augmentation. Members of a ``pretrained`` network
    start from the same weights, so they differ less.

    Attributes:
        members: M.
        training: how they are trained; None for the learner's settings.
        snapshots: if given, each further member continues from the weights of the previous one, for
            this share of the training steps, such as 0.25. Such members cost less and differ less.
            If None, each member is trained separately.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples"})

    members: int = 5
    training: TrainSettings | None = None
    snapshots: float | None = None
    _states: list[State] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.members < 2:
            raise SpinalError(f"an ensemble has two members or more, not {self.members}")
        if self.snapshots is not None and not 0 < self.snapshots <= 1:
            raise SpinalError(f"snapshots is a share above 0, at most 1, not {self.snapshots}")

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        member, points = copy.deepcopy(labelled.network), labelled.points[labelled.indices]
        training = self.training or context.training
        if self.snapshots is not None:
            training = _shortened(training, len(labels), self.snapshots)
        states, others = [], self.members - 1
        goes_on = context.goes_on(member, self._states)
        for number in range(others):
            start: Literal["scratch", "continue"] = "scratch"
            if self.snapshots is not None:
                start = "continue"
            elif goes_on:
                member.load_state_dict(self._states[number])
                start = "continue"
            train(
                member,
                points,
                labels,
                training,
                validation=context.validation,
                seed=derived_seed(context.seed, number),
                start=start,
                on_step=context.on_part(number, others),
            )
            states.append(copy.deepcopy(member.state_dict()))
        self._states = states

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The mean over all members, as ``log_probs_N_C``."""
        return mean_log_probs(self.sample(view))

    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """The first K members, as ``log_probs_N_K_C``; all members if K is None."""
        k = self._checked(k)
        logits = [predict_logits(view.network, view.features)]
        for member in islice(self._others(view.network), k - 1):
            features = compute_features(member, view.points, view.indices)
            logits.append(predict_logits(member, features))
        return torch.stack(logits, 1).log_softmax(2)

    def save(self, folder: Path) -> None:
        tensors = {
            f"{number}/{name}": tensor
            for number, state in enumerate(self._states)
            for name, tensor in state.items()
        }
        write_tensors(folder / _FILE, tensors, _FORMAT, {"members": self.members})

    def load(self, folder: Path) -> None:
        header, tensors = read_tensors(folder / _FILE, _FORMAT)
        self._states = [{} for _ in range(int(header["members"]) - 1)]
        for key, tensor in tensors.items():
            number, _, name = key.partition("/")
            self._states[int(number)][name] = tensor

    def _checked(self, k: int | None) -> int:
        """The number of members to use: k, or all."""
        k = self.members if k is None else k
        if not 1 <= k <= self.members:
            raise SpinalError(f"an ensemble of {self.members} members has no {k} samples")
        return k

    def _others(self, network: Network) -> Iterator[Network]:
        """All members except the first, one after the other in the same copy of the network."""
        if not self._states:
            raise RuntimeError("the ensemble has not been fitted yet")
        member = copy.deepcopy(network)
        for state in self._states:
            member.load_state_dict(state)
            yield member


def _shortened(training: TrainSettings, labels: int, share: float) -> TrainSettings:
    """The same training for a share of its steps."""
    steps = max(1, round(share * training.steps(labels)))
    return replace(training, min_steps=steps, max_steps=steps)
