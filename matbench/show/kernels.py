"""The list of kernels, and the details of one kernel."""

from __future__ import annotations

import json
import tokenize
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matbench.model import USUAL, Kernel
from matbench.show.table import Column, Group, Report, Row, grouped, numeric, section, under

if TYPE_CHECKING:  # rich takes longer to import than a list takes to print
    from rich.console import RenderableType


COLUMNS = (
    Column("kernel", "kernel", "name"),
    *under("", "workload group"),
    numeric("rung", "rung"),
    Column("after", "previous", drop=2),
    Column("summary", "summary"),
    Column("needs", "requires", lambda kernel: ", ".join(kernel.requires) or None),
    Column("constants", "sweeps", lambda kernel: _in_words(kernel.sweep) or None, drop=1),
)


def report(kernels: Sequence[Kernel]) -> Report:
    """Kernels in the order given, a section for each group of a workload."""
    sections = [
        section([title], COLUMNS, "", [Group("", Row.each(COLUMNS, members, lambda _: Row()))])
        for title, members in grouped(kernels, lambda k: f"{k.workload} · {k.group}").items()
    ]
    return Report(
        sections=tuple(sections),
        footer=f"{len(kernels)} kernels",
        columns=COLUMNS,
        rows=lambda: kernels,
        records=lambda: [{c.key: c.at(kernel) for c in COLUMNS} for kernel in kernels],
    )


def details(kernel: Kernel) -> RenderableType:
    """Its file, how it is called, and the keys of front matter without their default."""
    from rich.table import Table
    from rich.text import Text

    called = f"{kernel.entry}({', '.join(kernel.args)})"
    lines = {kernel.name: kernel.summary, "file": kernel.path, "called as": called}
    for given, default in ((kernel, USUAL), (kernel.launch, USUAL.launch)):
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


def code(kernel: Kernel) -> list[str]:
    """The lines of its source without front matter and comments."""
    lines = source(kernel).splitlines(keepends=True)
    if "::" not in kernel.path:
        return [line for line in lines if not line.lstrip().startswith("//")]
    # A Python file, whose strings may have lines of CUDA C that begin with `#`, too.
    tokens = tokenize.generate_tokens(iter(lines).__next__)
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    numbered = enumerate(lines, 1)
    return [text for n, text in numbered if n not in comments or text.lstrip()[0] != "#"]


def highlighted(text: str, language: str) -> RenderableType:
    from rich.syntax import Syntax

    return Syntax(text, language, theme="ansi_dark", background_color="default")
