"""``spinal classes``: lists and changes the classes of a project."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from spinal.commands.options import ProjectFolder
from spinal.commands.output import print_table
from spinal.errors import SpinalError

_Pairs = list[str] | None


def classes(
    project: ProjectFolder,
    add: Annotated[_Pairs, typer.Option(metavar="NAME", help="Add a class.")] = None,
    rename: Annotated[
        _Pairs, typer.Option(metavar="OLD=NEW", help="Rename a class, and its answers with it.")
    ] = None,
    merge: Annotated[
        _Pairs,
        typer.Option(
            metavar="CLASS=INTO", help="Move the answers of a class to another, and remove it."
        ),
    ] = None,
    remove: Annotated[
        _Pairs,
        typer.Option(
            metavar="NAME",
            help="Remove a class; its answers are set aside, and the images are asked again. With "
            "--multi, answers keep their other classes.",
        ),
    ] = None,
    key: Annotated[
        _Pairs,
        typer.Option(metavar="CLASS=KEY", help="Choose the key of a class; CLASS= for default."),
    ] = None,
    colour: Annotated[
        _Pairs,
        typer.Option(
            metavar="CLASS=#RRGGBB", help="Choose the colour of a class; CLASS= for default."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last change.")] = False,
) -> None:
    """List the classes of a project, or change them.

    All options except `--undo` may be repeated. Changes are made in the order above, and can be
    undone, the last one first. The page may be open at the same time.
    """
    from spinal.label.store.classes import describe_change
    from spinal.label.store.project import open_project
    from spinal.label.web.keys import class_keys

    opened, person = open_project(project), getpass.getuser()
    try:
        known = opened.store.classes
        for name in add or ():
            known.add(name.strip(), person)
        for old, new in map(_pair, rename or ()):
            known.rename(old, new, person)
        for name, into in map(_pair, merge or ()):
            known.merge(name, into, person)
        for name in remove or ():
            known.remove(name, person)
        for name, chosen in map(_pair, key or ()):
            known.set_key(name, chosen or None, person)
        for name, chosen in map(_pair, colour or ()):
            known.set_colour(name, chosen or None, person)
        if undo:
            typer.echo(f"undone: {describe_change(known.undo())}")
        counts = opened.store.progress()["classes"]
        names = known.names()
        keys = class_keys(names, known.keys())
    finally:
        opened.close()
    rows = [
        (name, " ".join(keys[i]).upper(), str(counts.get(name, 0))) for i, name in enumerate(names)
    ]
    print_table(("class", "keys", "images"), rows)


def _pair(text: str) -> tuple[str, str]:
    """The two sides of ``a=b``."""
    left, equals, right = text.partition("=")
    if not equals:
        raise SpinalError(f"{text!r}: give two names, such as cat=feline")
    return left.strip(), right.strip()
