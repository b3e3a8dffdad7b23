"""The order of kernels: `previous` in front matter makes a tree, listed branch by branch."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from matbench.errors import UsageError
from matbench.model import Kernel


def line_to(kernel: Kernel, known: Mapping[str, Kernel]) -> list[Kernel]:
    """The kernels that lead to this one, from the first to itself; `UsageError` for a loop."""
    line = [kernel]
    while (before := known.get(line[0].previous or "")) is not None:
        line.insert(0, before)
        if before.name in {kernel.name for kernel in line[1:]}:
            names = " → ".join(kernel.name for kernel in line)
            raise UsageError(f"{kernel.path}: `previous` forms a cycle: {names}")
    return line


def check(kernels: Iterable[Kernel], known: Mapping[str, Kernel]) -> None:
    """`UsageError` if `previous` names a kernel that is neither known nor in a file beside."""
    for kernel in kernels:
        name = kernel.previous
        if name is None or name in known or file_of(kernel, known) is not None:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "name its file, too"
        raise UsageError(f"{kernel.path}: no kernel {name!r} (previous); {hint}")


def file_of(kernel: Kernel, known: Mapping[str, Kernel]) -> Path | None:
    """The file of the previous kernel: `PREVIOUS.cu` beside this file, or that of a known one."""
    if kernel.previous is None or not kernel.file:
        return None
    beside = Path(kernel.file).with_name(f"{kernel.previous}.cu")
    before = known.get(kernel.previous)
    if before is None or beside.is_file():
        return beside if beside.is_file() else None
    return Path(before.file) if before.file else None


def ordered(kernels: Iterable[Kernel], known: Mapping[str, Kernel]) -> list[Kernel]:
    """Each kernel behind its previous one, the longest branch first; then by name.

    `known` are all kernels: those outside the list decide which of its branches begins first.
    """
    chosen = {kernel.name: kernel for kernel in kernels}
    lines = [line_to(kernel, chosen) for kernel in chosen.values()]
    sizes = Counter(kernel.name for line in lines for kernel in line)  # of what comes behind each
    longest: dict[str, int] = {}
    for line in sorted(lines, key=len):
        longest |= dict.fromkeys((kernel.name for kernel in line), len(line))

    def place(line: list[Kernel]) -> list[tuple[int, int, str]]:
        first, *others = line
        start = (len(line_to(first, known)), 0, first.name)
        return [start, *((-longest[k.name], -sizes[k.name], k.name) for k in others)]

    return [line[-1] for line in sorted(lines, key=place)]
