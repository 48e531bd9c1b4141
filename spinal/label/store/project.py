"""A project: images or texts, and a folder with their labels, features and models."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from spinal.data.text_files import TABLES, is_table
from spinal.errors import DataError, LabelError, SpinalError
from spinal.label.store.classes import RemovedClassError
from spinal.label.store.contents import File, find_copies
from spinal.label.store.database import StoreError
from spinal.label.store.finding import find_images, find_kind
from spinal.label.store.locking import locked
from spinal.label.store.pictures import inspect, locate
from spinal.label.store.previews import Previews
from spinal.label.store.repair import Repair, keep_copy, repair
from spinal.label.store.settings import ProjectSettings, read_settings, write_settings
from spinal.label.store.store import Store
from spinal.label.store.texts import Texts

#: Inside the folder of images, so that both move together; hidden, so that it is not taken for a
#: class.
HOME = ".spinal"
#: Inside the project: the labels, and dated copies of them.
LABELS, COPIES = "labels.sqlite", "copies"


class Project:
    """Images or texts, settings, labels, features and models. Open one with `open_project`.

    "Image" here means image or text.

    Attributes:
        home: the project folder.
        folder: the folder of the images; for texts, the folder or the table.
        store: the labels.
        previews: small copies of the images.
        texts: the texts; None for images.
    """

    def __init__(self, home: Path, folder: Path, settings: ProjectSettings) -> None:
        self.home, self.folder, self._settings = home, folder, settings
        self.store = Store(
            home / LABELS, audit=settings.audit, seed=settings.seed, multi=settings.multi
        )
        self.store.classes.begin(settings.classes)
        self.previews = Previews(home / "previews")
        self.texts: Texts | None = None
        if settings.kind == "texts":
            self.texts = Texts(home / "texts.sqlite", folder, settings.text_column)

    @property
    def settings(self) -> ProjectSettings:
        """The settings, with the classes as they are now."""
        return replace(self._settings, classes=self.store.classes.names())

    @property
    def features_folder(self) -> Path:
        """The folder of the features."""
        return self.home / "features"

    @property
    def words_file(self) -> Path:
        """The fitted TF-IDF encoder; see `spinal.encoders.tfidf`."""
        return self.home / "words.safetensors"

    @property
    def marks_file(self) -> Path:
        """Words that explain the predictions; see `spinal.label.learning.marks`."""
        return self.home / "marks.json"

    @property
    def model_folder(self) -> Path:
        """The folder of the newest learner; see `spinal.learner.ActiveLearner.load`."""
        return self.home / "model"

    @property
    def learnt_file(self) -> Path:
        """The labels that this learner was fitted to; see `spinal.label.learning.learnt`."""
        return self.home / "learnt.json"

    @property
    def beliefs_file(self) -> Path:
        """The newest model's predictions for all images; see `spinal.label.learning.beliefs`."""
        return self.home / "beliefs.npz"

    @property
    def likeness_file(self) -> Path:
        """Positions of the images' features on disk; see `spinal.label.learning.likeness`."""
        return self.home / "likeness.npz"

    @property
    def history_file(self) -> Path:
        """The predictions of successive models; see `spinal.learner.advice`."""
        return self.home / "history.npz"

    def locked(self) -> AbstractContextManager[None]:
        """Inside the block, no other process serves or fits the project.

        Raises:
            InUseError: if another process does.
        """
        return locked(self.home)

    def keep_copy(self) -> None:
        """Check the label file for damage, and keep a copy of it under today's date.

        Raises:
            DamagedStoreError: if it is damaged.
        """
        self.store.check()
        with suppress(OSError, StoreError):  # no room for a copy
            keep_copy(self.store, self.home / COPIES)

    def path(self, name: str) -> Path:
        """The real path of an image; an error if it is outside the folder."""
        return locate(self.folder, name)

    def scan(self) -> int:
        """Add new files to the pool, and check again those that could not be shown.

        Returns:
            Number of files added: new ones, and those that can be shown now.
        """
        names = list(find_images(self.folder)) if self.texts is None else self.texts.refresh()
        old = self.store.paths()
        new = [name for name in names if name not in old]
        copies = self._find_copies(names, new)
        grouped = {name for group in copies for name in group}
        alone = [name for name in new if name not in grouped]
        for start in range(0, len(alone), 5000):
            self.store.add_images(alone[start : start + 5000])
        self.store.add_images(new, copies)
        present = set(names)
        troubled = {row["path"] for row in self.store.problems()}
        self.check([*troubled, *(name for name in old - troubled if name not in present)])
        repaired = troubled - {row["path"] for row in self.store.problems()}
        self.store.twins.join(self._find_copies(names, repaired))
        self.store.twins.choose_again()
        return len(new) + len(repaired)

    def _find_copies(self, names: Collection[str], new: Collection[str]) -> list[list[str]]:
        """Groups of files with the same content, each with one of the new files."""
        if not new or self.texts is not None:  # texts are known by their content
            return []
        files, among = ([File(self.folder, name) for name in some] for some in (names, new))
        return [[file.name for file in group] for group in find_copies(files, among)]

    def check(self, names: list[str]) -> None:
        """Record which of these images can be shown and which cannot."""
        self.store.set_problems([(name, self._problem(name)) for name in names])

    def _problem(self, name: str) -> str | None:
        if self.texts is not None:
            return self.texts.problem(name)
        return self.previews.problem(self.folder, name)

    def refuse(self, name: str, reason: str) -> None:
        """Record that an image cannot be decoded; it is not tried again until the file changes."""
        with suppress(DataError):  # gone by now, or a text
            self.previews.refuse(inspect(self.folder, name), reason)
        self.store.set_problems([(name, reason)])

    def close(self) -> None:
        """Close the files, and end the processes that decode images."""
        self.store.close()
        self.previews.close()
        if self.texts is not None:
            self.texts.close()


