"""The files below a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def walk_files(
    folder: Path,
    *,
    follow_links: bool = True,
    on_error: Callable[[OSError], None] | None = None,
) -> Iterator[Path]:
    """All files below a folder, except hidden ones: first its own files, then its sub-folders.

    Files are sorted by name. Links to files are listed like files.

    Args:
        folder: the top folder.
        follow_links: whether to enter folders that are links; cycles are not followed.
        on_error: called for a folder that cannot be read; without it, such a folder is skipped.
    """
    for folder_path, folders, names in os.walk(folder, onerror=on_error, followlinks=follow_links):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        if follow_links:
            above = _real_paths(Path(folder_path), folder)
            folders[:] = [n for n in folders if os.path.realpath(Path(folder_path, n)) not in above]
        for name in sorted(names):
            if not is_hidden(name):
                yield Path(folder_path, name)


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is skipped."""
    # __MACOSX holds the metadata files that macOS adds to ZIP archives.
    return name.startswith(".") or name == "__MACOSX"


def _real_paths(folder: Path, top: Path) -> set[str]:
    """The real paths of a folder and its parents, up to ``top``."""
    between = folder.relative_to(top).parts
    return {os.path.realpath(top.joinpath(*between[:n])) for n in range(len(between) + 1)}
