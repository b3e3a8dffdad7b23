"""The list of kernels, and the details of one kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from matbench.model import Kernel
from matbench.show.table import Column, Group, Report, Row, grouped, numeric, section, under

if TYPE_CHECKING:  # rich takes longer to import than a list takes to print
    from rich.console import RenderableType


class ListedKernel(msgspec.Struct, frozen=True):
    """What a list says of a kernel."""

    kernel: str
    workload: str
    group: str
    rung: int | None
    previous: str | None
    summary: str
    requires: str | None
    sweeps: str | None


COLUMNS = (
    Column("kernel", "kernel"),
    *under("", "workload group"),
    numeric("rung", "rung"),
    Column("after", "previous", drop=2),
    Column("summary", "summary"),
    Column("needs", "requires"),
    Column("constants", "sweeps", drop=1),
)


def report(kernels: Sequence[Kernel]) -> Report:
    """Kernels in the order given, a section for each group of a workload."""
    rows = [
        ListedKernel(
            kernel.name, kernel.workload, kernel.group, kernel.rung, kernel.previous,
            kernel.summary, ", ".join(kernel.requires) or None, _values(kernel.sweep) or None,
        )
        for kernel in kernels
    ]  # fmt: skip
    sections = [
        section([title], COLUMNS, "", [Group("", Row.each(COLUMNS, members, lambda _: Row()))])
        for title, members in grouped(rows, lambda row: f"{row.workload} · {row.group}").items()
    ]
    return Report(tuple(sections), f"{len(rows)} kernels", COLUMNS, lambda: rows, lambda: rows)


def details(kernel: Kernel) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    rules, placing = kernel.launch, kernel.placing
    launched = kernel.kind.is_launched
    computes = []
    for name, usual in {"alpha": 1.0, "beta": 0.0, "batch": 1}.items():
        declared = getattr(kernel, name)
        if declared != usual:
            values = declared if isinstance(declared, tuple) else (declared,)
            computes.append(f"{name} = {', '.join(f'{number:g}' for number in values)}")
        elif any(re.search(rf"\b{name}\b", text) for text in kernel.args):
            computes.append(f"any {name}")
    if kernel.reads:
        computes.append("reads C even if beta = 0")
    if computes:
        computes.insert(0, "C := alpha·op(A)·op(B) + beta·C")
    lies = [
        f"{name} transposed" for name, T in zip("AB", placing.transpose, strict=True) if T == "T"
    ]
    if placing.padding:
        lies.append(f"{placing.padding} elements between rows")
    if lies or placing.layout != "row-major":
        lies.insert(0, placing.layout)
    lines = {
        kernel.name: kernel.summary,
        "group": kernel.group,
        "file": kernel.path,
        "previous": f"{kernel.previous} (--diff shows what changes)" if kernel.previous else "",
        "default values": _values(kernel.sweep),
        "tuning values": _values(kernel.tune),
        "derived values": "; ".join(f"{name} = {text}" for name, text in kernel.let.items()),
        "called as": f"{kernel.entry}({', '.join(kernel.args)})" if kernel.entry else "",
        "block (threads)": " × ".join(map(str, rules.block)) if launched else "",
        "grid (blocks)": " × ".join(map(str, rules.grid)) if launched else "",
        "shared memory sized at launch (bytes)": str(rules.shared_bytes or ""),
        "workspace (bytes)": "" if rules.workspace_bytes is None else str(rules.workspace_bytes),
        "needs": "; ".join([*kernel.requires, *rules.where]),
        "computes": "; ".join(computes),
        "matrices": ", ".join(lies),
        "input precision": kernel.precision,
        "accumulates in": kernel.accumulator or "",
        "deterministic": "" if kernel.deterministic else "no (declared)",
        **{f"modelled {key.replace('_', ' ')}": value for key, value in kernel.model.items()},
    }
    table = Table.grid(padding=(0, 2))
    for label, value in lines.items():
        if value:
            table.add_row(Text(label, style="bold"), Text(value))
    return table


def source(kernel: Kernel) -> str:
    """The code below the front matter; empty for a library's product."""
    return kernel.source.split("// ///\n", 1)[-1].lstrip("\n")


def highlighted(text: str, language: str) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(text, language, theme="ansi_dark", background_color="default")


def _values(space: Mapping[str, tuple[int, ...]]) -> str:
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in space.items())
