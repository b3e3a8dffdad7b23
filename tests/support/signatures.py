"""Correct kernels of random signature: order, names, types, templates, layouts, styles; by seed."""

from __future__ import annotations

import random
from typing import NamedTuple

POINTERS = [
    ("A", "B", "C"), ("a", "b", "c"), ("d_A", "d_B", "d_C"), ("d_M", "d_N", "d_P"),
    ("Md", "Nd", "Pd"), ("x", "y", "out"), ("lhs", "rhs", "dst"), ("in1", "in2", "result"),
    ("matA", "matB", "matC"), ("left", "right", "res"), ("dev_a", "dev_b", "dev_c"),
    ("input", "weight", "output"), ("X", "Y", "Z"), ("A_d", "B_d", "C_d"),
]  # fmt: skip
SIZES = [
    ("M", "N", "K"), ("m", "n", "k"), ("rows", "cols", "inner"), ("height", "width", "depth"),
    ("numRows", "numCols", "numInner"), ("hA", "wB", "wA"), ("p", "q", "r"), ("m", "k", "n"),
    ("nRows", "nCols", "common"), ("M_", "N_", "K_"),
]  # fmt: skip
SQUARE = ["n", "N", "Width", "size", "dim", "width", "numElements"]
LEADING = [
    ("lda", "ldb", "ldc"),
    ("LDA", "LDB", "LDC"),
    ("ld_a", "ld_b", "ld_c"),
    ("strideA", "strideB", "strideC"),
]
INTEGERS = ["int", "const int", "unsigned int", "unsigned", "size_t", "long long"]
TILES = [
    "TILE", "TILE_WIDTH", "TILE_SIZE", "BLOCK_SIZE", "BLOCKSIZE", "BS", "TILE_DIM", "TPB", "T_SIZE",
]  # fmt: skip
STYLES = [
    "naive", "naive", "swapped", "shared", "shared", "linear", "flat", "registers", "unguarded",
    "strided",
]  # fmt: skip


class Generated(NamedTuple):
    """A kernel file, and what it needs from matbench; the rest is in its text."""

    source: str
    entry: str
    style: str
    transpose: str
    is_column_major: bool
    element: str


def generated(seed: int) -> Generated:
    """The kernel of a seed."""
    return _Writer(random.Random(seed)).kernel()


