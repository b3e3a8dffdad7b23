"""Makes a new kernel file from another one: a copy with comments that say what to change."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from matbench.errors import UsageError
from matbench.kernelfile import front_matter, tables
from matbench.model import Kernel

#: Comments for a copy.
_GUIDE = msgspec.toml.decode(Path(__file__).with_name("guide.toml").read_bytes())
#: What a rung says of itself in the first lines of its comment: no copy was predicted or measured.
_LABELLED = re.compile(r"\A(?:// (?:Adds|Predicted|Limit|Measured): .*\n(?://   .*\n)*)+(?://\n)?")
_KEY = re.compile(r"//\s*(?:\[(?P<table>\w+)\]|(?P<key>\w+)\s*=)")


def source(name: str, origin: Kernel, file: str) -> str:
    """The text of a kernel file `file`: one of matbench's kernels by another name, with comments.

    `UsageError` if `name` is not a valid name, or if `origin` has no source.
    """
    front_matter.check_name(name)
    if origin.kind.is_library:
        raise UsageError(f"{origin.name} is {origin.kind.called}; it has no source to copy")
    front = tables.FENCE.match(origin.source)
    assert front is not None, f"{origin.path} opens with its front matter"
    body = _LABELLED.sub("", origin.source[front.end() :].lstrip("\n"), count=1)
    lines = [front["open"], *_front_matter(name, origin, front["body"]), "// ///\n\n"]
    header: str = _GUIDE["header"].format(file=file, origin=origin.path)
    return "".join(lines) + header + body


def _front_matter(name: str, origin: Kernel, body: str) -> list[str]:
    """The lines of front matter with a comment above each key, without `group`.

    `previous` names the origin.
    """
    lines, guide, explained = [], _GUIDE["keys"], set[str]()
    for line in body.splitlines(keepends=True):
        match = _KEY.match(line)
        key = (match["table"] or match["key"]) if match else ""
        if key in ("group", "previous"):
            continue
        if key in guide and key not in explained:
            lines.append(f"// # {guide[key]}\n")
            explained.add(key)
        if key == "name":
            line = f'// name = "{name}"\n// # {guide["previous"]}\n// previous = "{origin.name}"\n'
        elif key == "summary":
            line = f'// summary = "{name}, from {origin.name}"\n'
        lines.append(line)
    return lines
