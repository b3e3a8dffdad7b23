"""`matbench list` and `matbench show`: the kernels at hand."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.options import kernel_file_options, kernel_names
from matbench.cli.shared import catalogue_of, named_kernels, open_console, show_rich
from matbench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matbench.model import Kernel


@main.command("list")
@kernel_file_options
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["rich", "plain", "github", "json"]),
    default="rich",
    show_default=True,
    help="How to print it.",
)
def list_kernels(kernel_files: tuple[str, ...], kernels_dir: str | None, fmt: str) -> None:
    """List the kernels, what they sweep and what they require.

    A terminal shows the constants that have several values; in a pipe each kernel is one line.
    """
    catalogue, _ = catalogue_of(kernel_files, kernels_dir)
    kernels = [
        kernel
        for workload in WORKLOADS
        for group in ("tutorial", "ladder", "baseline")
        for kernel in catalogue.group(group, workload)
    ]
    rows = [
        {
            "kernel": kernel.name,
            "workload": kernel.workload,
            "group": kernel.group,
            "summary": kernel.summary,
            "requires": ", ".join(kernel.requires),
            "sweeps": _values(kernel.sweep),
        }
        for kernel in kernels
    ]
    if fmt == "json":
        import json

        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif fmt != "rich":
        from tabulate import tabulate

        click.echo(tabulate(rows, headers="keys", tablefmt=fmt))
    elif sys.stdout.isatty():
        for title, found in groupby(kernels, lambda kernel: f"{kernel.workload} · {kernel.group}"):
            click.secho(title, bold=True)
            click.echo(_described(list(found)))
    else:
        table = [list(rows[0]), *(list(row.values()) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            click.echo("  ".join(padded).rstrip())


def _described(kernels: Sequence[Kernel]) -> str:
    """Names beside summaries, as wide as the terminal; below, what is swept and required."""
    lines = []
    for kernel in kernels:
        swept = {name: values for name, values in kernel.sweep.items() if len(values) > 1}
        needs = f"needs {', '.join(kernel.requires)}" if kernel.requires else ""
        details = " · ".join(filter(None, (_values(swept), needs)))
        lines += [(kernel.name, kernel.summary), *([("", details)] if details else [])]
    formatter = click.HelpFormatter(width=shutil.get_terminal_size().columns)
    formatter.indent()
    formatter.write_dl(lines)
    return formatter.getvalue()


def _values(space: dict[str, tuple[int, ...]]) -> str:
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in space.items())


@main.command()
@click.argument("name", shell_complete=kernel_names)
@kernel_file_options
def show(name: str, kernel_files: tuple[str, ...], kernels_dir: str | None) -> None:
    """Show one kernel: its front matter in words, and its source."""
    from rich.syntax import Syntax
    from rich.table import Table

    catalogue, _ = catalogue_of(kernel_files, kernels_dir)
    (kernel,) = named_kernels([name], catalogue)
    table = Table.grid(padding=(0, 2))
    rules = kernel.launch
    needs = [*kernel.requires, *rules.where]
    rows = {
        kernel.name: kernel.summary,
        "group": kernel.group,
        "file": kernel.path or f"none: a call of {kernel.library}",
        "runs by default": _values(kernel.sweep) or "once",
        "can be tuned over": _values(kernel.tune),
        "called as": f"{kernel.entry}({', '.join(kernel.args)})" if kernel.entry else "",
        "block (threads)": "" if kernel.library else " × ".join(map(str, rules.block)),
        "grid (blocks)": "" if kernel.library else " × ".join(map(str, rules.grid)),
        "shared memory sized at launch (bytes)": str(rules.shared_bytes or ""),
        "needs": "; ".join(needs),
        "reads its inputs as": kernel.precision,
        "deterministic": "" if kernel.deterministic else "no, it says",
        **{f"modelled {key.replace('_', ' ')}": text for key, text in kernel.model.items()},
    }
    for label, text in rows.items():
        if text:
            table.add_row(f"[bold]{label}[/bold]", text)
    show_rich(table, "")
    if kernel.source:
        body = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
        console = open_console()
        if console.is_terminal:
            console.print(Syntax(body, "cuda", theme="ansi_dark", background_color="default"))
        else:
            click.echo(body)
