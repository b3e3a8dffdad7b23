"""The front matter of a file that has none, for what judges many files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matbench.errors import UsageError
from matbench.features.adopt import search
from matbench.features.adopt.subjects import subjects
from matbench.measure.worker import Worker, WorkerPool


def pool() -> WorkerPool:
    """Workers for trials, which are not timed."""
    return WorkerPool(search.OPTIONS, search.DEADLINES)


def table(text: str, path: Path, entry: str | None, worker: Worker) -> dict[str, Any]:
    """Front matter for the first kernel in a text that can be called, or for the `entry`.

    The path resolves its `#include` lines. `UsageError` if no call of any of them is right.
    """
    said = []
    for subject in subjects(text, path, entry, {}):
        adopted = search.adopt(subject, worker, lambda _: None)
        if adopted.table is not None:
            return adopted.table
        said.append(adopted.words)
    raise UsageError("; ".join(said))
