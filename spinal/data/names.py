"""Names of datasets, normalised to one spelling each."""

from __future__ import annotations

from spinal.data.table import PUBLISHED

#: The dataset that needs no files.
BUILT_IN = "digits"


def dataset_names() -> tuple[str, ...]:
    """Names that `load_dataset` knows, the default one first."""
    return (BUILT_IN, *PUBLISHED)


def dataset_name(name: str) -> str:
    """The canonical spelling of a dataset's name; an unknown name is returned unchanged.

    Case, hyphens and underscores make no difference. A name with a slash is a folder.

    Examples:
        >>> dataset_name("cifar10"), dataset_name("Fashion_MNIST"), dataset_name("imagenet")
        ('cifar-10', 'fashion-mnist', 'imagenet')
    """
    if "/" in name:
        return name
    return {_letters(usual): usual for usual in dataset_names()}.get(_letters(name), name)


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
