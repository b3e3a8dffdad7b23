"""A new kernel file made from another: renamed, with comments that say what to change and where."""

from __future__ import annotations

import re

from matbench.errors import UsageError
from matbench.kernelfile import front_matter, tables
from matbench.kernelfile.syntax import without_comments
from matbench.model import Kernel

#: The comments above the keys and tables of front matter, each written once.
_GUIDE = {
    "name": "Its name on the command line, and that of its function unless `entry` is given.",
    "previous": "The kernel that it changes: `matbench show` gives the command for the diff.",
    "workload": "What it computes.",
    "args": "What the function is passed, in order: buffers, and expressions for numbers.",
    "requires": "What it needs from the device; it is skipped on devices without that.",
    "precision": "What it rounds its inputs to, which sets the error that it is allowed.",
    "error_constant": "What each product may lose before it is added, in units of 2⁻²⁴.",
    "deterministic": "Whether the same inputs give the same bits.",
    "exponents": "The range of binary exponents of its inputs.",
    "finish": 'What the host does with C: "sum" adds up one partial sum per block.',
    "sweep": "The values that a run tries; `#ifndef` below gives other compilers a default.",
    "tune": "More values, only for --set and `matbench tune`.",
    "launch": "Expressions over the problem's sizes, the constants and the device's limits.",
    "where": "Conditions; a case that does not meet one is skipped, with it as the reason.",
    "block": "Threads of a block in x, y, z.",
    "grid": "Blocks in x, y, z.",
    "shared_bytes": "Shared memory that is sized at launch.",
    "model": "What it claims about itself; change it with the loop, or delete it.",
}
_HEADER = """\
// {file}: a copy of {origin} to start from; change anything.
//
//   matbench watch {file}          builds, checks and times it whenever you save it
//   matbench check {file}          which awkward shapes does it get right?
//   matbench run --kernel {file}   every value of [sweep], as a table
//
// Above: its name, the constants it is swept over, and how many threads and blocks it is launched
// with (all keys: docs/kernels.md). Below: what one thread computes. Keep its guards, because every
// size has to come out right, and write every element of the result: it holds NaN at the start.

"""
#: Words with a meaning in C++, CUDA or OpenCL C, which no function of a kernel can be called.
_TAKEN = frozenset(
    """
    abs acos alignas alignof all and any asin asm atan auto barrier bool break case catch ceil
    char clamp class clz compl const constant constexpr continue cos cross decltype default degrees
    delete distance do dot double else enum erf event exp explicit export extern fabs false fdim
    float floor fma fmax fmin fmod for fract friend global goto half hypot if image inline int
    isnan kernel ldexp length local log long mad main max min mix mutable namespace new noexcept
    normalize not nullptr operator or pipe pow printf private protected public quad queue radians
    register remainder restrict return rint root rotate round rsqrt sampler select short shuffle
    sign signed sin sinh sizeof smoothstep sqrt static step struct switch tan tanh template this
    throw true trunc try typedef typeid typename uchar uint uint3 ulong union unsigned upsample
    ushort using vec virtual void volatile while xor
    """.split()  # noqa: SIM905
)
#: What a rung says of itself in the first lines of its comment: no copy was predicted or measured.
_LABELLED = re.compile(r"\A(?:// (?:Adds|Predicted|Limit|Measured): .*\n(?://   .*\n)*)+(?://\n)?")
_KEY = re.compile(r"//\s*(?:\[(?P<table>\w+)\]|(?P<key>\w+)\s*=)")


def source(name: str, origin: Kernel, file: str) -> str:
    """The text of a kernel file `file`: a builtin kernel under another name, with comments.

    `UsageError` when no kernel can be called `name`, or when `origin` has no source.
    """
    front_matter.check_name(name)
    if not origin.source:
        raise UsageError(f"{origin.name} is a library's product: it has no source to start from")
    front = tables.FENCE.match(origin.source)
    assert front is not None, f"{origin.path} opens with its front matter"
    body = _LABELLED.sub("", origin.source[front.end() :].lstrip("\n"), count=1)
    entry = front_matter.default_entry(name)
    used = set(re.findall(r"\w+", without_comments(body))) - {origin.entry}
    if entry in used | _TAKEN or not entry.isidentifier():
        entry = f"kernel_{entry}"
    lines = [front["open"], *_front_matter(name, entry, origin, front["body"]), "// ///\n\n"]
    header = _HEADER.format(file=file, origin=origin.path)
    return "".join(lines) + header + _renamed(body, origin.entry, entry)


def _front_matter(name: str, entry: str, origin: Kernel, body: str) -> list[str]:
    """Its lines with a comment above each key; `group` and the old `entry` are dropped.

    The copy follows its origin, not what its origin follows.
    """
    lines = []
    explained = set()
    for line in body.splitlines(keepends=True):
        match = _KEY.match(line)
        key = (match["table"] or match["key"]) if match else ""
        if key in ("group", "entry", "previous"):
            continue
        if key in _GUIDE and key not in explained:
            lines.append(f"// # {_GUIDE[key]}\n")
            explained.add(key)
        if key == "name":
            line = f'// name = "{name}"\n'
            if entry != front_matter.default_entry(name):
                line += f'// entry = "{entry}"\n'
            line += f'// # {_GUIDE["previous"]}\n// previous = "{origin.name}"\n'
        elif key == "summary":
            line = f'// summary = "{name}, from {origin.name}"\n'
        lines.append(line)
    return lines


def _renamed(body: str, old: str, new: str) -> str:
    """The function under its new name everywhere in code, but not in comments."""
    code = without_comments(body)
    for match in reversed(list(re.finditer(rf"\b{re.escape(old)}\b", code))):
        body = body[: match.start()] + new + body[match.end() :]
    return body
