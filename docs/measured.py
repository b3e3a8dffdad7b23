"""What scripts that generate documentation read of the committed records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from freshness import ROOT

from matbench.analysis import ranking
from matbench.features.explain.record import MachineCode
from matbench.features.grade.record import Grade
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome

RECORDS = ROOT / "results"
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
#: The cuBLAS product that a kernel is compared with, by its precision, and what headers call it.
OPPONENTS = {
    "float32": ("cublas", "cuBLAS"), "bfloat16": ("cublas-bf16", "cuBLAS in bfloat16"),
    "e4m3": ("cublaslt-fp8", "cuBLASLt in FP8"), "int8": ("cublaslt-int8", "cuBLASLt in int8"),
    "float64": ("cublas-f64", "cuBLAS in float64"),
}  # fmt: skip


def read(path: Path) -> tuple[list[Environment], list[Outcome]]:
    contents = reading.Contents(path)
    return contents.environments, contents.outcomes


def stale(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel]) -> list[str]:
    """The kernels among the records whose code has changed since, or is gone."""
    now = {kernel.name: kernel for kernel in kernels}
    cases = {(outcome.case.kernel, outcome.case.sha256) for outcome in found}
    return sorted({name for name, sha256 in cases if not _is_of(sha256, now.get(name))})


def _is_of(sha256: str, kernel: Kernel | None) -> bool:
    """Whether a file of this hash had the code and the front matter that a kernel has now."""
    if kernel is not None and kernel.kind.is_library:
        return True  # its file only calls what was measured
    if kernel is None or not kernel.source:
        return kernel is not None and kernel.sha256 == sha256
    then = json.loads(MEASURED_CODE.read_text(encoding="utf-8"))["code"]
    return kernel.sha256 == sha256 or then.get(sha256) == code_of(kernel)


def compared_in(file: Path) -> list[ComparisonRecord]:
    return [f for f, _ in reading.Contents(file).findings if isinstance(f, ComparisonRecord)]


def tflops(outcome: Outcome) -> float:
    """The rate of a matrix product that was measured."""
    problem = outcome.case.problem
    return 2e-3 * problem.M * problem.N * problem.K / (outcome.median_ns or math.nan)


def stale_line(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel]) -> list[str]:
    changed = stale(found, kernels)
    if not changed:
        return []
    names = ", ".join(f"`{name}`" for name in changed)
    return [f"**Stale:** changed since this was measured: {names}."]


def measurements() -> list[Sequence[Outcome]]:
    """What was measured together, in the order in which it counts: the outcomes of a file, or the
    two sides of each of its comparisons."""
    together: list[Sequence[Outcome]] = []
    for path in filter(Path.exists, (RECORDS / name for name in PRODUCTS)):
        sides = [[one.baseline, one.candidate] for one in compared_in(path)]
        together += sides or [reading.Contents(path).outcomes]
    return together


def speeds(kernel: str, records: Sequence[Sequence[Outcome]]) -> dict[str, tuple[Outcome, float]]:
    """By size: a kernel's fastest outcome, and its speed as a share of cuBLAS's beside it."""
    shares: dict[str, tuple[Outcome, float]] = {}
    for outcomes in records:
        fastest = {(o.case.kernel, o.case.problem.size): o for o in ranking.fastest(outcomes)}
        mine = {size: o for (name, size), o in fastest.items() if name == kernel and o.median_ns}
        for size, outcome in mine.items():
            product, _ = OPPONENTS.get(outcome.case.claims.precision, ("", ""))
            other = fastest.get((product, size))
            if other is not None and other.median_ns and outcome.median_ns:
                shares.setdefault(size, (outcome, other.median_ns / outcome.median_ns))
    return shares


def rate(outcome: Outcome) -> str:
    """Its TFLOP/s in three digits or so."""
    speed = tflops(outcome)
    return f"{speed:.{2 if speed < 1 else 1 if speed < 100 else 0}f}"


def figures(kernel: str, records: Sequence[Sequence[Outcome]]) -> dict[str, str]:
    """By size: what a page or a header may say of a kernel at its fastest."""
    told = {}
    for size, (outcome, share) in speeds(kernel, records).items():
        at = size if "x" in size else f"n = {size}"
        _, title = OPPONENTS[outcome.case.claims.precision]
        device = outcome.case.device.split()[1]
        told[size] = f"{rate(outcome)} TFLOP/s at {at}, {share:.0%} of {title} ({device})"
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
