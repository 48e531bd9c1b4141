"""The order of the rooms, by the imports in the code; the table is in ``docs/rooms.py``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


rooms = load(ROOT / "docs" / "rooms.py")


@pytest.fixture(scope="module")
def imports() -> Sequence[rooms.Import]:
    return rooms.read_imports(ROOT / "spinal")


def upward(imports: Iterable[rooms.Import]) -> list[str]:
    """Imports that a room may not make, also those for types alone."""
    order = [room.name for room in rooms.ROOMS]
    wrong = []
    for each in imports:
        importer, imported = rooms.room_of(each.importer), rooms.room_of(each.imported)
        if importer is None or imported is None or importer == imported:
            continue
        allowed = importer.imports
        if allowed is None:
            allowed = order[: order.index(importer.name)]
        if imported.name not in (*allowed, rooms.FOUNDATIONS):
            wrong.append(f"{each.importer}, line {each.line}: imports {each.imported}")
    return wrong


def edges(imports: Iterable[rooms.Import]) -> dict[str, set[str]]:
    """What each module imports when it, or a function in it, is executed."""
    graph: dict[str, set[str]] = {}
    for each in imports:
        if not each.for_types:
            graph.setdefault(each.importer, set()).add(each.imported)
    return graph


def cycle(imports: Iterable[rooms.Import]) -> list[str]:
    """Modules that import each other, in a circle; empty if there are none."""
    try:
        TopologicalSorter(edges(imports)).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def way_to(target: str, start: str, imports: Iterable[rooms.Import]) -> list[str]:
    """The shortest chain of imports from a module to another; empty if there is none."""
    graph = edges(imports)
    before, queue = {start: ""}, deque([start])
    while queue:
        module = queue.popleft()
        if module == target:
            way = [module]
            while before[way[0]]:
                way.insert(0, before[way[0]])
            return way
        packages = {module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1)}
        for imported in sorted(graph.get(module, set()) | packages):
            if imported not in before:
                before[imported] = module
                queue.append(imported)
    return []


def test_every_module_has_a_room(imports: Sequence[rooms.Import]) -> None:
    modules = {each.importer for each in imports} - {"spinal"}
    assert [module for module in sorted(modules) if rooms.room_of(module) is None] == []


def test_a_room_imports_only_from_those_above(imports: Sequence[rooms.Import]) -> None:
    assert upward(imports) == []


def test_no_modules_import_each_other(imports: Sequence[rooms.Import]) -> None:
    assert cycle(imports) == []


def test_no_torch_where_there_should_be_none(imports: Sequence[rooms.Import]) -> None:
    modules = sorted({each.importer for each in imports})
    without = [m for m in modules if (room := rooms.room_of(m)) is not None and not room.torch]
    ways = [way_to("torch", module, imports) for module in without]
    assert [" -> ".join(way) for way in ways if way] == []


@pytest.mark.parametrize("room", [r.name for r in rooms.ROOMS if not r.torch])
def test_no_torch_is_loaded_either(room: str, imports: Sequence[rooms.Import]) -> None:
    modules = sorted({i.importer for i in imports if rooms.room_of(i.importer) is not None})
    names = [module for module in modules if rooms.room_of(module).name == room]
    code = f"import sys, {', '.join(names) or 'spinal'}; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_drawing_is_up_to_date(imports: Sequence[rooms.Import]) -> None:
    drawn = (ROOT / "docs" / "rooms.svg").read_text("utf-8")
    assert drawn == rooms.drawing(imports), "run `make rooms`"


def package(folder: Path, files: dict[str, str]) -> list[rooms.Import]:
    """The imports of a package that is made of files."""
    for name, text in files.items():
        path = folder / "spinal" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return rooms.read_imports(folder / "spinal")


def test_imports_of_rooms_below_are_found(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        {
            "circuits/sums": "import spinal.data.pool\nfrom spinal.errors import SpinalError",
            "data/pool": "def f():\n    from spinal import learner",
            "networks/train": "if TYPE_CHECKING:\n    import spinal.label.store",
            "report/page": "import spinal.experiments.grid\nimport spinal.runs.records",
            "experiments/grid": "import spinal.learner",
            "runs/records": "",
            "label/store": "",
            "learner": "",
            "errors": "",
        },
    )
    assert upward(made) == [
        "spinal.circuits.sums, line 1: imports spinal.data.pool",
        "spinal.data.pool, line 2: imports spinal.learner",
        "spinal.networks.train, line 2: imports spinal.label.store",
        "spinal.report.page, line 1: imports spinal.experiments.grid",
    ]


def test_cycles_are_found_also_in_functions_but_not_for_types(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        {
            "data/a": "from spinal.data import b",
            "data/b": "def f():\n    import spinal.data.c",
            "data/c": "import spinal.data.d\nif TYPE_CHECKING:\n    import spinal.data.a",
            "data/d": "",
        },
    )
    assert cycle(made) == []
    made = package(tmp_path, {"data/d": "def f():\n    from .a import A"})
    assert set(cycle(made)) == {f"spinal.data.{name}" for name in "abcd"}


def test_names_that_a_package_passes_on_lead_to_their_module(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        {
            "data/__init__": "if TYPE_CHECKING:\n    from spinal.data.pool import Pool",
            "data/pool": "import torch.nn",
            "report/__init__": "from spinal.report.page import write",
            "report/page": "def write():\n    from spinal.data import Pool",
            "report/plots": "if TYPE_CHECKING:\n    import torch",
        },
    )
    way = ["spinal.report", "spinal.report.page", "spinal.data.pool", "torch"]
    assert way_to("torch", "spinal.report", made) == way
    assert way_to("torch", "spinal.report.plots", made)  # by way of its package
    assert way_to("torch", "spinal.data", made) == []
