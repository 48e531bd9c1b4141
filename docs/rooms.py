"""The rooms of spinal: their order, the imports between them, and a drawing of both.

``python docs/rooms.py`` (or ``make rooms``) draws `docs/rooms.svg` from the code;
``tests/test_architecture.py`` checks the code against the same table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

FOUNDATIONS = "foundations"


@dataclass(frozen=True)
class Room:
    """A package, or a few modules that belong together.

    Attributes:
        name: What it is called.
        summary: What it is for.
        modules: Its packages and modules, inside ``spinal``; the one of its name by default.
        imports: The rooms that it may import beside the foundations; None: all above it.
        torch: Whether torch may be imported, directly or through other modules.
    """

    name: str
    summary: str
    modules: tuple[str, ...] = ()
    imports: tuple[str, ...] | None = None
    torch: bool = True

    def has(self, module: str) -> bool:
        """Whether a module, such as ``spinal.data.pool``, belongs here."""
        return ".".join(module.split(".")[1:2]) in (self.modules or (self.name,))


#: From top to bottom: a room imports only from those above it.
ROOMS = (
    Room(FOUNDATIONS, "errors, settings, files, which every package may import",
         ("errors", "files", "html", "methods", "probabilities", "registry", "settings", "threads"),
         imports=()),
    Room("circuits", "sum-product networks", imports=()),
    Room("estimators", "the SPN as a scikit-learn estimator", ("estimators", "tables")),
    Room("data", "datasets, folders, splits, the pool of points"),
    Room("networks", "networks as features(x) and head(z); training"),
    Room("encoders", "images and texts as vectors, cached on disk"),
    Room("classifiers", "classifiers on vectors, chosen by held-out points",
         imports=("circuits",)),
    Room("posteriors", "estimates of p(y | x, labelled data)"),
    Room("acquisition", "from arrays to a batch of points; no models", imports=()),
    Room("learner", "ask, tell, fit, predict"),
    Room("runs", "runs on disk; no torch", torch=False),
    Room("experiments", "protocols, grids of runs, engines, tuning"),
    Room("report", "tables, figures and a page of runs; no torch", imports=("data", "runs"),
         torch=False),
    Room("label", "the labelling page: store, page, exports"),
    Room("ranking", "pools in files, in shards, on a cluster"),
    Room("commands", "the command line", ("commands", "__main__")),
)  # fmt: skip


def room_of(module: str) -> Room | None:
    """The room of a module; None for the package itself, which only passes names on."""
    return next((room for room in ROOMS if room.has(module)), None)


class Import(NamedTuple):
    """An import statement: who imports what, where it stands, and whether only for types."""

    importer: str
    imported: str
    line: int
    for_types: bool


def read_imports(package: Path) -> list[Import]:
    """All imports in a package, also those inside functions.

    What a package passes on from one of its modules counts as an import of both. Of others'
    packages, only the first part of the name is kept: ``torch``.
    """
    files = {_module_name(path, package.parent): path for path in sorted(package.rglob("*.py"))}
    found: list[tuple[Import, str]] = []  # with the name that is imported from the module
    for module, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        parent = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node, for_types in _statements(tree, False):
            for imported, name in _targets(node, parent):
                if f"{imported}.{name}" in files:
                    imported, name = f"{imported}.{name}", ""
                if imported not in files:
                    imported = imported.partition(".")[0]
                found.append((Import(module, imported, node.lineno, for_types), name))
    homes = {(i.importer, name): i.imported for i, name in found if name}
    result = [each for each, _ in found]
    for each, name in found:
        home = homes.get((each.imported, name))
        while home is not None:
            result.append(each._replace(imported=home))
            home = homes.get((home, name))
    return result


def _module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(
    node: ast.AST, for_types: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements below a node, and whether each stands under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, for_types
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                yield from _statements(ast.Module([statement], []), True)
            for statement in child.orelse:
                yield from _statements(ast.Module([statement], []), for_types)
        else:
            yield from _statements(child, for_types)


def _targets(node: ast.Import | ast.ImportFrom, parent: str) -> Iterator[tuple[str, str]]:
    """The modules that a statement imports, each with the name taken from it, if any."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
        return
    module = node.module or ""
    if node.level:
        base = ".".join(parent.split(".")[: len(parent.split(".")) - node.level + 1])
        module = f"{base}.{module}" if module else base
    yield from ((module, alias.name) for alias in node.names)


def room_imports(imports: Sequence[Import]) -> set[tuple[str, str]]:
    """Which room imports from which other one: pairs of names."""
    pairs = ((room_of(each.importer), room_of(each.imported)) for each in imports)
    return {(a.name, b.name) for a, b in pairs if a is not None and b is not None and a != b}


_STYLE = """
  .page { fill: #ffffff } text { fill: #1f2328; font: 14px system-ui, sans-serif }
  .box { fill: #eaf2fb; stroke: #4a7ab5 } .summary { fill: #57606a }
  path { stroke: #b6c2cf; fill: none } circle { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .summary { fill: #9aa4af }
    .box { fill: #14263b; stroke: #5b8fc7 } path { stroke: #3d4957 } circle { fill: #58a6ff }
  }
"""
_STEP_X, _STEP_Y, _LEFT, _TOP, _BOX = 40, 44, 30, 74, (118, 28)


def drawing(imports: Sequence[Import]) -> str:
    """The rooms on a diagonal, as SVG: a dot says that the room of its row imports its column's."""
    pairs = room_imports(imports)
    present = {room.name for room in map(room_of, {each.importer for each in imports}) if room}
    rooms = [room for room in ROOMS if room.name in present and room.name != FOUNDATIONS]
    place = {room.name: (_LEFT + _STEP_X * i, _TOP + _STEP_Y * i) for i, room in enumerate(rooms)}
    lines, dots, boxes = [], [], []
    width, height = _BOX
    for room in rooms:
        x, y = place[room.name]
        columns = [place[b][0] for a, b in pairs if a == room.name and b in place]
        rows = [place[a][1] for a, b in pairs if b == room.name and a in place]
        if columns:
            lines.append(f'<path d="M{x} {y}H{min(columns)}"/>')
        if rows:
            lines.append(f'<path d="M{x} {y}V{max(rows)}"/>')
        dots += [f'<circle cx="{column}" cy="{y}" r="4.5"/>' for column in sorted(columns)]
        boxes.append(
            f'<rect class="box" x="{x - 14}" y="{y - height // 2}" width="{width}" '
            f'height="{height}" rx="6"/><text x="{x - 4}" y="{y + 5}">{room.name}</text>'
            f'<text class="summary" x="{x + width}" y="{y + 5}">{escape(room.summary)}</text>'
        )
    total = _LEFT + _STEP_X * len(rooms) + width + 330, _TOP + _STEP_Y * len(rooms)
    title = "A package (room) imports from those above it; dots mark imports, from row to column."
    note = f"Not drawn: {ROOMS[0].summary}."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}" '
            f'width="{total[0]}" height="{total[1]}" role="img">',
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style>",
            '<rect class="page" width="100%" height="100%"/>',
            f'<text x="16" y="24">{title}</text>',
            f'<text class="summary" x="16" y="44">{note}</text>',
            *lines, *dots, *boxes,
            "</svg>\n",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    (here / "rooms.svg").write_text(drawing(read_imports(here.parent / "spinal")), "utf-8")
