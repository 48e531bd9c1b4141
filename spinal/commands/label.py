"""``spinal label``: serves the page to label images or texts, and fits the model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spinal.commands.completion import complete_acquisition, complete_method
from spinal.errors import SpinalError

if TYPE_CHECKING:
    from spinal.label.known.known import KnownLabels
    from spinal.label.store.project import Project
    from spinal.label.store.settings import ProjectSettings
    from spinal.label.web.serving import Page


def label(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of images or of .txt files; table of texts (.csv, .tsv, .jsonl); or "
            "project folder."
        ),
    ],
    classes: Annotated[
        str | None,
        typer.Option(help="Such as cat,dog,none. Needed once; later only to add classes."),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            help="Folder for labels, features and models. "
            "[default: FOLDER/.spinal, or TABLE.spinal]"
        ),
    ] = None,
    multi: Annotated[
        bool | None,
        typer.Option(
            "--multi/--no-multi",
            help="An image or text can have several of the classes, or none of them. Needed once, "
            "when a project is created.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Known labels: a CSV table with columns path and label (for texts, the column of "
            "texts instead of path), a folder with a folder for each class (also FOLDER itself), "
            "another project, or an export of Label Studio (JSON). New classes in it are added. "
            "With --multi, a label has the form `cat;dog`, or each class is in its own row, or "
            "has its own column of 0 and 1."
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Planned number of answers.")] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            "--features",
            help="Computes the feature vector of an image or text. "
            "[default: efficientnet-lite0; for texts, tfidf-svd]",
        ),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column of a table with the texts. [default: text]")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Network to train: `dense`, a layer on the features; or, with many labels, a "
            "whole network: `fine-tuned`, the encoder itself; `resnet-slim`, `lenet` or "
            "`vgg`, from scratch. "
            "[default: dense]"
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="See `spinal methods`. [default: spn-cnn]", autocompletion=complete_method
        ),
    ] = None,
    acquisition: Annotated[
        str | None,
        typer.Option(
            help="Acquisition function. [default: `auto` for spn-cnn on features, otherwise that "
            "of the method]",
            autocompletion=complete_acquisition,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free port.")] = 8421,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness. [default: 0]")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Recover the readable part of a damaged label file.")
    ] = False,
    simulate: Annotated[
        Path | None,
        typer.Option(
            help="Let a simulated annotator answer, from a CSV table with columns path and label; "
            "for texts, the column of texts instead of path."
        ),
    ] = None,
    mistakes: Annotated[
        float, typer.Option(help="Share of wrong answers of the simulated annotator.")
    ] = 0.0,
    pace: Annotated[
        float, typer.Option(help="Seconds that the simulated annotator takes for an answer.")
    ] = 1.0,
) -> None:
    """Label images or texts on a web page, while a model is trained on the answers.

    The model chooses the most useful images, and is refitted in the background as answers
    arrive. The same command resumes where it stopped. An answer stays in
    the browser until it is on disk.
    """
    for package in ("starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise SpinalError(f"{package} is missing: pip install 'spinal[label]'")
    from spinal.label.known.known import tell_known
    from spinal.label.store.finding import find_unreadable
    from spinal.label.store.project import find_home, open_project, repair_project
    from spinal.label.web.serving import Page

    place, settings = _settings_of(folder, project)
    _check_parts(settings, features, method, acquisition)
    names = tuple(name.strip() for name in classes.split(",")) if classes else None
    known = None
    if labels is not None:
        several = settings.multi if settings is not None else bool(multi)
        known = _read_known(labels, place, settings, text_column, several)
        names = tuple(dict.fromkeys((*(names or ()), *known.classes)))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if repair:
        console.print(str(repair_project(find_home(folder, project))), markup=False)
    opened = open_project(
        folder, project, classes=names, budget=budget, encoder=features, network=network,
        method=method, acquisition=acquisition, seed=seed, text_column=text_column, multi=multi,
    )  # fmt: skip
    try:
        with opened.locked():
            opened.store.check()
            joined = opened.scan()
            opened.keep_copy()  # with the images of a new project
            n, kind = opened.store.progress()["images"], opened.settings.kind
            if not n:
                raise SpinalError(f"{opened.folder}: no {kind} in it")
            console.print(f"{n} {kind} in {opened.folder} ({joined} new)", markup=False)
            if known is not None:
                console.print(f"{known} ({tell_known(opened, known)} new)", markup=False)
            for name in find_unreadable(opened.folder) if kind == "images" else ():
                console.print(f"left out: {name}", markup=False)
            _introduce(opened, console)
            with Page(opened, host, port) as page:
                if simulate is not None:
                    _simulate(page, simulate, mistakes, pace, console)
                else:
                    page.announce(console, browser)
                    page.wait()
            opened.keep_copy()
    finally:
        opened.close()


#: Encoders that are not checked, because the check would import torch into the server.
_KNOWN_ENCODERS = ("efficientnet-lite0", "pixels", "tfidf-svd")


def _settings_of(
    folder: Path, project: Path | None
) -> tuple[Path, ProjectSettings] | tuple[Path, None]:
    """The images or texts and the settings of a project; None if it does not exist yet."""
    from spinal.label.store.project import find_home
    from spinal.label.store.settings import read_settings

    file = find_home(folder, project) / "project.json"
    return read_settings(file) if file.is_file() else (folder, None)


def _check_parts(
    settings: ProjectSettings | None, encoder: str | None, method: str | None,
    acquisition: str | None,
) -> None:  # fmt: skip
    """Raise a SpinalError if a name is wrong; imports torch only if a name is given."""
    if encoder not in (None, *_KNOWN_ENCODERS):
        from spinal.encoders.table import check_name

        check_name(encoder)
    if method is not None or acquisition is not None:
        from spinal.label.learning.checking import check_method
        from spinal.label.store.settings import ProjectSettings

        method = method or (settings.method if settings is not None else "spn-cnn")
        check_method(ProjectSettings(("a", "b"), method=method, acquisition=acquisition))


def _read_known(
    source: Path,
    place: Path,
    settings: ProjectSettings | None,
    text_column: str | None,
    multi: bool,
) -> KnownLabels:
    """Known labels for the images or texts of a project, which may not exist yet."""
    from spinal.label.known.known import read_known
    from spinal.label.store.finding import find_kind

    kind = settings.kind if settings is not None else find_kind(place)
    column = text_column or (settings.text_column if settings is not None else "text")
    return read_known(source, place, column if kind == "texts" else None, multi=multi)


def _introduce(project: Project, console: Console) -> None:
    """Print the model, and a warning if the planned labels are too few for it."""
    settings = project.settings
    console.print(f"model: {settings.describe_model()}", markup=False)
    progress = project.store.progress()
    if warning := settings.warning(max(progress["labelled"], settings.budget or 0)):
        console.print("[bold yellow]warning:[/]", end=" ")
        console.print(warning, markup=False)


def _simulate(page: Page, table: Path, mistakes: float, pace: float, console: Console) -> None:
    from spinal.label.web.simulate import Person, read_answers

    settings = page.project.settings
    column = settings.text_column if settings.kind == "texts" else None
    answers = read_answers(table, column, multi=settings.multi)
    person = Person(answers, settings.classes, mistakes=mistakes)
    budget = settings.budget
    result = person.label(page.link, budget, pace=pace, on_answer=None)
    console.print(result.summary())
