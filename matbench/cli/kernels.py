"""`matbench kernels`: the available kernels, or one of them."""

from __future__ import annotations

import difflib
import os
from typing import get_args

import click

from matbench.cli.app import main
from matbench.cli.console import open_console, show_report, show_rich
from matbench.cli.options import FORMATS, grouped
from matbench.cli.selection import KernelFiles, kernel_names
from matbench.errors import UsageError
from matbench.kernelfile.catalogue import Catalogue, check_previous
from matbench.model import Group, Kernel
from matbench.workloads import WORKLOADS


@main.command("kernels")
@click.argument("name", required=False, metavar="[KERNEL|FILE|FOLDER]", shell_complete=kernel_names)
@click.option(
    "--diff",
    "other",
    is_flag=False,
    flag_value="",
    metavar="[KERNEL]",
    help="Show what it changes in the code of another kernel, by default of the one before it.",
)
@grouped
@click.option(
    "--format",
    "fmt",
    type=click.Choice(FORMATS),
    default="rich",
    show_default=True,
    help="Output format of the list.",
)
def show_kernels(name: str | None, files: KernelFiles, other: str | None, fmt: str) -> None:
    """List the kernels, or show one: its front matter, and its source.

    The list is in the order in which kernels are best read: those of the tutorials, then the rungs
    of the ladder by number, then the gallery, each after the one it changes (`previous`).

    Of a FOLDER, its *.cu files are listed. A pipe or a file gets the exact source; on a terminal,
    control characters are replaced.

    \b
    matbench kernels
    matbench kernels tiled
    matbench kernels tiled --diff naive-2d
    """
    from matbench.show import kernels as view

    if name is None and other is not None:
        raise UsageError("--diff: name a kernel, as in `matbench kernels tiled --diff naive-2d`")
    names = [each for each in (name, other or None) if each is not None]
    known = files.loaded(names)
    named = known.named(names)
    is_list = name is None or os.path.isdir(name)  # noqa: PTH112 - also of paths that are too long
    if is_list or other == "":
        check_previous(named or known.kernels.values(), known.kernels)
    if is_list:
        show_report(view.report(named or _every(known)), fmt)
        return
    if other is not None:
        before = named[-1] if other else _before(named[0], known)
        if before is None:
            raise UsageError(f"{named[0].name}: changes no other kernel (`previous`)")
        changed = difflib.unified_diff(
            view.code(before), view.code(named[0]), before.path, named[0].path
        )
        text, language = "".join(changed), "diff"
    else:
        show_rich(view.details(named[0]), "")
        text, language = view.source(named[0]), "cuda"
    if open_console().is_terminal:
        show_rich(view.highlighted(text, language))
    else:
        # As bytes, because click removes escape sequences from text.
        click.echo(text.encode(), nl=False)


def _before(kernel: Kernel, known: Catalogue) -> Kernel | None:
    """The kernel that this one changes: of rungs of the ladder another rung, if there is one."""
    previous = known.kernels.get(kernel.previous or "")
    if kernel.rung and not (previous and previous.rung):
        ladder = known.group("ladder")
        return next((one for one in ladder if one.rung == kernel.rung - 1), previous)
    return previous


def _every(catalogue: Catalogue) -> list[Kernel]:
    """All kernels, each group after the other."""
    listed = {
        kernel.name: kernel
        for workload in WORKLOADS
        for group in get_args(Group)
        for kernel in catalogue.group(group, workload)
    }
    return [*listed.values()]
