"""Examples of missing keys of front matter: lines to paste."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from matbench.errors import UsageError
from matbench.features.adopt import argument_guesses, launch_guesses
from matbench.features.adopt.argument_guesses import ArgumentGuess
from matbench.features.adopt.hints import Hints
from matbench.kernelfile import entry as entries
from matbench.kernelfile.compiled import is_compiled
from matbench.kernelfile.missing import MissingKeysError
from matbench.kernelfile.signature import Signature
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload

#: The factors of a product that is not scaled.
_PLAIN = {"alpha": "1.0", "beta": "0.0"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def suggested(error: MissingKeysError) -> UsageError:
    """The error with lines to paste below it: an example of each missing key."""
    table, examples = error.table, _examples(error)
    paste = [line for line in as_toml(examples).splitlines() if line]
    hint = "add lines such as:"
    if not table.is_there:
        run = "" if is_compiled(table.shown) else f"Run `matbench adopt {table.shown}`, or write"
        hint = f"{run or 'Write'} {table.beside_name}:"
        return UsageError(f"{error.where}: {error.told}. {hint}", paste)
    if table.is_fenced:
        paste = [f"// {line}" for line in paste]
    return UsageError(f"{error.where}: {error.told}; {hint}", paste)


def as_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML; nested tables come last."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += ["", f"[{name}]", *as_toml(inner).splitlines()]
    return "\n".join(lines) + "\n"


def _examples(error: MissingKeysError) -> dict[str, Any]:
    """Front matter with the keys that are missing, and constants for the entry's arguments."""
    lacking, workload, function, entry = error.lacking, error.workload, error.function, error.entry
    examples: dict[str, Any] = {}
    names: list[str] = []
    if "entry" in lacking:
        examples["entry"] = entries.as_text(entry)
        types = {parameter.name for parameter in function.template if parameter.kind == "typename"}
        names = [name for name in entry.arguments if name not in {*types, "float"}]
    if "args" in lacking:
        examples["args"] = _arguments(function.parameters, workload)
    if names:
        is_tiled = {"TM", "TN"} & {*names}
        sides = (launch_guesses.usual(name) if is_tiled else 16 for name in names)
        examples["sweep"] = {name: [side] for name, side in zip(names, sides, strict=True)}
    launch = _launch(function, names, len(workload.dimensions) == 1)
    launch = {key: text for key, text in launch.items() if f"launch.{key}" in lacking}
    return examples | ({"launch": launch} if launch else {})


def _launch(function: Signature, names: Sequence[str], is_flat: bool) -> dict[str, Any]:
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
    named = {WORKSPACE: WORKSPACE, **next(argument_guesses.numbers(parameters, Hints()))}
    try:
        named |= next(argument_guesses.pointers(buffers, Hints(), workload.reads))
    except argument_guesses.NotCallableError:
        meant = itertools.chain(workload.buffers, itertools.repeat("C"))
        named |= zip(buffers, meant, strict=False)
    args = ArgumentGuess(tuple(named[p.name] for p in parameters)).renamed(_PLAIN).args
    if len(workload.dimensions) > 1:
        return [*args]
    known = (*workload.buffers, WORKSPACE, *_PLAIN.values())
    return [text if text in known else "N" for text in args]
