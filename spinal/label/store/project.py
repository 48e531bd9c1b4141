"""A project: images or texts, and a folder with their labels, features and models."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spinal.data.text_files import TABLES, is_table
from spinal.errors import DataError, FileFormatError, SpinalError
from spinal.files import write_text
from spinal.label.store.database import StoreError
from spinal.label.store.finding import find_images, find_kind
from spinal.label.store.locking import locked
from spinal.label.store.networks import (
    WholeNetwork,
    describe_network,
    parse_network,
    warn_of_few_labels,
)
from spinal.label.store.pictures import inspect, locate
from spinal.label.store.previews import Previews
from spinal.label.store.repair import Repair, keep_copy, repair
from spinal.label.store.store import Store
from spinal.label.store.texts import Texts
from spinal.settings import from_mapping, to_mapping

FORMAT = "spinal.project/1"
#: Inside the folder of images, so that both move together; hidden, so that it is no class of them.
HOME = ".spinal"
#: Inside the project: the labels, and dated copies of them.
LABELS, COPIES = "labels.sqlite", "copies"
#: The encoder of each kind of project, unless another is chosen.
ENCODERS = {"images": "efficientnet-lite0", "texts": "tfidf-svd"}
#: Keys of the file whose setting has another name.
_FIELDS = {"features": "encoder"}


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project.

    Attributes:
        classes: names of the classes, in the order of the keys.
        kind: what is labelled: ``images`` or ``texts``.
        text_column: the column of a table of texts.
        encoder: name of the encoder that computes the features; see `spinal.encoders`. If a whole
            network is trained, first questions and likely mistakes still use these features. Empty:
            the default of the kind, ``efficientnet-lite0`` or ``tfidf-svd``.
        network: the network that is trained; see `spinal.label.store.networks`.
        budget: number of planned answers; None for no plan.
        audit: share of the answers that are drawn by chance, to estimate the accuracy.
        first: number of answers before the model chooses questions; until then, questions cover the
            images. 0 for three per class, at least 10 and at most 40.
        batch: number of new answers after which the model is fitted again.
        method: see `spinal.methods`.
        acquisition: see `spinal.acquisition`; None: ``auto`` for SPN-CNN on features, otherwise
            the default of the method.
        seed: of all randomness.
    """

    classes: tuple[str, ...]
    kind: str = "images"
    text_column: str = "text"
    encoder: str = ""
    network: str = "dense"
    budget: int | None = None
    audit: float = 0.05
    first: int = 0
    batch: int = 10
    method: str = "spn-cnn"
    acquisition: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        names = self.classes
        if len(names) < 2:
            raise SpinalError("give two classes or more, such as --classes cat,dog,none")
        for name in names:
            if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
                raise SpinalError(f"{name!r} cannot be the name of a class")
        if len(set(names)) < len(names):
            raise SpinalError(f"two classes have the same name: {', '.join(names)}")
        if not 0 <= self.audit < 1:
            raise SpinalError(f"a share of {self.audit} for the audit: give one from 0 to 0.9")
        if self.batch < 1 or (self.budget is not None and self.budget < 1):
            raise SpinalError("batch and budget must be 1 or more")
        if self.kind not in ENCODERS:
            raise SpinalError(f"no kind {self.kind!r}: there are {', '.join(ENCODERS)}")
        if not self.encoder:
            object.__setattr__(self, "encoder", ENCODERS[self.kind])
        if parse_network(self.network)[1] is not None and self.kind == "texts":
            raise SpinalError(f"network {self.network!r} is for images; texts take `dense`")

    @property
    def first_answers(self) -> int:
        """Number of answers before the model chooses questions."""
        return self.first or min(40, max(10, 3 * len(self.classes)))

    @property
    def whole_network(self) -> WholeNetwork | None:
        """The network that is trained on images; None for a dense layer on features."""
        return parse_network(self.network)[1]

    def describe_model(self) -> str:
        """A description of the model, for the user."""
        return describe_network(self.network, self.encoder)

    def warning(self, labels: int) -> str | None:
        """A warning if these are too few labels for the network; None if they are enough."""
        return warn_of_few_labels(self.network, len(self.classes), labels)


