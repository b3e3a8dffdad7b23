"""Writes what the pages on the ladder and the gallery show of the kernel files and of the records.

`python docs/generate_lessons.py` writes them; with `--check` it names those that are out of date,
and exits 1. The pages mark what is generated:

- `<!-- rung NAME `TEXT` COUNT -->`: what the kernel file's header predicts, what its machine code
  allows, what was measured, and the lines that matter: COUNT from the one with TEXT on (of
  `helpers.cuh` if it is named);
- `<!-- ladder -->`, `<!-- misses -->` and `<!-- gallery -->`: the tables of all rungs, of what
  their predictions leave out, and of all other kernels; `<!-- tutorial -->`: the tutorial's on a
  GPU and a CPU.

What has not been recorded is shown as –.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import freshness
import measured
from measured import RECORDS, allowed, at_most, ceilings, figures, measurements, rate, speeds

from matbench.analysis import ranking
from matbench.kernelfile.catalogue import Catalogue, builtin
from matbench.model import Kernel
from matbench.records.outcome import Outcome
from matbench.show import units
from matbench.workloads import WORKLOADS

ROOT = freshness.ROOT
PAGES = [ROOT / "docs" / name for name in ("ladder.md", "gallery.md", "tutorial.md")]
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


def header(kernel: Kernel) -> dict[str, list[str]]:
    """The labelled lines that a kernel file's comment begins with: the lines below each label."""
    comment = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
    head = re.match(rf"(// ((?:{LABELS}): |  ).*\n)*", comment)
    parts = re.findall(r"// (\w+): (.*(?:\n//   .*)*)", head[0] if head else "")
    return {label: re.split(r"\n// +", text) for label, text in parts}


def rung(kernel: Kernel, records: Sequence[Sequence[Outcome]], lines: str) -> str:
    """What was predicted and measured of a rung, and the lines that matter."""
    told = figures(kernel.name, records)
    measured = "; ".join(told[size] for size in reversed(SIZES) if size in told)
    predicted = " ".join(header(kernel)["Predicted"])
    _, code = ceilings().get(kernel.name, ({}, None))
    return f"""- **Predicted:** {predicted}
- **Machine code:** {allowed(code) if code else UNKNOWN}
- **Measured:** {measured or UNKNOWN} ([code](../{kernel.path}))

```cpp
{lines}
```"""


def excerpt(path: Path, text: str, count: int) -> str:
    """Lines of a file, from the one that contains a text; `ValueError` if none or several do."""
    lines = path.read_text(encoding="utf-8").splitlines()
    [start] = [number for number, line in enumerate(lines) if text in line]
    return textwrap.dedent("\n".join(lines[start : start + count]))


def ladder(kernels: Sequence[Kernel], records: Sequence[Sequence[Outcome]]) -> str:
    """The table of all rungs."""
    codes, rows, used = ceilings(), [], []
    for kernel in kernels:
        found = speeds(kernel.name, records)
        told = {size: f"{rate(o)} ({share:.0%})" for size, (o, share) in found.items()}
        used += [found[size][0] for size in SIZES if size in found]
        ceiling = at_most(codes[kernel.name][1]) if kernel.name in codes else UNKNOWN
        link = f"[`{kernel.name}`](#{kernel.rung}-{kernel.name})"
        rows.append([str(kernel.rung), link, RUNS_ON[kernel.requires], ceiling])
        rows[-1] += [told.get(size, UNKNOWN) for size in SIZES]
    headers = ["", "rung", "compute capability", "machine code: at most"]
    headers += [f"n = {size} (of cuBLAS)" for size in SIZES]
    table = freshness.table(headers, rows, 3)
    return "\n\n".join([table, *measured.stale_line(used, kernels)])


