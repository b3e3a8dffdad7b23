"""Examples of missing keys of front matter: lines to paste."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from matbench.errors import UsageError
from matbench.features.adopt import arguments, launches
from matbench.features.adopt.guess import NotCallableError, renamed
from matbench.features.adopt.hints import Hints
from matbench.kernelfile import signature, syntax
from matbench.kernelfile.front_matter import COMPILED
from matbench.kernelfile.tables import MissingKeysError
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload

#: The factors of a product that is not scaled.
_PLAIN = {"alpha": "1.0", "beta": "0.0"}


def suggested(error: MissingKeysError) -> UsageError:
    """The error with lines to paste below it: an example of each missing key."""
    import tomlkit

    table = error.table
    paste = [line for line in tomlkit.dumps(_examples(error)).splitlines() if line]
    hint = "add lines such as:"
    if not table.is_there:
        hint = f"Write {table.beside_name}:"
        if not table.shown.endswith(COMPILED):
            hint = f"Run `matbench adopt {table.shown}`, or write {table.beside_name}:"
        return UsageError(f"{error.where}: {error.told}. {hint}", paste)
    if table.is_fenced:
        paste = [f"// {line}" for line in paste]
    return UsageError(f"{error.where}: {error.told}; {hint}", paste)


def _examples(error: MissingKeysError) -> dict[str, Any]:
    """Front matter with the keys that are missing, and constants for the entry's arguments."""
    lacking, workload, function, entry = error.lacking, error.workload, error.function, error.entry
    examples, names = dict[str, Any](), list[str]()
    if "entry" in lacking:
        examples["entry"] = signature.as_text(entry)
        types = {parameter.name for parameter in function.template if parameter.kind == "typename"}
        names = [name for name in entry.arguments if name not in {*types, "float"}]
    if "args" in lacking:
        examples["args"] = _arguments(function.parameters, workload)
    if names:
        is_tiled = {"TM", "TN"} & {*names}
        examples["sweep"] = {n: [launches.usual(n) if is_tiled else 16] for n in names}
    # One thread per element, or tiles if the entry's arguments name them.
    sizes, side = (["N"], 256) if len(workload.dimensions) == 1 else (["N", "M"], 16)
    bounds = (function.launch_bounds or "").replace("/", "//")
    is_known = bounds and {*syntax.WORD.findall(bounds)} <= {*names}
    tiles = {size: f"B{size}" if f"B{size}" in names else side for size in sizes}
    launch = {
        "block": [bounds] if is_known else [side] * len(sizes),
        "grid": [f"ceil_div({size}, {tile})" for size, tile in tiles.items()],
        "workspace_bytes": f"4 * {' * '.join(reversed(sizes))}",
    }
    launch = {key: text for key, text in launch.items() if f"launch.{key}" in lacking}
    return examples | ({"launch": launch} if launch else {})


def _arguments(parameters: Sequence[Parameter], workload: Workload) -> list[str]:
    """Arguments guessed from the names of parameters; more or fewer buffers in order."""
    buffers = [p.name for p in parameters if p.pointer and p.name != WORKSPACE]
    named = {WORKSPACE: WORKSPACE, **next(arguments.numbers(parameters, Hints()))}
    try:
        named |= next(arguments.pointers(buffers, inputs=workload.reads))
    except NotCallableError:
        meant = itertools.chain(workload.buffers, itertools.repeat("C"))
        named |= zip(buffers, meant, strict=False)
    args = renamed((named[p.name] for p in parameters), _PLAIN)
    if len(workload.dimensions) > 1:
        return [*args]
    known = (*workload.buffers, WORKSPACE, *_PLAIN.values())
    return [text if text in known else "N" for text in args]
