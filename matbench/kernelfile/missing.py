"""The keys that front matter lacks: all of them in one error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from matbench.errors import UsageError, listed
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import Signature
from matbench.kernelfile.tables import Table
from matbench.model import WORKSPACE, Parameter
from matbench.workloads import Workload


class Given(NamedTuple):
    """What is known of a kernel: the values of front matter, and the function that they are for."""

    values: dict[str, Any]
    workload: Workload
    parameters: Sequence[Parameter]
    function: Signature
    entry: Entry


class MissingKeysError(UsageError):
    """Front matter lacks keys; the `given` ones may tell what the others could be."""

    def __init__(self, table: Table, lacking: Sequence[str], given: Given) -> None:
        self.table, self.lacking, self.given = table, lacking, given
        super().__init__(f"{self.where}: {self.told}; see docs/kernels.md")

    @property
    def where(self) -> str:
        table = self.table
        return f"{table.shown}:{table.line_of('launch')}" if table.is_there else table.shown

    @property
    def told(self) -> str:
        if not self.table.is_there:
            names = ", ".join(key.removeprefix("launch.") for key in self.lacking)
            return f"front matter is missing ({names})"
        named = [f"`{key}`" for key in self.lacking]
        return f"{listed(named, 'and')} {'are' if len(named) > 1 else 'is'} missing"


def lacking_keys(given: Given) -> list[str]:
    """The keys that are needed and not there."""
    values, workload, parameters, _, entry = given
    lacking = []
    constants = {name for table in ("sweep", "tune", "let") for name in values.get(table, {})}
    if "entry" not in values and not constants.issuperset(entry.arguments):
        lacking.append("entry")
    args = values.get("args")
    buffers = [text in workload.buffers for text in workload.arguments]
    if not args and buffers != [parameter.pointer for parameter in parameters]:
        lacking.append("args")
        args = [parameter.name for parameter in parameters]
    launch = {"block", "grid", *(["workspace_bytes"] if WORKSPACE in (args or ()) else [])}
    return lacking + [f"launch.{key}" for key in sorted(launch - values.get("launch", {}).keys())]
