"""Mathematics as MathML, which browsers show by themselves: no script is needed."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

#: A name such as log before its argument; inside a script it has no argument.
_FUNCTION = re.compile(r"(?<!<msub>)(?<!<msup>)(?<!<munder>)(<mi>[a-z]{3,}</mi>)(?=<m[a-z]+>)")


def to_mathml(formula: str, display: str) -> str:
    """A formula in LaTeX as MathML, with a thin space between a function and its argument."""
    return _FUNCTION.sub(r'\1<mspace width="0.167em" />', convert(formula, display=display))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    for formula in node.astext().strip().split("\n\n"):
        translator.body.append(f'<div class="math">{to_mathml(formula, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
