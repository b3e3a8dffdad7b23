"""The keys that front matter lacks: all of them in one error."""

from __future__ import annotations

from collections.abc import Sequence

from matbench.errors import UsageError, listed
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import Signature
from matbench.kernelfile.tables import Table
from matbench.workloads import Workload


class MissingKeysError(UsageError):
    """Front matter lacks keys; what it is for may tell what they could be."""

    def __init__(
        self, table: Table, lacking: Sequence[str], workload: Workload, function: Signature,
        entry: Entry,
    ) -> None:  # fmt: skip
        self.table, self.lacking, self.workload = table, lacking, workload
        self.function, self.entry = function, entry
        self.where = f"{table.shown}:{table.line_of('launch')}" if table.is_there else table.shown
        named = [f"`{key}`" for key in lacking]
        self.told = f"{listed(named, 'and')} {'are' if len(named) > 1 else 'is'} missing"
        if not table.is_there:
            names = ", ".join(key.removeprefix("launch.") for key in lacking)
            self.told = f"front matter is missing ({names})"
        super().__init__(f"{self.where}: {self.told}; see docs/kernels.md")
