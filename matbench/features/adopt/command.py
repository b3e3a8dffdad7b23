"""`matbench adopt`: find out how to launch a foreign kernel, and write its front matter."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, say
from matbench.cli.options import DeviceOptions, grouped
from matbench.cli.selection import KernelFiles, is_path
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.features.adopt.guess import Adopted


@main.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--entry", metavar="NAME", help="Kernel to adopt, if the file has several; or 'host NAME'."
)
@click.option("--force", is_flag=True, help="Replace FILE.toml.")
@click.option(
    "--front-matter",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of front matter that is known: precision=tf32, std=c++17, include_dirs=DIR (as "
    "seen from the file). Repeatable.",
)
@click.option(
    "--set",
    "constants",
    multiple=True,
    metavar="NAME=VALUE",
    help="A constant that the file leaves to the build, or to a template: WIDTH=512. Repeatable.",
)
@grouped
def adopt(
    file: str,
    entry: str | None,
    force: bool,
    front_matter: tuple[str, ...],
    constants: tuple[str, ...],
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
    import tomlkit

    from matbench.cli.console import write_file
    from matbench.kernelfile import python_file, syntax, tables
    from matbench.kernelfile.front_matter import COMPILED, Reader

    path = Path(file)
    target = path.parent / f"{path.stem}.toml"  # also of `.`, which has no name
    if file.endswith(COMPILED):
        raise UsageError(f"{file}: compiled; adopt reads CUDA C++, so write {target}")
    known = KernelFiles(front_matter, entry).given
    named = dict(map(_constant, constants))
    entry = known.pop("entry", None)
    if python_file.is_python(file):
        from matbench.features.adopt import functions

        if known or named:
            option = "--front-matter" if known else "--set"
            raise UsageError(f"{option}: write the table above the function in {file}")
        sys.exit(not functions.adopt(file, device))
    source = _free(path, target, force=force)
    Reader(file, "", path, tables.Table(file, "", None, known)).front(known)  # refuses other keys
    with syntax.located(file):
        results = _results(file, source, entry, known, named, device)
    adopted = [result for result in results if result.table is not None]
    if not adopted:
        sys.exit(1)
    first, *others = adopted
    if _free(path, target, force=force) != source:
        raise UsageError(f"{path}: changed during the trials; run this command again")
    if first.file:  # that includes this one
        file, target = first.file, Path(first.file).with_suffix(".toml")
        _free(Path(file), target, force=force)
    table = "".join(f"# {note}\n" for note in first.notes) + tomlkit.dumps(first.table or {})
    try:
        write_file(target, table.encode())
    except UsageError as error:
        raise UsageError(str(error), table.splitlines()) from None  # found in seconds or minutes
    say(f"wrote {target}" if len(results) == 1 else f"wrote {target}, for `{first.name}`")
    for other in others:
        words = shlex.join(["matbench", "adopt", file, "--entry", other.name, "--force"])
        say(f"for `{other.name}`: {words}")
    say(f"next: matbench run {shlex.quote(file if is_path(file) else f'./{file}')}")


def _constant(text: str) -> tuple[str, int]:
    """What `--set` gives."""
    if not (found := re.fullmatch(r"([A-Za-z_]\w*)=0*([1-9]\d{0,8})", text)):
        raise UsageError(f"--set {text!r}: expected NAME=VALUE, such as WIDTH=512")
    name, value = found.groups()
    if name in ("M", "N", "K"):
        raise UsageError(f"--set {text}: {name} is a side of the problem; define it in the file")
    return name, int(value)


def _results(
    file: str, bare: str, entry: str | None, given: dict[str, Any], constants: Mapping[str, int],
    device: DeviceOptions,
) -> list[Adopted]:  # fmt: skip
    """Find out, and say, how each kernel or the named function on the host is called."""
    from matbench.features.adopt import functions, search, subjects
    from matbench.features.adopt.guess import Adopted
    from matbench.kernelfile import front_matter, signature

    path = Path(file)
    options = [*given.get("options", ()), *(f"-D{name}={n}" for name, n in constants.items())]
    on_host = {**given, "options": options} if options else given
    if entry is not None and entry.startswith(front_matter.ON_HOST):
        name = entry.removeprefix(front_matter.ON_HOST).strip()
        adopted = functions.on_host(path, bare, name, on_host, device.choose())
        say(adopted.words)
        return [adopted]
    results: list[Adopted] = []
    names = [entry] if entry else [function.name for function in signature.functions(bare)]
    if names or not subjects.candidates(bare):
        kernels = subjects.subjects(bare, path, entry, given, constants)
        info = device.choose()
        with Interruption() as interruption, search.pool() as pool, progress(None) as display:
            pool.start([info])
            for kernel in kernels:
                display.begin(kernel.function.name)
                try:
                    adopted = search.adopt(kernel, pool.worker(info))
                except UsageError as error:
                    if not any(subjects.callers(path, bare, names, given)):
                        raise
                    adopted = Adopted(kernel.function.name, None, str(error))
                results.append(adopted)
                say(adopted.words)
                for warning in adopted.warnings:
                    say(f"warning: {warning}")
                for note in adopted.notes:
                    say(f"note: {note}")
        interruption.exit(len(results), len(kernels), "kernels")
    if not any(result.table for result in results):
        for source, text, name in itertools.islice(subjects.callers(path, bare, names, given), 1):
            result = functions.on_host(source, text, name, on_host, device.choose())
            results.append(result._replace(file="" if source == path else str(source)))
            say(result.words)
    return results


def _free(path: Path, target: Path, *, force: bool) -> str:
    """The text of a file; `UsageError` if there is front matter that must not be replaced."""
    from matbench.kernelfile import catalogue, front_matter, tables

    source = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    if "\0" in source:
        raise UsageError(f"{path}: contains a NUL byte; is it a kernel file?")
    if target == path:
        raise UsageError(f"{path}: front matter, not a kernel file; name the kernel file")
    if tables.FENCE.search(source):
        raise UsageError(f"{path}: contains front matter; edit that, or remove it first")
    if os.path.lexists(target) and not force:
        raise UsageError(f"{target} exists; use --force to replace it")
    if os.path.lexists(target) and (target.is_symlink() or not target.is_file()):
        raise UsageError(f"{target}: not a regular file; remove it first")
    return source
