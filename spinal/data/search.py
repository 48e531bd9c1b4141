"""Search for the files of a published dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from spinal.data.formats import DataFile, npz_shape, read_content
from spinal.data.published import Layout, Published, PublishedFile
from spinal.errors import FileFormatError

# Debian's packages of datasets, such as dataset-fashion-mnist, put them here.
DEBIAN_FOLDER = Path("/usr/share/datasets")


@dataclass(frozen=True)
class StoredDataset:
    """A dataset on disk: all files of a layout exist, their content is not yet checked."""

    folder: Path
    layout: Layout
    files: tuple[DataFile, ...]

    def wrong_sizes(self) -> list[str]:
        """Messages about files whose size is wrong; nothing is read."""
        return [
            f"{file.path.name} has {size:,} bytes, expected {file.size:,}"
            for file, published in zip(self.files, self.layout.files, strict=True)
            if file.size is not None
            and file.path.name == published.name  # a compressed copy may have any size
            and (size := file.path.stat().st_size) != file.size
        ]


def own_folder(data_dir: str | Path | None) -> Path:
    """The folder for downloads: ``data_dir``, or ``SPINAL_DATA``, or the user's cache."""
    named = data_dir or os.environ.get("SPINAL_DATA")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("spinal", False)


def data_folders(data_dir: str | Path | None) -> list[Path]:
    """The folders to look in, first to last."""
    named = [data_dir, os.environ.get("SPINAL_DATA")]
    folders = [Path(folder).expanduser() for folder in named if folder]
    return [*folders, DEBIAN_FOLDER, platformdirs.user_cache_path("spinal", False)]


def find(entry: Published, data_dir: str | Path | None) -> StoredDataset | None:
    """The first complete set of files."""
    for folder, layout, named in _candidates(entry, data_dir):
        paths = [_path(folder, file) for file in layout.files]
        files = tuple(
            DataFile(path, file.md5, file.size)
            for path, file in zip(paths, layout.files, strict=True)
            if path is not None
        )
        if len(files) == len(paths) and (named or _is_ours(entry, files[-1])):
            return StoredDataset(folder, layout, files)
    return None


def missing(entry: Published, data_dir: str | Path | None) -> tuple[Path, tuple[str, ...]]:
    """The folder that lacks the fewest files, and the names of these files."""
    best = (own_folder(data_dir) / entry.folders[0], tuple(d.filename for d in entry.downloads))
    least = 1.0
    for folder, layout, named in _candidates(entry, data_dir):
        names = tuple(file.name for file in layout.files if _path(folder, file) is None)
        lacking = len(names) / len(layout.files)
        if named and lacking < least:
            least, best = lacking, (folder, names)
    return best


def _candidates(
    entry: Published, data_dir: str | Path | None
) -> Iterator[tuple[Path, Layout, bool]]:
    """Folders and layouts to try, and whether the file names identify the dataset."""
    for base in data_folders(data_dir):
        for inside in entry.folders:
            for layout in entry.layouts:
                yield base / inside, layout, bool(inside) or not layout.shared_names


def _path(folder: Path, file: PublishedFile) -> Path | None:
    for name in (file.name, f"{file.name}.gz") if file.gzipped else (file.name,):
        if (folder / name).is_file():
            return folder / name
    return None


def _is_ours(entry: Published, last: DataFile) -> bool:
    """Whether a file whose name several datasets use belongs to this one, by shape or checksum."""
    if last.md5 is None:
        return npz_shape(last.path) in (entry.test_shape, entry.test_shape[:3])
    try:
        read_content(last)
    except FileFormatError:
        return False
    return True
