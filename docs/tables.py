"""Tables of committed results, as `matbench report` prints them, and of the fields of records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from msgspec.json import schema_components
from tabulate import tabulate

from matbench import workloads
from matbench.features.grade import view as grade
from matbench.features.grade.record import Grade
from matbench.kernelfile.catalogue import builtin
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.show import formats, outcomes, terminal, units

ROOT = Path(__file__).parent.parent
DOCS, RECORDS = ROOT / "docs", ROOT / "results"
#: The code of each kernel file that was measured, by the hash of the file as it was then.
MEASURED_CODE = RECORDS / "h200-code.json"
#: What pages show of results unless they ask for other columns: not all that is known of errors.
COLUMNS = (
    "kernel, parameters, time, ±, per block, GFLOP/s, TFLOP/s, GB/s, TB/s, % of cuBLAS, "
    "% of limit, % of copy, × slowest, max rel err"
)
#: Whether a table shows a record.
Shows = Callable[[Any], bool]
#: The meaning of a field that has none yet.
MISSING = "?"


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], numbers: int) -> str:
    """A table in Markdown; the last columns are so many `numbers`."""
    align = ["left"] * (len(titles) - numbers) + ["right"] * numbers
    return tabulate(rows, titles, "pipe", colalign=align, disable_numparse=True)


def read(file: str | Path) -> tuple[list[Any], list[Environment]]:
    """The records of a file, which are all of one kind, and their environments."""
    contents = reading.Contents(RECORDS / file)
    return contents.records, contents.environments


def stale(found: Iterable[Outcome | Grade], kernels: Iterable[Kernel] | None = None) -> list[str]:
    """The kernels among the records whose code or front matter has changed since, or is gone."""
    now = {kernel.name: kernel for kernel in kernels or builtin()}
    then = json.loads(MEASURED_CODE.read_text(encoding="utf-8"))["code"]

    def is_same(sha256: str, kernel: Kernel) -> bool:
        # The file of a library only calls what was measured.
        known = kernel.kind.is_library or kernel.sha256 == sha256
        return known or then.get(sha256) == code_of(kernel)

    cases = {(one.case.kernel, one.case.sha256) for one in found}
    return sorted({k for k, sha256 in cases if k not in now or not is_same(sha256, now[k])})


def noted(text: str, found: Iterable[Outcome | Grade]) -> str:
    """A text, and a line that names these, if there are any."""
    names = ", ".join(f"`{name}`" for name in stale(found))
    return f"{text}\n\n**Stale:** changed since this was measured: {names}." if names else text


def results(
    file: str, columns: str = COLUMNS, shows: Shows = lambda record: True, *, fastest: bool = True
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
    shown = (o for o in found if o.case.problem.size == size)
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


def fields(name: str, old: str) -> str:
    """The fields of a type, as `records.outcome:Claims`, from its Python type. What a field means
    is written by hand, in its row of the old table, and kept."""
    meanings = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", old, re.MULTILINE))
    kind = resolve_name(f"matbench.{name}")
    _, types = schema_components([kind], ref_template="{name}")
    own = types[kind.__name__]["properties"].items()
    rows = [[f"`{field}`", _told(of, types), meanings.get(field, MISSING)]
            for field, of in own if field != "type"]  # fmt: skip
    lines = [["field", "type", "meaning"], ["---"] * 3, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _told(kind: dict[str, Any], types: dict[str, Any]) -> str:
    """A JSON schema in words; of a string that can be one of some, these."""
    match kind:
        case {"anyOf": [one, *_]}:  # the other is null
            return _told(one, types)
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"prefixItems": [part, _]}:
            return f"two {_told(part, types)}s"
        case {"items": part}:
            return f"{_told(part, types)}s"
        case {"$ref": name}:
            kind = types[name]
    return str(kind["type"])
