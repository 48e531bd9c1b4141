"""The keys of the classes on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinal.label.store.classes import RESERVED_KEYS


def class_keys(classes: Sequence[str], own: Mapping[str, str] | None = None) -> list[list[str]]:
    """Keys of each class: a digit for the first nine, and a letter, from its name if possible.

    First letters have priority: "cat" gets C even if it comes after "arctic fox".

    Args:
        classes: names of the classes.
        own: keys that users chose, by class; they replace the letter, and no other class gets them.

    Examples:
        >>> class_keys(["cat", "dog", "crow"])
        [['1', 'c'], ['2', 'd'], ['3', 'r']]
        >>> class_keys(["cat", "dog", "crow"], {"dog": "c", "crow": "1"})
        [['a'], ['2', 'c'], ['3', '1']]
    """
    letters = dict(own or {})
    taken = {*RESERVED_KEYS, *letters.values()}
    free = [c for c in "abcdefghijklmnopqrstuvwxyz" if c not in taken]
    for wish in (lambda name: name[:1], lambda name: name, lambda _: "".join(free)):
        for name in classes:
            if name not in letters:
                letter = next((c for c in wish(name.lower()) if c in free), None)
                if letter is not None:
                    letters[name] = letter
                    free.remove(letter)
    digits = {name: str(i) for i, name in enumerate(classes[:9], 1) if str(i) not in taken}
    return [[keys[name] for keys in (digits, letters) if name in keys] for name in classes]
