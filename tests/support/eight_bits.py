"""Kernels of 8-bit operands: right ones, and each mistake that is made in them.

All are one source, which an OpenCL device can run: operands are decoded in the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from matbench.bench.session import Session
from matbench.kernelfile import catalogue, sweep
from matbench.model import Inputs, Problem
from matbench.records.outcome import Outcome
from support.kernels import saved
from support.paths import KERNELS
from support.toml import table

_DECODED = {
    "e4m3": """\
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent ? ldexpf(1.0f + fraction / 8.0f, exponent - 7)
                                : ldexpf(fraction / 8.0f, -6);
    return bits & 128 ? -size : size;""",
    "e5m2": """\
    const int exponent = bits >> 2 & 31, fraction = bits & 3;
    const float size = exponent ? ldexpf(1.0f + fraction / 4.0f, exponent - 15)
                                : ldexpf(fraction / 4.0f, -14);
    return bits & 128 ? -size : size;""",
    "int8": "    return (signed char)bits;",
}
_SCALED = {
    None: ("1.0f", "1.0f"),
    "matrix": ("scale_a[0]", "scale_b[0]"),
    "rows": ("scale_a[i]", "scale_b[j]"),
    "blocks": ("scale_a[i * steps + k / 128]", "scale_b[j / 128 * steps + k / 128]"),
}
_FOLDER = KERNELS / "eight-bits"
_TEMPLATE = (_FOLDER / "template.cu").read_text(encoding="utf-8")


class Variant(NamedTuple):
    """A right kernel. `result` is the C type of C, `keys` are more lines of front matter."""

    storage: str = "e4m3"
    scales: str | None = None
    result: str = "float"
    keys: str = ""

    @property
    def source(self) -> str:
        whole = self.result == "int"
        of_a, of_b = _SCALED[self.scales]
        scaled = self.scales is not None
        text = _TEMPLATE.replace("STORAGE", self.storage)
        text = text.replace("DECODED", _DECODED[self.storage]).replace("RESULT", self.result)
        text = text.replace("NUMBER", "int" if whole else "float")
        text = text.replace("TERM", f"{of_a} * a * ({of_b} * b)" if scaled else "a * b")
        arguments = '"scale_a", "scale_b", ' if scaled else ""
        parameters = "const float *scale_a, const float *scale_b, " if scaled else ""
        text = text.replace("ARGUMENTS", arguments).replace("PARAMETERS", parameters)
        keys = f'scales = "{self.scales}"\n' if scaled else ""
        keys = "".join(f"// {line}\n" for line in (keys + self.keys).splitlines())
        return text.replace("KEYS", keys)


class Mistake(NamedTuple):
    """What is wrong in a variant: `old` is replaced by `new`. `size` shows it."""

    variant: Variant
    old: str
    new: str
    size: str = "40x300x400"
    inputs: Inputs = "signed"

    @property
    def source(self) -> str:
        source = self.variant.source
        assert source.count(self.old) == 1, self.old
        return source.replace(self.old, self.new)


E4M3 = Variant()
MATRIX, ROWS, BLOCKS = (Variant(scales=scales) for scales in ("matrix", "rows", "blocks"))
VARIANTS = {
    "e4m3": E4M3,
    "e5m2": Variant("e5m2"),
    "a scale for each matrix": MATRIX,
    "scales of rows": ROWS,
    "scales of blocks": BLOCKS,
    "e5m2 with scales of blocks": Variant("e5m2", "blocks"),
    "int8": Variant("int8", result="int"),
    "int8 with scales": Variant("int8", "rows"),
    "sums in float22": Variant(keys='accumulator = "float22"'),
    "promoted sums": Variant(scales="blocks", keys='accumulator = "float22"\npromotes = 128'),
}
MISTAKES = {
    name: Mistake(VARIANTS[row.pop("of")], **row)
    for name, row in table(_FOLDER / "mistakes.toml").items()
}


def measured(session: Session, source: str, problem: Problem, folder: Path) -> Outcome:
    file = saved(folder / "eight-bits.cu", source)
    case = sweep.case(catalogue.load(file), problem, {}, session.backend.info)
    assert case.skip is None, case.skip
    return session.measure(case)
