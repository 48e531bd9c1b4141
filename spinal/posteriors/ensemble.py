"""Deep ensembles: networks trained alike from different seeds (Lakshminarayanan et al., 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from spinal.errors import SpinalError
from spinal.files import read_tensors, write_tensors
from spinal.networks import Network, TrainSettings, compute_features, predict_logits, train
from spinal.networks.network import derived_seed
from spinal.posteriors.posterior import Posterior, Validation, View

_FILE, _FORMAT = "ensemble.safetensors", "spinal.ensemble/1"

State = dict[str, Tensor]


@dataclass
class Ensemble(Posterior):
    """K = M networks of the same kind, trained on the same labels.

    The learner's network is the first of them; `fit` trains the others, each from a seed of its
    own: of its first weights, the order of points, dropout and augmentation. Members of a network
    that is ``pretrained`` begin with the same weights, and so differ less.

    Attributes:
        members: M.
        training: how they are trained; as the learner's network, if not given.
    """

    members: int = 5
    training: TrainSettings | None = None
    _validation: Validation | None = field(default=None, init=False, repr=False)
    _retrain: Literal["scratch", "continue"] = field(default="scratch", init=False, repr=False)
    _states: list[State] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.members < 2:
            raise SpinalError(f"an ensemble has two members or more, not {self.members}")

    def compare_samples(self) -> None:
        """There are always M of them."""

    def train_like(
        self,
        training: TrainSettings,
        validation: Validation | None,
        retrain: Literal["scratch", "continue"],
    ) -> None:
        self.training = self.training or training
        self._validation, self._retrain = validation, retrain

    def fit(
        self,
        labelled: View,
        labels: Tensor,
        classes: int,
        *,
        seed: int,
        on_step: Callable[[int, int, float], None] | None = None,
    ) -> None:
        member, points = copy.deepcopy(labelled.network), labelled.points[labelled.indices]
        states, others = [], self.members - 1
        for number in range(others):
            start: Literal["scratch", "continue"] = "scratch"
            if self._retrain == "continue" and self._states:
                member.load_state_dict(self._states[number])
                start = "continue"
            train(
                member,
                points,
                labels,
                self.training or TrainSettings(),
                validation=self._validation,
                seed=derived_seed(seed, number),
                start=start,
                on_step=None if on_step is None else _part(on_step, number, others),
            )
            states.append(copy.deepcopy(member.state_dict()))
        self._states = states

    def log_probs(self, view: View, *, seed: int = 0, samples: bool = True) -> Tensor:
        """``log_probs_N_M_C``; predictions are averages over all members."""
        logits = [predict_logits(view.network, view.features)]
        for member in self._others(view.network):
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
        self.members = int(header["members"])
        self._states = [{} for _ in range(self.members - 1)]
        for key, tensor in tensors.items():
            number, _, name = key.partition("/")
            self._states[int(number)][name] = tensor

    def _others(self, network: Network) -> Iterator[Network]:
        """The members but the first, one after the other in the same copy of the network."""
        if not self._states:
            raise RuntimeError("the ensemble has not been fitted yet")
        member = copy.deepcopy(network)
        for state in self._states:
            member.load_state_dict(state)
            yield member


def _part(
    on_step: Callable[[int, int, float], None], number: int, parts: int
) -> Callable[[int, int, float], None]:
    """Report the steps of one of several parts as steps of the whole."""
    return lambda i, n, loss: on_step(number * n + i, parts * n, loss)
