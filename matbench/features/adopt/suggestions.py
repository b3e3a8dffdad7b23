"""Reports all missing keys of front matter at once, with example lines to paste."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from matbench.errors import UsageError, listed
from matbench.features.adopt import argument_guesses as guessing
from matbench.features.adopt import launch_guesses as geometries
from matbench.features.adopt.argument_guesses import Call
from matbench.features.adopt.hints import Hints
from matbench.kernelfile import entry as entries
from matbench.kernelfile import tables
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import Function
from matbench.kernelfile.tables import Table
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload

#: The profile of `geometries` whose tiles fit together in a block of 256 threads.
_TILES = 3
#: The factors of a product that is not scaled.
_PLAIN = {"alpha": "1.0", "beta": "0.0"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def examples(
    values: dict[str, Any],
    workload: Workload,
    parameters: Sequence[Parameter],
    function: Function,
    entry: Entry,
) -> dict[str, Any]:
    """Front matter with only the keys that `values` lack; empty if they lack none."""
    found: dict[str, Any] = {}
    swept = {*values.get("sweep", {}), *values.get("tune", {})}
    names: list[str] = []
    if "entry" not in values and not swept.issuperset(entry.arguments):
        found["entry"] = entries.as_text(entry)
        types = {parameter.name for parameter in function.template if parameter.kind == "typename"}
        names = [name for name in entry.arguments if name not in {*types, "float"}]
    args = values.get("args")
    buffers = [text in workload.buffers for text in workload.arguments]
    if not args and buffers != [parameter.pointer for parameter in parameters]:
        args = found["args"] = _arguments(parameters, workload)
    if names:
        is_tiled = {"TM", "TN"} & {*names}
        sides = (geometries.usual(name, _TILES) if is_tiled else 16 for name in names)
        found["sweep"] = {name: [side] for name, side in zip(names, sides, strict=True)}
    launch = _launch(function, names, len(workload.dimensions) == 1)
    if WORKSPACE not in (args or ()):
        del launch["workspace_bytes"]
    launch = {key: text for key, text in launch.items() if key not in values.get("launch", {})}
    return found | ({"launch": launch} if launch else {})


def _launch(function: Function, names: Sequence[str], is_flat: bool) -> dict[str, Any]:
    """A launch of one thread per element, or of tiles if the entry's arguments name them."""
    sizes, side = (["N"], 256) if is_flat else (["N", "M"], 16)
    bounds = (function.launch_bounds or "").replace("/", "//")
    is_known = bounds and {*_NAME.findall(bounds)} <= {*names}
    tiles = {size: f"B{size}" if f"B{size}" in names else side for size in sizes}
    return {
        "block": [bounds] if is_known else [side] * len(sizes),
        "grid": [f"ceil_div({size}, {tile})" for size, tile in tiles.items()],
        "workspace_bytes": f"4 * {' * '.join(reversed(sizes))}",
    }


def _arguments(parameters: Sequence[Parameter], workload: Workload) -> list[str]:
    """Arguments guessed from the names of parameters; more or fewer buffers in order."""
    buffers = [p.name for p in parameters if p.pointer and p.name != WORKSPACE]
    named = {WORKSPACE: WORKSPACE, **next(guessing.numbers(parameters, Hints()))}
    try:
        named |= next(guessing.pointers(buffers, Hints(), workload.reads))
    except guessing.NotCallableError:
        meant = itertools.chain(workload.buffers, itertools.repeat("C"))
        named |= zip(buffers, meant, strict=False)
    args = Call(tuple(named[p.name] for p in parameters)).renamed(_PLAIN).args
    if len(workload.dimensions) > 1:
        return [*args]
    known = (*workload.buffers, WORKSPACE, *_PLAIN.values())
    return [text if text in known else "N" for text in args]


def refuse(table: Table, lacking: dict[str, Any]) -> NoReturn:
    """Raise an error that names all missing keys, with lines to paste below it."""
    paste = [line for line in tables.as_toml(lacking).splitlines() if line]
    launch = lacking.get("launch", {})
    keys = [key for key in lacking if key not in ("sweep", "launch")]
    if not table.is_there:
        told = f"front matter is missing ({', '.join([*keys, *launch])})"
        hint = f"Run `matbench adopt {table.shown}`, or write {table.beside_name}"
        raise UsageError(f"{table.shown}: {told}. {hint}:", paste)
    named = [f"`{key}`" for key in (*keys, *(f"launch.{key}" for key in launch))]
    are = f"{listed(named, 'and')} {'are' if len(named) > 1 else 'is'} missing"
    if table.is_fenced:
        paste = [f"// {line}" for line in paste]
    line = table.line_of("launch")
    raise UsageError(f"{table.shown}:{line}: {are}; add lines such as:", paste)
