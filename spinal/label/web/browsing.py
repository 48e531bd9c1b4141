"""The view of all images: search, similar images, and details of an image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.errors import LabelError
from spinal.label.learning.beliefs import Beliefs
from spinal.label.learning.likeness import Likeness
from spinal.label.learning.sets import confidence, predicted
from spinal.label.store.catalogue import Search
from spinal.label.store.store import Answer
from spinal.label.web.newest import Newest
from spinal.label.web.notes import NoteTaker
from spinal.label.web.requests import read_range
from spinal.label.web.security import RefusedError
from spinal.label.web.views import Views

#: The reason of answers that are given in this view.
REASON = "browse"
#: Number of similar labelled images that are shown with an image.
NEIGHBOURS = 6
#: Boolean properties of an image.
_FACTS = ("reserved", "skipped", "disputed", "flagged", "noted")
_LONGEST = 200  # characters of a text to search for
#: Orders that need the model: by its confidence, ascending or descending.
_BY_CONFIDENCE = {"unsure": 1, "sure": -1}


class Guesses(NamedTuple):
    """The model's predictions for N images.

    A labelled image is predicted by a model trained without its label, or left out if there is no
    such model. Images that are reserved for the audit are left out too; see `Views`.

    Attributes:
        images: numbers of the images, ascending, ``[N]``.
        sets: whether each class is predicted, ``[N, C]``: the most probable one; where an image can
            have several, all that are more probable than not.
        confidence: the probability of the prediction, ``[N]``.
    """

    images: NDArray[np.int64]
    sets: NDArray[np.bool_]
    confidence: NDArray[np.float32]

    def rows(self, images: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows ``[M]`` of some images; -1 if there is no prediction."""
        if not len(self.images):
            return np.full(len(images), -1)
        rows = np.minimum(np.searchsorted(self.images, images), len(self.images) - 1)
        return np.where(self.images[rows] == images, rows, -1)


