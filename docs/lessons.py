"""What the pages on the ladder, the gallery and the tutorial show of kernel files and of records.

What has not been measured is shown as –.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import measured
from measured import ceilings, noted, rate, speeds, table

from matbench.analysis import ranking
from matbench.features.explain.machine_code import busy
from matbench.features.explain.machine_code_view import allowed
from matbench.kernelfile.catalogue import Catalogue, builtin
from matbench.model import Kernel
from matbench.show import units
from matbench.show.units import UNKNOWN
from matbench.workloads import WORKLOADS

#: Of the tutorial's kernels: a file and a size for each column.
TUTORIAL = [(f, n) for f in ("h200.jsonl", "cpu-tutorial.jsonl") for n in ("256", "1000")]
#: The sizes that rungs are compared at.
SIZES = ("1000", "4096")
LABELS = "Adds|Predicted|Limit|Measured"
KNOWN = Catalogue(builtin())
RUNGS = KNOWN.group("ladder")


def header(kernel: Kernel) -> dict[str, list[str]]:
    """The labelled lines that a kernel file's comment begins with: the lines below each label."""
    comment = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
    head = re.match(rf"(// ((?:{LABELS}): |  ).*\n)*", comment)
    parts = re.findall(r"// (\w+): (.*(?:\n//   .*)*)", head[0] if head else "")
    return {label: re.split(r"\n// +", text) for label, text in parts}


def rung(name: str, text: str, count: int, file: str = "") -> str:
    """What was predicted and measured of a rung, and `count` lines that matter, from the one with a
    text on, of its own or another file; `ValueError` if none or several have it."""
    kernel, found = KNOWN.get(name), measured.figures(name)
    path = (measured.ROOT / kernel.path).with_name(file or Path(kernel.path).name)
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
    columns, used = dict[str, dict[str, float]](), []
    for file, size in TUTORIAL:
        found = [o for o in measured.read(file)[0] if o.case.problem.size == size]
        title = f"{' '.join(found[0].case.device.split()[:2])}, n = {size}"
        fastest = ranking.fastest(found)
        columns[title] = {o.case.kernel: o.median_ns for o in fastest if o.median_ns}
        used += found
    rows = [
        [f"[`{k.name}`](../{k.path})",
         *(f"{units.duration(ns[k.name])}, {ns[k.name] / ns['tiled']:.3g} ×"
           if k.name in ns else UNKNOWN for ns in columns.values())]
        for k in KNOWN.group("tutorial")
    ]  # fmt: skip
    return noted(table(["kernel", *columns], rows, 4), used)


def gallery() -> str:
    """The table of all kernels that are neither rungs nor the tutorials'."""
    kernels = [kernel for name in WORKLOADS for kernel in KNOWN.group("all", name)]
    rows = [[f"[`{k.name}`](../{k.path})", k.summary, "; ".join(header(k).get("Measured", ()))]
            for k in kernels if k.path.startswith("kernels/gallery/")]  # fmt: skip
    return table(["kernel", "what it shows", "measured"], rows, 0)
