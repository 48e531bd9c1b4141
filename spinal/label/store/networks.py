"""The networks that a project can train: a dense layer on features, or a network on images.

| ``dense``       one layer on fixed features: fast, and best with few labels
| ``fine-tuned``  the encoder itself, trained further, with such a layer on top
| ``lenet``       small, trained from scratch on images of 32 px; ``lenet@64`` for 64 px
| ``resnet-slim`` deeper, from scratch, the best of these with 1,000 labels or more
| ``vgg``         from scratch, a quarter of the paper's width; slow without a GPU
"""

from __future__ import annotations

from dataclasses import dataclass

from spinal.errors import SpinalError, suggestion


@dataclass(frozen=True)
class WholeNetwork:
    """A network that is trained on the images themselves.

    Attributes:
        labels: number of labels per class from which it is useful; with fewer, the page warns.
        candidates: number of unlabelled images that a round assesses, drawn at random each time.
        size: side of its input images in pixels; 0 for that of the encoder.
    """

    labels: int
    candidates: int
    size: int = 0


#: The networks by name. With 1,000 labels, networks from scratch get half of CIFAR-10 right, a
#: dense layer on pretrained features four fifths (with 50 labels, more than half).
WHOLE_NETWORKS = {
    "fine-tuned": WholeNetwork(labels=30, candidates=1000),
    "lenet": WholeNetwork(labels=100, candidates=5000, size=32),
    "resnet-slim": WholeNetwork(labels=100, candidates=5000, size=32),
    "vgg": WholeNetwork(labels=200, candidates=5000, size=32),
}


def parse_network(name: str) -> tuple[str, WholeNetwork | None, int]:
    """The name without the size, the network (None for ``dense``), and the size of its images.

    Raises:
        SpinalError: if there is no such network.
    """
    plain, at, size = name.partition("@")
    whole = WHOLE_NETWORKS.get(plain)
    if (whole is None and plain != "dense") or (at and not (whole and whole.size)):
        raise SpinalError(f"no network {name!r}: {suggestion(plain, ['dense', *WHOLE_NETWORKS])}")
    if at and not (size.isdecimal() and 8 <= int(size) <= 512):
        raise SpinalError(f"{name!r}: give a size from 8 to 512 pixels, such as {plain}@64")
    return plain, whole, int(size) if at else whole.size if whole else 0


def describe_network(network: str, encoder: str) -> str:
    """A description of the model, for the user."""
    plain, whole, size = parse_network(network)
    if whole is None:
        return f"a dense layer on features by {encoder}"
    if plain == "fine-tuned":
        return f"{encoder}, fine-tuned"
    return f"{plain}, from scratch, on images of {size} px"


def warn_of_few_labels(network: str, n_classes: int, labels: int) -> str | None:
    """A warning, if there are too few labels for a complete network; None if there are enough."""
    plain, whole, _ = parse_network(network)
    if whole is None or labels >= whole.labels * n_classes:
        return None
    how = "is fine-tuned" if plain == "fine-tuned" else "learns from scratch"
    what = "the network behind the features" if plain == "fine-tuned" else plain
    enough = whole.labels * n_classes
    return (
        f"{what} {how}: too few labels for that ({labels}; some {enough} would do). "
        "A dense layer on pretrained features does better until then: --network dense"
    )
