"""Known labels of images, from where they are, and into a project."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinal.errors import DataError
from spinal.label.known.label_studio import read_label_studio
from spinal.label.known.table import read_table, read_text_table
from spinal.label.store.contents import File, find_copies
from spinal.label.store.finding import find_images
from spinal.label.store.project import Project, find_home, open_project
from spinal.label.store.store import Answer


@dataclass(frozen=True)
class KnownLabels:
    """Labels of images of a folder.

    Attributes:
        source: where they are from.
        labels: the class of each image, by its path in the folder.
        missing: what the source has a label for and the folder does not hold.
    """

    source: Path
    labels: dict[str, str]
    missing: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, sorted."""
        return tuple(sorted(set(self.labels.values())))

    def __str__(self) -> str:
        text = f"{len(self.labels)} labels from {self.source}"
        if self.missing:
            some = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            text += f"; {len(self.missing)} for files that are not here: {some}"
        return text


def read_known(source: str | Path, folder: Path, text_column: str | None = None) -> KnownLabels:
    """The labels that a source has for the images of a folder, or for texts.

    Args:
        source: one of

            - a CSV table with columns ``path`` and ``label`` (or ``image`` and ``choice``);
            - a folder with a folder for each class: the folder of images itself, or one below it,
              or another one, whose files are recognised by their content;
            - a project, or its folder of images, recognised likewise;
            - an export of Label Studio in JSON.
        folder: the folder of images.
        text_column: for texts, the column with them; the source is a table.

    Raises:
        DataError: if it cannot be read, holds no label for any image, or two for the same one.
    """
    source = Path(source).expanduser()
    if text_column is not None:
        return KnownLabels(source, dict(read_text_table(source, text_column)), ())
    paths = list(find_images(folder))
    if source.is_dir():
        labels, missing = _from_folder(source, folder, paths)
    elif source.is_file():
        read = read_label_studio if source.suffix.lower() == ".json" else read_table
        labels, missing = _match_names(read(source), source, folder, paths)
    else:
        raise DataError(f"{source}: no such file or folder")
    if not labels:
        raise DataError(
            f"{source}: no label for any image in {folder}"
            + (f"; it names {missing[0]}, for example" if missing else "")
        )
    return KnownLabels(source, labels, tuple(missing))


def tell_known(project: Project, known: KnownLabels) -> int:
    """Store known labels as answers, and return how many are new.

    These images are taken out of the audit, which asks for images by chance.
    """
    images = {row["path"]: row["id"] for row in project.store.images()}
    person = known.source.name or str(known.source)
    answers = [
        Answer(_token(person, path, label), images[path], label, reason="known")
        for path, label in known.labels.items()
        if path in images
    ]
    before = len(project.store.answers())
    project.store.answer(answers, person)
    project.store.release_from_audit([answer.image for answer in answers])
    return len(project.store.answers()) - before


def _token(*parts: str) -> str:
    """The same for the same label, so that it is stored once."""
    return "known-" + hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _from_folder(
    source: Path, folder: Path, paths: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    own, other = folder.resolve(), source.resolve()
    if own != other and (find_home(source) / "project.json").is_file():
        project = open_project(source)
        try:
            given = {row["path"]: row["label"] for row in project.store.labelled()}
            other = project.folder.resolve()
        finally:
            project.close()
    else:
        given = {name: name.split("/")[0] for name in find_images(source) if "/" in name}
    if other.is_relative_to(own):
        inside = other.relative_to(own)
        names = {(inside / name).as_posix(): label for name, label in given.items()}
        return names, []
    return _match_contents(given, other, own, paths)


def _match_contents(
    given: dict[str, str], source: Path, folder: Path, paths: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Labels of those images whose content another folder has, too."""
    labels: dict[str, str] = {}
    seen = set()
    theirs, ours = [File(source, name) for name in given], [File(folder, path) for path in paths]
    for group in find_copies([*theirs, *ours], among=theirs):
        names = [file.name for file in group if file.folder == source]
        said = {given[name] for name in names}
        if len(said) > 1:
            raise DataError(
                f"{source}: {' and '.join(names[:2])} are the same image in two classes"
            )
        copies = [file.name for file in group if file.folder == folder]
        labels |= dict.fromkeys(copies, said.pop())
        seen.update(names if copies else [])
    return labels, [name for name in given if name not in seen]


def _match_names(
    rows: Iterable[tuple[str, str]], source: Path, folder: Path, paths: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Labels by path, for names that a file gives.

    A name is a path in the folder, or as seen from the file, or whole; or the name of a file alone,
    if there is only one of that name.
    """
    known = set(paths)
    by_name = Counter(path.rsplit("/", 1)[-1] for path in paths)
    alone = {n: path for path in paths if by_name[n := path.rsplit("/", 1)[-1]] == 1}
    labels: dict[str, str] = {}
    missing = []
    for name, label in rows:
        plain = name.replace("\\", "/").removeprefix("./")
        seen_from_file = os.path.relpath(source.absolute().parent / plain, folder.absolute())
        path = next((p for p in (plain, Path(seen_from_file).as_posix()) if p in known), None)
        path = path or alone.get(plain)
        if path is None:
            missing.append(name)
        elif labels.setdefault(path, label) != label:
            raise DataError(f"{source}: {path} is both {labels[path]!r} and {label!r}")
    return labels, missing
