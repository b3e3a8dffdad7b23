"""The list of kernels, and the details of one kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from matbench.model import Kernel

if TYPE_CHECKING:  # rich and tabulate take longer to import than a list takes to print
    from rich.console import RenderableType


def text(kernels: Sequence[Kernel], fmt: str) -> str:
    """One line or one object for each kernel."""
    rows = [
        {
            "kernel": kernel.name,
            "workload": kernel.workload,
            "group": kernel.group,
            "rung": kernel.rung or "",
            "previous": kernel.previous or "",
            "summary": kernel.summary,
            "requires": ", ".join(kernel.requires),
            "sweeps": _values(kernel.sweep),
        }
        for kernel in kernels
    ]
    if fmt == "json":
        return json.dumps(rows, indent=2, ensure_ascii=False)
    from matbench.show import formats
    from matbench.show.table import Column

    optional = {key for key in ("rung", "previous") if not any(row[key] for row in rows)}
    columns = [Column(title) for title in rows[0] if title not in optional] if rows else []
    cells = [[str(row[column.title]) for column in columns] for row in rows]
    table = formats.markup_table(columns, cells, "plain" if fmt == "rich" else fmt)
    return "\n".join(line.rstrip() for line in table.splitlines())


def listing(kernels: Sequence[Kernel]) -> Iterator[RenderableType]:
    """For a terminal: names and summaries; below them, swept constants and requirements."""
    from rich.table import Table
    from rich.text import Text

    for title, members in groupby(kernels, lambda kernel: f"{kernel.workload} · {kernel.group}"):
        yield Text(title, style="bold")
        table = Table.grid(padding=(0, 2))
        for kernel in members:
            table.add_row(Text(f"  {kernel.name}"), Text(kernel.summary))
            swept = {name: values for name, values in kernel.sweep.items() if len(values) > 1}
            rung = f"rung {kernel.rung}" if kernel.rung else ""
            after = f"after {kernel.previous}" if kernel.previous else ""
            needs = f"needs {', '.join(kernel.requires)}" if kernel.requires else ""
            details = " · ".join(filter(None, (rung, after, _values(swept), needs)))
            if details:
                table.add_row("", Text(details))
        yield table
        yield Text()


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
