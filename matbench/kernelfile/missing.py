"""Reports all missing keys of front matter at once, with example lines to paste."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from matbench.errors import UsageError, listed
from matbench.kernelfile import entry as entries
from matbench.kernelfile import geometries, guessing
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.guessing import Call
from matbench.kernelfile.hints import Hints
from matbench.kernelfile.signature import Function
from matbench.kernelfile.tables import Table
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload

#: The profile of `geometries` whose tiles fit together in a block of 256 threads.
_TILES = 3
#: The factors of a product that is not scaled.
_PLAIN = {"alpha": "1.0", "beta": "0.0"}
_NAME = re.compile(r"[A-Za-z_]\w*")


class Lacks(NamedTuple):
    """The table of a kernel, and what is known about the kernel."""

    table: Table
    workload: Workload
    parameters: Sequence[Parameter]
    function: Function
    entry: Entry

    @property
    def keys(self) -> list[str]:
        """The missing keys, such as `launch.block`."""
        values = self.table.values
        swept = {*values.get("sweep", {}), *values.get("tune", {})}
        found = []
        if "entry" not in values and any(each not in swept for each in self.entry.arguments):
            found.append("entry")
        if not values.get("args") and not self._suits(self.workload.arguments):
            found.append("args")
        args = self._guess() if "args" in found else values.get("args", ())
        needed = ["block", "grid", *(["workspace_bytes"] if WORKSPACE in args else ())]
        launch = values.get("launch", {})
        return [*found, *(f"launch.{key}" for key in needed if key not in launch)]

    def _suits(self, args: Sequence[str]) -> bool:
        buffers = [text in self.workload.buffers for text in args]
        return buffers == [parameter.pointer for parameter in self.parameters]

    def refuse(self, shown: str) -> NoReturn:
        """Raise an error that names all missing keys, with lines to paste below it."""
        table = self.table
        paste = list(self._lines())
        if not table.is_there:
            unknown = ", ".join(key.removeprefix("launch.") for key in self.keys)
            told = f"front matter is missing ({unknown})"
            hint = f"Run `matbench adopt {shown}`, or write {table.beside_name}"
            raise UsageError(f"{shown}: {told}. {hint}:", paste)
        named = listed((f"`{key}`" for key in self.keys), "and")
        named += " are" if len(self.keys) > 1 else " is"
        if table.shown == shown:
            paste = [f"// {line}" for line in paste]
        line = table.line_of("launch")
        raise UsageError(f"{table.shown}:{line}: {named} missing; add lines such as:", paste)

    def _lines(self) -> Iterator[str]:
        keys = self.keys
        if "entry" in keys:
            yield f'entry = "{entries.as_text(self.entry)}"'
        if "args" in keys:
            yield f"args = [{_quoted(self._guess())}]"
        names: list[str] = []
        if "entry" in keys:
            types = {each.name for each in self.function.template if each.kind == "typename"}
            names = [name for name in self.entry.arguments if name not in {*types, "float"}]
            is_tiled = {"TM", "TN"} & {*names}
            constants = (
                f"{name} = [{geometries.usual(name, _TILES) if is_tiled else 16}]" for name in names
            )
            yield from ("[sweep]", *constants) if names else ()
        flat = len(self.workload.dimensions) == 1
        sizes, side = (["N"], 256) if flat else (["N", "M"], 16)
        if any(key.startswith("launch.") for key in keys):
            yield "[launch]"
        if "launch.block" in keys:
            bounds = (self.function.launch_bounds or "").replace("/", "//")
            is_known = bounds and {*_NAME.findall(bounds)} <= {*names}
            yield f'block = ["{bounds}"]' if is_known else f"block = {[side] * len(sizes)}"
        if "launch.grid" in keys:
            tile = {size: f"B{size}" if f"B{size}" in names else side for size in sizes}
            yield f"grid = [{_quoted(f'ceil_div({size}, {tile[size]})' for size in sizes)}]"
        if "launch.workspace_bytes" in keys:
            yield f'workspace_bytes = "4 * {" * ".join(reversed(sizes))}"'

    def _guess(self) -> list[str]:
        """Arguments guessed from the names of parameters; more or fewer buffers in order."""
        buffers = [p.name for p in self.parameters if p.pointer and p.name != WORKSPACE]
        named = {WORKSPACE: WORKSPACE, **next(guessing.numbers(self.parameters, Hints()))}
        try:
            named |= next(guessing.pointers(buffers, Hints(), self.workload.reads))
        except guessing.NotCallableError:
            meant = itertools.chain(self.workload.buffers, itertools.repeat("C"))
            named |= zip(buffers, meant, strict=False)
        args = Call(tuple(named[p.name] for p in self.parameters)).renamed(_PLAIN).args
        if len(self.workload.dimensions) > 1:
            return [*args]
        known = (*self.workload.buffers, WORKSPACE, *_PLAIN.values())
        return [text if text in known else "N" for text in args]


def _quoted(texts: Iterator[str] | list[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)
