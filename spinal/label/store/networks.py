"""What a project trains, by name: a dense layer on features, or a whole network on the images.

| ``dense``       one layer, on features that stay as they are: quick, and best from few labels
| ``fine-tuned``  the network behind the features, trained on, with such a layer on top
| ``lenet``       small, from scratch on the images at 32 px; ``lenet@64``: at 64 px
| ``vgg``         deeper, from scratch, a quarter of the paper's width: without a GPU, slow enough
"""

from __future__ import annotations

from dataclasses import dataclass

from spinal.errors import SpinalError, suggestion


@dataclass(frozen=True)
class Kind:
    """One way of training.

    Attributes:
        labels: of each class, from which on it is worth trying; with fewer, the page warns.
        candidates: unlabelled images that a round looks at, drawn anew each time: all go through
            the whole network.
        size: side in pixels of the images that it sees; 0: that of the network behind the features.
    """

    labels: int
    candidates: int
    size: int = 0


#: Those that are trained on images. With 1,000 labels a VGG from scratch gets half of CIFAR-10
#: right, a dense layer on pretrained features four fifths, and more than half with 50 labels.
KINDS = {
    "fine-tuned": Kind(labels=30, candidates=1000),
    "lenet": Kind(labels=100, candidates=5000, size=32),
    "vgg": Kind(labels=200, candidates=5000, size=32),
}


def parse_network(name: str) -> tuple[str, Kind | None, int]:
    """A name without the size, its kind (None for ``dense``), and the size of its images.

    Raises:
        SpinalError: if there is no such network.
    """
    plain, at, size = name.partition("@")
    kind = KINDS.get(plain)
    if (kind is None and plain != "dense") or (at and not (kind and kind.size)):
        raise SpinalError(f"no network {name!r}: {suggestion(plain, ['dense', *KINDS])}")
    if at and not (size.isdecimal() and 8 <= int(size) <= 512):
        raise SpinalError(f"{name!r}: give a size from 8 to 512 pixels, such as {plain}@64")
    return plain, kind, int(size) if at else kind.size if kind else 0


def describe_network(network: str, features: str) -> str:
    """What is in use, for people."""
    plain, kind, size = parse_network(network)
    if kind is None:
        return f"a dense layer on features by {features}"
    if plain == "fine-tuned":
        return f"{features}, fine-tuned"
    return f"{plain}, from scratch, on images of {size} px"


def warn_of_few_labels(network: str, classes: int, labels: int) -> str | None:
    """A warning, if there are too few labels for a whole network; None if there are enough."""
    plain, kind, _ = parse_network(network)
    if kind is None or labels >= kind.labels * classes:
        return None
    how = "is fine-tuned" if plain == "fine-tuned" else "learns from scratch"
    what = "the network behind the features" if plain == "fine-tuned" else plain
    return (
        f"{what} {how}: too few labels for that ({labels}; some {kind.labels * classes} would do). "
        "A dense layer on pretrained features does better until then: --network dense"
    )
