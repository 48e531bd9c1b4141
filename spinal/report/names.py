"""Names and order of methods, the same in every table and figure."""

from __future__ import annotations

from spinal.methods import METHODS

BASELINE = "random"


def split_name(run_name: str) -> tuple[str, str]:
    """Method and acquisition function in the name of a run; the latter may be empty."""
    candidates = [m for m in METHODS if run_name == m or run_name.startswith(f"{m}-")]
    method = max(candidates, key=len, default=run_name)
    return method, run_name[len(method) + 1 :]


def is_default(run_name: str) -> bool:
    """Whether the acquisition function is the default of the method."""
    method, acquisition = split_name(run_name)
    return not acquisition or method not in METHODS or acquisition == METHODS[method].acquisition


def title(run_name: str) -> str:
    """A title such as ``SPN-CNN``, or ``SPN-CNN, bald`` if that is not the method's default."""
    method, acquisition = split_name(run_name)
    name = METHODS[method].title if method in METHODS else method
    return name if is_default(run_name) else f"{name}, {acquisition.replace('-', ' ')}"


def order(run_name: str) -> tuple[int, bool, str]:
    """A sort key: methods in the order of `spinal methods`, Random last."""
    method, _ = split_name(run_name)
    names = list(METHODS)
    place = names.index(method) if method in names else len(names)
    return (len(names) + 1 if method == BASELINE else place, not is_default(run_name), run_name)


def is_spn(run_name: str) -> bool:
    """Whether an SPN assesses points."""
    return split_name(run_name)[0].startswith("spn-")


def comparisons(methods: list[str]) -> list[tuple[str, str]]:
    """The pairs of methods to test: as in the paper, each SPN method against each other method.

    Without SPN methods, all pairs.
    """
    subjects = [m for m in methods if is_spn(m)] or methods
    return [
        (first, second)
        for first in subjects
        for second in methods
        if second not in subjects or subjects.index(first) < subjects.index(second)
    ]
