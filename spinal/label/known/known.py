"""Known labels of images: reading them, and adding them to a project."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinal.errors import DataError
from spinal.label.known.label_studio import read_label_studio
from spinal.label.known.sets import read_sets
from spinal.label.known.table import read_table, read_text_table
from spinal.label.store.contents import File, find_copies
from spinal.label.store.finding import find_images
from spinal.label.store.project import Project, find_home, open_project
from spinal.label.store.sets import Label
from spinal.label.store.store import Answer


@dataclass(frozen=True)
class KnownLabels:
    """Labels of images of a folder.

    Attributes:
        source: the file or folder that they come from.
        labels: the class of each image, by its path in the folder; where an image can have
            several, all of them.
        missing: files that have a label in the source but are not in the folder.
    """

    source: Path
    labels: dict[str, Label]
    missing: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, sorted."""
        names = {
            name for label in self.labels.values()
            for name in ((label,) if isinstance(label, str) else label)
        }  # fmt: skip
        return tuple(sorted(names))

    def __str__(self) -> str:
        text = f"{len(self.labels)} labels from {self.source}"
        if self.missing:
            some = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            text += f"; {len(self.missing)} for files that are not here: {some}"
        return text


def read_known(
    source: str | Path, folder: Path, text_column: str | None = None, *, multi: bool = False
) -> KnownLabels:
    """Read the labels of images or texts from a source.

    Args:
        source: one of

            - a CSV table with columns ``path`` and ``label`` (or ``image`` and ``choice``);
            - a folder with a folder for each class: the folder of images itself, or one below it,
              or another one, whose files are matched by content;
            - a project, or its folder of images, also matched by content;
            - an export of Label Studio in JSON.
        folder: the folder of images.
        text_column: for texts, the column with the texts; the source is then a table.
        multi: whether an image can have several classes. Tables are then read by
            `spinal.label.known.sets`, and an image in several folders has all their classes.

    Raises:
        DataError: if the source cannot be read, has no label for any image, or two for one image.
    """
    source = Path(source).expanduser()
    if text_column is not None:
        read = read_sets if multi else read_text_table
        return KnownLabels(source, dict(read(source, text_column)), ())
    paths = list(find_images(folder))
    if source.is_dir():
        labels, missing = _from_folder(source, folder, paths, multi)
    elif source.is_file():
        rows: Iterable[tuple[str, Label]]
        if source.suffix.lower() == ".json":
            rows = read_label_studio(source, multi=multi)
        else:
            rows = read_sets(source) if multi else read_table(source)
        labels, missing = _match_names(rows, source, folder, paths)
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

    These images are taken out of the audit, which asks for images at random.
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


def _token(person: str, path: str, label: Label) -> str:
    """A token that is the same for the same label, so that it is stored once."""
    parts = (person, path, *((label,) if isinstance(label, str) else ("", *sorted(label))))
    return "known-" + hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _from_folder(
    source: Path, folder: Path, paths: Sequence[str], multi: bool
) -> tuple[dict[str, Label], list[str]]:
    given: dict[str, Label]
    own, other = folder.resolve(), source.resolve()
    if own != other and (find_home(source) / "project.json").is_file():
        project = open_project(source)
        try:
            given = {
                row["path"]: _fitting(project.store.shown(row["label"]), multi, row["path"])
                for row in project.store.labelled()
            }
            other = project.folder.resolve()
        finally:
            project.close()
    else:
        given = {
            name: _fitting(name.split("/")[0], multi, name)
            for name in find_images(source)
            if "/" in name
        }
    if other.is_relative_to(own):
        inside = other.relative_to(own)
        names = {(inside / name).as_posix(): label for name, label in given.items()}
        return names, []
    return _match_contents(given, other, own, paths)


def _fitting(label: Label | None, multi: bool, name: str) -> Label:
    """A label of another project, or a class, in the form that this project uses."""
    assert label is not None
    if isinstance(label, str):
        return (label,) if multi else label
    if multi:
        return label
    if len(label) != 1:
        raise DataError(f"{name} has {len(label)} classes there: create the project with --multi")
    return label[0]


def _match_contents(
    given: dict[str, Label], source: Path, folder: Path, paths: Sequence[str]
) -> tuple[dict[str, Label], list[str]]:
    """Labels of the images that another folder has with the same content."""
    labels: dict[str, Label] = {}
    seen = set()
    theirs, ours = [File(source, name) for name in given], [File(folder, path) for path in paths]
    for group in find_copies([*theirs, *ours], among=theirs):
        names = [file.name for file in group if file.folder == source]
        said = {given[name] for name in names}
        if all(isinstance(label, tuple) for label in said):
            said = {tuple(sorted({name for label in said for name in label}))}
        if len(said) > 1:
            raise DataError(
                f"{source}: {' and '.join(names[:2])} are the same image in two classes"
            )
        copies = [file.name for file in group if file.folder == folder]
        labels |= dict.fromkeys(copies, said.pop())
        seen.update(names if copies else [])
    return labels, [name for name in given if name not in seen]


def _match_names(
    rows: Iterable[tuple[str, Label]], source: Path, folder: Path, paths: Sequence[str]
) -> tuple[dict[str, Label], list[str]]:
    """Labels by path, for the file names in a table or export.

    A name is a path relative to the folder or to the source, an absolute path, or a bare file name
    that occurs only once.
    """
    known = set(paths)
    by_name = Counter(path.rsplit("/", 1)[-1] for path in paths)
    alone = {n: path for path in paths if by_name[n := path.rsplit("/", 1)[-1]] == 1}
    labels: dict[str, Label] = {}
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
