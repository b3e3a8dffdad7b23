"""The front matter of a file that has none, for what judges many files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matbench.errors import UsageError
from matbench.features.adopt import command, search, trials
from matbench.kernelfile import front_matter
from matbench.measure.worker import Worker, WorkerPool
from matbench.model import Kernel


def pool() -> WorkerPool:
    """Workers for trials, which are not timed."""
    return WorkerPool(search.OPTIONS, search.DEADLINES)


def table(text: str, path: Path, entry: str | None, worker: Worker) -> dict[str, Any]:
    """Front matter for the first kernel in a text that can be called, or for the `entry`.

    The path resolves its `#include` lines. `UsageError` if no call of any of them is right.
    """

    def load(found: dict[str, Any]) -> Kernel:
        return front_matter.parse(text.encode(), str(path), path, None, found)

    source, functions = command.functions_of(text, str(path), entry, ())
    said = []
    for function in functions:
        subject = trials.ForeignKernel(source, function)
        adopted = search.adopt(subject, worker, load, lambda _: None)
        if adopted.table is not None:
            return adopted.table
        said.append(adopted.words)
    raise UsageError("; ".join(said))
