"""The HTTP interface: questions, answers and images. It never waits for the model."""

from __future__ import annotations

import getpass
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.errors import DataError, LabelError, SpinalError
from spinal.label.learning.supervisor import Supervisor
from spinal.label.store.pictures import Picture, inspect
from spinal.label.store.project import Project
from spinal.label.store.questions import REASONS as QUESTIONS
from spinal.label.store.questions import Question
from spinal.label.store.store import Answer
from spinal.label.web.keys import class_keys
from spinal.label.web.pictures import show, shrink
from spinal.label.web.security import Guard, RefusedError, Rules
from spinal.label.web.views import Views

THUMBNAIL = 240
#: Questions that a client may hold, and tiles that it may see, at a time.
MOST_QUESTIONS, MOST_TILES = 20, 200
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
        self.views = Views(project)
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
                Route("/api/state", self.state),
                Route("/api/guesses", self.guesses),
                Route("/api/outliers", self.outliers),
                Route("/api/mistakes", self.mistakes),
                Route("/api/disagreements", self.disagreements),
                Route("/api/problems", self.problems),
                Route("/api/next", _posted(self.next), methods=["POST"]),
                Route("/api/answers", _posted(self.answers), methods=["POST"]),
                Route("/api/undo", _posted(self.undo), methods=["POST"]),
            ],
            middleware=[Middleware(Guard, rules=rules)],
            exception_handlers={SpinalError: _explain},
        )

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

    def image(self, request: Request) -> Response:
        """An image, as large as it is shown."""
        return self._show(request.path_params["number"], show)

    def thumb(self, request: Request) -> Response:
        """A small copy of an image."""
        return self._show(request.path_params["number"], _thumbnail)

    def _show(self, number: int, how: Callable[[Picture], tuple[bytes, str]]) -> Response:
        name = self.store.image(number)["path"]
        try:
            content, kind = how(inspect(self.project.folder, name))
        except (DataError, OSError) as error:
            # It is not asked again, and listed with the reason.
            self.store.set_problems([(name, str(error))])
            self.store.questions.release(number)
            raise RefusedError(404, f"cannot be shown: {error}") from error
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=600"})

    # Questions and answers

    def next(self, body: dict[str, Any]) -> dict[str, Any]:
        """Questions for a client, starting with those that it already holds."""
        return self._questions(body)

    def answers(self, body: dict[str, Any]) -> dict[str, Any]:
        """Record answers, which are on disk before the reply, and return more questions."""
        answers = body.get("answers")
        if not isinstance(answers, list) or not 1 <= len(answers) <= MOST_TILES:
            raise LabelError(f"send a list of 1 to {MOST_TILES} answers")
        person = _text(body, "person")
        self.store.answer([_answer(a) for a in answers], person, self.project.settings.classes)
        self._wake()
        return self._questions(body)

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        """Undo answers; the image of an undone reply to a question is the next question."""
        tokens = body.get("tokens")
        if not isinstance(tokens, list) or not 1 <= len(tokens) <= MOST_TILES:
            raise LabelError(f"send a list of 1 to {MOST_TILES} tokens")
        person, client = _text(body, "person"), _text(body, "client")
        for token in tokens:
            answer = self.store.undo(_text({"token": token}, "token"), person)
            if answer["reason"] in QUESTIONS:
                self.store.questions.ask_again(client, answer)
        self._wake()
        return self._questions(body)

    def _questions(self, body: dict[str, Any]) -> dict[str, Any]:
        person, n = _text(body, "person"), body.get("n", 0)
        if not isinstance(n, int) or not 0 <= n <= MOST_QUESTIONS:
            raise LabelError(f"ask for 0 to {MOST_QUESTIONS} questions")
        asked = self.store.questions.ask(_text(body, "client"), person, n) if n else []
        last = self.store.last_answer(person)
        return {
            "questions": [self._describe(question) for question in asked],
            "progress": self.store.progress(),
            "last": last and last["token"],
        }

    def _describe(self, question: Question) -> dict[str, Any]:
        """A question with the model's prediction, unless it would bias the answer."""
        beliefs = self.views.beliefs
        belief = None
        if (
            beliefs is not None
            and not question.reserved
            and question.reason not in ("again", "second")
        ):
            belief = beliefs.about(question.image)
        return {**asdict(question), "belief": belief}

    def _wake(self) -> None:
        if self.supervisor is not None:
            self.supervisor.wake()

    # State and views

    def state(self, request: Request) -> Response:
        """Everything that the page shows around the image."""
        settings = self.project.settings
        person = request.query_params.get("person", "")
        last = self.store.last_answer(person)
        keys = class_keys(settings.classes)
        progress = self.store.progress()
        return JSONResponse(
            {
                "name": self.project.folder.name,
                "classes": [
                    {"name": name, "keys": keys[i]} for i, name in enumerate(settings.classes)
                ],
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
        """A page of the surest guesses of a class."""
        label = request.query_params.get("label", "")
        return JSONResponse(self.views.guesses(label, *_range(request)))

    def outliers(self, request: Request) -> Response:
        """A page of the least usual images."""
        return JSONResponse(self.views.outliers(*_range(request)))

    def mistakes(self, _: Request) -> Response:
        """Labels that are likely wrong."""
        return JSONResponse({"images": self.views.mistakes()[:MOST_TILES]})

    def disagreements(self, _: Request) -> Response:
        """Images that people disagree on."""
        return JSONResponse({"images": self.views.disagreements()[:MOST_TILES]})

    def problems(self, _: Request) -> Response:
        """Images that cannot be shown."""
        return JSONResponse({"images": [dict(row) for row in self.store.problems()[:1000]]})


def _posted(
    handle: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that takes a JSON object; the work is done in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise RefusedError(400, "send a JSON object")
        return JSONResponse(await run_in_threadpool(handle, body))

    return endpoint


def _user() -> str:
    """Name of the user who runs the server; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _explain(_: Request, error: Exception) -> Response:
    """Errors of ours, as JSON."""
    return JSONResponse(
        {"error": str(error)}, error.status if isinstance(error, RefusedError) else 400
    )


def _answer(body: Any) -> Answer:
    if not isinstance(body, dict):
        raise LabelError("an answer is a JSON object")
    image, label = body.get("image"), body.get("label")
    if not isinstance(image, int) or not (label is None or isinstance(label, str)):
        raise LabelError("an answer has the number of an image, and a class or null")
    reason = body.get("reason", "unasked")
    if reason not in ("unasked", "guess", "mistake", "outlier", "disagreement"):
        raise LabelError(f"there is no reason {reason!r}")
    decides = reason == "disagreement"
    return Answer(_text(body, "token"), image, label, reason, decides)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= 100 or not value.isprintable():
        raise LabelError(f"{name}: give a text of 1 to 100 characters")
    return value.strip()


def _range(request: Request) -> tuple[int, int]:
    values = [request.query_params.get(name, "0") for name in ("start", "n")]
    if not all(value.isdecimal() and len(value) < 10 for value in values):
        raise RefusedError(400, "start and n are whole numbers")
    return int(values[0]), min(int(values[1]) or 60, MOST_TILES)


def _thumbnail(picture: Picture) -> tuple[bytes, str]:
    return _small_copy(picture, picture.path.stat().st_mtime_ns), "image/jpeg"


@lru_cache(maxsize=1024)
def _small_copy(picture: Picture, _modified: int) -> bytes:
    return shrink(picture, THUMBNAIL)
