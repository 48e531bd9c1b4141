"""Download of files: resumed after an interruption, checked, and never visible half-written."""

from __future__ import annotations

import hashlib
import http
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from spinal.errors import DataError, FileFormatError

CHUNK = 1 << 16
TIMEOUT_SECONDS = 30.0


def md5_of(path: Path) -> str:
    """MD5 of a file, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def download(url: str, path: Path, md5: str, timeout: float = TIMEOUT_SECONDS) -> None:
    """Fetch ``url`` into ``path``, which appears only when it is complete and its MD5 is right.

    Bytes received so far are in ``path`` + ".part". After a broken connection, in this call or an
    earlier one, only the rest is requested. An existing file is checked, not replaced.
    """
    if path.exists():
        if (actual := md5_of(path)) != md5:
            raise FileFormatError(f"{path}: MD5 {actual}, expected {md5}: move it away")
        return
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.exists() and part.stat().st_size > 0
        _fetch(url, part, timeout)
        if md5_of(part) != md5 and resumed:
            # The part left by an earlier call may belong to another file: start from scratch.
            part.unlink()
            _fetch(url, part, timeout)
        if (actual := md5_of(part)) != md5:
            part.unlink()
            raise FileFormatError(f"{url}: MD5 {actual}, expected {md5}; nothing was kept")
        os.replace(part, path)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"{url} cannot be downloaded ({reason}): try again, which resumes where it stopped, "
            f"or get the file by other means and put it into {path.parent}"
        ) from error


def _fetch(url: str, part: Path, timeout: float) -> None:
    """Append to ``part`` until it is complete; reconnect as long as connections make progress."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    name = part.name.removesuffix(".part")
    if not console.is_terminal:
        console.print(f"Downloading {url} to {part.parent}", soft_wrap=True, highlight=False)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        while True:
            before = part.stat().st_size if part.exists() else 0
            try:
                _fetch_rest(url, part, timeout, lambda **now: progress.update(task, **now))
                return
            except (OSError, http.client.HTTPException):
                after = part.stat().st_size if part.exists() else 0
                if after <= before:
                    raise


def _fetch_rest(url: str, part: Path, timeout: float, report: Callable[..., None]) -> None:
    """Append the missing bytes to ``part``, over one connection."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "spinal"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if done and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # the server has no further bytes; the checksum decides
        raise
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0  # the server ignored the range and sends the complete file
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as stream:
            while chunk := response.read(CHUNK):
                stream.write(chunk)
                done += len(chunk)
                report(completed=done, total=total)
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"broken off after {done:,} of {total:,} bytes")
