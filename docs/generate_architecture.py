"""Writes docs/architecture.svg: the packages, and who may import whom.

`python docs/generate_architecture.py` writes it; with `--check` it only says whether the picture is
up to date, and exits 1 if it is not. The architecture test compares its arrows with the rules.
"""

from __future__ import annotations

import sys
from pathlib import Path

PICTURE = Path(__file__).parent / "architecture.svg"
WIDTH, HEIGHT = 800, 516
BOX_WIDTH, BOX_HEIGHT = 150, 54
#: The middle of each package's box, its colour, and what lives there in a few words.
BOXES = {
    "measure": (250, 199, "#0072b2", "build, check, time"),
    "show": (690, 199, "#009e73", "units, tables, text"),
    "backends": (110, 294, "#0072b2", "CUDA, OpenCL, host"),
    "analysis": (500, 294, "#009e73", "statistics, models"),
    "kernelfile": (250, 394, "#d55e00", "front matter, sweep"),
    "records": (690, 394, "#d55e00", "typed, on disk"),
}
#: Above the boxes what imports all of them, below what all of them import.
BARS = {
    "features": (20, "a folder each, which can be deleted: they may import all below"),
    "cli": (84, "the core's commands; names features, and imports none"),
    "base": (454, "errors, model, workloads, cache, signals: every package may import these"),
}
#: Where each arrow runs, by the package that imports and the one that it imports.
ARROWS = {
    ("measure", "backends"): "M215,226 L148,264",
    ("measure", "kernelfile"): "M250,226 V364",
    ("measure", "analysis"): "M310,226 L440,265",
    ("measure", "records"): "M275,226 C280,334 450,354 611,386",
    ("show", "analysis"): "M650,226 L562,265",
    ("show", "records"): "M690,226 V364",
    ("backends", "kernelfile"): "M140,321 L205,365",
    ("analysis", "records"): "M545,321 L634,365",
}


def picture() -> str:
    """The picture as SVG, with its own background for pages of any colour."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" text-anchor="middle">',
        "<title>The packages of matbench; an arrow leads from a package to one it imports</title>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>',
    ]
    for name, (top, caption) in BARS.items():
        parts += _box(WIDTH / 2, top + 22, WIDTH - 40, 44, "#555", name, caption)
    parts += [
        f'<path d="{route}" fill="none" stroke="#555" stroke-width="1.5" marker-end="url(#head)"/>'
        for route in ARROWS.values()
    ]
    for name, (x, y, colour, caption) in BOXES.items():
        parts += _box(x, y, BOX_WIDTH, BOX_HEIGHT, colour, name, caption)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(
    x: float, y: float, width: float, height: float, colour: str, name: str, caption: str
) -> list[str]:
    """A box around its middle, with a name and a caption."""
    return [
        f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" '
        f'height="{height:g}" rx="6" fill="{colour}"/>',
        f'<text x="{x:g}" y="{y - 3:g}" fill="#fff" font-size="15" '
        f'font-weight="bold">{name}</text>',
        f'<text x="{x:g}" y="{y + 14:g}" fill="#fff" font-size="11">{caption}</text>',
    ]


def main(arguments: list[str]) -> int:
    """Write the picture, or with `--check` say whether it is up to date."""
    if arguments == ["--check"]:
        fresh = PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == picture()
        if not fresh:
            print(f"{PICTURE.name} is not up to date: run python docs/generate_architecture.py")
        return 0 if fresh else 1
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
