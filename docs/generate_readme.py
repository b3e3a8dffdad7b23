"""Writes the tables and pictures that the README and docs/ show of the committed results.

`python docs/generate_readme.py` writes them; with `--check` it names those that are out of date and
exits 1. A table stands between `<!-- NAME -->` and `<!-- /NAME -->`; the rest of a page is kept.
"""

from __future__ import annotations

import io
import json
import math
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import freshness
import judged
import msgspec
import screens
from rich.console import Console
from rich.text import Text
from tabulate import tabulate

from matbench.features.charts import error_map_chart
from matbench.features.charts import picture as charts
from matbench.features.grade import view as grade
from matbench.features.grade.record import Grade
from matbench.kernelfile import catalogue
from matbench.kernelfile.includes import code_of
from matbench.model import BASELINE, Kernel
from matbench.records import reading
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import ErrorCells, Outcome
from matbench.show import comparisons, formats, outcomes, terminal, units

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "h200.jsonl"
EIGHT_BITS = ROOT / "results" / "h100-eight-bits.jsonl"
SUSTAINED = ROOT / "results" / "h100-sustained.jsonl"
DOUBLE_INT8 = ROOT / "results" / "h100-double-int8.jsonl"
#: In turns with cuBLAS, and with the fastest algorithm of cuBLASLt.
TURNS = ROOT / "results" / "h100-turns.jsonl"
TUNED = ROOT / "results" / "h100-tuned.jsonl"
#: The code of each kernel file that was measured, by the hash of the file as it was then.
MEASURED_CODE = ROOT / "results" / "h200-code.json"
BESIDE_NVBENCH = ROOT / "results" / "h200-nvbench.json"
PICTURE = ROOT / "docs" / "terminal.svg"
LADDER = ROOT / "results" / "h200-ladder.jsonl"
CHART = ROOT / "docs" / "ladder.svg"
JUDGES = ROOT / "docs" / "judges.svg"
SIZES = ("1000", "4096")
EXAMPLES = ROOT / "docs" / "examples"
FIRST_RUN = EXAMPLES / "first-run.json"
FIRST_COMPARISON = EXAMPLES / "first-compare.json"
PICTURE_WIDTH = 100
READING = ROOT / "docs" / "reading"
#: The README's table: kernels of the ladder at one size, and few columns.
FIRST_KERNELS = ("thread-tile-1d", "thread-tile-2d", "cublas", "banked-sums", "double-sums-mma")
FIRST_SIZE = "4096"
FIRST_COLUMNS = ("kernel", "time", "TFLOP/s", "% of cuBLAS", "max rel err")
COLUMNS = (
    "kernel", "parameters", "time", "±", "per block", "GFLOP/s", "TFLOP/s", "% of cuBLAS",
    "% of limit", "× slowest", "max rel err",
)  # fmt: skip
WORKLOAD_COLUMNS = (
    "kernel", "time", "±", "GB/s", "TB/s", "% of copy", "× slowest", "max rel err",
)  # fmt: skip
SUSTAINED_COLUMNS = (
    "kernel", "time", "TFLOP/s", "sustained TFLOP/s", "SM MHz", "W", "J per launch", "GFLOP/J",
)  # fmt: skip
#: The tables of other workloads: the records of each, and which of them are shown.
WORKLOADS: dict[str, tuple[str, Callable[[Outcome], bool]]] = {
    "dot": ("h200-dot.jsonl", lambda o: _rung(o) and o.case.problem.N in (33 * 2**10, 2**28)),
    "cubes": ("h200-cubes.jsonl", lambda o: True),
    "reverse": ("h200-reverse.jsonl", lambda o: o.case.problem.N == 2**28),
}

Records = tuple[Sequence[Environment], Sequence[Outcome]]
#: Files, and how what each must hold follows from what it holds.
Pages = dict[Path, Callable[[str], str]]


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
    if kernel is not None and kernel.library == BASELINE:
        return True  # its file only calls what was measured
    if kernel is None or not kernel.source:
        return kernel is not None and kernel.sha256 == sha256
    then = json.loads(MEASURED_CODE.read_text(encoding="utf-8"))["code"]
    return kernel.sha256 == sha256 or then.get(sha256) == code_of(kernel)


