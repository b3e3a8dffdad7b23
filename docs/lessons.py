"""What the pages on the ladder, the gallery and the tutorial show of kernel files and of records.

What has not been measured is shown as –.
"""

from __future__ import annotations

import functools
import re
import textwrap
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from tables import RECORDS, ROOT, noted, read, table

from matbench.analysis import ranking
from matbench.features.explain.machine_code import busy
from matbench.features.explain.machine_code_view import allowed
from matbench.features.explain.record import MachineCode
from matbench.kernelfile.catalogue import Catalogue, builtin
from matbench.model import Kernel
from matbench.records import reading
from matbench.show import outcomes, units
from matbench.show.units import UNKNOWN
from matbench.workloads import WORKLOADS

#: Records of products with cuBLAS's beside them: the first that has a kernel at a size counts.
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
#: The sizes that rungs are compared at.
SIZES = ("1000", "4096")
LABELS = "Adds|Predicted|Limit|Measured"
KNOWN = Catalogue(builtin())
RUNGS = KNOWN.group("ladder")


@functools.cache
def products() -> list[Any]:
    """All products that were measured, in the order in which they count: what was measured
    together, each kernel at its fastest, beside cuBLAS."""
    rows: list[Any] = []
    for contents in (reading.Contents(RECORDS / file) for file in PRODUCTS):
        for together in [of for _, of in contents.findings] or [contents.outcomes]:
            rows += outcomes.report(together, [], fastest=True).rows()
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


def header(kernel: Kernel) -> dict[str, list[str]]:
    """The labelled lines that a kernel file's comment begins with: the lines below each label."""
    comment = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
    head = re.match(rf"(// ((?:{LABELS}): |  ).*\n)*", comment)
    parts = re.findall(r"// (\w+): (.*(?:\n//   .*)*)", head[0] if head else "")
    return {label: re.split(r"\n// +", text) for label, text in parts}


def rung(name: str, text: str, count: int, file: str = "") -> str:
    """What was predicted and measured of a rung, and `count` lines that matter, from the one with a
    text on, of its own or another file; `ValueError` if none or several have it."""
    kernel, found = KNOWN.get(name), figures(name)
    path = (ROOT / kernel.path).with_name(file or Path(kernel.path).name)
    lines = path.read_text(encoding="utf-8").splitlines()
    [start] = [number for number, line in enumerate(lines) if text in line]
    code = textwrap.dedent("\n".join(lines[start : start + count]))
    speed = "; ".join(found[size] for size in SIZES[::-1] if size in found) or UNKNOWN
    return f"""- **Predicted:** {" ".join(header(kernel)["Predicted"])}
- **Machine code:** {allowed(ceilings()[name][1])}
- **Measured:** {speed} ([code](../{kernel.path}))

```cpp
{code}
```"""


def ladder() -> str:
    """The table of all rungs."""
    lines, used = [], []
    for kernel in RUNGS:
        found, (_, code) = speeds(kernel.name), ceilings()[kernel.name]
        used += [found[size].outcome for size in SIZES if size in found]
        link = f"[`{kernel.name}`](#{kernel.rung}-{kernel.name})"
        ceiling = units.number(code.ceiling_operations_per_s / 1e12)
        said = {n: f"{rate(row.work_per_s)} ({row.of_cublas:.0%})" for n, row in found.items()}
        lines.append([kernel.rung, link, ", ".join(kernel.requires), ceiling,
                      *(said.get(size, UNKNOWN) for size in SIZES)])  # fmt: skip
    headers = ["", "rung", "needs", "machine code: at most"]
    return noted(table([*headers, *(f"n = {n} (of cuBLAS)" for n in SIZES)], lines, 3), used)


def misses() -> str:
    """What the first rungs reach of their predictions, and where the rest goes."""
    rows = []
    for kernel in RUNGS[2:7]:
        (params, code), row = ceilings()[kernel.name], speeds(kernel.name)["4096"]
        case, ceiling = row.outcome.case, code.ceiling_operations_per_s
        assert case.params == params
        # A multiprocessor has several blocks at a time, and one after the other.
        turns = code.least_cycles / code.block_cycles / code.resident_blocks
        steps = turns * case.problem.K / params["BK"]
        left = (row.outcome.median_ns - code.least_ns) * code.sm_mhz / 1e3 / steps
        counted = ceiling / max(busy(code).values())
        predicted = header(kernel)["Predicted"][0].split()[2]
        speed = [predicted, *map(rate, (counted, ceiling, row.work_per_s)), f"{left:.0f}"]
        rows.append([f"{kernel.rung} `{kernel.name}`", *speed])
    titles = ["TFLOP/s at n = 4096", "predicted", "all counted", "with waits", "measured"]
    return table([*titles, "cycles of a step left"], rows, 5)


def tutorial() -> str:
    """The times of the tutorial's kernels, in their order, over that of `tiled` beside them."""
    kernels, times, used = KNOWN.group("tutorial"), dict[str, Any](), []
    for file, size in product(("h200.jsonl", "cpu-tutorial.jsonl"), ("256", "1000")):
        found = [o for o in read(file)[0] if o.case.problem.size == size]
        title = f"{' '.join(found[0].case.device.split()[:2])}, n = {size}"
        times[title] = {o.case.kernel: o.median_ns for o in ranking.fastest(found)}
        used += found
    ns = pd.DataFrame(times, [kernel.name for kernel in kernels])
    cells = ns.map(units.duration) + (ns / ns.loc["tiled"]).map(", {:.3g} ×".format)
    cells = cells.where(ns.notna(), UNKNOWN)
    rows = [[f"[`{k.name}`](../{k.path})", *cells.loc[k.name]] for k in kernels]
    return noted(table(["kernel", *times], rows, 4), used)


def gallery() -> str:
    """The table of all kernels that are neither rungs nor the tutorials'."""
    kernels = [kernel for name in WORKLOADS for kernel in KNOWN.group("all", name)]
    rows = [[f"[`{k.name}`](../{k.path})", k.summary, "; ".join(header(k).get("Measured", ()))]
            for k in kernels if k.path.startswith("kernels/gallery/")]  # fmt: skip
    return table(["kernel", "what it shows", "measured"], rows, 0)
