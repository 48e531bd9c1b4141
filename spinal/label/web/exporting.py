"""Downloads of the labels in some format, or of the model, as one file each."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from spinal.errors import LabelError
from spinal.label.store.project import Project
from spinal.label.web.requests import posted
from spinal.label.web.security import RefusedError

#: Formats of `spinal export`, and the name of the downloaded file.
DOWNLOADS = {
    "csv": "labels.csv",
    "jsonl": "labels.jsonl",
    "coco": "labels.coco.json",
    "label-studio": "label-studio.json",
    "notes": "notes.csv",
    "imagefolder": "labelled.zip",
    "model": "classifier.zip",
}
#: Number of files that are kept for download.
MOST = 4


class Ready(NamedTuple):
    """A file that can be downloaded."""

    path: Path
    name: str


class Exporter:
    """Makes files, one at a time, and serves each under an unguessable address.

    ``spinal export`` does the work in a separate process.

    Args:
        project: the project.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._busy = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._ready: dict[str, Ready] = {}
        self.routes = [
            Route("/api/export", posted(self.make), methods=["POST"]),
            Route("/api/export/{key}", self.download),
        ]

    def make(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a file; return the path to download it from, its name, size, and a warning."""
        to, predictions = body.get("to"), body.get("predictions", False)
        if not isinstance(to, str) or to not in DOWNLOADS or not isinstance(predictions, bool):
            raise LabelError(f"export to one of {', '.join(DOWNLOADS)}")
        if not self._busy.acquire(blocking=False):
            raise RefusedError(429, "another file is being made: wait a moment")
        try:
            return self._make(to, predictions)
        finally:
            self._busy.release()

    def _make(self, to: str, predictions: bool) -> dict[str, Any]:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="spinal-export-")
        key, name = secrets.token_urlsafe(18), DOWNLOADS[to]
        place = Path(self._folder.name) / key
        place.mkdir()
        target = place / Path(name).stem if name.endswith(".zip") else place / name
        try:
            warning = self._run(to, target, predictions)
            file = _pack(target, place / name)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._ready[key] = Ready(file, file.name)
        for old in list(self._ready)[:-MOST]:
            shutil.rmtree(self._ready.pop(old).path.parent, ignore_errors=True)
        size = file.stat().st_size
        return {"at": f"/api/export/{key}", "name": file.name, "bytes": size, "warning": warning}

    def _run(self, to: str, target: Path, predictions: bool) -> str:
        """Run ``spinal export``; return its warnings."""
        command = [
            sys.executable, "-m", "spinal", "export", str(self.project.home), "--to", to,
            "--out", str(target), *(["--predictions"] if predictions and to != "model" else []),
        ]  # fmt: skip
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "1000"},
            start_new_session=True,  # Ctrl-C should only reach the server
        )  # fmt: skip
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        if done.returncode and not target.exists():
            raise LabelError(lines[-1].removeprefix("error: ") if lines else "the export failed")
        return " ".join(line.removeprefix("warning: ") for line in lines)

    def download(self, request: Request) -> Response:
        """A file that was made."""
        ready = self._ready.get(request.path_params["key"])
        if ready is None or not ready.path.is_file():
            raise RefusedError(404, "no such file: make it again")
        return FileResponse(ready.path, filename=ready.name)

    def close(self) -> None:
        """Delete all files."""
        if self._folder is not None:
            self._folder.cleanup()


def _pack(target: Path, file: Path) -> Path:
    """The file itself, or a ZIP file of the folder, which is then deleted."""
    if target.is_file():
        return target
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:  # images are compressed already
        for path in sorted(target.rglob("*")):
            archive.write(path, path.relative_to(target.parent))
    shutil.rmtree(target)
    return file