class _Writer:
    def __init__(self, lot: random.Random) -> None:
        self.lot = lot
        chosen = lot.choice
        self.style = chosen(STYLES)
        self.a, self.b, self.c = chosen(POINTERS)
        self.is_square = lot.random() < 0.25
        self.column_major = lot.random() < 0.2
        self.transpose = chosen(["NN"] * 5 + ["NT", "TN", "TT"])
        self.element = chosen(["float"] * 7 + ["double"])
        self.scaled = lot.random() < 0.35
        self.integer = chosen(INTEGERS)
        self.tile_name = chosen(TILES)
        self.tile = chosen([8, 16, 32])
        self.tile_from = chosen(["macro", "template", "constexpr"])
        if self.style in ("naive", "swapped", "linear", "strided"):
            self.tile_from = chosen(["none", "none", "macro"])
        self.typed = lot.random() < 0.15 and self.tile_from != "constexpr"
        self.led = not self.is_square and lot.random() < 0.3
        self.sizes = [chosen(SQUARE)] * 3 if self.is_square else list(chosen(SIZES))
        taken = {self.a, self.b, self.c}
        if taken & set(self.sizes):
            self.sizes = ["n"] * 3 if self.is_square else ["rows", "cols", "inner"]
        self.leading = chosen(LEADING)
        self.spoken = chosen(
            [("row", "col"), ("i", "j"), ("ty", "tx"), ("row_", "c_"), ("y_", "x_")]
        )

    # -- the signature ---------------------------------------------------------------------

    def parameters(self) -> str:
        lot = self.lot
        kind = "T" if self.typed else self.element
        const = lot.choice(
            ["const {} *{}", "const {} *{}", "{} *{}", "const {}* __restrict__ {}", "{} const *{}"]
        )
        out = const.replace("const ", "")
        pointers = [
            const.format(kind, self.a),
            const.format(kind, self.b),
            out.format(kind, self.c),
        ]
        order = lot.choice([(0, 1, 2), (0, 1, 2), (0, 1, 2), (2, 0, 1), (1, 0, 2), (0, 2, 1)])
        names = list(dict.fromkeys(self.sizes))
        lot.shuffle(names) if lot.random() < 0.3 else None
        sizes = [f"{self.integer} {name}" for name in names]
        scales = [f"{kind} alpha", f"{kind} beta"] if self.scaled else []
        if self.led:
            given = []
            for index in order:
                given += [pointers[index], f"{self.integer} {self.leading[index]}"]
        else:
            given = [pointers[index] for index in order]
        way = lot.randrange(4)
        if way == 0:
            listed = [*sizes, *scales, *given]
        elif way == 1:
            listed = [*given, *sizes, *scales]
        elif way == 2:
            listed = [*sizes, *scales[:1], *given, *scales[1:]]
        else:
            listed = [*given, *scales, *sizes]
        return ", ".join(listed)

    # -- indices ---------------------------------------------------------------------------

    def at(self, which: int, row: str, column: str) -> str:
        """An element of A, B or C by its row and column in the product."""
        M, N, K = self.sizes
        stored = [(M, K), (K, N), (M, N)][which]
        if which < 2 and self.transpose[which] == "T":
            row, column, stored = column, row, stored[::-1]
        if self.column_major:
            row, column, stored = column, row, stored[::-1]
        ld = self.leading[which] if self.led else stored[1]
        return f"{(self.a, self.b, self.c)[which]}[({row}) * {ld} + ({column})]"

    def stored(self, row: str, column: str, value: str) -> str:
        element = self.at(2, row, column)
        return (
            f"{element} = alpha * {value} + beta * {element};"
            if self.scaled
            else f"{element} = {value};"
        )

    # -- the body --------------------------------------------------------------------------

    def body(self) -> str:
        M, N, K = self.sizes
        kind = "T" if self.typed else self.element
        i, j = self.spoken
        t = self.tile_name if self.tile_from != "none" else None
        cast = self.integer.replace("const ", "")
        bx, by = (t or "blockDim.x"), (t or "blockDim.y")
        rows, columns = ("x", "y") if self.style == "swapped" else ("y", "x")
        sides = {"x": bx, "y": by}

        def index(name: str, axis: str) -> str:
            own = f"blockIdx.{axis} * {sides[axis]} + threadIdx.{axis}"
            return f"    const {cast} {name} = {own};\n"

        place = index(i, rows) + index(j, columns)
        loop = (
            f"{kind} sum = 0;\n"
            f"for ({cast} l = 0; l < {K}; ++l)\n"
            f"    sum += {self.at(0, i, 'l')} * {self.at(1, 'l', j)};\n"
            f"{self.stored(i, j, 'sum')}\n"
        )
        if self.style in ("naive", "swapped"):
            return place + f"    if ({i} < {M} && {j} < {N}) {{\n{_indented(loop, 2)}    }}\n"
        if self.style == "linear":
            width = t or "blockDim.x"
            return (
                f"    const {cast} at = blockIdx.x * {width} + threadIdx.x;\n"
                f"    if (at >= {M} * {N})\n        return;\n"
                f"    const {cast} {i} = at / {N};\n    const {cast} {j} = at % {N};\n"
                f"{_indented(loop, 1)}"
            )
        if self.style == "strided":

            def across(name: str, end: str, axis: str) -> str:
                first = f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
                step = f"gridDim.{axis} * blockDim.{axis}"
                return f"for ({cast} {name} = {first}; {name} < {end}; {name} += {step})"

            return (
                f"    {across(i, M, 'y')}\n        {across(j, N, 'x')} {{\n"
                f"{_indented(loop, 3)}        }}\n"
            )
        if self.style == "flat":
            return (
                f"    const {cast} {i} = blockIdx.x * {t} + threadIdx.x / {t};\n"
                f"    const {cast} {j} = blockIdx.y * {t} + threadIdx.x % {t};\n"
                f"    if ({i} < {M} && {j} < {N}) {{\n{_indented(loop, 2)}    }}\n"
            )
        if self.style == "registers":
            return (
                f"    const {cast} {i} = blockIdx.y * {t} + threadIdx.y;\n"
                f"    const {cast} {j} = (blockIdx.x * {t} + threadIdx.x) * 2;\n"
                f"    {kind} sums[2] = {{0, 0}};\n"
                f"    for ({cast} l = 0; l < {K}; ++l)\n        for (int u = 0; u < 2; ++u)\n"
                f"            if ({i} < {M} && {j} + u < {N})\n"
                f"                sums[u] += {self.at(0, i, 'l')}"
                f" * {self.at(1, 'l', f'{j} + u')};\n"
                f"    for (int u = 0; u < 2; ++u)\n        if ({i} < {M} && {j} + u < {N})\n"
                f"            {self.stored(i, f'{j} + u', 'sums[u]')}\n"
            )
        guarded = self.style == "shared"
        first = self.at(0, i, "start + threadIdx.x")
        second = self.at(1, "start + threadIdx.y", j)
        if guarded:
            first = f"({i} < {M} && start + threadIdx.x < {K}) ? {first} : ({kind})0"
            second = f"(start + threadIdx.y < {K} && {j} < {N}) ? {second} : ({kind})0"
        write = self.stored(i, j, "sum")
        if guarded:
            write = f"if ({i} < {M} && {j} < {N})\n        {write}"
        return (
            f"    __shared__ {kind} left_tile[{t}][{t}];\n"
            f"    __shared__ {kind} right_tile[{t}][{t}];\n"
            f"{place}    {kind} sum = 0;\n"
            f"    for ({cast} start = 0; start < {K}; start += {t}) {{\n"
            f"        left_tile[threadIdx.y][threadIdx.x] = {first};\n"
            f"        right_tile[threadIdx.y][threadIdx.x] = {second};\n"
            f"        __syncthreads();\n        for (int l = 0; l < {t}; ++l)\n"
            f"            sum += left_tile[threadIdx.y][l] * right_tile[l][threadIdx.x];\n"
            f"        __syncthreads();\n    }}\n    {write}\n"
        )

    def kernel(self) -> Generated:
        name = self.lot.choice(
            ["matmul", "gemm", "MatrixMulKernel", "sgemm_v1", "mm_kernel", "multiply"]
        )
        lines = []
        template = ["typename T"] if self.typed else []
        if self.tile_from == "macro":
            lines.append(f"#define {self.tile_name} {self.tile}\n")
        elif self.tile_from == "constexpr":
            lines.append(f"constexpr int {self.tile_name} = {self.tile};\n")
        elif self.tile_from == "template":
            template.append(f"int {self.tile_name}")
        if template:
            lines.append(f"template <{', '.join(template)}>")
        plain = 'extern "C" ' if not template and self.lot.random() < 0.3 else ""
        body = self.body()
        lines.append(f"{plain}__global__ void {name}({self.parameters()})\n{{\n{body}}}")
        return Generated(
            "\n".join(lines) + "\n", name, self.style, self.transpose, self.column_major,
            self.element,
        )  # fmt: skip


def _indented(text: str, levels: int) -> str:
    return "".join("    " * levels + line + "\n" for line in text.splitlines())
