"""When two kernel files are the same code: comments, blanks and descriptions do not count."""

from __future__ import annotations

import hashlib
import json

import msgspec

from matbench.kernelfile import includes, syntax
from matbench.model import FrontMatter, Kernel

#: Keys of front matter that change nothing: headers count by their text, wherever they are.
_IDLE = ("summary", "previous", "group", "include_dirs")


def code_of(kernel: Kernel) -> str:
    """The hash of all that decides what a kernel does: comments, descriptions and groups do not.

    Without a source in C, that of its file. Lines count where the code uses their numbers.
    """
    if not kernel.source or kernel.arrays:
        return kernel.sha256
    table = msgspec.to_builtins(kernel)
    table = {
        field.name: table[field.name]
        for field in msgspec.structs.fields(FrontMatter)
        if field.name not in _IDLE and getattr(kernel, field.name) != field.default
    }
    table["launch"] = {key: value for key, value in table["launch"].items() if value is not None}
    source = includes.flattened(kernel) if kernel.includes else kernel.source
    code = syntax.without_comments(source).replace("\\\n", "")
    lines = [" ".join(line.split()) for line in code.splitlines()]
    if "__LINE__" not in code:
        lines = [line for line in lines if line and not line.startswith("#line")]
    texts = [kernel.source, *includes.texts(kernel.includes)] if kernel.includes else []
    if any(
        "include_next" in text or None in map(includes.name_in, includes.operands(text))
        for text in texts
    ):
        # Only the preprocessor knows which header is meant.
        lines += [header.sha256 for header in kernel.includes]
    return hashlib.sha256(json.dumps([table, lines], sort_keys=True).encode()).hexdigest()
