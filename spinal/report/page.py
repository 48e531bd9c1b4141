"""The report as one self-contained HTML page, with figures and styles inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources

from spinal import __version__
from spinal.report.parts import Drawing, Section, Table
from spinal.report.plots import inline_svg, variables

#: A chapter of the page: its id, which is also the name of its files, its title, its sections.
Chapter = tuple[str, str, Sequence[Section]]


def page(chapters: Sequence[Chapter], heading: str = "Comparison of ways to choose labels") -> str:
    """The complete page.

    Args:
        chapters: An id, a title and the sections of each chapter.
        heading: Heading of the page.
    """
    style = (resources.files(__package__) / "page.css").read_text(encoding="utf-8")
    style = style.replace("/* light colours */", variables(dark=False))
    style = style.replace("/* dark colours */", variables(dark=True))
    contents = "\n".join(
        f'<li><a href="#{escape(id_)}">{escape(title)}</a></li>' for id_, title, _ in chapters
    )
    body = "\n".join(_chapter(*chapter) for chapter in chapters)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(heading)}</title>\n<style>\n{style}</style>\n"
        f"</head>\n<body>\n<header><h1>{escape(heading)}</h1>\n"
        f"<nav><ul>\n{contents}\n</ul></nav></header>\n<main>\n{body}\n</main>\n"
        f"<footer>Written by spinal {escape(__version__)} from runs on disk; nothing was trained "
        "for it.</footer>\n</body>\n</html>\n"
    )


def _chapter(id_: str, title: str, sections: Sequence[Section]) -> str:
    inner = "\n".join(_section(id_, section) for section in sections)
    return f'<article id="{escape(id_)}">\n<h2>{escape(title)}</h2>\n{inner}\n</article>'


def _section(chapter: str, section: Section) -> str:
    text = "\n".join(f"<p>{_prose(sentence)}</p>" for sentence in section.text)
    parts = "\n".join(_part(chapter, part) for part in section.parts)
    return f"<section>\n<h3>{escape(section.title)}</h3>\n{text}\n{parts}\n</section>"


def _part(chapter: str, part: Table | Drawing) -> str:
    if isinstance(part, Table):
        inner = part.to_html()
    else:
        name = re.sub(r"[^a-z0-9]+", "-", f"{chapter}-{part.name}".lower())
        inner = inline_svg(part.svg, name, escape(part.caption))
    return f"<figure>\n{inner}\n<figcaption>{_prose(part.caption)}</figcaption>\n</figure>"


def _prose(text: str) -> str:
    """Text with `commands` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
