"""Which key stands for which class."""

from __future__ import annotations

from collections.abc import Sequence

_TAKEN = {"u"}  # undo


def class_keys(classes: Sequence[str]) -> list[list[str]]:
    """Keys of each class: a digit for the first nine, and a letter, from its name if one is free.

    First letters have priority: "cat" gets C even if it comes after "arctic fox".

    Examples:
        >>> class_keys(["cat", "dog", "crow"])
        [['1', 'c'], ['2', 'd'], ['3', 'r']]
    """
    letters: dict[str, str] = {}
    free = [c for c in "abcdefghijklmnopqrstuvwxyz" if c not in _TAKEN]
    for wish in (lambda name: name[:1], lambda name: name, lambda _: "".join(free)):
        for name in classes:
            if name not in letters:
                letter = next((c for c in wish(name.lower()) if c in free), None)
                if letter is not None:
                    letters[name] = letter
                    free.remove(letter)
    return [
        [*([str(i)] if i <= 9 else []), *([letters[name]] if name in letters else [])]
        for i, name in enumerate(classes, 1)
    ]
