"""Drawings of circuits for the site: ``python docs/drawings.py`` writes them to docs/pictures."""

from __future__ import annotations

from html import escape
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"
_RADIUS = 22
_STYLE = (
    "text{font:16px system-ui,sans-serif;text-anchor:middle;dominant-baseline:central}"
    ".small{font-size:13px;fill:#555}circle,rect{stroke:#333;stroke-width:1.5}"
    "line{stroke:#777;stroke-width:1.5}.sum{fill:#cfe3f7}.product{fill:#fde2b8}.leaf{fill:#e2f0d4}"
    ".box{fill:#f3f3f3}"
)


def _svg(width: int, height: int, parts: list[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="white" style="stroke:none"/>'
        + "".join(f"\n{part}" for part in parts)
        + "\n</svg>\n"
    )


def _node(x: int, y: int, text: str, kind: str) -> str:
    circle = f'<circle class="{kind}" cx="{x}" cy="{y}" r="{_RADIUS}"/>'
    return f'{circle}<text x="{x}" y="{y}">{escape(text)}</text>'


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _text(x: int, y: int, text: str, small: bool = True) -> str:
    kind = ' class="small"' if small else ""
    return f'<text{kind} x="{x}" y="{y}">{escape(text)}</text>'


def _box(x: int, y: int, width: int, height: int, text: str, kind: str = "box") -> str:
    box = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    return f'{box}<text x="{x + width // 2}" y="{y + height // 2}">{escape(text)}</text>'


def circuit() -> str:
    """A sum of two products of leaves."""
    root, products = (260, 40), [(140, 130), (380, 130)]
    leaves = [(80, 225, "p₁(z₁)"), (200, 225, "p₂(z₂)"), (320, 225, "p₃(z₁)"), (440, 225, "p₄(z₂)")]
    parts = [_line(*root, *product) for product in products]
    parts += [_line(*products[i // 2], x, y) for i, (x, y, _) in enumerate(leaves)]
    parts += [_text(180, 78, "0.6"), _text(340, 78, "0.4")]
    parts += [_node(*root, "+", "sum"), *(_node(*at, "×", "product") for at in products)]
    parts += [_box(x - 38, y - 20, 76, 40, text, "leaf") for x, y, text in leaves]
    parts += [_text(470, 40, "mixture"), _text(470, 130, "independent parts")]
    parts += [_text(260, 268, "densities of one variable each")]
    return _svg(540, 285, parts, "A sum-product network over two variables")


def pipeline() -> str:
    """Image, network, features, circuit, probabilities and density."""
    parts = [
        _line(100, 95, 470, 95),
        _box(20, 65, 90, 60, "image x"),
        _box(150, 55, 120, 80, "network f"),
        _box(310, 65, 110, 60, "features z", "leaf"),
        _box(460, 45, 110, 100, "SPN", "sum"),
        _line(570, 75, 620, 60), _line(570, 115, 620, 135),
        _box(620, 35, 190, 44, "class: p(c | z)"),
        _box(620, 113, 190, 44, "how usual: p(z)"),
        _text(210, 155, "learns from labels"),
        _text(515, 165, "fitted to z and labels"),
    ]  # fmt: skip
    return _svg(830, 190, parts, "A network computes features; a circuit on them gives both")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for draw in (circuit, pipeline):
        (PICTURES / f"{draw.__name__}.svg").write_text(draw(), encoding="utf-8")
