"""The posterior of the paper: a sum-product network on the features of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinal.circuits import Circuit, Recipe, train_circuit
from spinal.classifiers import label_frequencies, pool_frequencies
from spinal.classifiers.blend import Blend, fit_on_vectors
from spinal.classifiers.gaussian import Gaussian
from spinal.classifiers.graph import GraphCache
from spinal.classifiers.plain import affine_arrays, circuit_arrays
from spinal.classifiers.pool import PoolPoints
from spinal.classifiers.priors import (
    check_class_weight,
    check_prior,
    given_frequencies,
    overcorrected,
    weighted_frequencies,
)
from spinal.classifiers.storage import from_tensors, to_tensors
from spinal.errors import SpinalError
from spinal.files import read_tensors, write_tensors
from spinal.networks import Network, predict_logits
from spinal.posteriors.held_out import Held, Reserve, fit_mixture, load_held, save_held
from spinal.posteriors.posterior import FitContext, LearnFrom, Posterior, View
from spinal.posteriors.vectors import (
    POOL,
    UNLABELLED,
    all_vectors,
    comparable_features,
    on_inputs,
    rows_of,
    unlabelled_vectors,
    vector_batches,
)

_FILE, _BLEND_FILE, _FORMAT = "spn.safetensors", "spn-blend.safetensors", "spinal.blend/1"
_HELD_FILE = "spn-held-out.safetensors"


@dataclass(frozen=True)
class _Values:
    """The result of `Circuit.class_values` for some features."""

    features: Tensor
    by_class: Tensor
    common: Tensor


@dataclass
class SPN(Posterior):
    r"""``p(y | x)`` from a sum-product network.

    By default, the circuit is fitted in closed form, with settings chosen on held-out points, and
    mixed with other classifiers on the same features as far as these are better, and the mixture is
    calibrated: see `spinal.classifiers.gaussian` and `spinal.classifiers.blend`. It works on the
    features of the network. If the network is one dense layer, it works on that layer's input,
    which does not depend on the labels. Otherwise further networks (one from 200 labels on, at most
    three) are trained on four fifths of the labels, to get features of unseen points. With
    ``reserve``, the network itself does not learn from a few labels, and no further network is
    trained.

    With a ``recipe``, a circuit is trained on the features of the network, and predicts alone.

    Density, samples and moments always come from the circuit.

    Attributes:
        recipe: how a circuit is built and trained, as in the paper; None for closed form.
        grid: the grid of the features (in the paper, 16 x 8 or 16 x 32), for a trained circuit;
            None for the smallest that fits.
        masks: K, how many models `sample` draws.
        dropout: the rate at which samples drop features. If None: for a trained circuit, the
            recipe's ``leaf_dropout``; in closed form, samples drop no features, but draw the class
            means from their posterior (`spinal.classifiers.gaussian.Gaussian.sample`).
        prior: class frequencies for predictions: those of the ``labels`` (shrunk towards equal
            frequencies), of the ``pool`` (estimated from predictions), ``uniform``, or a number for
            each class. For a circuit in closed form.
        class_weight: how many times a point of each class counts, as in scikit-learn: a number for
            each class, or ``balanced`` for the inverse of its frequency. Predictions assume the
            frequencies of ``prior`` times these weights, normalised: the odds of classes i and j
            are multiplied by ``w_i / w_j``. With ``balanced``, all classes are equally frequent.
            For a circuit in closed form.
        reserve: how many of the labelled points of the first fit the network never learns from; at
            most a fifth of each class. Settings are chosen on these points. They are drawn at
            random, so the labels of the first fit should be random, too. About 100 of 1,000 labels
            suffice; with few labels, 0 is better. Not used on vectors with one dense layer.
        shares: after `fit`, the weight of each classifier in predictions.
        learned_from: after `fit`, whether the circuit learned from the ``labels`` only, or also
            from the ``pool``.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"samples", "log_density", "moments"})

    recipe: Recipe | None = None
    grid: tuple[int, int] | None = None
    masks: int = 20
    dropout: float | None = None
    prior: str | tuple[float, ...] = "labels"
    class_weight: str | tuple[float, ...] | None = None
    reserve: int = 0
    shares: dict[str, float] = field(default_factory=dict, init=False)
    learned_from: LearnFrom = field(default="labels", init=False)
    circuit: Circuit | None = field(default=None, init=False, repr=False)
    blend: Blend | None = field(default=None, init=False, repr=False)
    _last: _Values | None = field(default=None, init=False, repr=False)
    _graphs: GraphCache | None = field(default=None, init=False, repr=False)
    _held: Sequence[Held] = field(default_factory=list, init=False, repr=False)
    _reserve: Reserve = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.masks < 1:
            raise SpinalError(f"masks must be 1 or more, not {self.masks}")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise SpinalError(f"dropout must be from 0 to below 1, not {self.dropout}")
        self._reserve = Reserve(self.reserve)
        check_prior(self.prior)
        check_class_weight(self.class_weight)

    def fit(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        self._last = None
        if self.recipe is None:
            self._fit_blend(labelled, labels, context)
        else:
            self.blend = None
            self.circuit = train_circuit(
                labelled.features,
                labels,
                context.n_classes,
                self.recipe,
                grid=self.grid,
                seed=context.seed,
                on_step=context.on_step,
            )
        self._describe()

    def can_learn_from_pool(self, network: Network) -> bool:
        return self.recipe is None and on_inputs(network)

    def reserved(
        self, network: Network, indices: NDArray[np.int64], labels: NDArray[np.int64], seed: int
    ) -> Tensor | None:
        if self.recipe is not None or on_inputs(network):
            return None
        return self._reserve.among(indices, labels, seed)

    def _fit_blend(self, labelled: View, labels: Tensor, context: FitContext) -> None:
        n_classes = context.n_classes
        if on_inputs(labelled.network):
            x, unlabelled = all_vectors(labelled), unlabelled_vectors(labelled, context)
            pool = self._pool_points(labelled, context)
            blend = fit_on_vectors(x, labels, n_classes, unlabelled, pool)
        else:
            blend, self._held = fit_mixture(labelled, labels, context, self._held)
        frequencies = self._frequencies(blend, labels, context)
        self.blend = blend.with_prior(weighted_frequencies(frequencies, self.class_weight))
        self.circuit = self.blend.gaussian.circuit

    def _pool_points(self, labelled: View, context: FitContext) -> PoolPoints | None:
        """Unlabelled points to learn from; None if there are none."""
        if context.draw_pool is None:
            return None
        drawn = context.draw_pool(POOL)
        if len(drawn) == len(labelled):
            return None
        if self._graphs is None:
            self._graphs = GraphCache(context.cache)
        x = all_vectors(drawn)
        smoothing = self._graphs.smoothing(x, min(POOL, len(x)))
        return PoolPoints(x, rows_of(labelled.indices, drawn.indices), smoothing)

    def _describe(self) -> None:
        """Set the public description of the fitted classifiers."""
        self.shares = {"spn": 1.0} if self.blend is None else self.blend.shares()
        from_pool = None if self.blend is None else self.blend.from_pool
        self.learned_from = "labels" if from_pool is None or not from_pool else "pool"

    def _frequencies(self, blend: Blend, labels: Tensor, context: FitContext) -> Tensor:
        """The class frequencies that `prior` stands for, ``[C]``."""
        n_classes = context.n_classes
        if not isinstance(self.prior, str):
            return given_frequencies(self.prior, n_classes)
        if self.prior == "uniform":
            return given_frequencies([1.0] * n_classes, n_classes)
        frequencies = label_frequencies(torch.bincount(labels, minlength=n_classes))
        if self.prior == "pool" and context.draw_unlabelled is not None:
            view = context.draw_unlabelled(UNLABELLED)
            log_probs = _predict(blend, view)
            return pool_frequencies(log_probs, blend.before, frequencies, len(labels))
        if blend.sharpness is not None:  # on the features of a network
            return overcorrected(frequencies, blend.before)
        return frequencies

    def predict(self, view: View, *, seed: int = 0) -> Tensor:
        """Log-probabilities ``log_probs_N_C`` from all classifiers in the mixture."""
        if self.blend is None:
            return self.predict_part(view, "spn")
        return _predict(self.blend, view).to(view.features.dtype)

    def predict_part(self, view: View, name: str) -> Tensor:
        """The exact posterior of the circuit, ``spn``, as ``log_probs_N_C``."""
        if name != "spn":
            return super().predict_part(view, name)
        return self._values(view).by_class.log_softmax(1).to(view.features.dtype)

    def features(self, view: View) -> Tensor:
        return view.features if self.recipe is not None else comparable_features(view)

    def sample(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """Posteriors of the circuit under drawn class means, or without dropped features."""
        gaussian = self._with_uncertain_means()
        if gaussian is None:
            return self.sample_without_features(view, k, seed=seed)
        generator = torch.Generator().manual_seed(seed)
        k = self.masks if k is None else k
        return gaussian.sample(self._variables(view), k, generator).to(view.features.dtype)

    @torch.no_grad()
    def sample_without_features(self, view: View, k: int | None = None, *, seed: int = 0) -> Tensor:
        """Posteriors of the circuit given the variables that remain after a random drop."""
        return self._fitted().log_posterior(
            self._variables(view),
            masks=self.masks if k is None else k,
            dropout=self._drop_rate,
            generator=torch.Generator().manual_seed(seed),
        ).to(view.features.dtype)  # fmt: skip

    @property
    def _drop_rate(self) -> float | None:
        """The rate at which features are dropped; None for that of the circuit."""
        return 0.3 if self.dropout is None and self.recipe is None else self.dropout

    def log_density(self, view: View) -> Tensor:
        values = self._values(view)
        return (values.by_class.logsumexp(1) + values.common).to(view.features.dtype)

    def moments(self, view: View) -> Tensor:
        """Moments over what `sample` draws: class means, or (less exactly) dropped features.

        See `spinal.classifiers.gaussian.Gaussian.moments` and `spinal.circuits.dropout`.
        """
        gaussian, variables = self._with_uncertain_means(), self._variables(view)
        if gaussian is None:
            moments = self._fitted().dropout_posterior(variables, self._drop_rate)
        else:
            moments = gaussian.moments(variables)
        return torch.stack(moments, dim=1).to(view.features.dtype)

    def _with_uncertain_means(self) -> Gaussian | None:
        """The circuit in closed form, if its class means are to be drawn, not features dropped."""
        gaussian = None if self.blend is None else self.blend.gaussian
        if self.dropout is not None or gaussian is None or gaussian.points is None:
            return None
        return gaussian

    def save(self, folder: Path) -> None:
        self._fitted().save(folder / _FILE)
        if self.blend is not None:
            write_tensors(folder / _BLEND_FILE, to_tensors(self.blend), _FORMAT, {})
        if self._held:
            save_held(folder / _HELD_FILE, self._held)
        self._reserve.save(folder)

    def load(self, folder: Path) -> None:
        self._last, self.blend = None, None
        self._held = load_held(folder / _HELD_FILE) if (folder / _HELD_FILE).exists() else []
        self._reserve.load(folder)
        self.circuit = Circuit.load(folder / _FILE)
        if self.recipe is None:
            _, tensors = read_tensors(folder / _BLEND_FILE, _FORMAT)
            self.blend = from_tensors(Blend, tensors, str(folder / _BLEND_FILE), self.circuit)
        self._describe()

    def load_for_fit(self, folder: Path) -> None:
        if self.recipe is None and (folder / _BLEND_FILE).exists():
            self.load(folder)

    def to_plain_arrays(self, network: Network) -> dict[str, Tensor]:
        """The arrays from which `predict` and `log_density` are computed, for export.

        Args:
            network: the network that it was fitted to.

        Returns:
            The arrays of `spinal.classifiers.plain`. If they apply to the features of the network,
            the part ``dense`` is the affine map to these features, before the ReLU. Its input is
            the point, if the network has no other layer, and otherwise the output of the layers
            before the last.

        Raises:
            NetworkError: if the features do not end in a dense layer and a ReLU, or if the head is
                part of the mixture and is not one dense layer.
        """
        circuit = self._fitted()
        if self.blend is None:
            one = torch.ones(1)
            arrays = circuit_arrays(circuit, one, one.expand(circuit.n_classes))
        elif on_inputs(network):
            return self.blend.to_plain_arrays()
        else:
            arrays = self.blend.to_plain_arrays(network.linear_head())
        dense = _dense_arrays(network)
        return arrays | {f"dense/{name}": array.cpu() for name, array in dense.items()}

    def _variables(self, view: View) -> Tensor:
        """The variables of the circuit, ``[N, R]``."""
        if self.blend is None:
            return view.features
        gaussian = self.blend.gaussian
        return torch.cat([gaussian.variables(x) for _, x in vector_batches(view)])

    def _values(self, view: View) -> _Values:
        """The values of the circuit; cached, because posterior and density both need them."""
        if self._last is None or self._last.features is not view.features:
            with torch.no_grad():
                values = self._fitted().class_values(self._variables(view))
                self._last = _Values(view.features, *values)
        return self._last

    def _fitted(self) -> Circuit:
        if self.circuit is None:
            raise RuntimeError("the SPN has not been fitted yet")
        return self.circuit


def _dense_arrays(network: Network) -> dict[str, Tensor]:
    """The last dense layer of a network as an affine map."""
    last = network.last_layer()
    if not last.is_only:
        return affine_arrays(last.weight.T, last.bias)
    width = last.weight.size(1)
    mean, std = network.preprocess.mean.expand(width), network.preprocess.std.expand(width)
    return affine_arrays((last.weight / std).T, last.bias, mean)


def _predict(blend: Blend, view: View) -> Tensor:
    """Predictions ``[N, C]``, float64."""
    said = [torch.zeros(0, len(blend.after), dtype=torch.float64)]
    for rows, x in vector_batches(view):
        head = None
        if blend.sharpness is not None:
            head = predict_logits(view.network, view.features[rows]).log_softmax(1).cpu()
        said.append(blend.log_probs(x, head))
    return torch.cat(said)
