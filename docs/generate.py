"""Pages that are made from the project: the reference, the command line, the results.

`write_pages` runs at the beginning of every build; what it writes is not in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

import typer.main
import ziamath

ROOT = Path(__file__).resolve().parents[1]
#: A font with the measures that mathematics needs; few systems have one.
MATH_FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
#: The public packages, in the order in which a reader meets them.
PACKAGES = {
    "spinal": "The names that most programs need",
    "spinal.learner": "Ask, tell, fit, predict",
    "spinal.data": "Datasets, your own files, the pool",
    "spinal.networks": "Networks and their training",
    "spinal.encoders": "Images and texts as vectors",
    "spinal.posteriors": "Estimates of class probabilities",
    "spinal.acquisition": "Acquisition functions",
    "spinal.circuits": "Sum-product networks",
    "spinal.classifiers": "Classifiers on vectors",
    "spinal.methods": "Methods: a posterior and an acquisition function",
    "spinal.registry": "Your own parts, by name",
    "spinal.ranking": "Ranking of large pools",
    "spinal.experiments": "Protocols and grids of runs",
    "spinal.runs": "Runs on disk",
    "spinal.report": "Reports of runs",
    "spinal.errors": "Errors",
}

#: Methods that scikit-learn adds to every estimator, with links to its own manual.
_ROUTING = ("set_fit_request", "set_score_request")


def write_pages(folder: Path) -> None:
    """Write all generated pages into the source folder of the site."""
    reference = folder / "reference"
    pages = {f"{name}.md": _package_page(name) for name in PACKAGES}
    pages["command-line.md"] = "".join(_command_line())
    pages["index.md"] = "".join(_reference_index())
    for name, text in pages.items():
        _write(reference / name, text)
    shutil.copyfile(MATH_FONT, folder / "_static" / MATH_FONT.name)
    _copy_results(ROOT / "results", folder / "results")


def public_names(module_name: str) -> list[str]:
    """The names of ``__all__``, or else what a module defines itself."""
    module = importlib.import_module(module_name)
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module_name
    ]


def _package_page(module_name: str) -> str:
    """A page with an entry for each public name; names that have an entry elsewhere link to it."""
    lines = [f"# {module_name}\n\n"]
    lines.append(f"```{{eval-rst}}\n.. automodule:: {module_name}\n   :no-members:\n```\n\n")
    for name in public_names(module_name):
        value = getattr(importlib.import_module(module_name), name)
        home = _home(value, name, module_name)
        lines.append(f"## {name}\n\n")
        if home != module_name:
            lines.append(f"See {{py:obj}}`{home}.{name}`.\n\n")
            continue
        if not callable(value):
            lines.append(
                f"```{{eval-rst}}\n.. py:data:: {module_name}.{name}\n\n{_shown(value)}```\n\n"
            )
            continue
        kind, options = "autofunction", ""
        if inspect.isclass(value):
            kind, options = "autoclass", "   :members:\n"
            options += f"   :exclude-members: {', '.join(_ROUTING)}\n"
            if value.__bases__ != (object,) and not any(map(_is_internal, value.__bases__)):
                options += "   :show-inheritance:\n"
            if not _inherits_much(value):
                options += "   :inherited-members:\n"
        entry = f"```{{eval-rst}}\n.. {kind}:: {module_name}.{name}\n{options}```\n\n"
        lines.append(entry)
    return "".join(lines)


def _shown(value: object) -> str:
    """A constant: the names in a table, or the value itself."""
    if isinstance(value, Mapping):
        return f"   A table with the names {', '.join(f'``{name}``' for name in value)}.\n"
    return f"   ``{value!r}``\n"


def _home(value: object, name: str, module_name: str) -> str:
    """The package of the reference under which an object has its entry.

    It is the deepest public package that contains the module where the object is defined.
    """
    defined = getattr(value, "__module__", module_name) or module_name
    homes = [
        package
        for package in PACKAGES
        if package != "spinal"
        and (defined == package or defined.startswith(f"{package}."))
        and name in public_names(package)
    ]
    return max(homes, key=len, default=module_name)


def _is_internal(value: type) -> bool:
    """Whether a class of spinal has no entry in the reference."""
    return value.__module__.startswith("spinal.") and not any(
        value.__module__.startswith(package) and value.__name__ in public_names(package)
        for package in PACKAGES
    )


def _inherits_much(value: type) -> bool:
    """Whether a class inherits members of other libraries, which have their own reference."""
    return any(not base.__module__.startswith(("spinal", "builtins")) for base in value.__mro__)


def _reference_index() -> Iterator[str]:
    yield "# Reference\n\nGenerated from the code.\n\n| | |\n|---|---|\n"
    yield "| [Command line](command-line.md) | Every command and option |\n"
    for name, summary in PACKAGES.items():
        yield f"| [`{name}`]({name}.md) | {summary} |\n"
    yield "\n```{toctree}\n:hidden:\n\ncommand-line\n"
    yield "".join(f"{name}\n" for name in PACKAGES)
    yield "```\n"


def _command_line() -> Iterator[str]:
    from spinal.commands.app import app

    group = typer.main.get_command(app)
    yield "# Command line\n\n`spinal COMMAND --help` shows the same in a terminal.\n\n"
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        parameters = [p for p in command.params if p.name != "help"]
        arguments = [p for p in parameters if p.param_type_name == "argument"]
        options = [p for p in parameters if p.param_type_name == "option"]
        usage = " ".join(["spinal", name, *(p.metavar or p.name.upper() for p in arguments)])
        yield f"## {name}\n\n```text\n{usage}{' [OPTIONS]' if options else ''}\n```\n\n"
        yield f"{inspect.cleandoc(command.help or '')}\n\n"
        rows = [(f"`{p.metavar or p.name.upper()}`", p) for p in arguments]
        rows += [(f"`{', '.join((*p.opts, *p.secondary_opts))}`", p) for p in options]
        if rows:
            yield "| | | default |\n|---|---|---|\n"
        for shown, parameter in rows:
            text = re.sub(r"\s+", " ", getattr(parameter, "help", None) or "")
            stated = re.search(r"\[default: (.*?)\]", text)
            text = text.replace(stated.group(), "").strip() if stated else text
            default = stated.group(1) if stated else _default(parameter)
            yield f"| {shown} | {text} | {default} |\n".replace("[", "\\[")
        yield "\n"


def _default(parameter: object) -> str:
    value = getattr(parameter, "default", None)
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, bool | int | float | str | Path) or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`"


def _copy_results(source: Path, target: Path) -> None:
    """The pages of results, with their figures and tables, as part of the site."""
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_dir() or "runs" in relative.parts:
            continue
        if path.suffix == ".md":
            # Found by links, not in the navigation. Runs themselves are only in the repository.
            text = re.sub(r"\[([^]]*)\]\(runs/?\)", r"\1", path.read_text("utf-8"))
            _write(target / relative, f"---\norphan: true\n---\n{text}")
            continue
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / relative)


def _write(path: Path, text: str) -> None:
    """Write a page if it changed: Sphinx builds only those again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
