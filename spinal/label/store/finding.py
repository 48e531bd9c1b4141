"""Search for image files below a folder, and the kind of a project: images or texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spinal.data.images import SUFFIXES
from spinal.data.text_files import find_text_files, is_table
from spinal.data.walking import walk_files

#: Suffixes of images that Pillow cannot read without plugins.
_OTHER_IMAGES = (".heic", ".heif", ".jxl", ".cr2", ".cr3", ".nef", ".arw", ".dng", ".svg", ".psd")


def find_images(folder: Path) -> Iterator[str]:
    """Names of all image files below a folder, sorted, with slashes.

    Hidden files and folders are skipped. Links to files are followed, links to folders are not. A
    link to a file outside the folder is listed here, and refused when it is opened.
    """
    for path in walk_files(folder, follow_links=False):
        name = path.relative_to(folder).as_posix()
        # Names that are not printable are invalid text, or look like other names.
        if name.lower().endswith(SUFFIXES) and name.isprintable():
            yield name


def find_unreadable(folder: Path) -> list[str]:
    """Image files that are left out, each with what to do about it; at most ten of a kind."""
    names = [p.relative_to(folder).as_posix() for p in walk_files(folder, follow_links=False)]
    odd = [
        repr(name) for name in names if name.lower().endswith(SUFFIXES) and not name.isprintable()
    ]
    other = [name for name in names if name.lower().endswith(_OTHER_IMAGES)]
    lines = []
    for those, reason in ((odd, "rename it"), (other, f"convert it ({', '.join(SUFFIXES)})")):
        lines += [f"{name}: {reason}" for name in those[:10]]
        if len(those) > 10:
            lines.append(f"and {len(those) - 10} more: {reason}")
    return lines


def find_kind(place: Path) -> str:
    """The kind of a project: ``texts`` if the place has texts and no images, else ``images``."""
    if is_table(place):
        return "texts"
    has_images = next(find_images(place), None) is not None
    return "texts" if not has_images and next(find_text_files(place), None) else "images"