class Project:
    """Images or texts, settings, labels, features and models. Open one with `open_project`.

    What is said of images here holds for texts as well.

    Attributes:
        home: the project folder.
        folder: where the images are; of texts, the folder or the table.
        settings: the settings of the project.
        store: the labels.
        previews: small copies of the images.
        texts: the texts; None for images.
    """

    def __init__(self, home: Path, folder: Path, settings: ProjectSettings) -> None:
        self.home, self.folder, self.settings = home, folder, settings
        self.store = Store(home / LABELS, audit=settings.audit, seed=settings.seed)
        self.previews = Previews(home / "previews")
        self.texts: Texts | None = None
        if settings.kind == "texts":
            self.texts = Texts(home / "texts.sqlite", folder, settings.text_column)

    @property
    def features_folder(self) -> Path:
        """The folder of the features."""
        return self.home / "features"

    @property
    def words_file(self) -> Path:
        """What TF-IDF has learnt of the texts; see `spinal.encoders.tfidf`."""
        return self.home / "words.safetensors"

    @property
    def marks_file(self) -> Path:
        """Words that speak for the guesses; see `spinal.label.learning.marks`."""
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
        """Where the features of each image are; see `spinal.label.learning.likeness`."""
        return self.home / "likeness.npz"

    @property
    def history_file(self) -> Path:
        """What successive models predicted; see `spinal.learner.advice`."""
        return self.home / "history.npz"

    def locked(self) -> AbstractContextManager[None]:
        """Inside, no other process serves or fits the project.

        Raises:
            InUseError: if another one does.
        """
        return locked(self.home)

    def check_labels(self) -> None:
        """Check the file of labels for damage, and keep a copy of it as that of today.

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
        for start in range(0, len(new), 5000):
            self.store.add_images(new[start : start + 5000])
        present = set(names)
        troubled = {row["path"] for row in self.store.problems()}
        self.check([*troubled, *(name for name in old - troubled if name not in present)])
        repaired = troubled - {row["path"] for row in self.store.problems()}
        return len(new) + len(repaired)

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
    """Save what can be saved of a damaged file of labels, with the help of its dated copies.

    Raises:
        InUseError: if the project is open.
        DataError: if there is no project.
    """
    if not (home / "project.json").is_file():
        raise DataError(f"{home}: holds no project")
    with locked(home):
        _, settings = _read(home / "project.json")
        return repair(home / LABELS, home / COPIES, audit=settings.audit, seed=settings.seed)


def open_project(
    place: str | Path,
    home: str | Path | None = None,
    *,
    classes: tuple[str, ...] | None = None,
    budget: int | None = None,
    encoder: str | None = None,
    network: str | None = None,
    seed: int | None = None,
    text_column: str | None = None,
) -> Project:
    """Open the project of a folder or a table, or create one if classes are given.

    Args:
        place: a folder of images or of ``.txt`` files, a table of texts, or an existing project
            folder.
        home: the project folder; by default ``.spinal`` in the folder, or ``NAME.spinal`` beside
            the table.
        classes: names of the classes. In an existing project, classes can be added, not removed.
        budget: number of planned answers; None leaves it unchanged.
        encoder: see `ProjectSettings`; None leaves it unchanged.
        network: see `ProjectSettings`; None leaves it unchanged.
        seed: of all randomness; it cannot be changed later.
        text_column: the column of a table of texts; None leaves it unchanged.

    Raises:
        SpinalError: if there is no project and no classes are given, or an argument contradicts it.
    """
    place = Path(place).expanduser()
    if not place.is_dir() and not (is_table(place) and place.is_file()):
        raise DataError(f"{place}: no such folder or table ({', '.join(TABLES)})")
    home = find_home(place, home)
    file = home / "project.json"
    arguments = {
        "classes": classes, "budget": budget, "encoder": encoder, "network": network,
        "seed": seed, "text_column": text_column,
    }  # fmt: skip
    changes: dict[str, Any] = {
        name: value for name, value in arguments.items() if value is not None
    }
    old: ProjectSettings | None = None
    if file.is_file():
        folder, old = _read(file)
        settings = _changed(old, changes, home)
        if home != place.absolute() and folder.resolve() != place.resolve():
            raise SpinalError(f"{home}: is the project of {folder}, not of {place}")
    elif classes is None:
        raise SpinalError(
            f"{place}: holds no project yet; to begin one: spinal label {place} --classes cat,dog"
        )
    else:
        folder = place.absolute()
        settings = ProjectSettings(kind=find_kind(folder), **changes)
    if settings != old:
        _write(file, folder, settings)
    return Project(home, folder, settings)


def find_home(place: str | Path, home: str | Path | None = None) -> Path:
    """The project folder of a folder or a table, or of itself; see `open_project`."""
    if home is None:
        place = Path(place).expanduser()
        home = place if (place / "project.json").is_file() else place / HOME
        if is_table(place):
            home = place.with_name(place.name + HOME)
    return Path(home).expanduser().absolute()


def _changed(old: ProjectSettings, changes: dict[str, Any], home: Path) -> ProjectSettings:
    """The settings with changes; an error if labels would lose their meaning."""
    if "classes" in changes:
        more = [name for name in changes["classes"] if name not in old.classes]
        if missing := [name for name in old.classes if name not in changes["classes"]]:
            raise SpinalError(
                f"{home}: its classes are {', '.join(old.classes)}; {missing[0]!r} cannot be "
                "taken away, only added to"
            )
        changes = {**changes, "classes": (*old.classes, *more)}
    if changes.get("seed", old.seed) != old.seed:
        raise SpinalError(f"{home}: was begun with seed {old.seed}, which cannot be changed")
    return replace(old, **changes)


def _read(file: Path) -> tuple[Path, ProjectSettings]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise FileFormatError(f"{file}: not a project of this version")
        # Relative to the project, where it can be: a folder that moved is found again.
        folder = Path(os.path.normpath(file.parent / values.pop("folder")))
        values.pop("holdout", None)  # of older versions, which kept answers from learning
        values = {_FIELDS.get(key, key): value for key, value in values.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{file}: damaged, or not a project ({error})") from error
    if not folder.exists():
        raise DataError(f"{file}: its images or texts should be in {folder}, which is not there")
    return folder, from_mapping(ProjectSettings, values, str(file))


def _write(file: Path, folder: Path, settings: ProjectSettings) -> None:
    top = folder.parent if is_table(folder) else folder
    inside = file.parent.resolve().is_relative_to(top.resolve())
    where = os.path.relpath(folder.resolve(), file.parent.resolve()) if inside else str(folder)
    keys = {field: key for key, field in _FIELDS.items()}
    values = {keys.get(field, field): value for field, value in to_mapping(settings).items()}
    text = json.dumps({"format": FORMAT, "folder": where, **values}, indent=2, ensure_ascii=False)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text + "\n")
    except OSError as error:
        raise SpinalError(
            f"{file.parent}: cannot be written ({error.strerror}); "
            "choose another place with --project"
        ) from error
