"""The settings of a project, and the file that holds them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from spinal.data.text_files import is_table
from spinal.errors import DataError, FileFormatError, SpinalError
from spinal.files import write_text
from spinal.label.store.classes import check_names
from spinal.label.store.networks import (
    WholeNetwork,
    describe_network,
    parse_network,
    warn_of_few_labels,
)
from spinal.methods import METHODS
from spinal.settings import from_mapping, to_mapping

FORMAT = "spinal.project/1"
#: The encoder of each kind of project, unless another is chosen.
ENCODERS = {"images": "efficientnet-lite0", "texts": "tfidf-svd"}
#: Keys of the file that differ from the name of the setting.
_FIELDS = {"features": "encoder"}


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project.

    Attributes:
        classes: names of the classes, in the order of the keys.
        kind: what is labelled: ``images`` or ``texts``.
        text_column: the column of a table of texts.
        encoder: name of the encoder that computes the features; see `spinal.encoders`. If a whole
            network is trained, first questions and likely mistakes still use these features. If
            empty, the default of the kind: ``efficientnet-lite0`` or ``tfidf-svd``.
        network: the network that is trained; see `spinal.label.store.networks`.
        budget: number of planned answers; None for no plan.
        audit: share of the answers that are drawn at random, to estimate the accuracy.
        first: number of answers before the model chooses questions; until then, questions cover the
            images. 0 for three per class, at least 10 and at most 40.
        batch: number of new answers after which the model is fitted again.
        method: see `spinal.methods`.
        acquisition: see `spinal.acquisition`; None for the default: ``auto`` for SPN-CNN on
            features, otherwise that of the method.
        seed: of all randomness.
        multi: whether an image can have several classes, or none. This uses one kind of model, on
            features, with its own acquisition function; see `spinal.learner.multi`.
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
    multi: bool = False

    def __post_init__(self) -> None:
        check_names(self.classes, multi=self.multi)
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
        own = (("network", "dense"), ("method", "spn-cnn"), ("acquisition", None))
        for name, only in own if self.multi else ():
            if getattr(self, name) != only:
                raise SpinalError(
                    f"--{name} {getattr(self, name)}: with several classes for an image (--multi), "
                    f"there is one model, on features, and one way to choose; leave --{name} out"
                )

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
        if self.multi:
            return f"a circuit and a regression for each class, on features by {self.encoder}"
        network = describe_network(self.network, self.encoder)
        if self.method == "spn-cnn":
            return network
        title = METHODS[self.method].title if self.method in METHODS else self.method
        return f"{title} with {network}"

    def warning(self, labels: int) -> str | None:
        """A warning if these are too few labels for the network; None if they are enough."""
        return warn_of_few_labels(self.network, len(self.classes), labels)


def read_settings(file: Path) -> tuple[Path, ProjectSettings]:
    """Read the folder of images and the settings of a project; an error if the file is damaged."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise FileFormatError(f"{file}: not a project of this version")
        # Relative to the project if possible, so that a moved folder is found again.
        folder = Path(os.path.normpath(file.parent / values.pop("folder")))
        values.pop("holdout", None)  # of older versions, which held answers out of training
        values = {_FIELDS.get(key, key): value for key, value in values.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FileFormatError(f"{file}: damaged, or not a project ({error})") from error
    if not folder.exists():
        raise DataError(f"{file}: its images or texts should be in {folder}, which does not exist")
    return folder, from_mapping(ProjectSettings, values, str(file))


def write_settings(file: Path, folder: Path, settings: ProjectSettings) -> None:
    """Write the file of a project, atomically."""
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
