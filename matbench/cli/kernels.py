"""`matbench list` and `matbench show`: the available kernels."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.console import open_console, say, show_rich
from matbench.cli.kernel_files import KernelFiles, kernel_names
from matbench.cli.options import grouped
from matbench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matbench.model import Kernel


@main.command("list")
@grouped
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["rich", "plain", "github", "json"]),
    default="rich",
    show_default=True,
    help="Output format.",
)
def list_kernels(files: KernelFiles, fmt: str) -> None:
    """List the kernels and the constants they sweep.

    A kernel is listed after the one it changes (`previous` in front matter).
    A terminal shows only constants with several values; in a pipe, each kernel is one line.
    """
    from matbench.kernelfile import lineage
    from matbench.show import kernels as view

    catalogue = files.loaded().known
    lineage.check(catalogue.kernels.values(), catalogue.kernels)
    kernels = [
        kernel
        for workload in WORKLOADS
        for group in ("tutorial", "ladder", "blas", "baseline")
        for kernel in catalogue.group(group, workload)
    ]
    if fmt == "rich" and sys.stdout.isatty():
        show_rich(*view.listing(kernels))
    else:
        say(view.text(kernels, fmt))


@main.command()
@click.argument("name", shell_complete=kernel_names)
@grouped
def show(name: str, files: KernelFiles) -> None:
    """Show a kernel's front matter in words, and its source.

    A pipe or a file gets the exact source; on a terminal, control characters are replaced.
    """
    from matbench.kernelfile import lineage
    from matbench.show import kernels as view

    kernel = files.one(name)
    known = files.loaded([name]).known
    lineage.check([kernel], known.kernels)
    show_rich(
        view.details(kernel, _diff_command(kernel, lineage.file_of(kernel, known.kernels))), ""
    )
    if not kernel.source:
        return
    if open_console().is_terminal:
        show_rich(view.highlighted(kernel))
    else:
        # As bytes, because click removes escape sequences from text.
        click.echo(view.source(kernel).encode(), nl=False)


def _diff_command(kernel: Kernel, before: Path | None) -> str:
    """The command that shows what a kernel changes in the previous one."""
    if before is None:
        return ""
    paths = [Path(os.path.relpath(path)) for path in (before, Path(kernel.file))]
    shown = [path.absolute() if path.parts[:2] == ("..", "..") else path for path in paths]
    return f"git diff --no-index {' '.join(shlex.quote(str(path)) for path in shown)}"
