"""HTTP interface to the classes: list, change, undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spinal.errors import LabelError
from spinal.label.store.classes import describe_change
from spinal.label.store.project import Project
from spinal.label.web.keys import class_keys
from spinal.label.web.requests import posted, read_text


class ClassEditor:
    """Answers requests about the classes.

    Args:
        project: the project.
        on_change: called after each change.
    """

    def __init__(self, project: Project, on_change: Callable[[], None]) -> None:
        self.classes, self._on_change = project.store.classes, on_change

    @property
    def routes(self) -> list[Route]:
        """The routes that it handles."""
        return [
            Route("/api/classes", self.list),
            Route("/api/classes", posted(self.change), methods=["POST"]),
            Route("/api/classes/undo", posted(self.undo), methods=["POST"]),
        ]

    def describe(self) -> list[dict[str, Any]]:
        """The classes in order.

        Returns:
            ``name``, ``keys``, ``own`` (the key, if a user chose it), ``colour``, and
            ``own_colour`` (whether a user chose the colour).
        """
        names, own, colours = self.classes.names(), self.classes.keys(), self.classes.colours()
        keys = class_keys(names, own)
        return [
            {
                "name": name, "keys": keys[i], "own": own.get(name), "colour": colours[name][0],
                "own_colour": colours[name][1],
            }
            for i, name in enumerate(names)
        ]  # fmt: skip

    def list(self, _: Request) -> Response:
        """The classes, and the change that `undo` would revert."""
        return JSONResponse(self._reply())

    def change(self, body: dict[str, Any]) -> dict[str, Any]:
        """Add, rename, merge or remove a class, or choose its key or colour."""
        kind, person = body.get("kind"), read_text(body, "person")
        name = read_text(body, "name")
        if kind == "add":
            self.classes.add(name, person)
        elif kind == "remove":
            self.classes.remove(name, person)
        elif kind == "rename":
            self.classes.rename(name, read_text(body, "target"), person)
        elif kind == "merge":
            self.classes.merge(name, read_text(body, "target"), person)
        elif kind == "key":
            key = read_text(body, "target") if body.get("target") else None
            self.classes.set_key(name, key, person)
        elif kind == "colour":
            colour = read_text(body, "target") if body.get("target") else None
            self.classes.set_colour(name, colour, person)
        else:
            raise LabelError(f"there is no change {kind!r}")
        self._on_change()
        return self._reply()

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        """Undo the last change."""
        read_text(body, "person")
        self.classes.undo()
        self._on_change()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        last = self.classes.last_change()
        return {"classes": self.describe(), "last": last and describe_change(last)}