class Browser:
    """Answers requests about all images.

    Args:
        views: predictions of the newest model.
        notes: notes on images.
    """

    def __init__(self, views: Views, notes: NoteTaker) -> None:
        self.notes = notes
        self.views, self.project, self.store = views, views.project, views.store
        self._likeness: Newest[Likeness] = Newest(
            self.project.likeness_file,
            lambda file: Likeness.load(file, self.project.features_folder),
        )
        self._guesses: tuple[Beliefs | None, Guesses] | None = None
        self.routes = [
            Route("/api/browse", self.browse),
            Route("/api/about/{number:int}", self.about),
            Route("/api/neighbours/{number:int}", self.neighbours),
        ]

    @property
    def likeness(self) -> Likeness | None:
        """Where the features of the images are stored; None before they are computed."""
        return self._likeness.get()

    def guesses(self) -> Guesses:
        """The predictions of the newest model."""
        beliefs = self.views.beliefs
        if self._guesses is None or self._guesses[0] is not beliefs:
            self._guesses = beliefs, self._guess(beliefs)
        return self._guesses[1]

    def _guess(self, beliefs: Beliefs | None) -> Guesses:
        if beliefs is None:
            nothing = np.empty((0, len(self.project.settings.classes)), bool)
            return Guesses(np.empty(0, np.int64), nothing, np.empty(0, np.float32))
        probs = np.array(beliefs.probs)
        if beliefs.checked_probs.shape[1] == probs.shape[1]:
            known = np.isin(beliefs.checked, beliefs.images)
            rows = np.searchsorted(beliefs.images, beliefs.checked[known])
            probs[rows] = beliefs.checked_probs[known]
        labelled = self.store.catalogue.find(Search(state="labelled"))
        told = np.setdiff1d(labelled, beliefs.checked)
        hidden = np.concatenate([self.store.catalogue.reserved(), told])
        free = ~np.isin(beliefs.images, hidden) & ~np.isnan(probs).any(1)
        images, probs = beliefs.images[free], probs[free]
        if beliefs.multi:
            return Guesses(images, predicted(probs), confidence(probs))
        return Guesses(images, np.eye(probs.shape[1], dtype=bool)[probs.argmax(1)], probs.max(1))

    def browse(self, request: Request) -> Response:
        """A page of the images that a search finds, and the number of all of them."""
        names = ("state", "label", "person", "name", "marked")
        asked = {name: _text(request, name) for name in names}
        order = _text(request, "order") or "name"
        sql_order = "name" if order in _BY_CONFIDENCE else order
        words = ""
        if self.project.texts is not None:  # names of texts are hashes: search their content
            words, asked["name"] = asked["name"], ""
        numbers = self.store.catalogue.find(Search(**asked, order=sql_order))
        numbers = self._filter(request, self._with_words(words, numbers))
        cosines = np.empty(0, np.float32)
        if like := _text(request, "like"):
            numbers, cosines = self._by_likeness(_number(like), numbers)
        elif order in _BY_CONFIDENCE:
            numbers, rows = self._predicted(numbers)
            by = _BY_CONFIDENCE[order] * self.guesses().confidence[rows]
            numbers = numbers[np.argsort(by, kind="stable")]
        start, n = read_range(request)
        shown = self._describe(numbers[start : start + n])
        for image, cosine in zip(shown, cosines[start : start + n].tolist(), strict=False):
            image["likeness"] = cosine
        return JSONResponse({"images": shown, "total": len(numbers)})

    def _with_words(self, words: str, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The texts among these that contain some words; all if ``words`` is empty."""
        if not words or self.project.texts is None:
            return numbers
        names = self.project.texts.containing(words)
        rows = self.store.catalogue.rows(numbers.tolist())
        return numbers[[rows[number]["path"] in names for number in numbers.tolist()]]

    def _filter(self, request: Request, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The images among these with the requested predictions."""
        name = _text(request, "predicted")
        low, high = _share(request, "low", 0.0), _share(request, "high", 1.0)
        if not name and (low, high) == (0, 1):
            return numbers
        numbers, rows = self._predicted(numbers)
        guesses = self.guesses()
        wanted = (guesses.confidence[rows] >= low) & (guesses.confidence[rows] <= high)
        if name:
            classes = self.project.settings.classes
            wanted &= guesses.sets[rows, classes.index(name)] if name in classes else False
        return numbers[wanted]

    def _predicted(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The images among these that have a prediction, and their rows in `guesses`."""
        rows = self.guesses().rows(numbers)
        return numbers[rows >= 0], rows[rows >= 0]

    def _by_likeness(
        self, image: int, numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The other images, most similar to this one first, and the cosine of each."""
        self.store.image(image)  # an error if it does not exist
        if self.likeness is None:
            return numbers[:0], np.empty(0, np.float32)
        others, cosines = self.likeness.compare(image)
        wanted = np.isin(others, numbers) & (others != image)
        others, cosines = others[wanted], cosines[wanted]
        order = np.argsort(-cosines, kind="stable")
        return others[order], cosines[order]

    def _describe(self, numbers: NDArray[np.int64]) -> list[dict[str, Any]]:
        rows, guesses = self.store.catalogue.rows(numbers.tolist()), self.guesses()
        classes = np.array(self.project.settings.classes, object)
        described = []
        for number, row in zip(numbers.tolist(), guesses.rows(numbers).tolist(), strict=True):
            image = rows[number]
            names = classes[guesses.sets[row]].tolist() if row >= 0 else None
            described.append(
                {
                    "image": number, "path": image["path"], "problem": image["problem"],
                    "label": self.store.shown(image["label"]),
                    **{name: bool(image[name]) for name in _FACTS},
                    "predicted": names[0] if names and not self.store.multi else names,
                    "confidence": float(guesses.confidence[row]) if row >= 0 else None,
                }
            )  # fmt: skip
        return described

    def check(self, answers: Iterable[Answer]) -> None:
        """Refuse labels from this view for images of the audit that were not asked yet.

        The images of the audit must be a random sample.

        Raises:
            LabelError: if there is such an answer.
        """
        chosen = [answer.image for answer in answers if answer.reason == REASON]
        for number, image in self.store.catalogue.rows(chosen).items():
            if image["reserved"] and not self.store.catalogue.answers(number):
                raise LabelError(
                    f"{image['path']} is reserved for the audit: it is asked when its turn comes"
                )

    def about(self, request: Request) -> Response:
        """Details of one image: as in `browse`, with the answers and notes of each person."""
        number = request.path_params["number"]
        self.store.image(number)  # an error if it does not exist
        answers = [
            {
                **{name: answer[name] for name in ("person", "at", "reason")},
                "label": self.store.shown(answer["label"]),
            }
            for answer in self.store.catalogue.answers(number)
        ]
        described = self._describe(np.array([number]))[0]
        return JSONResponse({**described, "answers": answers, **self.notes.describe(number)})

    def neighbours(self, request: Request) -> Response:
        """The labelled images that are most similar to an image; empty for one of the audit.

        There, similar images would bias the answer.
        """
        number = request.path_params["number"]
        image = self.store.image(number)
        if self.likeness is None or (
            image["reserved"] and not self.store.catalogue.answers(number)
        ):
            return JSONResponse({"images": []})
        labelled = self.store.catalogue.find(Search(state="labelled"))
        others, cosines = self.likeness.compare(number, labelled[labelled != number])
        nearest = np.argsort(-cosines, kind="stable")[:NEIGHBOURS]
        described = self._describe(others[nearest])
        for neighbour, cosine in zip(described, cosines[nearest].tolist(), strict=True):
            neighbour["likeness"] = cosine
        return JSONResponse({"images": described})


def _text(request: Request, name: str) -> str:
    text = request.query_params.get(name, "")
    if len(text) > _LONGEST:
        raise RefusedError(400, f"{name}: more than {_LONGEST} characters")
    return text


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise RefusedError(400, "like: the number of an image")
    return int(text)


def _share(request: Request, name: str, default: float) -> float:
    try:
        value = float(_text(request, name) or default)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise RefusedError(400, f"{name}: a number from 0 to 1")
    return value