def repair_project(home: Path) -> Repair:
    """Recover as much as possible of a damaged label file, also from its dated copies.

    Raises:
        InUseError: if the project is open.
        DataError: if there is no project.
    """
    if not (home / "project.json").is_file():
        raise DataError(f"{home}: holds no project")
    with locked(home):
        _, settings = read_settings(home / "project.json")
        return repair(
            home / LABELS, home / COPIES, settings.classes, audit=settings.audit,
            seed=settings.seed, multi=settings.multi,
        )  # fmt: skip


def open_project(
    place: str | Path,
    home: str | Path | None = None,
    *,
    classes: tuple[str, ...] | None = None,
    budget: int | None = None,
    encoder: str | None = None,
    network: str | None = None,
    method: str | None = None,
    acquisition: str | None = None,
    seed: int | None = None,
    text_column: str | None = None,
    multi: bool | None = None,
) -> Project:
    """Open the project of a folder or a table, or create one if classes are given.

    Args:
        place: a folder of images or of ``.txt`` files, a table of texts, or an existing project
            folder.
        home: the project folder; by default ``.spinal`` in the folder, or ``NAME.spinal`` beside
            the table.
        classes: names of the classes. New ones are added to an existing project.
        budget: number of planned answers; None leaves it unchanged.
        encoder: see `ProjectSettings`; None leaves it unchanged.
        network: see `ProjectSettings`; None leaves it unchanged.
        method: see `ProjectSettings`; None leaves it unchanged.
        acquisition: see `ProjectSettings`; None leaves it unchanged, or chooses the default if the
            method is given.
        seed: of all randomness; it cannot be changed later.
        text_column: the column of a table of texts; None leaves it unchanged.
        multi: whether an image can have several classes; it cannot be changed later.

    Raises:
        SpinalError: if there is no project and no classes are given, or an argument contradicts the
            project.
    """
    place = Path(place).expanduser()
    if not place.is_dir() and not (is_table(place) and place.is_file()):
        raise DataError(f"{place}: no such folder or table ({', '.join(TABLES)})")
    home = find_home(place, home)
    file = home / "project.json"
    arguments = {
        "classes": classes, "budget": budget, "encoder": encoder, "network": network,
        "method": method, "acquisition": acquisition, "seed": seed, "text_column": text_column,
        "multi": multi,
    }  # fmt: skip
    changes: dict[str, Any] = {
        name: value for name, value in arguments.items() if value is not None
    }
    if method is not None:
        changes["acquisition"] = acquisition
    old: ProjectSettings | None = None
    if file.is_file():
        folder, old = read_settings(file)
        if changes.get("seed", old.seed) != old.seed:
            raise SpinalError(f"{home}: was created with seed {old.seed}, which cannot be changed")
        if changes.get("multi", old.multi) != old.multi:
            raise SpinalError(
                f"{home}: an image {'can have several classes' if old.multi else 'has one class'} "
                f"in this project, which cannot be changed: leave --{'no-' * old.multi}multi out, "
                "or create another project with --project"
            )
        settings = replace(old, **changes | {"classes": old.classes})
        if home != place.absolute() and folder.resolve() != place.resolve():
            raise SpinalError(f"{home}: is the project of {folder}, not of {place}")
    elif classes is None:
        raise SpinalError(
            f"{place}: holds no project yet; to create one: spinal label {place} --classes cat,dog"
        )
    else:
        folder = place.absolute()
        settings = ProjectSettings(kind=find_kind(folder), **changes)
    if old is None:
        write_settings(file, folder, settings)
        old = settings
    project = Project(home, folder, settings)
    if classes is not None:
        _add_classes(project, classes)
    if project.settings != old:
        write_settings(file, folder, project.settings)
    return project


def find_home(place: str | Path, home: str | Path | None = None) -> Path:
    """The project folder for a folder, a table or a project folder; see `open_project`."""
    if home is None:
        place = Path(place).expanduser()
        home = place if (place / "project.json").is_file() else place / HOME
        if is_table(place):
            home = place.with_name(place.name + HOME)
    return Path(home).expanduser().absolute()


def _add_classes(project: Project, names: tuple[str, ...]) -> None:
    """Add the classes that are new: that do not exist and were not renamed or merged."""
    for name in names:
        try:
            project.store.classes.resolve(name)
        except RemovedClassError as error:
            raise SpinalError(
                f"{error}: leave it out, or add it again: "
                f"spinal classes {project.folder} --add {name}"
            ) from error
        except LabelError:
            project.store.classes.add(name, "spinal label")