def first_table(records: Records, kernels: Iterable[Kernel]) -> str:
    """The README's table, a line about it, and which of its rows are stale."""
    environments, found = records
    shown = [
        o for o in found
        if o.case.kernel in FIRST_KERNELS and o.case.problem.size == FIRST_SIZE
    ]  # fmt: skip
    full = outcomes.report(shown, environments, fastest=True)
    [section] = full.sections
    section = section.with_columns(FIRST_COLUMNS)
    file = LADDER.relative_to(ROOT).as_posix()
    about = [f"n = {FIRST_SIZE}", *section.heading]
    caption = f"{formats.escape(' · '.join(about), 'pipe')} · `matbench report {file}`"
    section = replace(
        section, heading=(), groups=tuple(replace(g, size="") for g in section.groups)
    )
    printed = formats.text(replace(full, sections=(section,), footer=""), "pipe")
    return "\n\n".join([printed, caption, *stale_line(shown, kernels)])


def table(records: Records, kernels: Iterable[Kernel], path: Path = RESULTS) -> str:
    """The table of some products, its notes, and which of its rows are stale: of the tutorial's
    kernels at two sizes, or of all that another file has."""
    environments, found = records
    found_at = [o for o in found if path != RESULTS or o.case.problem.size in SIZES]
    shown = [o for o in found_at if o.status != "skipped"]
    file = path.relative_to(ROOT).as_posix()
    lines = [
        _printed(environments, shown, COLUMNS, fastest=True),
        f"Each kernel at its fastest parameters; all {len(found)} cases: `matbench report {file}`.",
        *stale_line(found, kernels),
    ]
    return "\n\n".join(lines)


def sustained_table(kernels: Iterable[Kernel]) -> str:
    """Cold and sustained speed of the fastest parameters, and the energy."""
    environments, found = read(SUSTAINED)
    printed = _printed(environments, found, SUSTAINED_COLUMNS, fastest=True)
    return "\n\n".join([printed, *stale_line(found, kernels)])


def tflops(outcome: Outcome) -> float:
    """The rate of a matrix product that was measured."""
    problem = outcome.case.problem
    return 2e-3 * problem.M * problem.N * problem.K / (outcome.median_ns or math.nan)


def turns_table(path: Path, kernels: Iterable[Kernel]) -> str:
    """How many times as fast as its baseline each kernel is, with the interval of 95%."""
    contents = reading.Contents(path)
    compared = [f for f, _ in contents.findings if isinstance(f, ComparisonRecord)]
    rows = []
    for record in compared:
        case, comparison = record.candidate.case, record.comparison
        assert comparison is not None
        assert comparison.ratio
        assert comparison.interval
        median_ns = record.candidate.median_ns
        high, low = (f"{1 / limit:#.3g}" for limit in comparison.interval)
        time = units.durations([median_ns])(median_ns)
        speed = f"{1 / comparison.ratio:#.3g} ({low} to {high})"
        rate = units.number(tflops(record.candidate), 3)
        rows.append([case.kernel, case.problem.size, time, rate, record.baseline_name, speed])
    headers = ["kernel", "size", "time", "TFLOP/s", "against", "times as fast"]
    align = ["left", "left", "right", "right", "left", "left"]
    printed = tabulate(rows, headers, "pipe", colalign=align, disable_numparse=True)
    sides = (side for record in compared for side in (record.baseline, record.candidate))
    return "\n\n".join([printed, *stale_line(sides, kernels)])


def workload_table(name: str, kernels: Iterable[Kernel]) -> str:
    """A table of another workload, its notes, and which of its rows are stale."""
    file, is_shown = WORKLOADS[name]
    environments, found = read(RESULTS.parent / file)
    shown = [o for o in found if is_shown(o) and o.status != "skipped"]
    printed = _printed(environments, shown, WORKLOAD_COLUMNS)
    return "\n\n".join([printed, *stale_line(shown, kernels)])


def _rung(outcome: Outcome) -> bool:
    """Whether a row stands for its kernel: of the tutorial's tree, the one with 32 blocks."""
    case = outcome.case
    is_rung = case.kernel != "dot-tree" or case.params["BLOCKS"] == 32
    return is_rung and case.problem.inputs != "signed"


def stale_line(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel]) -> list[str]:
    changed = stale(found, kernels)
    if not changed:
        return []
    names = ", ".join(f"`{name}`" for name in changed)
    return [f"**Stale:** changed since this was measured: {names}."]


