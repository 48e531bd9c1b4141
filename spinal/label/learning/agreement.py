r"""How far people agree who labelled the same images: Cohen's kappa.

Of the images that two people labelled, let :math:`p_o` be the share on which they agree, and
:math:`p_1(c), p_2(c)` the shares that each called class c. By chance they would agree on
:math:`p_e = \sum_c p_1(c) p_2(c)`, and

.. math::
    \kappa = \frac{p_o - p_e}{1 - p_e} .
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Agreement:
    """How far two people agree.

    Attributes:
        people: the two, sorted.
        images: number of images that both labelled.
        agreed: number of these with the same label.
        kappa: Cohen's kappa; None if both gave all images the same single label.
        confused: pairs of classes that they gave the same image, sorted, and how often; most
            frequent first.
    """

    people: tuple[str, str]
    images: int
    agreed: int
    kappa: float | None
    confused: tuple[tuple[tuple[str, str], int], ...]


def find_agreements(answers: Iterable[tuple[int, str, str]]) -> list[Agreement]:
    """The agreement of each two people who labelled some of the same images; most images first.

    Args:
        answers: image, person and label; one for each image and person.
    """
    said: dict[str, dict[int, str]] = {}
    for image, person, label in answers:
        said.setdefault(person, {})[image] = label
    found = []
    for one, two in combinations(sorted(said), 2):
        shared = sorted(said[one].keys() & said[two].keys())
        if shared:
            pairs = [(said[one][image], said[two][image]) for image in shared]
            found.append(_agreement((one, two), pairs))
    return sorted(found, key=lambda agreement: -agreement.images)


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of the labels that two people gave the same images; None if undefined."""
    n = len(pairs)
    first, second = (Counter(label) for label in zip(*pairs, strict=True))
    by_chance = sum(first[label] * second[label] for label in first) / n**2
    observed = sum(one == two for one, two in pairs) / n
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def _agreement(people: tuple[str, str], pairs: Sequence[tuple[str, str]]) -> Agreement:
    differing = Counter(
        (min(one, two), max(one, two)) for one, two in pairs if one != two
    ).most_common()
    agreed = sum(one == two for one, two in pairs)
    return Agreement(people, len(pairs), agreed, cohen_kappa(pairs), tuple(differing))
