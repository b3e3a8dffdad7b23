"""`matbench list` and `matbench show`: the available kernels."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, get_args

import click

from matbench.cli.app import main
from matbench.cli.console import open_console, say, show_rich
from matbench.cli.kernel_files import KernelFiles, kernel_names
from matbench.cli.options import grouped
from matbench.errors import UsageError
from matbench.model import Group
from matbench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matbench.kernelfile.catalogue import Catalogue
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

    Kernels are in the order in which they are best read: those of the tutorials, then the rungs of
    the ladder by number, then the gallery, each after the one it changes (`previous`).
    A terminal shows only constants with several values; in a pipe, each kernel is one line.
    """
    from matbench.kernelfile import lineage
    from matbench.show import kernels as view

    catalogue = files.loaded().known
    lineage.check(catalogue.kernels.values(), catalogue.kernels)
    listed = {
        kernel.name: kernel
        for workload in WORKLOADS
        for group in get_args(Group)
        for kernel in catalogue.group(group, workload)
    }
    kernels = [*listed.values()]
    if fmt == "rich" and sys.stdout.isatty():
        show_rich(*view.listing(kernels))
    else:
        say(view.text(kernels, fmt))


@main.command()
@click.argument("name", shell_complete=kernel_names)
@click.option(
    "--diff", "as_diff", is_flag=True, help="What it changes in the `previous` kernel, as a diff."
)
@grouped
def show(name: str, files: KernelFiles, as_diff: bool) -> None:
    """Show a kernel's front matter in words, and its source.

    A pipe or a file gets the exact source; on a terminal, control characters are replaced.
    """
    from matbench.kernelfile import lineage
    from matbench.show import kernels as view

    kernel = files.one(name)
    known = files.loaded([name]).known
    lineage.check([kernel], known.kernels)
    if as_diff:
        text, language = _diff(kernel, known), "diff"
    else:
        show_rich(view.details(kernel), "")
        text, language = view.source(kernel), "cuda"
    if not text:
        return
    if open_console().is_terminal:
        show_rich(view.highlighted(text, language))
    else:
        # As bytes, because click removes escape sequences from text.
        click.echo(text.encode(), nl=False)


def _diff(kernel: Kernel, known: Catalogue) -> str:
    """What changes from the kernel that this one names as `previous`."""
    from matbench.kernelfile import catalogue, lineage

    file = lineage.file_of(kernel, known.kernels)
    if file is None:
        raise UsageError(f"{kernel.name}: changes no other kernel file (`previous`)")
    before = known.kernels.get(kernel.previous or "") or catalogue.load(file)
    old, new = (one.source.splitlines(keepends=True) for one in (before, kernel))
    return "".join(difflib.unified_diff(old, new, before.path, kernel.path))
