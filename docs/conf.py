"""Sphinx settings of the site, which ``make docs`` builds. Nothing is fetched, then or later."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parent))

import generate
import mathml

import spinal

project = "spinal"
author = "The spinal maintainers"
project_copyright = f"2026, {author}"
release = version = spinal.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "spinal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_math_renderer = "mathml"
pygments_dark_style = "github-dark"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# In docstrings, a name in single backticks is a link where the site has a page for it.
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    "ArrayLike": "ArrayLike",
    "NDArray": "NDArray",
}
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def refuse_missing(app: Sphinx, env: Any, node: nodes.Element, content: nodes.TextElement) -> None:
    """A page that names an object without an entry in the reference is an error.

    Docstrings may also name objects that are not public: these stay plain text.
    """
    if not node["refdoc"].startswith("reference/"):
        message = "no entry in the reference for %r"
        logging.getLogger(__name__).warning(message, node["reftarget"], location=node)


def link_results(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to results: in the repository they are beside ``docs``, on the site inside."""
    source[0] = re.sub(r"\]\(\.\./((?:\.\./)*results/)", r"](\1", source[0])


def shorten_arrays(
    app: Sphinx,
    what: str,
    name: str,
    value: Any,
    options: Any,
    arguments: str | None,
    result: str | None,
) -> tuple[str, str | None] | None:
    """Write arrays in signatures as the code does: ``NDArray[float32]``."""
    if arguments is None:
        return None
    return _shortened(arguments), result and _shortened(result)


#: An array as autodoc writes it, with or without the modules of its names.
_ARRAY = (
    r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], "
    r"~?(?:numpy\.)?dtype\[~?(?:\w+\.)*(\w+)\]\]"
)


def _shortened(text: str) -> str:
    text = re.sub(_ARRAY, r"NDArray[\1]", text)
    return text.replace("NDArray[_ScalarT]", "NDArray")


def setup(app: Sphinx) -> None:
    """Write the pages that are made from the code, and set up the mathematics."""
    mathml.setup(app)
    app.connect("missing-reference", refuse_missing)
    app.connect("source-read", link_results)
    app.connect("autodoc-process-signature", shorten_arrays)
    generate.write_pages(Path(app.srcdir))
