"""Files of JSON lines with a checksum in every line, to detect damage.

A line is a JSON object whose last entry is ``"checksum"``: the CRC-32, in eight hexadecimal digits,
of the same object written without it. Older files without checksums can still be read.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spinal.errors import FileFormatError
from spinal.files import write_text

_KEY = "checksum"
_CHECKED = re.compile(rb'(\{.*), "' + _KEY.encode() + rb'": "([0-9a-f]{8})"\}', re.DOTALL)


def write_lines(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one line per object, atomically. Objects must not be empty."""
    write_text(path, "".join(f"{_with_checksum(json.dumps(value))}\n" for value in objects))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a file, without their checksums.

    Args:
        path: The file. If it does not exist, there are no lines.

    Raises:
        FileFormatError: If a line is damaged. The message names the file and the line.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    if lines == [b""]:
        return []
    matches = [_CHECKED.fullmatch(line) for line in lines]
    some_checked = any(match is not None for match in matches)
    return [
        _parsed(path, number, line, match, some_checked)
        for number, (line, match) in enumerate(zip(lines, matches, strict=True), start=1)
    ]


def damaged_line(path: Path, number: int, reason: object) -> FileFormatError:
    """The error for a damaged line; lines are counted from 1."""
    return FileFormatError(
        f"{path}: damaged in line {number} ({reason}); delete that line and all after it, then run "
        "the same command again: it resumes from there"
    )


def _with_checksum(text: str) -> str:
    return f'{text[:-1]}, "{_KEY}": "{zlib.crc32(text.encode()):08x}"}}'


def _parsed(
    path: Path, number: int, line: bytes, match: re.Match[bytes] | None, some_checked: bool
) -> dict[str, Any]:
    if match is not None:
        line = match[1] + b"}"
        if zlib.crc32(line) != int(match[2], 16):
            raise damaged_line(path, number, "its checksum does not match")
    elif some_checked:
        raise damaged_line(path, number, "it has no checksum, but other lines have one")
    try:
        value = json.loads(line)
    except ValueError as error:
        raise damaged_line(path, number, error) from error
    if not isinstance(value, dict) or _KEY in value:
        raise damaged_line(path, number, "not the JSON object that was written")
    return value
