"""The HTTP interface: questions, answers, images and texts. It never waits for the model."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.errors import DataError, LabelError, SpinalError
from spinal.label.learning.agreement import find_agreements, find_set_agreements
from spinal.label.learning.supervisor import Supervisor
from spinal.label.store.pictures import Picture, inspect
from spinal.label.store.previews import SHOWN, THUMBNAIL
from spinal.label.store.project import Project
from spinal.label.store.questions import REASONS as QUESTIONS
from spinal.label.store.questions import Question
from spinal.label.store.sets import from_text
from spinal.label.web.browsing import Browser
from spinal.label.web.classes import ClassEditor
from spinal.label.web.dashboard import Dashboard
from spinal.label.web.exporting import Exporter
from spinal.label.web.multi import MultiDashboard, MultiViews
from spinal.label.web.notes import NoteTaker
from spinal.label.web.requests import (
    MOST_TILES,
    explain,
    posted,
    read_answer,
    read_number,
    read_range,
    read_text,
)
from spinal.label.web.security import Guard, RefusedError, Rules
from spinal.label.web.texts import TextViews
from spinal.label.web.trying import Trying
from spinal.label.web.views import Views

#: Number of images that are decoded at a time; others wait.
DECODED = 2
#: Seconds after which a page asks for the state again. With more clients than `MANY_CLIENTS`,
#: the pages wait longer in proportion, so that they ask at most 17 times a second in total.
POLL, MANY_CLIENTS = 1.5, 25
#: Files up to this size are sent to the browser unchanged; larger ones as a copy.
PLAIN_BYTES, PLAIN_PIXELS = 1 << 20, 4_000_000
_IMAGES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
_STATIC = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Server:
    """Answers the page's requests.

    Args:
        project: the project.
        rules: which requests are allowed.
        supervisor: of the worker; None for a page without a model.

    Attributes:
        app: the ASGI application.
    """

    def __init__(
        self, project: Project, rules: Rules, supervisor: Supervisor | None = None
    ) -> None:
        self.project, self.store, self.rules = project, project.store, rules
        self.supervisor = supervisor
        multi = project.settings.multi
        self.views, self.texts = (MultiViews if multi else Views)(project), TextViews(project)
        self.notes = NoteTaker(project)
        self.browser = Browser(self.views, self.notes)
        self._classes = ClassEditor(project, self._wake)
        self.exporter, self.trying = Exporter(project), Trying(self.views)
        self._decoding = CapacityLimiter(DECODED)
        self._page = {
            file.name: file.read_bytes()
            for file in files("spinal.label.web").joinpath("page").iterdir()
        }
        self.app = Starlette(
            routes=[
                Route("/", self.index),
                Route("/static/{name}", self.static),
                Route("/image/{number:int}", self.image),
                Route("/thumb/{number:int}", self.thumb),
                Route("/text/{number:int}", self.text),
                Route("/api/state", self.state),
                Route("/api/guesses", self.guesses),
                Route("/api/outliers", self.outliers),
                Route("/api/mistakes", self.mistakes),
                Route("/api/disagreements", self.disagreements),
                Route("/api/agreement", self.agreement),
                Route("/api/problems", self.problems),
                Route("/api/next", posted(self.next), methods=["POST"]),
                Route("/api/answers", posted(self.answers), methods=["POST"]),
                Route("/api/undo", posted(self.undo), methods=["POST"]),
                *self.browser.routes,
                *(MultiDashboard if multi else Dashboard)(self.browser).routes,
                *self._classes.routes,
                *self.notes.routes,
                *self.exporter.routes,
                *self.trying.routes,
            ],
            middleware=[Middleware(Guard, rules=rules)],
            exception_handlers={SpinalError: explain},
        )

    def close(self) -> None:
        """End the process that tries the model, and delete files for download."""
        self.trying.close()
        self.exporter.close()

    # The page

    def index(self, _: Request) -> Response:
        """The page itself; a token in the link is stored as a cookie."""
        response = Response(self._page["index.html"], media_type="text/html")
        if self.rules.token is not None:
            response.set_cookie(
                self.rules.cookie, self.rules.token, httponly=True, samesite="strict",
                max_age=30 * 24 * 3600,
            )  # fmt: skip
        return response

    def static(self, request: Request) -> Response:
        """A file of the page, from memory, so that no other path can be read."""
        name = request.path_params["name"]
        kind = _STATIC.get(Path(name).suffix)
        if name not in self._page or kind is None:
            raise RefusedError(404, "no such file")
        return Response(self._page[name], media_type=kind, headers={"Cache-Control": "no-cache"})

    # Images

    async def image(self, request: Request) -> Response:
        """An image in display size: the file itself if it is small, otherwise a copy."""
        return await self._show(request, SHOWN, _is_small)

    async def thumb(self, request: Request) -> Response:
        """A small copy of an image."""
        return await self._show(request, THUMBNAIL, lambda _: False)

    def text(self, request: Request) -> Response:
        """A text, with the words that support the model's prediction."""
        return JSONResponse(self.texts.show(request.path_params["number"]))

    async def _show(
        self, request: Request, side: int, is_sent_itself: Callable[[Picture], bool]
    ) -> Response:
        if self.project.texts is not None:
            raise RefusedError(404, "a project of texts")
        previews = self.project.previews
        number = request.path_params["number"]

        def find() -> tuple[bytes, str] | Picture:
            picture = inspect(self.project.folder, self.store.image(number)["path"])
            if reason := previews.refusal(picture):
                raise DataError(reason)
            if is_sent_itself(picture) and (content := previews.original(picture)) is not None:
                return content, _IMAGES[picture.format]
            copy = previews.find(picture, side)
            return picture if copy is None else (copy, "image/jpeg")

        try:
            ready = await run_in_threadpool(find)
            if isinstance(ready, Picture):
                # Images that must be decoded wait here, and do not block threads meanwhile.
                make = partial(previews.make, ready, side)
                ready = await to_thread.run_sync(make, limiter=self._decoding), "image/jpeg"
        except (DataError, OSError) as error:
            await run_in_threadpool(self._skip, number, str(error))
            raise RefusedError(404, f"cannot be shown: {error}") from error
        content, kind = ready
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=600"})

    def _skip(self, number: int, reason: str) -> None:
        """Stop asking about an image, and list it with the reason."""
        self.store.set_problems([(self.store.image(number)["path"], reason)])
        self.store.questions.release(number)

    # Questions and answers

    def next(self, body: dict[str, Any]) -> dict[str, Any]:
        """Questions for a client, starting with those that it already holds."""
        return self._questions(body)

    def answers(self, body: dict[str, Any]) -> dict[str, Any]:
        """Record answers, which are on disk before the reply, and return more questions.

        Everything is checked before answers are stored.
        """
        read_number(body)
        answers = body.get("answers")
        if not isinstance(answers, list) or not 1 <= len(answers) <= MOST_TILES:
            raise LabelError(f"send a list of 1 to {MOST_TILES} answers")
        person = read_text(body, "person")
        given = [read_answer(answer) for answer in answers]
        self.browser.check(given)
        with self.store.transaction():  # one, because each waits for the disk
            self.store.answer(given, person)
            reply = self._questions(body)
        self._wake()
        return reply

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        """Undo answers; an undone question becomes the next question."""
        tokens = body.get("tokens")
        if not isinstance(tokens, list) or not 1 <= len(tokens) <= MOST_TILES:
            raise LabelError(f"send a list of 1 to {MOST_TILES} tokens")
        person, client = read_text(body, "person"), read_text(body, "client")
        read_number(body)
        for token in [read_text({"token": token}, "token") for token in tokens]:
            answer = self.store.undo(token, person)
            if answer["reason"] in QUESTIONS:
                self.store.questions.ask_again(client, answer)
        self._wake()
        return self._questions(body)

    def _questions(self, body: dict[str, Any]) -> dict[str, Any]:
        client, person, n = read_text(body, "client"), read_text(body, "person"), read_number(body)
        # One transaction, so that its queries do not take turns with those of other requests.
        with self.store.transaction():
            asked = self.store.questions.ask(client, person, n) if n else []
            last = self.store.last_answer(person)
            return {
                "questions": [self._describe(question, person) for question in asked],
                "progress": self.store.progress(),
                "last": last and last["token"],
            }

    def _describe(self, question: Question, person: str) -> dict[str, Any]:
        """A question with notes and the model's prediction, unless these would bias the answer."""
        beliefs, belief = self.views.beliefs, None
        noted = self.notes.describe(question.image)
        if question.reserved or question.reason in ("again", "second"):
            noted["notes"] = [said for said in noted["notes"] if said["person"] == person]
            noted["flagged"] = any(said["flagged"] for said in noted["notes"])
        elif beliefs is not None:
            belief = beliefs.about(question.image)
        return {**vars(question), "belief": belief, **noted}

    def _wake(self) -> None:
        if self.supervisor is not None:
            self.supervisor.wake()

    # State and views

    def state(self, request: Request) -> Response:
        """Everything that the page shows around the image."""
        settings = self.project.settings
        person = request.query_params.get("person", "")
        last = self.store.last_answer(person)
        progress = self.store.progress()
        return JSONResponse(
            {
                "name": self.project.folder.name,
                "poll": POLL * max(1.0, self.store.questions.n_clients() / MANY_CLIENTS),
                "kind": settings.kind,
                "multi": settings.multi,
                "classes": self._classes.describe(),
                "model": settings.describe_model(),
                "shares": self.views.shares(),
                "advice": self.views.beliefs.advice if self.views.beliefs else "",
                "warning": settings.warning(progress["labelled"]),
                "budget": settings.budget,
                "audit": settings.audit,
                "person": _user() if self.rules.token is None else "",
                "people": self.store.people(),
                "progress": progress,
                "last": last and last["token"],
                "rounds": [dict(row) for row in self.store.rounds()],
                "worker": self.supervisor.status if self.supervisor else {"state": "off"},
            }
        )

    def guesses(self, request: Request) -> Response:
        """A page of the most confident predictions of a class."""
        label = request.query_params.get("label", "")
        return JSONResponse(self.views.guesses(label, *read_range(request)))

    def outliers(self, request: Request) -> Response:
        """A page of the images with the lowest density."""
        return JSONResponse(self.views.outliers(*read_range(request)))

    def mistakes(self, _: Request) -> Response:
        """Labels that are probably wrong."""
        return JSONResponse({"images": self.views.mistakes()[:MOST_TILES]})

    def disagreements(self, _: Request) -> Response:
        """Images that people disagree on."""
        return JSONResponse({"images": self.views.disagreements()[:MOST_TILES]})

    def agreement(self, _: Request) -> Response:
        """The agreement of each pair of people."""
        opinions = self.store.activity.opinions()
        if self.store.multi:
            sets = [(image, person, from_text(label)) for image, person, label in opinions]
            pairs = find_set_agreements(sets, self.store.classes.names())
        else:
            pairs = find_agreements(opinions)
        return JSONResponse({"pairs": [asdict(pair) for pair in pairs]})

    def problems(self, _: Request) -> Response:
        """Images that cannot be shown."""
        return JSONResponse({"images": [dict(row) for row in self.store.problems()[:1000]]})


def _user() -> str:
    """Name of the user who runs the server; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _is_small(picture: Picture) -> bool:
    if picture.format not in _IMAGES or picture.mode.startswith("I"):
        return False  # browsers do not show it, or show 16-bit grey as black
    return picture.n_bytes <= PLAIN_BYTES and picture.width * picture.height <= PLAIN_PIXELS
