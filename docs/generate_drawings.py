"""Draws who loads what in the rungs of the ladder: docs/drawings/*.svg.

`python docs/generate_drawings.py` writes them; with `--check` it names those that are out of date
and exits 1. A drawing is made of rectangles, grids, arrows and labels. Blue is A, orange is B and
green is C and its sums.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import freshness

FOLDER = Path(__file__).parent / "drawings"
WIDTH = 760
#: Light and strong, for each of the matrices and for time.
COLOURS = {
    "A": ("#cfe3f2", "#0072b2"),
    "B": ("#f9dcc4", "#d55e00"),
    "C": ("#cdebe0", "#009e73"),
    "grey": ("#e4e4e4", "#777777"),
    "white": ("#ffffff", "#777777"),
}
INK = "#222222"
Cells = Collection[tuple[int, int]]
Point = tuple[float, float]


class Drawing:
    """A picture of `height`, with a background of its own for pages of any colour."""

    def __init__(self, title: str, height: int) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" font-size="13">',
            f"<title>{html.escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker>'
            "</defs>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        ]

    def svg(self) -> str:
        return "\n".join([*self.parts, "</svg>"]) + "\n"

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        at: str = "middle",
        size: int = 13,
        bold: bool = False,
    ) -> None:
        """Words whose baseline is at y; `at` says what x is: their start, middle or end."""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{at}" font-size="{size}"{weight} '
            f'fill="{INK}">{html.escape(words)}</text>'
        )

    def note(self, x: float, y: float, *lines: str, size: int = 13, bold: bool = False) -> None:
        """Lines of words, one below the other, that start at x."""
        for number, words in enumerate(lines):
            self.text(x, y + 17 * number, words, at="start", size=size, bold=bold)

    def title(self, x: float, words: str) -> None:
        self.note(x, 28, words, size=15, bold=True)

    def box(
        self, at: Point, width: float, height: float, colour: str = "white",
        words: str = "", *, strong: bool = False, dashed: bool = False,
    ) -> None:  # fmt: skip
        """A rectangle with words in its middle; a strong one is filled with the full colour.

        Its upper left corner is `at`; words are as large as fits, from 12 down to 10.
        """
        (x, y), size = at, 12
        while size > 10 and 0.55 * size * len(words) > width - 4:
            size -= 1
        light, full = COLOURS[colour]
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'fill="{full if strong else light}" stroke="{full}"{dash}/>'
        )
        if words:
            self.parts.append(
                f'<text x="{x + width / 2:g}" y="{y + height / 2 + size * 0.36:g}" '
                f'text-anchor="middle" font-size="{size}" '
                f'fill="{"#ffffff" if strong else INK}">{html.escape(words)}</text>'
            )

    def grid(
        self, at: Point, rows: int, columns: int, colour: str, *,
        side: float | tuple[float, float] = 16, strong: Cells = (),
        label: Callable[[int, int], str] | None = None,
    ) -> None:  # fmt: skip
        """Cells of one colour, of which some are strong; `label` gives the words of each.

        `side` is that of a cell, or its width and height.
        """
        (x, y), (light, full) = at, COLOURS[colour]
        wide, cell = side if isinstance(side, tuple) else (side, side)
        width, height = wide * columns, cell * rows
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{light}"/>'
        )
        for row, column in sorted(strong):
            self.parts.append(
                f'<rect x="{x + column * wide:g}" y="{y + row * cell:g}" width="{wide:g}" '
                f'height="{cell:g}" fill="{full}"/>'
            )
        lines = "".join(f"M{x:g},{y + row * cell:g}h{width:g}" for row in range(rows + 1))
        lines += "".join(
            f"M{x + column * wide:g},{y:g}v{height:g}" for column in range(columns + 1)
        )
        self.parts.append(f'<path d="{lines}" stroke="{full}" stroke-width="0.7" fill="none"/>')
        for row in range(rows if label else 0):
            for column in range(columns):
                words = label(row, column) if label else ""
                fill = "#ffffff" if (row, column) in strong else INK
                self.parts.append(
                    f'<text x="{x + (column + 0.5) * wide:g}" y="{y + (row + 0.68) * cell:g}" '
                    f'text-anchor="middle" font-size="{cell * 0.55:g}" fill="{fill}">{words}</text>'
                    if words
                    else ""
                )
        self.parts = [part for part in self.parts if part]

    def arrow(self, *points: tuple[float, float], dashed: bool = False) -> None:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        path = "M" + " L".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.4"{dash} '
            'marker-end="url(#head)"/>'
        )

    def line(self, x: float, top: float, bottom: float) -> None:
        """A barrier in a picture of time."""
        self.parts.append(f'<path d="M{x:g},{top:g}V{bottom:g}" stroke="{INK}" stroke-width="3"/>')


def coalescing() -> Drawing:
    d = Drawing("What the threads of a warp read of A and B, uncoalesced and coalesced", 300)
    for x, title in ((20, "uncoalesced-1d"), (400, "thread-1d")):
        d.note(x, 28, title, size=15, bold=True)
    rows = 8
    d.grid((60, 64), rows, 9, "A", strong={(row, 3) for row in range(rows)})
    d.text(132, 56, "A, at one k")
    for row in range(rows):
        d.text(52, 76 + 16 * row, f"t{row}", at="end", size=11)
    d.grid((250, 64), rows, 7, "B", strong={(3, 2)})
    d.text(306, 56, "B, at one k")
    d.text(306, 208, "all threads: one float")
    d.text(132, 208, "each thread: another row")
    d.text(190, 240, "A warp computes a column of C: it reads 32 pieces", size=13)
    d.text(190, 258, "of A, K floats apart, and uses one float of each.")
    d.grid((420, 64), rows, 7, "A", strong={(2, 3)})
    d.text(476, 56, "A, at one k")
    d.text(476, 208, "all threads: one float")
    read = {(3, column): f"t{column - 1}" for column in range(1, 9)}
    d.grid((570, 64), rows, 10, "B", strong=read, label=lambda *cell: read.get(cell, ""))
    d.text(650, 56, "B, at one k")
    d.text(650, 208, "each thread: the next column")
    d.text(570, 240, "A warp computes part of a row of C: it reads")
    d.text(570, 258, "128 contiguous bytes of B, moved in one piece.")
    d.text(380, 286, "Rows are contiguous in memory. t0, t1, … are the threads of a warp.", size=12)
    return d


def _product(d: Drawing, x: float, y: float) -> None:
    """A left of C and B above it, with the strips that a tile of C is computed from."""
    d.box((x + 190, y), 140, 120, "white")
    d.box((x, y + 134), 176, 110, "white")
    d.box((x + 190, y + 134), 140, 110, "white")
    d.box((x + 246, y), 42, 120, "B")
    d.box((x, y + 178), 176, 42, "A")
    d.box((x + 246, y + 178), 42, 42, "C", "tile", strong=True)
    d.box((x + 72, y + 178), 42, 42, "A", "a", strong=True)
    d.box((x + 246, y + 48), 42, 42, "B", "b", strong=True)
    d.text(x + 12, y + 152, "A", bold=True)
    d.text(x + 203, y + 16, "B", bold=True)
    d.text(x + 203, y + 152, "C", bold=True)
    d.arrow((x + 118, y + 199), (x + 160, y + 199))
    d.arrow((x + 267, y + 94), (x + 267, y + 116))


def tiles() -> Drawing:
    d = Drawing("A block stages one tile of A and one of B at a time in shared memory", 290)
    _product(d, 20, 24)
    d.text(400, 50, "1", size=18, bold=True)
    d.note(
        418,
        50,
        "Stage: the T×T threads copy tiles a and b to",
        "shared memory, one value of each per thread.",
    )
    d.box((418, 82), 150, 34, "A", "a: T×T, shared")
    d.box((588, 82), 150, 34, "B", "b: T×T, shared")
    d.text(400, 148, "2", size=18, bold=True)
    d.note(
        418,
        148,
        "Multiply: the thread of row i and column j adds",
        "row i of a times column j of b to its sum.",
        "Each staged value is read T times.",
    )
    d.text(400, 214, "3", size=18, bold=True)
    d.note(418, 214, "Both tiles move on along K, until its end.")
    d.note(
        418,
        246,
        "Per multiply-add: 2 shared-memory fetches,",
        "2 / T loads from global memory.",
        bold=True,
    )
    return d


def _thread_tile(d: Drawing, x: float, columns: Cells, mine: Cells, rows: Cells) -> None:
    """Tiles in shared memory at one k, and what one thread fetches and computes."""
    d.grid((x + 100, 50), 3, 12, "B", strong=columns)
    d.grid((x + 34, 112), 12, 3, "A", strong=rows)
    d.grid((x + 100, 112), 12, 12, "C", strong=mine)
    d.note(x + 300, 78, "b")
    d.text(x + 58, 322, "a")
    d.text(x + 196, 322, "tile of C")
    d.text(x + 92, 72, "k", at="end", size=12)
    d.text(x + 58, 106, "k", size=12)


def thread_tile_1d() -> Drawing:
    d = Drawing("A thread computes one element, or a column of eight", 350)
    d.title(20, "tiled: one element per thread")
    _thread_tile(d, 10, {(1, 5)}, {(4, 5)}, {(4, 1)})
    d.text(190, 342, "1 + 1 fetches → 1 product", bold=True)
    d.title(400, "thread-tile-1d: TM = 8 elements")
    _thread_tile(d, 390, {(1, 5)}, {(i, 5) for i in range(8)}, {(i, 1) for i in range(8)})
    d.text(570, 342, "8 + 1 fetches → 8 products", bold=True)
    return d


def thread_tile_2d() -> Drawing:
    d = Drawing("A thread computes eight by eight elements", 350)
    d.title(20, "thread-tile-2d (drawn: 4×4 elements)")
    columns = (2, 5, 8, 11)
    _thread_tile(
        d, 10, {(1, j) for j in columns}, {(i, j) for i in range(4, 8) for j in columns},
        {(i, 1) for i in range(4, 8)},
    )  # fmt: skip
    d.note(
        400, 92, "For each k, a thread", "• fetches TM values of a into registers,",
        "• fetches TN values of b into registers,", "• multiplies each with each.",
    )  # fmt: skip
    d.note(400, 182, "8 + 8 fetches → 64 products", bold=True)
    d.note(
        400, 222, "Its columns are BN / TN apart: at each of the",
        "TN fetches from b, neighbouring threads read", "neighbouring floats, in different banks.",
    )  # fmt: skip
    return d


def vectorized() -> Drawing:
    d = Drawing("A is transposed on its way to shared memory", 270)
    d.note(20, 28, "global memory: 16 bytes of a row of A", bold=True)
    row = {(3, k): str(k) for k in range(4)}
    d.grid((60, 60), 8, 8, "A", side=20, strong=row, label=lambda *cell: row.get(cell, ""))
    d.text(140, 52, "k →")
    d.text(50, 124, "m", at="end")
    d.text(50, 100, "row", at="end")
    d.arrow((146, 130), (330, 130))
    d.text(275, 100, "one load,")
    d.text(275, 118, "four stores")
    d.note(340, 28, "shared memory: the tile transposed", bold=True)
    column = {(k, 3): str(k) for k in range(4)}
    fetched = {(6, m): "" for m in range(4, 8)}
    d.grid((
        350, 60), 8, 12, "A", side=20, strong=column | fetched,
        label=lambda *cell: column.get(cell, ""),
    )  # fmt: skip
    d.text(420, 52, "m →")
    d.text(342, 186, "k", at="end")
    d.box((590, 60), 20, 160, "white", dashed=True)
    d.text(604, 238, "padding")
    d.note(622, 170, "one fetch:", "four rows of A", "at one k")
    d.arrow((612, 190), (514, 190))
    d.text(350, 260, "B is not transposed: its rows already run along the columns of C.")
    return d


def double_buffering() -> Drawing:
    d = Drawing("Time in a block, with one pair of tiles and with two", 280)
    d.title(20, "vectorized: one pair of tiles")
    x = 20.0
    for step in range(3):
        d.box((x, 44), 120, 30, "A", f"load tiles {step}")
        d.box((x + 124, 44), 104, 30, "C", f"multiply {step}", strong=True)
        d.line(x + 122, 38, 80)
        d.line(x + 231, 38, 80)
        x += 235
    d.note(20, 100, "The multiply-add units idle while the block waits for its loads.")
    d.note(20, 146, "double-buffered: two pairs of tiles", size=15, bold=True)
    d.box((20, 162), 120, 30, "A", "load tiles 0")
    d.line(143, 156, 234)
    x = 146.0
    for step in range(4):
        d.box((x, 162), 104, 30, "A", f"load tiles {step + 1}")
        d.box((x, 198), 104, 30, "C", f"multiply {step}", strong=True)
        d.box((x + 106, 162), 30, 30, "A", "store")
        d.line(x + 139, 156, 234)
        x += 142
    d.note(
        20,
        256,
        "Loads are in flight while the block multiplies; then they are stored",
        "to the other pair of tiles. One barrier per step is enough.",
    )
    d.line(665, 262, 274)
    d.note(673, 273, "barrier", size=12)
    return d


def ring() -> Drawing:
    d = Drawing("Copies go to a ring of stages and bypass the registers", 290)
    d.title(20, "async-copied: a ring of STAGES pairs of tiles")
    d.box((20, 60), 120, 150, "white")
    d.text(80, 50, "global memory")
    d.box((34, 76), 92, 50, "A", "A")
    d.box((34, 140), 92, 50, "B", "B")
    d.text(470, 50, "shared memory")
    d.box((290, 60), 340, 150, "white")
    stages = (
        ("stage 0: step s, multiplied now", "C", True),
        ("stage 1: step s + 1, filling", "A", False),
        ("stage 2: step s + 2, filling", "A", False),
    )
    for number, (words, colour, strong) in enumerate(stages):
        d.box((310, 70 + 46 * number), 300, 38, colour, words, strong=strong)
    d.arrow((140, 120), (306, 135))
    d.arrow((140, 160), (306, 181))
    d.text(215, 108, "cp.async")
    d.box((160, 226), 110, 34, "grey", "registers", dashed=True)
    d.note(280, 248, "not used by copies", size=12)
    d.arrow((612, 89), (690, 89))
    d.text(716, 80, "products")
    d.arrow((640, 190), (656, 190), (656, 100), (634, 100))
    d.note(664, 150, "next step:", size=12)
    d.note(664, 166, "roles move on", size=12)
    words = (
        "A thread waits for its copies of step s; the barrier makes those of all threads visible."
    )
    d.note(20, 282, words, size=12)
    return d


def _lane(down: int, across: int, columns: int) -> int:
    """The lane in warp-tiled's numbering: bit 0 counts across, bit 1 down."""
    return across % 2 + down % 2 * 2 + (down // 2 * (columns // 2) + across // 2) * 4


def warp_lanes() -> Drawing:
    d = Drawing(
        "The tiles of block, warp and thread, and two ways to number the lanes of a warp", 340
    )
    d.note(20, 28, "block tile 128×128", bold=True)
    for row in range(2):
        for column in range(4):
            mine = (row, column) == (0, 1)
            d.box((20 + 48 * column, 44 + 96 * row), 48, 96, "C",
                  f"warp {row * 4 + column}", strong=mine)  # fmt: skip
    d.text(116, 258, "8 warps of 64×32")
    d.text(116, 278, "a thread: 8×8 elements")
    near = {(row, column) for row in range(2) for column in range(2)}
    d.note(270, 28, "lanes row by row", bold=True)
    d.grid((270, 44), 8, 4, "C", side=(36, 24), strong={(0, c) for c in range(4)},
           label=lambda row, column: str(row * 4 + column))  # fmt: skip
    d.note(530, 28, "bit 0 across, bit 1 down", bold=True)
    d.grid((530, 44), 8, 4, "C", side=(36, 24), strong=near,
           label=lambda row, column: str(_lane(row, column, 4)))  # fmt: skip
    for x, cycles in ((270, 4), (530, 2)):
        d.note(x, 258, "A, same for a row: 2 cycles", size=12)
        d.note(x, 276, f"B, same for a column: {cycles} cycles", size=12)
    d.note(
        20,
        310,
        "A fetch of 16 bytes takes 2 cycles instead of 4 only if lanes that differ in bit 0,",
        "or lanes that differ in bit 1, read the same 16 bytes (dark: lanes 0 to 3).",
    )
    return d


def pipelining() -> Drawing:
    d = Drawing("Time in a warp: values are fetched one k ahead, across the barrier too", 300)
    for y, title in ((50, "warp-tiled"), (166, "prefetched")):
        d.text(20, y - 16, title, at="start", size=15, bold=True)
        d.text(78, y + 19, "fetch", at="end", size=12)
        d.text(78, y + 53, "products", at="end", size=12)
    x = 88.0
    for k in (13, 14, 15, 0, 1):
        if k == 0:
            d.line(x + 4, 42, 122)
            d.box((x + 10, 50), 46, 28, "A", "copies")
            x += 58
        d.box((x, 50), 42, 28, "B", f"k = {k}")
        d.box((x + 44, 86), 72, 28, "C", f"k = {k}", strong=True)
        x += 118
    x = 88.0
    for k in (5, 6, 7, 0, 1, 2, 3, 4):
        if k == 7:
            d.line(x + 3, 158, 198)
        d.box((x + 8, 166), 42, 28, "B", f"k = {(k + 1) % 8}")
        if k == 4:
            d.box((x + 52, 166), 44, 28, "A", "copies")
        d.box((x, 202), 78, 28, "C", f"k = {k}", strong=True)
        x += 80
    d.note(
        20,
        258,
        "The values for the next k are fetched while this k is multiplied. Before the last k",
        "of a step (k = 7) comes the barrier; its products hide the barrier and the first",
        "fetch of the next step. Copies start in the middle of a step.",
    )
    d.line(560, 281, 295)
    d.note(568, 292, "barrier", size=12)
    return d


def sharing_k() -> Drawing:
    d = Drawing("K is divided among the teams of a block, and among the blocks of a cluster", 330)
    d.title(20, "sliced-k: teams of warps in a block")
    d.note(20, 48, "each step of BK = 32 k", size=12)
    for team in range(4):
        d.box((20 + 42 * team, 60), 42, 60, "A", f"k {team * 8}…", strong=team == 1)
        d.box((246, 60 + 42 * team), 60, 42, "B", f"k {team * 8}…", strong=team == 1)
    d.text(104, 138, "rows of A", size=12)
    d.text(276, 246, "columns of B", size=12)
    for team in range(4):
        d.box((36 + 12 * team, 170 + 12 * team), 80, 56, "C", "" if team < 3 else "team 3",
              strong=team == 1)  # fmt: skip
    d.note(170, 196, "4 teams,", size=12)
    d.note(170, 212, "4 sums per", size=12)
    d.note(170, 228, "element", size=12)
    d.arrow((100, 268), (100, 292))
    d.note(20, 312, "added in shared memory, in a fixed order: C")
    d.title(390, "split-k: blocks of a cluster")
    d.note(390, 48, "all of K = 65,536", size=12)
    for block in range(4):
        x = 390 + 90 * block
        d.box((x, 60), 86, 40, "A", f"block {block}", strong=block == 1)
        d.box((x + 8, 130), 70, 84, "white")
        for team in range(3):
            d.box(
                (x + 14 + 8 * team, 142 + 10 * team), 40, 36, "C", strong=block == 1 and team == 2
            )
        d.arrow((x + 43, 102), (x + 43, 127))
        d.arrow((x + 43, 216), (x + 43, 240))
        d.box((x + 8, 244), 70, 26, "C", f"part {block} of C")
    d.note(390, 292, "Each block adds up one part of the tile, reading the")
    d.note(390, 310, "shared memory of all blocks of the cluster.")
    return d


def tensor_split() -> Drawing:
    d = Drawing("A float32 is split into two TF32 numbers, and a product into three", 320)
    d.title(20, "tf32x3: the 24 bits of a float32")
    d.box((20, 44), 312, 30, "A", "x: 24 bits of significand")
    d.box((20, 92), 143, 30, "A", "big: 11 bits", strong=True)
    d.box((163, 92), 143, 30, "B", "small: 11 bits", strong=True)
    d.box((306, 92), 26, 30, "grey", "–")
    d.arrow((90, 76), (90, 90))
    d.arrow((235, 76), (235, 90))
    d.note(345, 112, "lost: at most 2⁻²³ of x", size=12)
    d.note(20, 164, "a·b =", bold=True)
    x = 66
    for words, colour, strong in (
        ("big·big", "A", True), ("big·small", "C", True), ("small·big", "C", True),
        ("small·small", "grey", False),
    ):  # fmt: skip
        d.box((x, 144), 110, 32, colour, words, strong=strong)
        if x < 400:
            d.text(x + 121, 165, "+", bold=True)
        x += 132
    d.text(66 + 132 * 3 + 55, 196, "below 2⁻²⁴: omitted", size=12)
    d.text(66 + 187, 196, "three products on tensor cores", size=12)
    d.note(20, 236, "Sums:", bold=True)
    for part in range(4):
        d.box((76 + 104 * part, 218), 96, 28, "C", "32 terms")
        d.arrow((124 + 104 * part, 248), (124 + 104 * part, 268))
    d.note(500, 228, "on tensor cores, which truncate:", size=12)
    d.note(500, 244, "each begins at zero", size=12)
    d.box((76, 270), 408, 28, "C", "total: ordinary float32 additions, rounded", strong=True)
    return d


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "coalescing": coalescing,
    "tiles": tiles,
    "thread-tile-1d": thread_tile_1d,
    "thread-tile-2d": thread_tile_2d,
    "vectorized": vectorized,
    "double-buffering": double_buffering,
    "ring": ring,
    "warp-lanes": warp_lanes,
    "pipelining": pipelining,
    "sharing-k": sharing_k,
    "tensor-split": tensor_split,
}


def outdated() -> dict[Path, str]:
    """The drawings whose file is missing or not as it should be, with what it should be."""
    found = {}
    for name, draw in DRAWINGS.items():
        path, svg = FOLDER / f"{name}.svg", draw().svg()
        if not path.is_file() or path.read_text(encoding="utf-8") != svg:
            found[path] = svg
    return found


def main() -> int:
    return freshness.finish(outdated())


if __name__ == "__main__":
    sys.exit(main())
