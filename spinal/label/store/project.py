"""A project: a folder of images, and a folder beside them with all that is known of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spinal.data.images import SUFFIXES
from spinal.data.walking import walk_files
from spinal.errors import DataError, FileFormatError, SpinalError
from spinal.files import write_text
from spinal.label.store.networks import (
    WholeNetwork,
    describe_network,
    parse_network,
    warn_of_few_labels,
)
from spinal.label.store.pictures import locate
from spinal.label.store.pictures import problem as find_problem
from spinal.label.store.store import Store
from spinal.settings import from_mapping, to_mapping

FORMAT = "spinal.project/1"
#: Inside the folder of images, so that both move together; hidden, so that it is no class of them.
HOME = ".spinal"
#: Keys of the file whose setting has another name.
_FIELDS = {"features": "encoder"}


@dataclass(frozen=True)
class ProjectSettings:
    """What a project is about.

    Attributes:
        classes: their names, in the order of the keys.
        encoder: the name of what computes the features; see `spinal.encoders`. Where a whole
            network is trained, first questions and likely mistakes still go by these features.
        network: what is trained; see `spinal.label.store.networks`.
        budget: how many answers are planned; None for no plan.
        holdout: share of the answers that is kept for testing.
        first: answers before the model takes over from coverage; 0: three for each class, at
            least ten.
        batch: new answers after which the model is fitted again.
        method: see `spinal.methods`.
        acquisition: see `spinal.acquisition`; the method's own, if None.
        seed: the source of all chance.
    """

    classes: tuple[str, ...]
    encoder: str = "efficientnet-lite0"
    network: str = "dense"
    budget: int | None = None
    holdout: float = 0.15
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
        if not 0 <= self.holdout < 1:
            raise SpinalError(f"a share of {self.holdout} for testing: give one from 0 to 0.9")
        if self.batch < 1 or (self.budget is not None and self.budget < 1):
            raise SpinalError("batch and budget must be 1 or more")
        parse_network(self.network)

    @property
    def first_answers(self) -> int:
        """Answers before the model takes over."""
        return self.first or max(10, 3 * len(self.classes))

    @property
    def whole_network(self) -> WholeNetwork | None:
        """The network that is trained on images; None for a dense layer on features."""
        return parse_network(self.network)[1]

    def describe_model(self) -> str:
        """What is in use, for people."""
        return describe_network(self.network, self.encoder)

    def warning(self, labels: int) -> str | None:
        """What to say if these are too few labels for the network; None if they are enough."""
        return warn_of_few_labels(self.network, len(self.classes), labels)


class Project:
    """Images, settings, labels, features and models. Open one with `open_project`.

    Attributes:
        home: the project folder.
        folder: where the images are.
        settings: what it is about.
        store: the labels.
    """

    def __init__(self, home: Path, folder: Path, settings: ProjectSettings) -> None:
        self.home, self.folder, self.settings = home, folder, settings
        self.store = Store(home / "labels.sqlite", holdout=settings.holdout, seed=settings.seed)

    @property
    def features_folder(self) -> Path:
        """Where features are kept."""
        return self.home / "features"

    @property
    def model_folder(self) -> Path:
        """Where the newest learner is kept; see `spinal.learner.ActiveLearner.load`.

        In a pause it is fitted to all answers, those kept for testing too.
        """
        return self.home / "model"

    @property
    def beliefs_file(self) -> Path:
        """What the newest model believes about all images; see `spinal.label.learning.beliefs`."""
        return self.home / "beliefs.npz"

    def path(self, name: str) -> Path:
        """The real path of an image; refused if it leads out of the folder."""
        return locate(self.folder, name)

    def scan(self) -> int:
        """Take new files into the pool, and look again at those that could not be shown.

        Returns:
            How many files joined the pool: new ones, and those that can be shown after all.
        """
        names = list(find_images(self.folder))
        known = self.store.paths()
        new = [name for name in names if name not in known]
        for start in range(0, len(new), 5000):
            self.store.add_images(new[start : start + 5000])
        there = set(names)
        troubled = {row["path"] for row in self.store.problems()}
        self.check([*troubled, *(name for name in known - troubled if name not in there)])
        repaired = troubled - {row["path"] for row in self.store.problems()}
        return len(new) + len(repaired)

    def check(self, names: list[str]) -> None:
        """Note which of these images cannot be shown, and which can again."""
        self.store.set_problems([(name, find_problem(self.folder, name)) for name in names])

    def close(self) -> None:
        """Let go of its files."""
        self.store.close()


def find_images(folder: Path) -> Iterator[str]:
    """Names of all image files below a folder, sorted, with slashes.

    Hidden files and folders are passed over. Links are followed as far as files, not folders: a
    link that leads out of the folder is found here, and refused when it is opened.
    """
    for path in walk_files(folder, follow_links=False):
        name = path.relative_to(folder).as_posix()
        # Names that are not printable are not valid text, or lie about what they are.
        if name.lower().endswith(SUFFIXES) and name.isprintable():
            yield name


def open_project(
    place: str | Path,
    home: str | Path | None = None,
    *,
    classes: tuple[str, ...] | None = None,
    budget: int | None = None,
    encoder: str | None = None,
    network: str | None = None,
    seed: int | None = None,
) -> Project:
    """Open the project of a folder of images, or make one if classes are given.

    Args:
        place: the folder of images; or the project folder of one that exists.
        home: the project folder; by default ``.spinal`` in the folder of images.
        classes: their names. For a project that exists: more may be added, none taken away.
        budget: how many answers are planned; as it was, if not given.
        encoder: see `ProjectSettings`; as it was, if not given.
        network: see `ProjectSettings`; as it was, if not given.
        seed: the source of all chance; it cannot be changed later.

    Raises:
        SpinalError: if there is none and no classes are given, or they contradict it.
    """
    place = Path(place).expanduser()
    if not place.is_dir():
        raise DataError(f"{place}: no such folder")
    if home is None:
        home = place if (place / "project.json").is_file() else place / HOME
    home = Path(home).expanduser().absolute()
    file = home / "project.json"
    given = {
        "classes": classes, "budget": budget, "encoder": encoder, "network": network,
        "seed": seed,
    }  # fmt: skip
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
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
        folder, settings = place.absolute(), ProjectSettings(**changes)
    if settings != old:
        _write(file, folder, settings)
    return Project(home, folder, settings)


def _changed(old: ProjectSettings, changes: dict[str, Any], home: Path) -> ProjectSettings:
    """Settings with what was given now; refused where labels would lose their meaning."""
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
        values = {_FIELDS.get(key, key): value for key, value in values.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{file}: damaged, or not a project ({error})") from error
    if not folder.is_dir():
        raise DataError(f"{file}: its images should be in {folder}, which is not there")
    return folder, from_mapping(ProjectSettings, values, str(file))


def _write(file: Path, folder: Path, settings: ProjectSettings) -> None:
    inside = file.parent.resolve().is_relative_to(folder.resolve())
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