def _printed(
    environments: Sequence[Environment],
    shown: Sequence[Outcome],
    columns: Sequence[str],
    *,
    fastest: bool = False,
) -> str:
    """The table of `matbench report`, with the columns that there is room for."""
    full = outcomes.report(shown, environments, fastest=fastest)
    sections = tuple(section.with_columns(columns) for section in full.sections)
    return formats.text(replace(full, sections=sections, footer=""), "pipe")


def run_screen(records: Records) -> str:
    """What a terminal shows of the tutorial's kernels at a small size, as text."""
    environments, found = records
    shown = [o for o in found if o.case.problem.size == "256"]
    report = outcomes.report(shown, environments, fastest=True)
    console = Console(width=PICTURE_WIDTH, file=io.StringIO(), highlight=False, markup=False)
    with console.capture() as capture:
        console.print(*terminal.renderables(report, PICTURE_WIDTH), sep="\n")
    lines = ["$ matbench run --sizes 256 --fastest", *capture.get().strip().splitlines()]
    return "\n".join(["```console", *(line.rstrip() for line in lines), "```"])


def figures(path: Path) -> str:
    """The figures that a benchmark drew from its tables, with the bars they were held against."""

    def told(value: float | None, unit: str) -> str:
        if value is None:
            return ""
        return f"{value:.2%}" if unit == "share" else f"{value:.1f} {unit}"

    found = json.loads(path.read_text(encoding="utf-8"))["figures"]
    return tabulate(
        [[f["what"], told(f["value"], f["unit"]), told(f["bar"], f["unit"])] for f in found],
        headers=["H200", "measured", "bar"],
        tablefmt="pipe",
        colalign=["left", "right", "right"],
        disable_numparse=True,
    )


GRADES = ROOT / "results" / "h200-grade.jsonl"
#: Kernels and libraries whose arithmetic differs.
GRADED = (
    "naive-2d", "sliced-k", "split-k", "kahan", "double-sums", "half-mma", "bf16-wgmma", "tf32x3",
    "fp16x3", "cublas", "cublas-tf32", "cublas-bf16", "cublas-f16", "numpy",
)  # fmt: skip


def grade_table(kernels: Iterable[Kernel]) -> str:
    """The table that compares grades, and which of its rows are stale."""
    contents = reading.Contents(GRADES)
    found = [finding for finding, _ in contents.findings if isinstance(finding, Grade)]
    shown = [one for one in found if one.reason is None and one.case.kernel in GRADED]
    full = grade.report(shown, contents.environments)
    printed = formats.text(replace(full, sections=full.sections[-1:], footer=""), "pipe")
    told = f"All profiles: `matbench report {GRADES.relative_to(ROOT).as_posix()}`."
    return "\n\n".join([printed, told, *stale_line(shown, kernels)])


#: The precisions that the chart of the ladder shows.
PRECISIONS = ("float32", "tf32", "bfloat16")


def picture() -> str:
    """What a terminal shows of a run with a wrong kernel and a tie, and of a comparison, as SVG."""
    environments, found = read(FIRST_RUN)
    compared = reading.Contents(FIRST_COMPARISON)
    pairs = [f for f, _ in compared.findings if isinstance(f, ComparisonRecord)]
    verdict = comparisons.report(pairs, compared.environments)
    # The device is the same.
    sections = tuple(replace(s, heading=s.heading[:1]) for s in verdict.sections)
    verdict = replace(verdict, sections=sections, footer="")
    parts = [
        Text(f"$ {_typed(environments)}\n", style="bold"),
        *terminal.renderables(outcomes.report(found, environments), PICTURE_WIDTH),
        Text(f"\n$ {_typed(compared.environments)}\n", style="bold"),
        *terminal.renderables(verdict, PICTURE_WIDTH),
    ]
    return screens.terminal(parts, PICTURE_WIDTH, "matbench")


def _typed(environments: Sequence[Environment]) -> str:
    """The command as a reader would type it, without the format that these records need."""
    words = [*environments[0].argv]
    at = words.index("--format")
    return shlex.join(["matbench", *words[:at], *words[at + 2 :]])


