"""The interface of posteriors: estimates of ``p(y | x, labelled data)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spinal.data import Points
from spinal.errors import SpinalError
from spinal.networks import Network, TrainSettings

#: The points that a posterior learns from.
LearnFrom = Literal["pool", "labels"]
#: Called with the step, the number of steps and the loss.
OnStep = Callable[[int, int, float], None]
#: Points and labels for choosing the best weights of a network.
Validation = tuple[NDArray, NDArray]


@dataclass(frozen=True, eq=False)
class View:
    """Some points, as a trained network sees them.

    Attributes:
        network: the network that computed the features.
        points: all points; read in batches.
        indices: which of them, ``[N]``.
        features: their feature vectors, ``[N, F]``, computed once and shared.
    """

    network: Network
    points: Points
    indices: NDArray[np.int64]
    features: Tensor

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, eq=False)
class HeldOutNetwork:
    """A network that was trained like the learner's, but without some of the labels.

    Attributes:
        network: the network.
        held: which of the labelled points it did not see, ``[N]`` booleans.
    """

    network: Network
    held: Tensor


@dataclass(frozen=True, eq=False)
class FitContext:
    """Everything that a posterior may need for training, apart from the labelled points.

    Attributes:
        n_classes: C.
        seed: the source of all randomness.
        training: how the learner trains its network.
        retrain: whether the network started from scratch, or from its last weights.
        validation: points and labels for early stopping.
        draw_unlabelled: ``draw_unlabelled(n)`` gives at most ``n`` unlabelled points of the pool,
            drawn at random. None if there is no pool.
        draw_pool: ``draw_pool(n)`` gives n points of the pool, the same in every round, and then
            the labelled points that are not among them; all points if there are no more than n.
            None to learn from labelled points only.
        cache: folder for results that do not depend on the labels; None to store nothing.
        held_out: networks that the learner has trained without some of the labels, if it has any.
        on_step: called with the step, the number of steps and the loss.
    """

    n_classes: int
    seed: int = 0
    training: TrainSettings = field(default_factory=TrainSettings)
    retrain: Literal["scratch", "continue"] = "scratch"
    validation: Validation | None = None
    draw_unlabelled: Callable[[int], View] | None = None
    draw_pool: Callable[[int], View] | None = None
    cache: Path | None = None
    held_out: Sequence[HeldOutNetwork] = ()
    on_step: OnStep | None = None

    def goes_on(self, network: Network, earlier: Sequence[Mapping[str, Tensor]]) -> bool:
        """Whether training continues from the weights of an earlier fit.

        Not if classes were added since then: these change the shapes.
        """
        return (
            self.retrain == "continue"
            and len(earlier) > 0
            and all(w[n].shape == p.shape for w in earlier for n, p in network.named_parameters())
        )

    def on_part(self, number: int, parts: int) -> OnStep | None:
        """Reports the steps of one of several equal parts as steps of the complete fit."""
        on_step = self.on_step
        if on_step is None:
            return None
        return lambda i, n, loss: on_step(number * n + i, parts * n, loss)


class Posterior(ABC):
    """An estimate of class probabilities that plugs into any acquisition function.

    A posterior is a dataclass. Its init fields are its settings, which a learner saves. It is
    fitted after the network, on the labelled points, and then predicts any other points.

    It returns its best estimate, without changes for a particular purpose. The acquisition function
    decides how to rank points by it.

    Attributes:
        provides: what it offers in addition to `predict`: ``samples``, ``log_density``,
            ``moments``.
        shares: after `fit`, the weight of each classifier in predictions, by its name in
            `spinal.methods.CLASSIFIERS`; None for a posterior that is not a mixture.
        learned_from: after `fit`, whether it learned from the ``labels`` only, or also from the
            ``pool``.
    """

    provides: ClassVar[frozenset[str]] = frozenset()
    shares: dict[str, float] | None = None
    learned_from: LearnFrom = "labels"

    def can_learn_from_pool(self, network: Network) -> bool:
        """Whether it can also learn from unlabelled points.

        Args:
            network: the network that computes the features.
        """
        return False

    def reserved(
        self, network: Network, indices: NDArray[np.int64], labels: NDArray[np.int64], seed: int
    ) -> Tensor | None:
        """Which labelled points the network must not learn from, ``[N]`` booleans.

        It is called before every training of the learner's network. The posterior gets the network
        back as one of ``context.held_out``.

        Args:
            network: the network that will be trained.
            indices: indices of the labelled points, ``[N]``.
            labels: their classes, ``[N]``.
            seed: for the choice of points.

        Returns:
            The points; None for no points, which is the default.
        """
        return None

    @property
    def takes_missing(self) -> bool:
        """Whether it accepts points with missing features (NaN)."""
        return False

    @abstractmethod
    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        """Learn from the labelled points.

        Args:
            labelled: the points.
            labels: their classes ``[N]``, from 0 to ``context.n_classes - 1``.
            context: everything else that training needs.
        """

    @abstractmethod
    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """The best estimate of the class probabilities, ``log_probs_N_C``.

        Args:
            view: the points.
            seed: for the samples, if the posterior averages over samples.
        """

    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """Class probabilities under K models drawn from the posterior, ``log_probs_N_K_C``.

        Sample k is the same model for every point, so samples can be compared across points.

        Args:
            view: the points.
            k: K, the number of models; the posterior's own number if None.
            seed: the source of all randomness.

        Raises:
            SpinalError: if the posterior has no samples.
        """
        raise SpinalError(
            f"{type(self).__name__} is a single model; this acquisition function compares samples"
        )

    def sample_without_features(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """Like `sample`, if possible with models that lack some of their features."""
        return self.sample(view, k, seed=seed)

    def predict_part(self, view: View, name: str) -> Tensor:
        """The prediction of one part of a mixture, such as ``spn``, as ``log_probs_N_C``."""
        raise SpinalError(f"{type(self).__name__} has no part {name!r} to predict by")

    def features(self, view: View) -> Tensor:
        """The features that it works on, ``[N, F]``, for acquisition functions that compare them.

        By default, these are the features of the network.
        """
        return view.features

    def log_density(self, view: View) -> Tensor:
        """The log-density ``log p(z)``, ``[N]``: low for outliers."""
        raise SpinalError(f"{type(self).__name__} has no density")

    def moments(self, view: View) -> Tensor:
        """Means and variances of class probabilities, ``[N, 2, C]``, without sampling."""
        raise SpinalError(f"{type(self).__name__} has no moments in closed form")

    def save(self, folder: Path) -> None:  # noqa: B027  some have nothing to save
        """Write what `fit` learned to files in ``folder``."""

    def load(self, folder: Path) -> None:  # noqa: B027
        """Read the files that `save` wrote."""

    def load_for_fit(self, folder: Path) -> None:  # noqa: B027
        """Read only the files that the next `fit` depends on; by default there are none.

        A fit may keep settings that an earlier fit chose.
        """
