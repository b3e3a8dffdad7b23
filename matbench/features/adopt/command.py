"""`matbench adopt`: find out how to launch a foreign kernel, and write its front matter."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, say
from matbench.cli.kernel_files import KernelFiles
from matbench.cli.options import DeviceOptions, grouped
from matbench.cli.progress import progress
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.features.adopt.search import Adopted
    from matbench.features.adopt.subjects import ForeignKernel
    from matbench.kernelfile.signature import Signature
    from matbench.model import DeviceInfo


@main.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--entry", metavar="NAME", help="Kernel to adopt, if the file has several; or 'host NAME'."
)
@click.option("--force", is_flag=True, help="Replace FILE.toml.")
@click.option(
    "--include-dir",
    "include_dirs",
    multiple=True,
    metavar="DIR",
    help="Folder of headers. Repeatable.",
)
@click.option(
    "--front-matter",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of front matter that is known, such as precision=tf32. Repeatable.",
)
@click.option("--strict", is_flag=True, help="Refuse a kernel with a warning.")
@click.option("--std", metavar="STANDARD", help="C++ standard, such as c++17.")
@grouped
def adopt(
    file: str,
    entry: str | None,
    force: bool,
    include_dirs: tuple[str, ...],
    front_matter: tuple[str, ...],
    strict: bool,
    std: str | None,
    device: DeviceOptions,
) -> None:
    """Find out how to launch a file's kernels, and save that.

    FILE may be any CUDA C++ that computes C = alpha·A·B + beta·C, with any order of parameters, any
    block, grid and layout. Front matter is written only if every check passes with it: to FILE.toml
    beside the file, which every command then reads.

    \b
    matbench adopt sgemm.cuh
    matbench run sgemm.cuh
    """
    from matbench.cli.outputs import write_file
    from matbench.features.adopt import functions
    from matbench.features.adopt.suggestions import as_toml
    from matbench.kernelfile import compiled, python_file, syntax, tables
    from matbench.kernelfile.front_matter import Reader

    if compiled.is_compiled(file):
        raise UsageError(
            f"{file}: compiled; adopt reads CUDA C++, so write {tables.beside_of(Path(file))}"
        )
    known = KernelFiles((), None, front_matter, entry, ()).given
    entry = known.pop("entry", None)
    if python_file.is_python(file):
        if known:
            raise UsageError(f"--front-matter: write the table above the function in {file}")
        sys.exit(not functions.adopt(file, device))
    path = Path(file)
    source = _source(path)
    target = tables.beside_of(path)
    _require_free(path, source, target, force=force)
    given = known | _build(path, include_dirs, std)
    Reader(file, "", path, tables.Table(file, "", None, given)).front(given)  # refuses other keys
    with syntax.located(file):
        results = _results(file, source, entry, given, device)
    right = [result for result in results if result.table is not None]
    adopted = [result for result in right if not (strict and (result.warnings or result.mistakes))]
    if not adopted:
        sys.exit(1)
    first, *others = adopted
    if _source(path) != source:
        raise UsageError(f"{path}: changed during the trials; run this command again")
    _require_free(path, source, target, force=force)
    notes = "".join(f"# {setting}\n" for setting in first.settings)
    write_file(target, (notes + as_toml(first.table or {})).encode())
    say(f"wrote {target}" if len(results) == 1 else f"wrote {target}, for `{first.name}`")
    for other in others:
        words = shlex.join(["matbench", "adopt", file, "--entry", other.name, "--force"])
        say(f"for `{other.name}`: {words}")
    say(f"next: matbench run {shlex.quote(file)}")


def _results(
    file: str, bare: str, entry: str | None, given: dict[str, Any], device: DeviceOptions
) -> list[Adopted]:
    """Find out how to call each kernel of a file, or the function on the host that is named."""
    from matbench.features.adopt import functions, subjects
    from matbench.kernelfile import front_matter, signature

    path = Path(file)
    if entry is not None and entry.startswith(front_matter.ON_HOST):
        name = entry.removeprefix(front_matter.ON_HOST).strip()
        adopted = functions.on_host(path, bare, name, given, device.choose())
        say(adopted.words)
        return [adopted]
    on_host = functions.candidates(bare)
    results: list[Adopted] = []
    if not on_host or signature.functions(bare):
        kernels = subjects.subjects(bare, path, entry, given)
        with Interruption() as interruption:
            _try(kernels, device.choose(), results)
        interruption.exit(len(results), len(kernels), "kernels")
    if not any(result.table is not None for result in results):
        _offer(file, on_host, is_other=bool(results))
    return results


def _offer(file: str, functions: Sequence[Signature], *, is_other: bool) -> None:
    """Say how functions on the host are adopted, if there are no kernels or none is right."""
    from matbench.kernelfile import entry as entries

    if functions:
        why = "" if is_other else "no kernel that can be launched alone; "
        say(f"{why}for functions on the host:")
    for function in functions[:3]:
        entry = f"host {entries.suggested(function)}"
        say(f"  {shlex.join(['matbench', 'adopt', file, '--entry', entry])}")


def _try(kernels: Sequence[ForeignKernel], info: DeviceInfo, results: list[Adopted]) -> None:
    """Find out how to launch each kernel, and say what was found."""
    from matbench.features.adopt import search

    with search.pool() as pool, progress(None) as display:
        for kernel in kernels:
            display.begin(kernel.function.name)
            adopted = search.adopt(kernel, pool.worker(info))
            results.append(adopted)
            say(adopted.words)
            for warning in (*adopted.warnings, *adopted.mistakes):
                say(f"warning: {warning}")
            for setting in adopted.settings:
                say(f"note: {setting}")


def _build(path: Path, include_dirs: Sequence[str], std: str | None) -> dict[str, Any]:
    """The keys of front matter that say how to build, with folders relative to the file's."""
    from matbench.kernelfile import front_matter

    for folder in include_dirs:
        if not Path(folder).is_dir():
            raise UsageError(f"--include-dir {folder!r:.80}: no such folder")
    if std is not None and std not in front_matter.STANDARDS:
        raise UsageError(f"--std {std!r:.40}: not one of {', '.join(front_matter.STANDARDS)}")
    folders = [os.path.relpath(folder, path.absolute().parent) for folder in include_dirs]
    return {**({"include_dirs": folders} if folders else {}), **({"std": std} if std else {})}


def _source(path: Path) -> str:
    from matbench.kernelfile import catalogue, front_matter

    source = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    if "\0" in source:
        raise UsageError(f"{path}: contains a NUL byte; is it a kernel file?")
    return source


def _require_free(path: Path, source: str, target: Path, *, force: bool) -> None:
    """`UsageError` if there is front matter that must not be replaced."""
    from matbench.kernelfile import tables

    if target == path:
        raise UsageError(f"{path}: front matter, not a kernel file; name the kernel file")
    if tables.FENCE.search(source):
        raise UsageError(f"{path}: contains front matter; edit that, or remove it first")
    if os.path.lexists(target) and not force:
        raise UsageError(f"{target} exists; use --force to replace it")
    if os.path.lexists(target) and (target.is_symlink() or not target.is_file()):
        raise UsageError(f"{target}: not a regular file; remove it first")
