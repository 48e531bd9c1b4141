"""Tables as LaTeX and as rows of a page: escaped, whole, and taken by LaTeX where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from spinal.report.parts import Table

#: Everything that means something to LaTeX, and what reports have beyond ASCII.
NASTY = "a_b % & # $ ~ ^ \\ {x} <0.001 > | [16, 8] ± − – × ’"


def table(rows: int) -> Table:
    names = ["[first]", *(f"{NASTY} {i // 3}" for i in range(1, rows))]
    shown = pd.DataFrame({"name_%": names, "set": [str(i % 3) for i in range(rows)], "p": "<0.001"})
    return Table("nasty", f"What is 100 % {NASTY}?", shown, shown, words=2)


@pytest.mark.parametrize(("rows", "environment"), [(6, "tabular"), (60, "longtable")])
def test_latex_is_well_formed(rows: int, environment: str) -> None:
    text = table(rows).to_latex()
    assert text.isascii()
    open_ones = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert not open_ones
    unescaped = re.sub(r"\\[\\{}%&#_$]", "", text)
    assert unescaped.count("{") == unescaped.count("}")
    assert "_" not in unescaped
    assert "#" not in unescaped
    assert rf"\begin{{{environment}}}{{llr}}" in text
    cells = [line for line in text.splitlines() if re.search(r"(?<!\\)&.* \\\\$", line)]
    headers = {"tabular": 1, "longtable": 2}[environment]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in cells] == [2] * (headers + rows)
    assert text.count(r"\toprule") == text.count(r"\midrule") == headers
    assert text.count(r"\bottomrule") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX here")
def test_latex_accepts_it(tmp_path: Path) -> None:
    packages = r"\usepackage{booktabs,graphicx,longtable}"
    body = "\n".join(table(rows).to_latex() for rows in (6, 60))
    document = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "t.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_groups_of_rows_are_bodies_of_the_table() -> None:
    html = table(7).to_html()
    bodies = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    assert [body.count("<tr>") for body in bodies] == [1, 2, 3, 1]
    assert html.count("<tr>") == 1 + 7
    assert "<details>" not in html
    assert "<summary>60 rows</summary>" in table(60).to_html()
