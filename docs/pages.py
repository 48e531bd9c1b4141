"""The code of the site's pages: run it, make its pictures, make notebooks of it.

``python docs/pages.py pictures`` runs the pages with pictures and puts these into docs/pictures;
``python docs/pages.py notebooks`` writes the notebooks of the pages in `NOTEBOOKS`. A block
``python`` is run as it is, a block ``console`` has a command in each line that begins with ``$``;
others are not run. `tests/test_docs.py` runs all pages.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
#: Pages that save pictures, under these names.
PICTURES = {
    "tutorials/python.md": "python.png",
    "tutorials/compare.md": "compare.png",
    "concepts/entropy.md": "entropy.png",
}
#: Folders of the pages that are notebooks, too.
NOTEBOOKS = {
    "images": "tutorials",
    "texts": "tutorials",
    "python": "tutorials",
    "compare": "tutorials",
    "cluster": "tutorials",
    "missing": "howto",
    "network": "howto",
    "acquisition": "howto",
    "rank": "howto",
}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A block of a page; ``kind`` is the word after the fence, or "" for text."""

    kind: str
    text: str


def read_blocks(page: Path) -> Iterator[Block]:
    """The text and the fenced blocks of a page, in order."""
    text, end = page.read_text(encoding="utf-8"), 0
    for match in _BLOCK.finditer(text):
        yield Block("", text[end : match.start()])
        yield Block(match.group(1), match.group(2))
        end = match.end()
    yield Block("", text[end:])


def runnable_pages() -> list[str]:
    """The pages that have code to run, as paths below docs."""
    folders = ("tutorials", "howto", "concepts")
    pages = [DOCS / "overview.md"]
    pages += sorted(path for folder in folders for path in (DOCS / folder).glob("*.md"))
    return [
        path.relative_to(DOCS).as_posix()
        for path in pages
        if any(block.kind in ("python", "console") for block in read_blocks(path))
    ]


def run_page(page: str, folder: Path) -> None:
    """Run the code of a page in a folder; an error of it, or of a command, is raised."""
    import matplotlib as mpl

    mpl.use("agg")
    names: dict[str, Any] = {"__name__": page}
    with _inside(folder):
        for block in read_blocks(DOCS / page):
            if block.kind == "python":
                exec(compile(block.text, page, "exec"), names)
            elif block.kind == "console":
                for command in _commands(block):
                    _run_command(command)


def _commands(block: Block) -> list[str]:
    return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]


def _run_command(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "spinal", command
    done = subprocess.run(
        [sys.executable, "-m", "spinal", *arguments], capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def make_notebook(name: str) -> str:
    """The notebook of a page, as JSON; its cells have no outputs."""
    cells = []
    for block in read_blocks(DOCS / NOTEBOOKS[name] / f"{name}.md"):
        if block.kind == "python":
            cells.append(_cell("code", block.text))
        elif block.kind == "console":
            cells.append(_cell("code", "\n".join(f"!{line}" for line in _commands(block))))
        elif block.kind:
            cells.append(_cell("markdown", f"```{block.kind}\n{block.text}```"))
        elif block.text.strip():
            cells.append(_cell("markdown", _plain(block.text)))
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _plain(text: str) -> str:
    """Markdown without what only the site understands: roles, and pictures that cells make."""
    text = re.sub(r"\{py:obj\}`([^`]*)`", r"`\1`", text)
    return re.sub(r"^!\[[^]]*\]\(\.\./pictures/[^)]*\)\n", "", text, flags=re.M)


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def main() -> None:
    """Write the pictures or the notebooks."""
    if sys.argv[1:] == ["notebooks"]:
        for name in NOTEBOOKS:
            path = DOCS / "notebooks" / f"{name}.ipynb"
            path.write_text(make_notebook(name), encoding="utf-8")
    elif sys.argv[1:2] == ["pictures"]:
        for page, picture in PICTURES.items():
            if sys.argv[2:] and page not in sys.argv[2:]:
                continue
            with tempfile.TemporaryDirectory() as folder:
                run_page(page, Path(folder))
                (DOCS / "pictures" / picture).write_bytes((Path(folder) / picture).read_bytes())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
