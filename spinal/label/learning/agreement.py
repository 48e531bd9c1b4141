r"""Agreement between people who labelled the same images: Cohen's kappa.

Of the images that two people labelled, let :math:`p_o` be the share on which they agree, and
:math:`p_1(c), p_2(c)` the shares that each labelled as class c. By chance they would agree on
:math:`p_e = \sum_c p_1(c) p_2(c)`, and

.. math::
    \kappa = \frac{p_o - p_e}{1 - p_e} .
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

L = TypeVar("L")


@dataclass(frozen=True)
class Agreement:
    """The agreement of two people.

    Attributes:
        people: their names, sorted.
        images: number of images that both labelled.
        agreed: number of these with the same label.
        kappa: Cohen's kappa; None if both gave all images the same single label.
        confused: pairs of different classes that the two gave an image, and how often; most
            frequent first. Where an image can have several classes, single classes that only one of
            the two gave an image.
        classes: where an image can have several classes, for each class its name, the number of
            images on which the two agree about it, and Cohen's kappa. ``kappa`` is then the mean
            over the classes.
    """

    people: tuple[str, str]
    images: int
    agreed: int
    kappa: float | None
    confused: tuple[tuple[tuple[str, ...], int], ...]
    classes: tuple[tuple[str, int, float | None], ...] = ()


def find_agreements(answers: Iterable[tuple[int, str, str]]) -> list[Agreement]:
    """The agreement of each pair of people who labelled some of the same images; most images first.

    Args:
        answers: image, person and label; one for each image and person.
    """
    found = [_agreement(people, pairs) for people, pairs in _shared(answers)]
    return sorted(found, key=lambda agreement: -agreement.images)


def find_set_agreements(
    answers: Iterable[tuple[int, str, Collection[str]]], classes: Sequence[str]
) -> list[Agreement]:
    """The agreements where an image can have several classes: overall, and for each class.

    Args:
        answers: image, person and all classes; one for each image and person.
        classes: all classes.
    """
    found = [_set_agreement(people, pairs, classes) for people, pairs in _shared(answers)]
    return sorted(found, key=lambda agreement: -agreement.images)


def _shared(
    answers: Iterable[tuple[int, str, L]],
) -> Iterator[tuple[tuple[str, str], list[tuple[L, L]]]]:
    """Each pair of people, and their labels of the images that both labelled, if any."""
    said: dict[str, dict[int, L]] = {}
    for image, person, label in answers:
        said.setdefault(person, {})[image] = label
    for one, two in combinations(sorted(said), 2):
        shared = sorted(said[one].keys() & said[two].keys())
        if shared:
            yield (one, two), [(said[one][image], said[two][image]) for image in shared]


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
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


def _set_agreement(
    people: tuple[str, str],
    pairs: Sequence[tuple[Collection[str], Collection[str]]],
    classes: Sequence[str],
) -> Agreement:
    by_class = []
    for name in classes:
        said = [(name in one, name in two) for one, two in pairs]
        agreed = sum(one == two for one, two in said)
        by_class.append((name, agreed, cohen_kappa(said)))
    kappas = [kappa for *_, kappa in by_class if kappa is not None]
    differing = [((name,), len(pairs) - agreed) for name, agreed, _ in by_class]
    return Agreement(
        people,
        len(pairs),
        sum(set(one) == set(two) for one, two in pairs),
        sum(kappas) / len(kappas) if kappas else None,
        tuple(sorted((pair for pair in differing if pair[1]), key=lambda pair: -pair[1])),
        tuple(by_class),
    )
