"""The parts of a report: sections of tables, drawings and sentences; formats of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import pandas as pd
from matplotlib.figure import Figure

from spinal.report.plots import to_svg


@dataclass(frozen=True, eq=False)
class Table:
    """A table, in a form for programs and a form for readers.

    Attributes:
        name: Name of its files, without suffix.
        caption: What the table shows, and how it was computed.
        data: All numbers, for programs (CSV).
        shown: Formatted cells, for readers (HTML, Markdown, LaTeX).
        words: Number of columns, from the left, that hold words; the others are aligned as numbers.
    """

    name: str
    caption: str
    data: pd.DataFrame
    shown: pd.DataFrame
    words: int = 1

    def to_csv(self) -> str:
        """The numbers, for programs."""
        return self.data.to_csv(index=False, float_format="%.6g", lineterminator="\n")

    def to_markdown(self) -> str:
        """For READMEs."""
        align = ["---" if i < self.words else "--:" for i in range(self.shown.shape[1])]
        lines = [list(map(str, self.shown.columns)), align, *self._cells()]
        rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]
        return "\n".join([*rows, "", self.caption, ""])

    def to_latex(self) -> str:
        """For papers; needs booktabs and graphicx, and longtable for tables of several pages.

        A table that is wider than the text is scaled down, where LaTeX allows it.
        """
        align = "".join("l" if i < self.words else "r" for i in range(self.shown.shape[1]))
        caption = rf"\caption{{{_latex(self.caption)}}}"
        head = [r"\toprule", _latex_row(map(str, self.shown.columns)), r"\midrule"]
        body = [*map(_latex_row, self._cells()), r"\bottomrule"]
        if len(self.shown) > _LONG:
            lines = [
                r"{\scriptsize\setlength{\tabcolsep}{3pt}", rf"\begin{{longtable}}{{{align}}}",
                rf"{caption} \\", *head, r"\endfirsthead", *head, r"\endhead", *body,
                r"\end{longtable}}", "",
            ]  # fmt: skip
        else:
            lines = [
                r"\begin{table}", r"\centering", caption,
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                rf"\begin{{tabular}}{{{align}}}", *head, *body, r"\end{tabular}}", r"\end{table}",
                "",
            ]  # fmt: skip
        return "\n".join(lines)

    def to_html(self) -> str:
        """For the page. In a column of words, a cell that repeats the one above it is left empty.

        If there are several columns of words, rows with the same first word form a group, which is
        not split between pages in print.
        """
        head = "".join(f"<th{self._class(i)}>{escape(str(c))}</th>"
                       for i, c in enumerate(self.shown.columns))  # fmt: skip
        body: list[str] = []
        above = [""] * self.shown.shape[1]
        for row in self._cells():
            if body and self.words > 1 and row[0] != above[0]:
                body.append("</tbody><tbody>")
            cells = []
            for i, cell in enumerate(row):
                again = i < self.words - 1 and row[: i + 1] == above[: i + 1]
                cells.append(f"<td{self._class(i)}>{'' if again else escape(cell)}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
            above = row
        table = (
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{chr(10).join(body)}\n</tbody></table></div>"
        )
        if len(self.shown) <= _LONG:
            return table
        return f"<details><summary>{len(self.shown)} rows</summary>\n{table}</details>"

    def _cells(self) -> list[list[str]]:
        return [[str(cell) for cell in row] for row in self.shown.to_numpy().tolist()]

    def _class(self, column: int) -> str:
        return "" if column < self.words else ' class="number"'


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, with the name of its file and a caption."""

    name: str
    caption: str
    figure: Figure

    @cached_property
    def svg(self) -> str:
        """The figure as SVG, for its file and for the page; see `to_svg`."""
        return to_svg(self.figure)


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, sentences, and the tables and drawings below them."""

    title: str
    text: Sequence[str] = ()
    parts: Sequence[Table | Drawing] = field(default_factory=tuple)


#: Tables with more rows are collapsed on the page; in print they are open and may span pages.
_LONG = 40
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "±": r"$\pm$", "×": r"$\times$", "−": "$-$",
    "–": "--", "’": "'",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"
