"""A client for Label Studio's HTTP API."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spinal.data.images import MAX_BYTES
from spinal.errors import DataError, SpinalError

_PAGE = 1000
_TIMEOUT = 120.0  # seconds; Label Studio is slow with many tasks


class StudioError(SpinalError):
    """Label Studio cannot be reached, refuses a request, or has no suitable project."""


@dataclass(frozen=True)
class StudioProject:
    """A project of Label Studio.

    Attributes:
        number: its id.
        classes: names of the choices.
        control: name of the ``<Choices>`` in the labelling configuration.
        shown: name of the ``<Image>`` that they are about.
        column: the key in a task's data with the address of the image.
        sampling: how it chooses the next task.
        version: the version of the model whose predictions it uses.
    """

    number: int
    classes: tuple[str, ...]
    control: str
    shown: str
    column: str
    sampling: str
    version: str


class StudioAPI:
    """A connection to Label Studio.

    Args:
        url: its address, such as ``http://localhost:8080``.
        token: a personal access token, or a legacy token; both are on the page "Account".
    """

    def __init__(self, url: str, token: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise StudioError(f"{url!r} is not an address of Label Studio: give http://...")
        self.url, self._token = url.rstrip("/"), token.strip()
        # A personal access token is a JSON web token, with two dots, which gives short-lived ones.
        self._renewable = self._token.count(".") == 2
        self._header = "" if self._renewable else f"Token {self._token}"

    def project(self, number: int) -> StudioProject:
        """Read the description of a project.

        Raises:
            StudioError: if it does not have exactly one choice of classes for an image.
        """
        described = self.call("GET", f"/api/projects/{number}/")
        controls = [
            (name, control["to_name"][0], control["inputs"][0]["value"], tuple(control["labels"]))
            for name, control in (described.get("parsed_label_config") or {}).items()
            if control["type"] == "Choices" and control["inputs"][0]["type"] == "Image"
        ]
        if len(controls) != 1 or len(controls[0][3]) < 2:
            raise StudioError(
                f"project {number} of {self.url}: its labelling configuration should have one "
                "<Choices> with two or more classes about an <Image>"
            )
        name, shown, column, classes = controls[0]
        version = described.get("model_version") or ""
        return StudioProject(number, classes, name, shown, column, described["sampling"], version)

    def counts(self, number: int) -> tuple[int, int]:
        """The numbers of tasks and annotations of a project; fast."""
        fields = ("task_number", "total_annotations_number")
        counts = self.call("GET", f"/api/projects/{number}/?include=id,{','.join(fields)}")
        return counts[fields[0]] or 0, counts[fields[1]] or 0

    def tasks(self, number: int) -> dict[int, dict[str, Any]]:
        """The data of all tasks, by id."""
        tasks: dict[int, dict[str, Any]] = {}
        total, _ = self.counts(number)
        for page in range(1, -(-total // _PAGE) + 1):
            query = f"page={page}&page_size={_PAGE}&include=id,data"
            for task in self.call("GET", f"/api/projects/{number}/tasks/?{query}"):
                tasks[task["id"]] = task["data"]
        return dict(sorted(tasks.items()))

    def annotations(self, number: int, control: str) -> dict[int, set[str]]:
        """The choices that people made, by task; an empty set if everybody skipped it."""
        tasks = self.call("GET", f"/api/projects/{number}/export?exportType=JSON")
        chosen: dict[int, set[str]] = {}
        for task in tasks:
            labels = chosen.setdefault(task["id"], set())
            for annotation in task["annotations"]:
                for result in annotation["result"]:
                    if not annotation["was_cancelled"] and result.get("from_name") == control:
                        labels.update(result["value"].get("choices", ()))
        return chosen

    def import_predictions(self, number: int, predictions: Sequence[dict[str, Any]]) -> None:
        """Add predictions: ``task``, ``result``, ``score``, ``model_version``."""
        for start in range(0, len(predictions), _PAGE):
            part = list(predictions[start : start + _PAGE])
            self.call("POST", f"/api/projects/{number}/import/predictions", part)

    def versions(self, number: int) -> Iterable[str]:
        """The model versions that a project has predictions of."""
        return self.call("GET", f"/api/projects/{number}/model-versions/")

    def delete_version(self, number: int, version: str) -> None:
        """Delete the predictions of a version."""
        path = f"/api/projects/{number}/model-versions/"
        self.call("DELETE", path, {"model_version": version})

    def change_project(self, number: int, **values: str) -> None:
        """Change settings of a project."""
        self.call("PATCH", f"/api/projects/{number}/", values)

    def change_task(self, task: int, data: dict[str, Any]) -> None:
        """Replace the data of a task."""
        self.call("PATCH", f"/api/tasks/{task}/", {"data": data})

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the API, and return the response.

        Raises:
            StudioError: with the reason that Label Studio gives, if any.
        """
        if not self._header:
            self._renew()
        try:
            return self._send(method, path, body)
        except urllib.error.HTTPError as error:
            if error.code != 401 or not self._renewable:
                raise self._refused(method, path, error) from error
        self._renew()
        try:
            return self._send(method, path, body)
        except urllib.error.HTTPError as error:
            raise self._refused(method, path, error) from error

    def image(self, address: str) -> bytes:
        """The bytes of an image of a task.

        Raises:
            DataError: if it cannot be fetched.
        """
        full = urllib.parse.urljoin(self.url + "/", address)
        scheme = urllib.parse.urlsplit(full).scheme
        if scheme not in ("http", "https"):
            raise DataError(f"{scheme}: addresses are not supported, only http and https")
        request = urllib.request.Request(full)
        if _origin(full) == _origin(self.url):  # do not send the token to others
            if not self._header:
                self._renew()
            request.add_unredirected_header("Authorization", self._header)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
                content = response.read(MAX_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"cannot be fetched ({error})") from error
        if len(content) > MAX_BYTES:
            raise DataError(f"more than {MAX_BYTES:,} bytes")
        return content

    def _send(self, method: str, path: str, body: Any) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        if self._header and path != _REFRESH:
            request.add_unredirected_header("Authorization", self._header)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
                content = response.read()
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise StudioError(f"{self.url}: Label Studio cannot be reached ({reason})") from error
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise StudioError(f"{self.url}: does not respond like Label Studio") from error

    def _renew(self) -> None:
        try:
            renewed = self._send("POST", _REFRESH, {"refresh": self._token})
        except urllib.error.HTTPError as error:
            raise self._refused("POST", _REFRESH, error) from error
        self._header = f"Bearer {renewed['access']}"

    def _refused(self, method: str, path: str, error: urllib.error.HTTPError) -> StudioError:
        if error.code in (401, 403):
            hint = "give a token from its page 'Account' with --token or LABEL_STUDIO_TOKEN"
        else:
            hint = f"{method} {path}"
        try:
            said = json.loads(error.read())
            reason = f"{said.get('detail', said)} {said.get('validation_errors') or ''}".strip()
        except (ValueError, AttributeError):
            reason = error.reason
        return StudioError(f"{self.url}: {error.code}, {reason} ({hint})")


_REFRESH = "/api/token/refresh/"


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc
