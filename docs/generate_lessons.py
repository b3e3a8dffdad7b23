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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import freshness
import generate_readme
import msgspec
from tabulate import tabulate

from matbench.analysis import ranking
from matbench.features.explain.record import MachineCode
from matbench.kernelfile.catalogue import Catalogue, builtin
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.show import units
from matbench.workloads import WORKLOADS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
PAGES = [ROOT / "docs" / name for name in ("ladder.md", "gallery.md", "tutorial.md")]
#: Records of products, each with cuBLAS beside the kernels: the first that has a kernel at a size
#: counts.
#: The course's: `matbench run --group ladder --baseline cublas --sizes 1000,4096 --output FILE`.
PRODUCTS = (
    "course.jsonl", "h100-turns.jsonl", "h200-ladder.jsonl", "h200.jsonl", "h100-eight-bits.jsonl",
    "h100-split.jsonl", "h100-double-int8.jsonl",
)  # fmt: skip
DOT = RESULTS / "h200-dot.jsonl"
CEILINGS = RESULTS / "h200-ceilings.json"
#: Of the tutorial's kernels: a file and a size for each column.
TUTORIAL = [(f, n) for f in ("h200.jsonl", "cpu-tutorial.jsonl") for n in ("256", "1000")]
#: The sizes that rungs are compared at.
SIZES = ("1000", "4096")
DOT_SIZE = 2**28
#: The cuBLAS product that a kernel is compared with, by its precision, and what headers call it.
OPPONENTS = {
    "float32": ("cublas", "cuBLAS"), "bfloat16": ("cublas-bf16", "cuBLAS in bfloat16"),
    "e4m3": ("cublaslt-fp8", "cuBLASLt in FP8"), "int8": ("cublaslt-int8", "cuBLASLt in int8"),
    "float64": ("cublas-f64", "cuBLAS in float64"),
}  # fmt: skip
#: The compute capabilities that a rung's `requires` leaves.
RUNS_ON = {
    (): "any GPU, and CPUs", ("cuda", "sm_80"): "8.0 and later", ("cuda", "sm_90a"): "9.0 alone",
}  # fmt: skip
LABELS = ("Adds", "Predicted", "Limit", "Measured")
UNKNOWN = "–"


def header(kernel: Kernel) -> dict[str, list[str]]:
    """The labelled lines that a kernel file's comment begins with: the lines below each label."""
    comment = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
    parts: dict[str, list[str]] = {}
    for line in comment.splitlines():
        text = re.fullmatch(r"// (.*\S)", line)
        label, colon, rest = text[1].partition(": ") if text else ("", "", "")
        if colon and label in LABELS:
            parts[label] = [rest]
        elif parts and text and text[1].startswith("  "):
            parts[next(reversed(parts))].append(text[1].strip())
        else:
            break
    return parts


# -- records -------------------------------------------------------------------------------------


def measurements() -> list[Sequence[Outcome]]:
    """What was measured together, in the order in which it counts: the outcomes of a file, or the
    two sides of each of its comparisons."""
    together: list[Sequence[Outcome]] = []
    for path in filter(Path.exists, (RESULTS / name for name in PRODUCTS)):
        contents = reading.Contents(path)
        compared = (o for f, o in contents.findings if isinstance(f, ComparisonRecord))
        together += list(compared) or [contents.outcomes]
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


def tflops(outcome: Outcome) -> str:
    speed = generate_readme.tflops(outcome)
    return f"{speed:.{2 if speed < 1 else 1 if speed < 100 else 0}f}"


def figures(kernel: str, records: Sequence[Sequence[Outcome]]) -> dict[str, str]:
    """By size: what a page or a header may say of a kernel at its fastest."""
    told = {}
    for size, (outcome, share) in speeds(kernel, records).items():
        at = size if "x" in size else f"n = {size}"
        _, title = OPPONENTS[outcome.case.claims.precision]
        device = outcome.case.device.split()[1]
        told[size] = f"{tflops(outcome)} TFLOP/s at {at}, {share:.0%} of {title} ({device})"
    return told


def figures_of_dots(kernel: str) -> Iterator[str]:
    """The same of a dot product."""
    rungs = [
        outcome
        for outcome in reading.Contents(DOT).outcomes
        if outcome.case.problem.inputs == "uniform" and outcome.case.problem.N == DOT_SIZE
    ]
    for row in ranking.rank(rungs):
        if row.outcome.case.kernel == kernel and row.work_per_s and row.of_limit:
            share = f"{row.of_limit:.0%} of copy bandwidth"
            yield f"{row.work_per_s / 1e12:.2f} TB/s at N = 2^28, {share} (H200)"


def ceilings() -> dict[str, MachineCode]:
    """What each rung's machine code allows at n = 4096 on an H200."""
    rungs = msgspec.json.decode(CEILINGS.read_bytes())["rungs"]
    return {name: msgspec.convert(rung["code"], MachineCode) for name, rung in rungs.items()}


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


# -- parts of the page ---------------------------------------------------------------------------


def rung(kernel: Kernel, records: Sequence[Sequence[Outcome]], lines: str) -> str:
    """What was predicted and measured of a rung, and the lines that matter."""
    told = figures(kernel.name, records)
    measured = "; ".join(told[size] for size in reversed(SIZES) if size in told)
    predicted = " ".join(header(kernel)["Predicted"])
    code = ceilings().get(kernel.name)
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
        cells = dict.fromkeys(SIZES, UNKNOWN)
        for size, (outcome, share) in speeds(kernel.name, records).items():
            if size in cells:
                cells[size] = f"{tflops(outcome)} ({share:.0%})"
                used.append(outcome)
        ceiling = at_most(codes[kernel.name]) if kernel.name in codes else UNKNOWN
        link = f"[`{kernel.name}`](#{kernel.rung}-{kernel.name})"
        rows.append([str(kernel.rung), link, RUNS_ON[kernel.requires], ceiling, *cells.values()])
    headers = ["", "rung", "compute capability", "machine code: at most"]
    headers += [f"n = {size} (of cuBLAS)" for size in SIZES]
    table = _table(headers, rows, ["right", "left", "left", "right", "right", "right"])
    return "\n\n".join([table, *generate_readme.stale_line(used, kernels)])


def misses(kernels: Sequence[Kernel], records: Sequence[Sequence[Outcome]]) -> str:
    """What the first rungs reach of their predictions, and where the rest goes."""
    rungs, rows = msgspec.json.decode(CEILINGS.read_bytes())["rungs"], []
    for kernel in kernels:
        code, params = ceilings()[kernel.name], rungs[kernel.name]["params"]
        outcome, _ = speeds(kernel.name, records)[SIZES[-1]]
        assert outcome.case.params == params
        assert code.block_cycles
        assert code.least_cycles
        counted = float(at_most(code)) * code.block_cycles / max(code.cycles.values())
        cycles = (outcome.median_ns or 0.0) * (code.sm_mhz or 0.0) / 1e3
        in_turn = code.least_cycles / code.block_cycles / (code.resident_blocks or 1)
        latency = (cycles - code.least_cycles) / (in_turn * outcome.case.problem.K / params["BK"])
        said = " ".join(header(kernel)["Predicted"]).split()[2]
        speed = [said, f"{counted:.1f}", at_most(code), tflops(outcome), f"{latency:.0f}"]
        rows.append([f"{kernel.rung} `{kernel.name}`", *speed])
    titles = ["TFLOP/s at n = 4096", "predicted", "all counted", "with waits", "measured"]
    return _table([*titles, "cycles of a step left"], rows, ["left", *["right"] * 5])


def tutorial(kernels: Sequence[Kernel]) -> str:
    """The times of the tutorial's kernels, in their order, over that of `tiled` beside them."""
    cells: dict[str, list[str]] = {kernel.name: [] for kernel in kernels}
    titles, used = [], []
    for file, size in TUTORIAL:
        found = [
            o for o in reading.Contents(RESULTS / file).outcomes if o.case.problem.size == size
        ]
        times = {o.case.kernel: o.median_ns for o in ranking.fastest(found) if o.median_ns}
        used += found
        for name, row in cells.items():
            time = units.durations([times[name]])(times[name]) if name in times else ""
            row.append(f"{time}, {times[name] / times['tiled']:.3g} ×" if time else UNKNOWN)
        titles.append(f"{' '.join(found[0].case.device.split()[:2])}, n = {size}")
    rows = [[f"[`{k.name}`](../{k.path})", *cells[k.name]] for k in kernels]
    table = _table(["kernel", *titles], rows, ["left", *["right"] * 4])
    return "\n\n".join([table, *generate_readme.stale_line(used, kernels)])


def gallery(kernels: Sequence[Kernel]) -> str:
    """The table of all kernels that are neither rungs nor the tutorials'."""
    rows = [
        [f"[`{k.name}`](../{k.path})", k.summary, "; ".join(header(k).get("Measured", ()))]
        for k in kernels
    ]
    return _table(["kernel", "what it shows", "measured"], rows, ["left", "left", "left"])


def _table(headers: list[str], rows: list[list[str]], align: list[str]) -> str:
    return tabulate(rows, headers, "pipe", colalign=align, disable_numparse=True)


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


def outdated() -> dict[Path, str]:
    """The pages that do not hold what they must, with what that is."""
    new = {path: written(path.read_text(encoding="utf-8")) for path in PAGES}
    return {path: text for path, text in new.items() if text != path.read_text(encoding="utf-8")}


def main() -> int:
    return freshness.finish(outdated())


if __name__ == "__main__":
    sys.exit(main())
