"""What modules beside this one read of the committed records, and tables in Markdown."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tabulate import tabulate

from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.features.explain.record import MachineCode
from matbench.features.grade.record import Grade
from matbench.kernelfile.catalogue import builtin
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.comparison import ComparisonRecord
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
CEILINGS = RECORDS / "h200-ceilings.json"
#: What headers of kernels call the product of cuBLAS that they are compared with, by precision.
TITLES = {
    "float32": "cuBLAS", "bfloat16": "cuBLAS in bfloat16", "e4m3": "cuBLASLt in FP8",
    "int8": "cuBLASLt in int8", "float64": "cuBLAS in float64",
}  # fmt: skip


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], numbers: int) -> str:
    """A table in Markdown; the last columns are so many `numbers`."""
    align = ["left"] * (len(titles) - numbers) + ["right"] * numbers
    return tabulate(rows, titles, "pipe", colalign=align, disable_numparse=True)


def read(file: str | Path) -> tuple[list[Any], list[Environment]]:
    """The records of a file, which are all of one kind, and their environments."""
    contents = reading.Contents(RECORDS / file)
    return contents.records, contents.environments


def stale(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel] | None = None) -> list[str]:
    """The kernels among the records whose code has changed since, or is gone."""
    now = {kernel.name: kernel for kernel in kernels or builtin()}
    cases = {(outcome.case.kernel, outcome.case.sha256) for outcome in found}
    return sorted({name for name, sha256 in cases if not _is_of(sha256, now.get(name))})


def noted(text: str, found: Iterable[Outcome | Grade]) -> str:
    """A text, and a line that names these, if there are any."""
    names = ", ".join(f"`{name}`" for name in stale(found))
    return f"{text}\n\n**Stale:** changed since this was measured: {names}." if names else text


def _is_of(sha256: str, kernel: Kernel | None) -> bool:
    """Whether a file of this hash had the code and the front matter that a kernel has now."""
    if kernel is None or kernel.kind.is_library:  # whose file only calls what was measured
        return kernel is not None
    if kernel.sha256 == sha256 or not kernel.source:
        return kernel.sha256 == sha256
    then = json.loads(MEASURED_CODE.read_text(encoding="utf-8"))["code"]
    return bool(then.get(sha256) == code_of(kernel))


def compared_in(file: Path) -> list[ComparisonRecord]:
    return [f for f, _ in reading.Contents(file).findings if isinstance(f, ComparisonRecord)]


def tflops(outcome: Outcome) -> float:
    """The rate of a matrix product that was measured."""
    problem = outcome.case.problem
    return 2e-3 * problem.M * problem.N * problem.K / (outcome.median_ns or math.nan)


def ranked(together: Sequence[Outcome]) -> list[Ranked]:
    """What was measured together, each kernel at its fastest, beside cuBLAS."""
    return [row for of in ranking.tables(ranking.fastest(together)) for row in of.rows]


@functools.cache
def products() -> list[Ranked]:
    """All products that were measured, in the order in which they count."""
    found = []
    for path in filter(Path.exists, (RECORDS / name for name in PRODUCTS)):
        sides = [[one.baseline, one.candidate] for one in compared_in(path)]
        for together in sides or [reading.Contents(path).outcomes]:
            found += ranked(together)
    return found


def speeds(kernel: str, rows: Sequence[Ranked] | None = None) -> dict[str, Ranked]:
    """By size: a kernel at its fastest, where cuBLAS was measured beside it."""
    found: dict[str, Ranked] = {}
    for row in products() if rows is None else rows:
        if row.outcome.case.kernel == kernel and row.of_cublas:
            found.setdefault(row.outcome.case.problem.size, row)
    return found


def rate(row: Ranked) -> str:
    """Its TFLOP/s in three digits or so."""
    speed = (row.work_per_s or math.nan) / 1e12
    return f"{speed:.{2 if speed < 1 else 1 if speed < 100 else 0}f}"


def figures(kernel: str, rows: Sequence[Ranked] | None = None) -> dict[str, str]:
    """By size: what a page or a header may say of a kernel at its fastest."""
    told = {}
    for size, row in speeds(kernel, rows).items():
        at, case = size if "x" in size else f"n = {size}", row.outcome.case
        share = f"{row.of_cublas:.0%} of {TITLES[case.claims.precision]}"
        told[size] = f"{rate(row)} TFLOP/s at {at}, {share} ({case.device.split()[1]})"
    return told


def ceilings() -> dict[str, tuple[dict[str, int], MachineCode]]:
    """Of each rung parameters, and what its machine code allows at n = 4096 on an H200."""
    rungs = msgspec.json.decode(CEILINGS.read_bytes())["rungs"].items()
    return {name: (one["params"], msgspec.convert(one["code"], MachineCode)) for name, one in rungs}


def at_most(code: MachineCode) -> str:
    return f"{(code.ceiling_operations_per_s or 0.0) / 1e12:.3g}"


def allowed(code: MachineCode) -> str:
    """The highest speed, how busy the three busiest resources are then, and how much is waiting."""
    whole = code.block_cycles or 0.0
    busy = [(name, used / whole) for name, used in [*code.cycles.items()][:3]]
    told = [f"{name} {share:.0%}" for name, share in busy]
    waits = 1 - busy[0][1]
    told += [f"waits {waits:.0%}"] if waits >= 0.005 else []
    return f"at most {at_most(code)} TFLOP/s: {', '.join(told)}"
