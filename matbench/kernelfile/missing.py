"""Reports all missing keys of front matter at once, with example lines to paste."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from matbench.errors import UsageError
from matbench.kernelfile import entry as entries
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import Function
from matbench.kernelfile.tables import Table
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload

#: Common names of number parameters, and what they mean.
_NUMBERS = {
    **dict.fromkeys(("n", "width", "size", "dim", "cols", "ncols"), "N"),
    **dict.fromkeys(("m", "height", "rows", "nrows"), "M"),
    **dict.fromkeys(("k", "depth", "inner"), "K"),
    **{f"stride{letter}": f"stride_{letter}" for letter in "abc"},
    **dict.fromkeys(("batch", "batchcount", "batchsize", "nbatch"), "batch"),
    "alpha": "1.0", "beta": "0.0", "lda": "K", "ldb": "N", "ldc": "N",
}  # fmt: skip
#: Tile sizes that fit together in a block of 256 threads.
_TILES = {"BM": 64, "BN": 64, "BK": 8, "TM": 4, "TN": 4, "WM": 32, "WN": 32}
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
        *others, last = (f"`{key}`" for key in self.keys)
        named = f"{', '.join(others)} and {last} are" if others else f"{last} is"
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
            tiles = _TILES if {"TM", "TN"} & {*names} else {}
            constants = (f"{name} = [{tiles.get(name, 16)}]" for name in names)
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
        """Arguments guessed from parameter names; buffers with other names in order."""
        pointers = [each.name for each in self.parameters if each.pointer]
        meant = [name.lower().removeprefix("d_").upper() for name in pointers if name != WORKSPACE]
        known = sorted(meant) == sorted(self.workload.buffers)
        buffers = iter(meant if known else self.workload.buffers)
        return [
            self._number(each) if not each.pointer
            else WORKSPACE if each.name == WORKSPACE
            else next(buffers, "C")
            for each in self.parameters
        ]  # fmt: skip

    def _number(self, parameter: Parameter) -> str:
        """The likely value of a number parameter, in names that expressions know."""
        guess = _NUMBERS.get(parameter.name.lower().replace("_", ""), parameter.name)
        if guess in ("M", "N", "K") and guess not in self.workload.dimensions:
            return "N"
        is_known = guess in _NUMBERS.values() or guess in self.workload.dimensions
        default = "1.0" if parameter.type in ("float", "double") else "N"
        return guess if is_known else default


def _quoted(texts: Iterator[str] | list[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)
