"""Correct kernels of random signature: order, names, types, templates, layouts, styles; by seed."""

from __future__ import annotations

import random
import re
from string import Template
from textwrap import indent

from support.paths import KERNELS
from support.toml import table

_NAMES = table(KERNELS / "signatures" / "names.toml")
_BODIES = table(KERNELS / "signatures" / "styles.toml")


def generated(seed: int) -> str:
    """The kernel file of a seed."""
    return _Writer(random.Random(seed)).kernel()


class _Writer:
    def __init__(self, lot: random.Random) -> None:
        self.lot = lot
        chosen = lot.choice
        self.style = chosen(_NAMES["styles"])
        self.pointers = chosen(_NAMES["pointers"])
        self.is_square = lot.random() < 0.25
        self.column_major = lot.random() < 0.2
        self.transpose = chosen(["NN"] * 5 + ["NT", "TN", "TT"])
        element = chosen(["float"] * 7 + ["double"])
        self.scaled = lot.random() < 0.35
        self.integer = chosen(_NAMES["integers"])
        self.tile_name = chosen(_NAMES["tiles"])
        self.tile = chosen([8, 16, 32])
        self.tile_from = chosen(["macro", "template", "constexpr"])
        if self.style in ("naive", "swapped", "linear", "strided"):
            self.tile_from = chosen(["none", "none", "macro"])
        self.typed = lot.random() < 0.15 and self.tile_from != "constexpr"
        self.kind = "T" if self.typed else element
        self.led = not self.is_square and lot.random() < 0.3
        self.sizes = [chosen(_NAMES["square"])] * 3 if self.is_square else chosen(_NAMES["sizes"])
        if {*self.pointers} & {*self.sizes}:
            self.sizes = ["n"] * 3 if self.is_square else ["rows", "cols", "inner"]
        self.leading = chosen(_NAMES["leading"])
        self.place = chosen(_NAMES["places"])

    def parameters(self) -> str:
        lot = self.lot
        const = lot.choice(_NAMES["constants"])
        forms = (const, const, const.replace("const ", ""))
        order = lot.choice([(0, 1, 2), (0, 1, 2), (0, 1, 2), (2, 0, 1), (1, 0, 2), (0, 2, 1)])
        names = list(dict.fromkeys(self.sizes))
        lot.shuffle(names) if lot.random() < 0.3 else None
        sizes = [f"{self.integer} {name}" for name in names]
        scales = [f"{self.kind} alpha", f"{self.kind} beta"] if self.scaled else []
        given = []
        for which in order:
            given.append(forms[which].format(self.kind, self.pointers[which]))
            if self.led:
                given.append(f"{self.integer} {self.leading[which]}")
        listed = [
            [*sizes, *scales, *given],
            [*given, *sizes, *scales],
            [*sizes, *scales[:1], *given, *scales[1:]],
            [*given, *scales, *sizes],
        ][lot.randrange(4)]
        return ", ".join(listed)

    def at(self, which: int, row: str, column: str) -> str:
        """An element of A, B or C by its row and column in the product."""
        M, N, K = self.sizes
        stored = [(M, K), (K, N), (M, N)][which]
        if (which < 2 and self.transpose[which] == "T") != self.column_major:
            row, column, stored = column, row, stored[::-1]
        ld = self.leading[which] if self.led else stored[1]
        return f"{self.pointers[which]}[({row}) * {ld} + ({column})]"

    def body(self) -> str:
        tile = None if self.tile_from == "none" else self.tile_name
        x, y = ("y", "x") if self.style == "swapped" else ("x", "y")
        sides = {"x": tile or "blockDim.x", "y": tile or "blockDim.y"}
        text = _BODIES["styles"]["naive" if self.style == "swapped" else self.style]
        text = text.replace("PLACE\n", _BODIES["place"])
        text = re.sub(r"( *)SUM\n", lambda found: indent(_BODIES["sum"], found[1]), text)
        text = Template(text).substitute(
            dict(zip("MNK", self.sizes, strict=True)), i=self.place[0], j=self.place[1], x=x, y=y,
            width=sides[x], height=sides[y], int=self.integer.replace("const ", ""),
            float=self.kind,
        )  # fmt: skip
        if self.scaled:
            text = re.sub(r"\b(C\[.*\]) = (.*);", r"\1 = alpha * \2 + beta * \1;", text)
        return re.sub(
            r"\b([ABC])\[(.*?)\]\[(.*?)\]", lambda m: self.at("ABC".index(m[1]), m[2], m[3]), text
        )

    def kernel(self) -> str:
        entry = self.lot.choice(_NAMES["entries"])
        head = {
            "macro": f"#define {self.tile_name} {self.tile}\n\n",
            "constexpr": f"constexpr int {self.tile_name} = {self.tile};\n\n",
        }.get(self.tile_from, "")
        template = ["typename T"] * self.typed
        if self.tile_from == "template":
            template.append(f"int {self.tile_name}")
        if template:
            head += f"template <{', '.join(template)}>\n"
        elif self.lot.random() < 0.3:
            head += 'extern "C" '
        body = self.body()
        return f"{head}__global__ void {entry}({self.parameters()})\n{{\n{body}}}\n"
