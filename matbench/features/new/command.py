"""`matbench new`: create a kernel file."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.console import say
from matbench.cli.selection import kernel_names
from matbench.errors import UsageError
from matbench.workloads import DEFAULT, WORKLOADS

#: The kernel that is copied by default.
_ORIGIN = "naive-2d"


@main.command()
@click.argument("name")
@click.option(
    "--from",
    "origin",
    metavar="KERNEL",
    shell_complete=kernel_names,
    help=f"Kernel to copy. Default: {_ORIGIN}, or the shortest kernel of --workload.",
)
@click.option(
    "--workload",
    type=click.Choice(list(WORKLOADS)),
    help="Workload, if --from is not given. Default: matmul.",
)
@click.option(
    "--output",
    default=".",
    show_default=True,
    metavar="DIR|FILE.cu",
    help="Where to write it. Existing files are not replaced.",
)
def new(name: str, origin: str | None, workload: str | None, output: str) -> None:
    """Create a kernel file: a copy that says what to change.

    \b
    matbench new mine --from tiled
    matbench new mine --workload dot
    matbench watch mine.cu
    """
    from matbench.features.new import scaffold
    from matbench.kernelfile import catalogue, front_matter

    if Path(name).suffix in (".cu", ".cuh") and Path(name).exists():
        raise UsageError(f"{name} exists; to make it run: matbench adopt {shlex.quote(name)}")
    known = catalogue.Catalogue(catalogue.builtin())
    name = name.removesuffix(".cu")
    front_matter.check_name(name)
    if name in known.kernels:
        raise UsageError(
            f"the name {name!r} is taken by {known.kernels[name].path}; choose another"
        )
    if origin is None and workload not in (None, DEFAULT):
        of_it = (k for k in known.group("all", workload) if k.kind.has_source)
        shortest = min(of_it, key=lambda kernel: len(kernel.source), default=None)
        if shortest is None:
            raise UsageError(f"--workload {workload}: no kernel to copy; name one with --from")
        origin = shortest.name
    kernel = known.get(origin or _ORIGIN)
    if workload not in (None, kernel.workload):
        raise UsageError(f"--workload {workload}: {kernel.name} computes {kernel.workload}")
    path = Path(output) if output.endswith(".cu") else Path(output) / f"{name}.cu"
    _write(path, scaffold.source(name, kernel, path.name))
    say(f"wrote {path}: a copy of {kernel.name}, named {name}")
    for header in kernel.includes:
        beside = path.parent / header.name
        if not beside.exists():
            _write(beside, Path(header.path).read_text(encoding="utf-8"))
            say(f"wrote {beside}, which it includes")
    say(f"next: matbench watch {shlex.quote(str(path))}")


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists; choose another name or --output") from None
    except OSError as error:
        with suppress(OSError):  # there is half of it if the disk is full
            path.unlink()
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
