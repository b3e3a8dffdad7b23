"""The list of kernels, and the details of one kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from matbench.model import FrontMatter, Kernel, LaunchRules
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
            kernel.summary, ", ".join(kernel.requires) or None, _in_words(kernel.sweep) or None,
        )
        for kernel in kernels
    ]  # fmt: skip
    sections = [
        section([title], COLUMNS, "", [Group("", Row.each(COLUMNS, members, lambda _: Row()))])
        for title, members in grouped(rows, lambda row: f"{row.workload} · {row.group}").items()
    ]
    return Report(tuple(sections), f"{len(rows)} kernels", COLUMNS, lambda: rows, lambda: rows)


def details(kernel: Kernel) -> RenderableType:
    """Its file, how it is called, and the keys of front matter without their default."""
    from rich.table import Table
    from rich.text import Text

    called = f"{kernel.entry}({', '.join(kernel.args)})"
    lines = {kernel.name: kernel.summary, "file": kernel.path, "called as": called}
    usual = FrontMatter(name="", launch=LaunchRules((1,), (1,)))
    for given, default in ((kernel, usual), (kernel.launch, usual.launch)):
        for key in default.__struct_fields__:
            is_shown = key not in ("name", "summary", "entry", "args", "launch")
            if is_shown and getattr(given, key) != getattr(default, key):
                lines[key] = _in_words(getattr(given, key))
    table = Table.grid(padding=(0, 2))
    for label, value in lines.items():
        table.add_row(Text(label, style="bold"), Text(value))
    return table


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} = {_in_words(inner)}" for name, inner in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_in_words, value))
    return value if isinstance(value, str) else json.dumps(value)


def source(kernel: Kernel) -> str:
    """The code below the front matter; empty for a library's product."""
    return kernel.source.split("// ///\n", 1)[-1].lstrip("\n")


def highlighted(text: str, language: str) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(text, language, theme="ansi_dark", background_color="default")
