"""Makes a new kernel file from another one: a copy with comments that say what to change."""

from __future__ import annotations

import re

from matbench.errors import UsageError
from matbench.kernelfile import front_matter, tables
from matbench.model import BASELINE, Kernel

#: Comments above the keys and tables of front matter, each used once.
_GUIDE = {
    "name": "Name on the command line; the function may have any.",
    "previous": "The kernel that it changes: `matbench kernels` gives the command for the diff.",
    "workload": "What it computes.",
    "args": "Arguments of the function, in order: buffers, and expressions for numbers.",
    "requires": "Requirements; the kernel is skipped on devices that do not meet them.",
    "precision": "Number format that inputs are rounded to; it decides the error bound.",
    "error_constant": "Error that each product may have before it is added, in units of 2⁻²⁴.",
    "deterministic": "Whether the same inputs always give the same bits.",
    "exponents": "Range of binary exponents that inputs may have.",
    "finish": 'What the host does with C: "sum" adds up one partial sum per block.',
    "sweep": "Values that a run tries; `#ifndef` below sets a default for other compilers.",
    "tune": "More values, used only by --set and `matbench tune`.",
    "launch": "Expressions in the problem's sizes, the constants and the device's limits.",
    "where": "Conditions; a case that does not meet all of them is skipped.",
    "block": "Threads per block in x, y, z.",
    "grid": "Blocks in x, y, z.",
    "shared_bytes": "Bytes of dynamic shared memory per block.",
    "workspace_bytes": "Bytes of the workspace: scratch memory, undefined before the launch.",
    "model": "Modelled properties of the kernel; update them with the loop, or delete them.",
}
_HEADER = """\
// {file}: a copy of {origin} to start from; change anything.
//
//   matbench watch {file}          builds, checks and times it whenever you save it
//   matbench check {file}          which awkward shapes does it get right?
//   matbench run {file}            every value of [sweep], as a table
//
// Above: the kernel's name, its swept constants, its block and its grid (all keys are explained in
// docs/kernels.md). Below: the work of one thread. Keep the bounds checks, because every size must
// be correct, and write every element of the result, which is NaN before the launch.

"""
#: What a rung says of itself in the first lines of its comment: no copy was predicted or measured.
_LABELLED = re.compile(r"\A(?:// (?:Adds|Predicted|Limit|Measured): .*\n(?://   .*\n)*)+(?://\n)?")
_KEY = re.compile(r"//\s*(?:\[(?P<table>\w+)\]|(?P<key>\w+)\s*=)")


def source(name: str, origin: Kernel, file: str) -> str:
    """The text of a kernel file `file`: one of matbench's kernels by another name, with comments.

    `UsageError` if `name` is not a valid name, or if `origin` has no source.
    """
    front_matter.check_name(name)
    if origin.library == BASELINE:
        raise UsageError(f"{origin.name} is {origin.kind.called}; it has no source to copy")
    front = tables.FENCE.match(origin.source)
    assert front is not None, f"{origin.path} opens with its front matter"
    body = _LABELLED.sub("", origin.source[front.end() :].lstrip("\n"), count=1)
    lines = [front["open"], *_front_matter(name, origin, front["body"]), "// ///\n\n"]
    return "".join(lines) + _HEADER.format(file=file, origin=origin.path) + body


def _front_matter(name: str, origin: Kernel, body: str) -> list[str]:
    """The lines of front matter with a comment above each key, without `group`.

    `previous` names the origin.
    """
    lines = []
    explained = set()
    for line in body.splitlines(keepends=True):
        match = _KEY.match(line)
        key = (match["table"] or match["key"]) if match else ""
        if key in ("group", "previous"):
            continue
        if key in _GUIDE and key not in explained:
            lines.append(f"// # {_GUIDE[key]}\n")
            explained.add(key)
        if key == "name":
            line = f'// name = "{name}"\n// # {_GUIDE["previous"]}\n// previous = "{origin.name}"\n'
        elif key == "summary":
            line = f'// summary = "{name}, from {origin.name}"\n'
        lines.append(line)
    return lines
