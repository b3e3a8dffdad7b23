"""Tables of committed results, as `matbench report` prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from measured import RECORDS, noted, read, table

from matbench import workloads
from matbench.features.grade import view as grade
from matbench.records.outcome import Outcome
from matbench.show import formats, outcomes, terminal, units

#: What pages show of results unless they ask for other columns: not all that is known of errors.
COLUMNS = (
    "kernel, parameters, time, ±, per block, GFLOP/s, TFLOP/s, GB/s, TB/s, % of cuBLAS, "
    "% of limit, % of copy, × slowest, max rel err"
)


def results(
    file: str,
    columns: str = COLUMNS,
    shows: Callable[[Outcome], bool] = lambda outcome: True,
    *,
    fastest: bool = True,
) -> str:
    """Results of a file: a table, its notes, and where they are from."""
    found, environments = read(file)
    shown = [o for o in found if shows(o) and o.status != "skipped"]
    [section] = outcomes.report(shown, environments, fastest=fastest).sections
    heading, printed, notes = formats.section(section.with_columns(columns.split(", ")), "pipe")
    which = f"{'each kernel at its fastest parameters; ' * fastest}all {len(found)} cases"
    about = [*heading.split("\n\n"), f"{which}: `matbench report results/{file}`"]
    return noted("\n\n".join(filter(None, [printed, notes, " · ".join(about)])), shown)


def turns(file: str) -> str:
    """How many times as fast as its baseline each kernel is, with the interval of 95%."""
    rows, sides = [], []
    for record in read(file)[0]:
        of, time_ns = record.candidate.case, record.candidate.median_ns
        speed, high, low = (f"{1 / ratio:#.3g}" for ratio in (record.ratio, *record.interval))
        tflops = units.number(workloads.work_of(of.problem) / time_ns / 1e3)
        rows.append([of.kernel, of.problem.size, record.baseline_name, units.duration(time_ns),
                     tflops, f"{speed} ({low} to {high})"])  # fmt: skip
        sides += [record.baseline, record.candidate]
    titles = ["kernel", "size", "against", "time", "TFLOP/s", "times as fast"]
    return noted(table(titles, rows, 3), sides)


def grades(file: str, kernels: Sequence[str]) -> str:
    """The table that compares grades."""
    found, environments = read(file)
    shown = [one for one in found if one.case.kernel in kernels]
    *_, compared = grade.report(shown, environments).sections
    return noted("\n\n".join(filter(None, formats.section(compared, "pipe"))), shown)


def screen(file: str, size: str) -> str:
    """What a terminal shows of kernels at one size, as text."""
    found, environments = read(file)
    shown = [o for o in found if o.case.problem.size == size]
    report = outcomes.report(shown, environments, fastest=True)
    text = terminal.text(*terminal.renderables(report, 100))
    return f"```console\n$ matbench run --sizes {size} --fastest\n{text}\n```"


def nvbench() -> str:
    """The figures that a benchmark drew from its tables, with the bars they were held against."""
    forms = {"share": "{:.2%}", "s": "{:.1f} s"}
    found = json.loads((RECORDS / "h200-nvbench.json").read_text(encoding="utf-8"))["figures"]
    rows = [[f["what"], *(forms[f["unit"]].format(n) if n else "" for n in (f["value"], f["bar"]))]
            for f in found]  # fmt: skip
    return table(["H200", "measured", "bar"], rows, 2)
