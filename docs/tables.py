"""Tables of committed results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pictures
from measured import RECORDS, compared_in, noted, read, table, tflops
from rich.text import Text

from matbench.features.grade import view as grade
from matbench.features.grade.record import Grade
from matbench.records import reading
from matbench.records.outcome import Outcome
from matbench.show import formats, outcomes, terminal, units

SPEED = (
    "kernel", "parameters", "time", "±", "per block", "GFLOP/s", "TFLOP/s", "% of cuBLAS",
    "% of limit", "× slowest", "max rel err",
)  # fmt: skip
BYTES = ("kernel", "time", "±", "GB/s", "TB/s", "% of copy", "× slowest", "max rel err")
SUSTAINED = (
    "kernel", "time", "TFLOP/s", "sustained TFLOP/s", "SM MHz", "W", "J per launch", "GFLOP/J",
)  # fmt: skip
FEW = ("kernel", "time", "TFLOP/s", "% of cuBLAS", "max rel err")
#: The README's kernels.
FIRST = ("thread-tile-1d", "thread-tile-2d", "cublas", "banked-sums", "double-sums-mma")


def results(
    file: str,
    columns: Sequence[str] = SPEED,
    shows: Callable[[Outcome], bool] = lambda outcome: True,
    *,
    fastest: bool = True,
) -> str:
    """Results of a file: a table, its notes, and where they are from."""
    environments, found = read(RECORDS / file)
    shown = [o for o in found if shows(o) and o.status != "skipped"]
    parts = []
    for section in outcomes.report(shown, environments, fastest=fastest).sections:
        heading, printed, notes = formats.section(section.with_columns(columns), "pipe")
        parts += [printed, notes, heading.replace("\n\n", " · ")]
    which = "each kernel at its fastest parameters; " if fastest else ""
    parts[-1] += f" · {which}all {len(found)} cases: `matbench report results/{file}`"
    return noted("\n\n".join(filter(None, parts)), shown)


def turns(file: str) -> str:
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
    sides = (side for record in compared for side in (record.baseline, record.candidate))
    return noted(table(titles, rows, 3), sides)


def grades(file: str, kernels: Sequence[str]) -> str:
    """The table that compares grades."""
    contents = reading.Contents(RECORDS / file)
    found = [finding for finding, _ in contents.findings if isinstance(finding, Grade)]
    shown = [one for one in found if one.reason is None and one.case.kernel in kernels]
    *_, compared = grade.report(shown, contents.environments).sections
    printed = "\n\n".join(filter(None, formats.section(compared, "pipe")))
    return noted(f"{printed}\n\nAll profiles: `matbench report results/{file}`.", shown)


def screen(file: str, size: str) -> str:
    """What a terminal shows of kernels at one size, as text."""
    environments, found = read(RECORDS / file)
    shown = [o for o in found if o.case.problem.size == size]
    report = outcomes.report(shown, environments, fastest=True)
    command = Text(f"$ matbench run --sizes {size} --fastest")
    _, text = pictures.screen([command, *terminal.renderables(report, pictures.WIDTH)])
    return f"```console\n{text}\n```"


def nvbench() -> str:
    """The figures that a benchmark drew from its tables, with the bars they were held against."""

    def told(value: float | None, unit: str) -> str:
        if value is None:
            return ""
        return f"{value:.2%}" if unit == "share" else f"{value:.1f} {unit}"

    found = json.loads((RECORDS / "h200-nvbench.json").read_text(encoding="utf-8"))["figures"]
    rows = [[f["what"], told(f["value"], f["unit"]), told(f["bar"], f["unit"])] for f in found]
    return table(["H200", "measured", "bar"], rows, 2)


def is_first(outcome: Outcome) -> bool:
    return outcome.case.kernel in FIRST and outcome.case.problem.size == "4096"


def is_rung(outcome: Outcome) -> bool:
    """Whether a dot product stands for its kernel: of the tutorial's tree, with 32 blocks."""
    case = outcome.case
    is_one = case.kernel != "dot-tree" or case.params["BLOCKS"] == 32
    return is_one and case.problem.N in (33 * 2**10, 2**28) and case.problem.inputs != "signed"
