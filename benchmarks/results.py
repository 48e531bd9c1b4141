"""A file of results that grows as they are measured, so that a benchmark can be stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Results:
    """The lines of a file, one JSON object each. What is there need not be measured again.

    Args:
        path: of the file; it and its folder are created when the first line is added.
        identity: the keys that tell what a line is the result of.

    Attributes:
        lines: all lines.
    """

    def __init__(self, path: Path, identity: Sequence[str]) -> None:
        self._path, self._identity = path, tuple(identity)
        text = path.read_text() if path.exists() else ""
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
        self._done = {self._key(line) for line in self.lines}

    def __contains__(self, name: Mapping[str, Any]) -> bool:
        """Whether there is a line with the same values of the identifying keys."""
        return self._key(name) in self._done

    def add(self, lines: Iterable[dict[str, Any]]) -> None:
        """Write lines at the end of the file."""
        lines = list(lines)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        self.lines += lines
        self._done |= {self._key(line) for line in lines}

    def _key(self, line: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(line[key] for key in self._identity)
