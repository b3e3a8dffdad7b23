"""Writes the tables and pictures that the README and docs/ show of the committed results.

`python docs/generate_readme.py` writes them; with `--check` it names those that are out of date and
exits 1. A table stands between `<!-- NAME -->` and `<!-- /NAME -->`; the rest of a page is kept.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import freshness
import judged
import msgspec
import screens
from freshness import ROOT
from measured import RECORDS, compared_in, read, stale_line, tflops
from rich.console import Console
from rich.text import Text

from matbench.features.charts import error_map_chart
from matbench.features.charts import picture as charts
from matbench.features.grade import view as grade
from matbench.features.grade.record import Grade
from matbench.kernelfile import catalogue
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.environment import Environment
from matbench.records.outcome import ErrorCells, Outcome
from matbench.show import comparisons, formats, outcomes, terminal, units
from matbench.show.table import Report

DOCS = ROOT / "docs"
RESULTS = RECORDS / "h200.jsonl"
LADDER = RECORDS / "h200-ladder.jsonl"
PICTURE, CHART = DOCS / "terminal.svg", DOCS / "ladder.svg"
EXAMPLES, READING = DOCS / "examples", DOCS / "reading"
PICTURE_WIDTH = 100
#: The README's table: kernels of the ladder at one size, and few columns.
FIRST_KERNELS = ("thread-tile-1d", "thread-tile-2d", "cublas", "banked-sums", "double-sums-mma")
FIRST_SIZE = "4096"
FIRST_COLUMNS = ("kernel", "time", "TFLOP/s", "% of cuBLAS", "max rel err")
COLUMNS = (
    "kernel", "parameters", "time", "±", "per block", "GFLOP/s", "TFLOP/s", "% of cuBLAS",
    "% of limit", "× slowest", "max rel err",
)  # fmt: skip
BYTES = ("kernel", "time", "±", "GB/s", "TB/s", "% of copy", "× slowest", "max rel err")
SUSTAINED = (
    "kernel", "time", "TFLOP/s", "sustained TFLOP/s", "SM MHz", "W", "J per launch", "GFLOP/J",
)  # fmt: skip


class Table(NamedTuple):
    """A table of the page on results: its file, its columns, and which outcomes it shows; whether
    only the fastest parameters, and whether a line below counts the others."""

    file: str
    columns: Sequence[str] = COLUMNS
    shows: Callable[[Outcome], bool] = lambda outcome: True
    fastest: bool = True
    counts: bool = True


TABLES = {
    "tutorial": Table("h200.jsonl", shows=lambda o: o.case.problem.size in ("1000", "4096")),
    "eight-bits": Table("h100-eight-bits.jsonl"),
    "double-int8": Table("h100-double-int8.jsonl"),
    "sustained": Table("h100-sustained.jsonl", SUSTAINED, counts=False),
    "dot": Table("h200-dot.jsonl", BYTES, lambda o: _rung(o), fastest=False, counts=False),
    "cubes": Table("h200-cubes.jsonl", BYTES, fastest=False, counts=False),
    "reverse": Table("h200-reverse.jsonl", BYTES, lambda o: o.case.problem.N == 2**28,
                     fastest=False, counts=False),
}  # fmt: skip
#: In turns with cuBLAS, and with the fastest algorithm of cuBLASLt.
TURNS = {"turns": "h100-turns.jsonl", "tuned": "h100-tuned.jsonl"}


def first_table(kernels: Iterable[Kernel]) -> str:
    """The README's table, a line about it, and which of its rows are stale."""
    environments, found = read(LADDER)
    shown = [o for o in found
             if o.case.kernel in FIRST_KERNELS and o.case.problem.size == FIRST_SIZE]  # fmt: skip
    full = outcomes.report(shown, environments, fastest=True)
    [section] = full.sections
    about = [f"n = {FIRST_SIZE}", *section.heading]
    caption = (
        f"{formats.escape(' · '.join(about), 'pipe')} · `matbench report results/{LADDER.name}`"
    )
    groups = tuple(replace(group, size="") for group in section.groups)
    full = replace(full, sections=(replace(section, heading=(), groups=groups),))
    return "\n\n".join([_printed(full, FIRST_COLUMNS), caption, *stale_line(shown, kernels)])


def table(kind: Table, kernels: Iterable[Kernel]) -> str:
    """A table of results, its notes, and which of its rows are stale."""
    environments, found = read(RECORDS / kind.file)
    shown = [o for o in found if kind.shows(o) and o.status != "skipped"]
    lines = [_printed(outcomes.report(shown, environments, fastest=kind.fastest), kind.columns)]
    if kind.counts:
        told = f"all {len(found)} cases: `matbench report results/{kind.file}`"
        lines.append(f"Each kernel at its fastest parameters; {told}.")
    return "\n\n".join([*lines, *stale_line(shown, kernels)])


def turns_table(file: str, kernels: Iterable[Kernel]) -> str:
    """How many times as fast as its baseline each kernel is, with the interval of 95%."""
    compared = compared_in(RECORDS / file)
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
        rows.append([case.kernel, case.problem.size, record.baseline_name, time, rate, speed])
    titles = ["kernel", "size", "against", "time", "TFLOP/s", "times as fast"]
    printed = freshness.table(titles, rows, 3)
    sides = (side for record in compared for side in (record.baseline, record.candidate))
    return "\n\n".join([printed, *stale_line(sides, kernels)])


def _rung(outcome: Outcome) -> bool:
    """Whether a dot product stands for its kernel: of the tutorial's tree, with 32 blocks."""
    case = outcome.case
    is_rung = case.kernel != "dot-tree" or case.params["BLOCKS"] == 32
    is_shown = case.problem.N in (33 * 2**10, 2**28) and case.problem.inputs != "signed"
    return is_rung and is_shown