def misses(kernels: Sequence[Kernel], records: Sequence[Sequence[Outcome]]) -> str:
    """What the first rungs reach of their predictions, and where the rest goes."""
    rows = []
    for kernel in kernels:
        params, code = ceilings()[kernel.name]
        outcome, _ = speeds(kernel.name, records)[SIZES[-1]]
        assert outcome.case.params == params
        assert code.block_cycles
        assert code.least_cycles
        counted = float(at_most(code)) * code.block_cycles / max(code.cycles.values())
        cycles = (outcome.median_ns or 0.0) * (code.sm_mhz or 0.0) / 1e3
        in_turn = code.least_cycles / code.block_cycles / (code.resident_blocks or 1)
        latency = (cycles - code.least_cycles) / (in_turn * outcome.case.problem.K / params["BK"])
        said = " ".join(header(kernel)["Predicted"]).split()[2]
        speed = [said, f"{counted:.1f}", at_most(code), rate(outcome), f"{latency:.0f}"]
        rows.append([f"{kernel.rung} `{kernel.name}`", *speed])
    titles = ["TFLOP/s at n = 4096", "predicted", "all counted", "with waits", "measured"]
    return freshness.table([*titles, "cycles of a step left"], rows, 5)


def tutorial(kernels: Sequence[Kernel]) -> str:
    """The times of the tutorial's kernels, in their order, over that of `tiled` beside them."""
    cells: dict[str, list[str]] = {kernel.name: [] for kernel in kernels}
    titles, used = [], []
    for file, size in TUTORIAL:
        _, every = measured.read(RECORDS / file)
        found = [o for o in every if o.case.problem.size == size]
        times = {o.case.kernel: o.median_ns for o in ranking.fastest(found) if o.median_ns}
        used += found
        for name, row in cells.items():
            time = units.durations([times[name]])(times[name]) if name in times else ""
            row.append(f"{time}, {times[name] / times['tiled']:.3g} ×" if time else UNKNOWN)
        titles.append(f"{' '.join(found[0].case.device.split()[:2])}, n = {size}")
    rows = [[f"[`{k.name}`](../{k.path})", *cells[k.name]] for k in kernels]
    table = freshness.table(["kernel", *titles], rows, 4)
    return "\n\n".join([table, *measured.stale_line(used, kernels)])


def gallery(kernels: Sequence[Kernel]) -> str:
    """The table of all kernels that are neither rungs nor the tutorials'."""
    rows = [[f"[`{k.name}`](../{k.path})", k.summary, "; ".join(header(k).get("Measured", ()))]
            for k in kernels]  # fmt: skip
    return freshness.table(["kernel", "what it shows", "measured"], rows, 0)


def written(page: str) -> str:
    """A page with what it must hold between its markers."""
    known = Catalogue(builtin())
    records = measurements()
    every = [kernel for name in WORKLOADS for kernel in known.group("all", name)]
    others = [kernel for kernel in every if kernel.path.startswith("kernels/gallery/")]

    def lesson(mark: re.Match[str]) -> str:
        kernel = known.get(mark["name"])
        path = (ROOT / kernel.path).with_name(mark["file"] or Path(kernel.path).name)
        return rung(kernel, records, excerpt(path, mark["text"], int(mark["count"])))

    parts: dict[str, Callable[[re.Match[str]], str]] = {
        r"rung (?P<name>\S+) (?:(?P<file>\S+) )?`(?P<text>[^`]+)` (?P<count>\d+)": lesson,
        "ladder": lambda _: ladder(known.group("ladder"), records),
        "misses": lambda _: misses(known.group("ladder")[2:7], records),
        "gallery": lambda _: gallery(others),
        "tutorial": lambda _: tutorial(known.group("tutorial")),
    }
    for mark, made in parts.items():
        last = f"<!-- /{mark.split()[0]} -->"
        whole = re.compile(f"<!-- {mark} -->\n.*?{last}", re.DOTALL)
        for old in [*whole.finditer(page)]:
            first = old[0].partition("\n")[0]
            page = page.replace(old[0], f"{first}\n{made(old)}\n{last}")
    return page


if __name__ == "__main__":
    sys.exit(freshness.finish(dict.fromkeys(PAGES, written)))