def drawn(draw: Callable[[Path], None], data: object) -> str:
    """A chart as SVG, with a hash of its data."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chart.svg"
        draw(path)
        return screens.stamped(path.read_text(encoding="utf-8"), repr(data))


def ladder_chart() -> str:
    """What `report --picture` draws of the rungs, and of cuBLAS in their precisions, on the device
    that measured most and at the sizes that are powers of 2."""
    about, found = read(LADDER)
    [(device, _)] = Counter(outcome.case.device_id for outcome in found).most_common(1)
    sizes = {str(2**power) for power in range(8, 13)}
    found = [o for o in found if o.case.claims.precision in PRECISIONS
             and o.case.device_id == device and o.case.problem.size in sizes]  # fmt: skip
    shown = [(o.case.label, o.median_ns, o.max_rel_err) for o in found]
    return drawn(lambda path: charts.write(path, reading.RecordSet([*about, *found])), shown)


def timeline_chart() -> str:
    contents = reading.Contents(EXAMPLES / "blocks.json")
    return drawn(lambda path: charts.write(path, contents), contents.findings)


def error_chart() -> str:
    found = msgspec.json.decode((EXAMPLES / "error-map.json").read_bytes(), type=ErrorCells)
    title = "forgot-barrier TILE=16 at 50x40x36"
    chart = error_map_chart.chart(found, title, 520, "wrong: reference")
    return drawn(lambda path: charts.draw(path, [chart], ""), found)


CHARTS: dict[Path, Callable[[], str]] = {
    CHART: ladder_chart,
    JUDGES: lambda: drawn(judged.drawn, judged.read()),
    READING / "timeline.svg": timeline_chart,
    READING / "error-map.svg": error_chart,
}


def kept(made: Callable[[], str]) -> Callable[[str], str]:
    """A new chart, or the old one if that shows the same."""

    def written(old: str) -> str:
        new = made()
        return old if screens.same_chart(old, new) else new

    return written


def inserted(page: str, name: str, block: str) -> str:
    """A page with `block` between the markers of `name`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"the page needs the markers of {name!r} once")
    return pattern.sub(lambda found: f"{found[1]}\n{block}\n\n{found[2]}", page)


def pages() -> Pages:
    """Each file that this script writes: from what it holds to what it must hold."""
    records = read(RESULTS)
    kernels = catalogue.builtin()
    svg = picture()
    rungs_found = read(LADDER)

    def timing(page: str) -> str:
        return inserted(page, "nvbench", figures(BESIDE_NVBENCH))

    def readme(page: str) -> str:
        return inserted(page, "results", first_table(rungs_found, kernels))

    def results(page: str) -> str:
        page = inserted(page, "tutorial", table(records, kernels))
        for name, path in (("eight-bits", EIGHT_BITS), ("double-int8", DOUBLE_INT8)):
            page = inserted(page, name, table(read(path), kernels, path))
        page = inserted(page, "sustained", sustained_table(kernels))
        for name, path in (("turns", TURNS), ("tuned", TUNED)):
            page = inserted(page, name, turns_table(path, kernels))
        for name in WORKLOADS:
            page = inserted(page, name, workload_table(name, kernels))
        return page

    def grades(page: str) -> str:
        return inserted(page, "grades", grade_table(kernels))

    def judges(page: str) -> str:
        page = inserted(page, "rules", judged.rules_table(judged.read()))
        page = inserted(page, "scores", judged.scores_table(judged.read()))
        return inserted(page, "tricks", judged.tricks_table(judged.expected()))

    def reading_page(page: str) -> str:
        return inserted(page, "run", run_screen(records))

    return {
        ROOT / "README.md": readme,
        ROOT / "docs" / "grade.md": grades,
        ROOT / "docs" / "judges.md": judges,
        ROOT / "docs" / "results.md": results,
        ROOT / "docs" / "reading-the-table.md": reading_page,
        ROOT / "docs" / "timing.md": timing,
        PICTURE: lambda old: old if screens.words(old) == screens.words(svg) else svg,
        **{path: kept(made) for path, made in CHARTS.items()},
    }


def outdated() -> dict[Path, str]:
    """The files that do not hold what they must, with what that is."""
    found = {}
    for path, new_from in pages().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        new = new_from(old)
        if new != old:
            found[path] = new
    return found


def main() -> int:
    return freshness.finish(outdated())


if __name__ == "__main__":
    sys.exit(main())
