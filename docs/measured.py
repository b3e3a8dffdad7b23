"""What modules beside this one read of the committed records, and tables in Markdown."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tabulate import tabulate

from matbench.analysis import ranking
from matbench.features.charts.definitions import filled
from matbench.features.explain.record import MachineCode
from matbench.features.grade.record import Grade
from matbench.kernelfile.catalogue import builtin
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome

ROOT = Path(__file__).parent.parent
DOCS, RECORDS = ROOT / "docs", ROOT / "results"
#: The code of each kernel file that was measured, by the hash of the file as it was then.
MEASURED_CODE = RECORDS / "h200-code.json"
#: Records of products, each with cuBLAS beside the kernels: the first that has a kernel at a size
#: counts.
#: The course's: `matbench run --group ladder --baseline cublas --sizes 1000,4096 --output FILE`.
PRODUCTS = (
    "course.jsonl", "h100-turns.jsonl", "h200-ladder.jsonl", "h200.jsonl", "h100-eight-bits.jsonl",
    "h100-split.jsonl", "h100-double-int8.jsonl",
)  # fmt: skip
#: What headers of kernels call the product of cuBLAS that they are compared with, by precision.
TITLES = {
    "float32": "cuBLAS", "bfloat16": "cuBLAS in bfloat16", "e4m3": "cuBLASLt in FP8",
    "int8": "cuBLASLt in int8", "float64": "cuBLAS in float64",
}  # fmt: skip


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], numbers: int) -> str:
    """A table in Markdown; the last columns are so many `numbers`."""
    align = ["left"] * (len(titles) - numbers) + ["right"] * numbers
    return tabulate(rows, titles, "pipe", colalign=align, disable_numparse=True)


def specified(file: str, **parts: Any) -> Any:
    """A chart's specification beside this file, with its parts."""
    return filled(json.loads((DOCS / file).read_text(encoding="utf-8")), parts)


def read(file: str | Path) -> tuple[list[Any], list[Environment]]:
    """The records of a file, which are all of one kind, and their environments."""
    contents = reading.Contents(RECORDS / file)
    return contents.records, contents.environments


def stale(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel] | None = None) -> list[str]:
    """The kernels among the records whose code or front matter has changed since, or is gone."""
    now = {kernel.name: kernel for kernel in kernels or builtin()}
    then = json.loads(MEASURED_CODE.read_text(encoding="utf-8"))["code"]

    def is_same(sha256: str, kernel: Kernel) -> bool:
        # The file of a library only calls what was measured.
        known = kernel.kind.is_library or kernel.sha256 == sha256
        return known or then.get(sha256) == code_of(kernel)

    cases = {(one.case.kernel, one.case.sha256) for one in found}
    return sorted({k for k, sha256 in cases if k not in now or not is_same(sha256, now[k])})


def noted(text: str, found: Iterable[Outcome | Grade]) -> str:
    """A text, and a line that names these, if there are any."""
    names = ", ".join(f"`{name}`" for name in stale(found))
    return f"{text}\n\n**Stale:** changed since this was measured: {names}." if names else text


def ranked(together: Iterable[Outcome]) -> list[Any]:
    """What was measured together, each kernel at its fastest, beside cuBLAS."""
    return [row for of in ranking.tables(ranking.fastest(together)) for row in of.rows]


@functools.cache
def products() -> list[Any]:
    """All products that were measured, in the order in which they count."""
    rows = []
    for path in filter(Path.exists, (RECORDS / name for name in PRODUCTS)):
        contents = reading.Contents(path)
        for together in [of for _, of in contents.findings] or [contents.outcomes]:
            rows += ranked(together)
    return rows


def speeds(kernel: str) -> dict[str, Any]:
    """By size: a kernel at its fastest, where cuBLAS was measured beside it."""
    rows = [row for row in products() if row.outcome.case.kernel == kernel and row.of_cublas]
    return {row.outcome.case.problem.size: row for row in rows[::-1]}


def rate(per_s: float) -> str:
    """TFLOP/s in three digits or so."""
    speed = per_s / 1e12
    return f"{speed:.{2 if speed < 1 else 1 if speed < 100 else 0}f}"


def figures(kernel: str) -> dict[str, str]:
    """By size: what a page or a header may say of a kernel at its fastest."""
    told = {}
    for size, row in speeds(kernel).items():
        at, case = size if "x" in size else f"n = {size}", row.outcome.case
        share = f"{row.of_cublas:.0%} of {TITLES[case.claims.precision]}"
        told[size] = f"{rate(row.work_per_s)} TFLOP/s at {at}, {share} ({case.device.split()[1]})"
    return told


def ceilings() -> dict[str, tuple[dict[str, int], Any]]:
    """Of each rung parameters, and what its machine code allows at n = 4096 on an H200."""
    rungs = msgspec.json.decode((RECORDS / "h200-ceilings.json").read_bytes())["rungs"].items()
    return {name: (one["params"], msgspec.convert(one["code"], MachineCode)) for name, one in rungs}
