"""The built site in a browser, from files: nothing is fetched, pages fit, the search finds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = ("index", "concepts/spn", "concepts/posterior", "reference/spinal.learner",
         "reference/command-line", "tutorials/images", "benchmarks")  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="make docs builds it"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_fetch_nothing(chromium: Any, width: int, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True
    )
    page, requests = context.new_page(), []
    page.on("request", lambda request: requests.append(request.url))
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), name
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_the_search_works_offline(chromium: Any) -> None:
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto((SITE / "index.html").as_uri())
    page.get_by_placeholder("Search").fill("uncertainty herding")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    titles = page.locator("#search-results li a").all_inner_texts()
    assert "Why entropy misleads" in titles
    context.close()


def test_no_link_is_dead() -> None:
    dead = []
    anchors: dict[Path, set[str]] = {}
    for path in SITE.rglob("*.html"):
        text = path.read_text("utf-8")
        for link in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            target, anchor = urldefrag(unquote(link.replace("&amp;", "&")))
            if re.match(r"[a-z]+:|//", target):
                continue
            file = (path.parent / target.partition("?")[0]).resolve() if target else path
            if not file.exists():
                dead.append(f"{path.relative_to(SITE)}: {link}")
            elif anchor and file.suffix == ".html":
                if file not in anchors:
                    anchors[file] = set(re.findall(r'\bid="([^"]+)"', file.read_text("utf-8")))
                if anchor not in anchors[file]:
                    dead.append(f"{path.relative_to(SITE)}: {link}")
    assert dead == []
