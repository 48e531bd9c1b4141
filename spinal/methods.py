"""Methods: names for a posterior and an acquisition function. To add one, add a line here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spinal.errors import SpinalError, suggestion
from spinal.registry import find_own, is_own, registered


@dataclass(frozen=True)
class Method:
    """A posterior and an acquisition function.

    Attributes:
        title: the usual name, for tables and plots.
        posterior: a name from `spinal.posteriors.POSTERIORS`; it assesses points, and predicts.
        acquisition: the default acquisition function.
        choices: all acquisition functions that can be chosen.
        summary: a description in one line.
    """

    title: str
    posterior: str
    acquisition: str
    choices: tuple[str, ...]
    summary: str


#: Names for tables of the classifiers that a posterior may mix; see its ``shares``.
CLASSIFIERS = {
    "spn": "SPN", "logistic": "logistic regression", "trees": "trees", "network": "network",
}  # fmt: skip

_UNCERTAINTY = ("margin", "max-entropy", "variation-ratio")
_OVER_SAMPLES = ("variation-ratio-votes", "mean-std", "bald", "power-bald", "acs-fw")

METHODS: dict[str, Method] = {
    "spn-cnn": Method(
        "SPN-CNN",
        "spn",
        "margin",
        (*_UNCERTAINTY, "weighted-max-entropy", "weighted-variation-ratio", "bald", "power-bald"),
        "an SPN on the network's features assesses and predicts (the paper's method)",
    ),
    "spn-batchbald": Method(
        "SPN-BatchBALD",
        "spn",
        "batchbald",
        ("batchbald",),
        "BatchBALD on samples of the SPN",
    ),
    "spn-variance": Method(
        "SPN variance",
        "spn",
        "power-variance-bald",
        ("power-variance-bald", "variance-bald"),
        "BALD from the SPN's variance in closed form, with random noise for diverse batches",
    ),
    "mc-dropout": Method(
        "MC Dropout",
        "mc-dropout",
        "margin",
        (*_UNCERTAINTY, *_OVER_SAMPLES),
        "the network with its dropout left on, K = 100 times",
    ),
    "batchbald": Method(
        "BatchBALD", "mc-dropout", "batchbald", ("batchbald",), "BatchBALD on MC Dropout"
    ),
    "ensemble": Method(
        "Ensemble",
        "ensemble",
        "margin",
        (*_UNCERTAINTY, *_OVER_SAMPLES, "batchbald"),
        "five networks, trained from different seeds",
    ),
    "spn-ensemble": Method(
        "SPN ensemble",
        "spn-ensemble",
        "margin",
        (*_UNCERTAINTY, *_OVER_SAMPLES, "batchbald"),
        "five networks with an SPN on the features of each, mixed",
    ),
    "bayesian-batch": Method(
        "Bayesian Batch",
        "neural-linear",
        "acs-fw",
        ("acs-fw",),
        "a batch that approximates the pool's likelihood (ACS-FW), with a Bayesian last layer",
    ),
    "logistic": Method(
        "Logistic regression",
        "logistic",
        "margin",
        (*_UNCERTAINTY, "random"),
        "logistic regression on the same features: a strong baseline",
    ),
    "deterministic": Method(
        "Deterministic",
        "deterministic",
        "margin",
        _UNCERTAINTY,
        "the network's own softmax outputs",
    ),
    "badge": Method(
        "BADGE",
        "deterministic",
        "badge",
        ("badge",),
        "diverse gradients of the last layer (k-means++)",
    ),
    "k-center": Method(
        "k-center",
        "deterministic",
        "k-center",
        ("k-center",),
        "a core-set: cover the features of the pool",
    ),
    "typiclust": Method(
        "TypiClust",
        "deterministic",
        "typiclust",
        ("typiclust",),
        "the most typical point of each cluster",
    ),
    "random": Method("Random", "deterministic", "random", ("random",), "points chosen at random"),
}


def find_method(name: str) -> Method:
    """The method of this name, or an error that suggests the right one.

    Args:
        name: a key of `METHODS`, or the name of your own part, see `spinal.registry`. It can also
            be a scikit-learn classifier, such as ``sklearn.naive_bayes:GaussianNB``.
    """
    if name in METHODS:
        return METHODS[name]
    if not is_own("method", name):
        hint = suggestion(name, [*METHODS, *registered("method")])
        raise SpinalError(f"there is no method {name!r}: {hint}")
    part = find_own("method", name)
    if isinstance(part, Method):
        return part
    if not hasattr(part, "predict_proba"):
        raise SpinalError(f"method {name}: {part!r} is neither a Method nor a classifier")
    return replace(METHODS["logistic"], title=name.rpartition(":")[2], posterior=name, summary="")