def _printed(full: Report, columns: Sequence[str]) -> str:
    """A report as Markdown, with the columns that there is room for."""
    sections = tuple(section.with_columns(columns) for section in full.sections)
    return formats.text(replace(full, sections=sections, footer=""), "pipe")


def run_screen() -> str:
    """What a terminal shows of the tutorial's kernels at a small size, as text."""
    environments, found = read(RESULTS)
    shown = [o for o in found if o.case.problem.size == "256"]
    report = outcomes.report(shown, environments, fastest=True)
    console = Console(width=PICTURE_WIDTH, file=io.StringIO(), highlight=False, markup=False)
    with console.capture() as capture:
        console.print(*terminal.renderables(report, PICTURE_WIDTH), sep="\n")
    lines = ["$ matbench run --sizes 256 --fastest", *capture.get().strip().splitlines()]
    return "\n".join(["```console", *(line.rstrip() for line in lines), "```"])


def figures() -> str:
    """The figures that a benchmark drew from its tables, with the bars they were held against."""

    def told(value: float | None, unit: str) -> str:
        if value is None:
            return ""
        return f"{value:.2%}" if unit == "share" else f"{value:.1f} {unit}"

    found = json.loads((RECORDS / "h200-nvbench.json").read_text(encoding="utf-8"))["figures"]
    rows = [[f["what"], told(f["value"], f["unit"]), told(f["bar"], f["unit"])] for f in found]
    return freshness.table(["H200", "measured", "bar"], rows, 2)


GRADES = RECORDS / "h200-grade.jsonl"
#: Kernels and libraries whose arithmetic differs.
GRADED = (
    "naive-2d", "sliced-k", "split-k", "kahan", "double-sums", "bf16-wgmma", "tf32x3",
    "fp16x3", "cublas", "cublas-tf32", "cublas-bf16", "cublas-f16", "numpy",
)  # fmt: skip


def grade_table(kernels: Iterable[Kernel]) -> str:
    """The table that compares grades, and which of its rows are stale."""
    contents = reading.Contents(GRADES)
    found = [finding for finding, _ in contents.findings if isinstance(finding, Grade)]
    shown = [one for one in found if one.reason is None and one.case.kernel in GRADED]
    full = grade.report(shown, contents.environments)
    printed = formats.text(replace(full, sections=full.sections[-1:], footer=""), "pipe")
    told = f"All profiles: `matbench report results/{GRADES.name}`."
    return "\n\n".join([printed, told, *stale_line(shown, kernels)])


def picture() -> str:
    """What a terminal shows of a run with a wrong kernel and a tie, and of a comparison, as SVG."""
    environments, found = read(EXAMPLES / "first-run.json")
    compared = reading.Contents(EXAMPLES / "first-compare.json")
    pairs = compared_in(EXAMPLES / "first-compare.json")
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


def ladder_chart() -> str:
    """What `report --picture` draws of the rungs, and of cuBLAS in their precisions, on the device
    that measured most and at the sizes that are powers of 2."""
    about, found = read(LADDER)
    [(device, _)] = Counter(outcome.case.device_id for outcome in found).most_common(1)
    sizes = {str(2**power) for power in range(8, 13)}
    found = [o for o in found if o.case.claims.precision in ("float32", "tf32", "bfloat16")
             and o.case.device_id == device and o.case.problem.size in sizes]  # fmt: skip
    shown = [(o.case.label, o.median_ns, o.max_rel_err) for o in found]
    return screens.drawn(lambda to: charts.write(to, reading.RecordSet([*about, *found])), shown)


def timeline_chart() -> str:
    contents = reading.Contents(EXAMPLES / "blocks.json")
    return screens.drawn(lambda path: charts.write(path, contents), contents.findings)


def error_chart() -> str:
    found = msgspec.json.decode((EXAMPLES / "error-map.json").read_bytes(), type=ErrorCells)
    title = "forgot-barrier TILE=16 at 50x40x36"
    chart = error_map_chart.chart(found, title, 520, "wrong: reference")
    return screens.drawn(lambda path: charts.draw(path, [chart], ""), found)


CHARTS: dict[Path, Callable[[], str]] = {
    CHART: ladder_chart,
    DOCS / "judges.svg": lambda: screens.drawn(judged.drawn, judged.read()),
    READING / "timeline.svg": timeline_chart,
    READING / "error-map.svg": error_chart,
}


def pages() -> freshness.Pages:
    """Each file that this script writes: from what it holds to what it must hold."""
    kernels, svg = catalogue.builtin(), picture()
    results = {name: partial(table, kind, kernels) for name, kind in TABLES.items()}
    results |= {name: partial(turns_table, file, kernels) for name, file in TURNS.items()}
    blocks: dict[Path, Mapping[str, Callable[[], str]]] = {
        ROOT / "README.md": {"results": partial(first_table, kernels)},
        DOCS / "grade.md": {"grades": partial(grade_table, kernels)},
        DOCS / "judges.md": judged.BLOCKS,
        DOCS / "results.md": results,
        DOCS / "reading-the-table.md": {"run": run_screen},
        DOCS / "timing.md": {"nvbench": figures},
    }
    return {
        **{path: freshness.page(made) for path, made in blocks.items()},
        PICTURE: lambda old: old if screens.words(old) == screens.words(svg) else svg,
        **{path: screens.kept(made) for path, made in CHARTS.items()},
    }


if __name__ == "__main__":
    sys.exit(freshness.finish(pages()))
