"""What the pages on the ladder, the gallery and the tutorial show of kernel files and of records.

What has not been recorded is shown as –.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import measured
from measured import ceilings, noted, rate, speeds, table

from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.kernelfile.catalogue import Catalogue, builtin
from matbench.model import Kernel
from matbench.show import units
from matbench.workloads import WORKLOADS

#: Of the tutorial's kernels: a file and a size for each column.
TUTORIAL = [(f, n) for f in ("h200.jsonl", "cpu-tutorial.jsonl") for n in ("256", "1000")]
#: The sizes that rungs are compared at.
SIZES = ("1000", "4096")
#: The compute capabilities that a rung's `requires` leaves.
RUNS_ON = {
    (): "any GPU, and CPUs", ("cuda", "sm_80"): "8.0 and later", ("cuda", "sm_90a"): "9.0 alone",
}  # fmt: skip
LABELS = "Adds|Predicted|Limit|Measured"
UNKNOWN = "–"
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
    kernel = KNOWN.get(name)
    path = (measured.ROOT / kernel.path).with_name(file or Path(kernel.path).name)
    lines = path.read_text(encoding="utf-8").splitlines()
    [start] = [number for number, line in enumerate(lines) if text in line]
    code = textwrap.dedent("\n".join(lines[start : start + count]))
    return f"{told(kernel)}\n\n```cpp\n{code}\n```"


def told(kernel: Kernel, rows: Sequence[Ranked] | None = None) -> str:
    """What was predicted and measured of a rung."""
    found = measured.figures(kernel.name, rows)
    speed = "; ".join(found[size] for size in reversed(SIZES) if size in found)
    _, code = ceilings().get(kernel.name, ({}, None))
    return f"""- **Predicted:** {" ".join(header(kernel)["Predicted"])}
- **Machine code:** {measured.allowed(code) if code else UNKNOWN}
- **Measured:** {speed or UNKNOWN} ([code](../{kernel.path}))"""


def ladder(kernels: Sequence[Kernel] = RUNGS, rows: Sequence[Ranked] | None = None) -> str:
    """The table of all rungs."""
    codes, lines, used = ceilings(), [], []
    for kernel in kernels:
        found = speeds(kernel.name, rows)
        said = {size: f"{rate(row)} ({row.of_cublas:.0%})" for size, row in found.items()}
        used += [found[size].outcome for size in SIZES if size in found]
        ceiling = measured.at_most(codes[kernel.name][1]) if kernel.name in codes else UNKNOWN
        link = f"[`{kernel.name}`](#{kernel.rung}-{kernel.name})"
        lines.append([str(kernel.rung), link, RUNS_ON[kernel.requires], ceiling])
        lines[-1] += [said.get(size, UNKNOWN) for size in SIZES]
    headers = ["", "rung", "compute capability", "machine code: at most"]
    headers += [f"n = {size} (of cuBLAS)" for size in SIZES]
    return noted(table(headers, lines, 3), used)


def misses(kernels: Sequence[Kernel] = RUNGS[2:7]) -> str:
    """What the first rungs reach of their predictions, and where the rest goes."""
    rows = []
    for kernel in kernels:
        params, code = ceilings()[kernel.name]
        row = speeds(kernel.name)[SIZES[-1]]
        outcome = row.outcome
        assert outcome.case.params == params
        assert code.block_cycles
        assert code.least_cycles
        counted = float(measured.at_most(code)) * code.block_cycles / max(code.cycles.values())
        cycles = (outcome.median_ns or 0.0) * (code.sm_mhz or 0.0) / 1e3
        in_turn = code.least_cycles / code.block_cycles / (code.resident_blocks or 1)
        latency = (cycles - code.least_cycles) / (in_turn * outcome.case.problem.K / params["BK"])
        said = " ".join(header(kernel)["Predicted"]).split()[2]
        speed = [said, f"{counted:.1f}", measured.at_most(code), rate(row), f"{latency:.0f}"]
        rows.append([f"{kernel.rung} `{kernel.name}`", *speed])
    titles = ["TFLOP/s at n = 4096", "predicted", "all counted", "with waits", "measured"]
    return table([*titles, "cycles of a step left"], rows, 5)


def tutorial() -> str:
    """The times of the tutorial's kernels, in their order, over that of `tiled` beside them."""
    kernels = KNOWN.group("tutorial")
    cells: dict[str, list[str]] = {kernel.name: [] for kernel in kernels}
    titles, used = [], []
    for file, size in TUTORIAL:
        every, _ = measured.read(file)
        found = [o for o in every if o.case.problem.size == size]
        times = {o.case.kernel: o.median_ns for o in ranking.fastest(found) if o.median_ns}
        used += found
        for name, row in cells.items():
            time = units.durations([times[name]])(times[name]) if name in times else ""
            row.append(f"{time}, {times[name] / times['tiled']:.3g} ×" if time else UNKNOWN)
        titles.append(f"{' '.join(found[0].case.device.split()[:2])}, n = {size}")
    rows = [[f"[`{k.name}`](../{k.path})", *cells[k.name]] for k in kernels]
    return noted(table(["kernel", *titles], rows, 4), used)


def gallery() -> str:
    """The table of all kernels that are neither rungs nor the tutorials'."""
    kernels = [kernel for name in WORKLOADS for kernel in KNOWN.group("all", name)]
    rows = [[f"[`{k.name}`](../{k.path})", k.summary, "; ".join(header(k).get("Measured", ()))]
            for k in kernels if k.path.startswith("kernels/gallery/")]  # fmt: skip
    return table(["kernel", "what it shows", "measured"], rows, 0)
