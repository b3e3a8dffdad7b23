"""`matbench list` and `matbench show`: the available kernels."""

from __future__ import annotations

import sys

import click

from matbench.cli.app import main
from matbench.cli.console import open_console, say, show_rich
from matbench.cli.kernel_files import KernelFiles, kernel_names
from matbench.cli.options import grouped
from matbench.workloads import WORKLOADS


@main.command("list")
@grouped(files=KernelFiles)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["rich", "plain", "github", "json"]),
    default="rich",
    show_default=True,
    help="Output format.",
)
def list_kernels(files: KernelFiles, fmt: str) -> None:
    """List the kernels, the constants they sweep and their requirements.

    A terminal shows only constants with several values; in a pipe, each kernel is one line.
    """
    from matbench.show import kernels as view

    catalogue, _, _ = files.catalogue()
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
@grouped(files=KernelFiles)
def show(name: str, files: KernelFiles) -> None:
    """Show a kernel's front matter in words, and its source.

    A pipe or a file gets the exact source; on a terminal, control characters are replaced.
    """
    from matbench.show import kernels as view

    kernel = files.one(name)
    show_rich(view.details(kernel), "")
    if not kernel.source:
        return
    if open_console().is_terminal:
        show_rich(view.highlighted(kernel))
    else:
        # As bytes, because click removes escape sequences from text.
        click.echo(view.source(kernel).encode(), nl=False)
