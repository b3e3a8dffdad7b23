"""Adopts files without front matter on the way, for commands and programs that judge many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matbench.cli import registry
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.measure.worker import WorkerPool
    from matbench.model import DeviceInfo, Kernel


class Adopter:
    """Finds front matter by trials, in a process of its own, which starts with the first."""

    def __init__(self) -> None:
        self._adoption = registry.load(registry.ADOPTION)
        self._pool: WorkerPool | None = None

    def __enter__(self) -> Adopter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.__exit__()

    def adopted(
        self,
        text: str,
        path: Path,
        device: DeviceInfo,
        entry: str | None,
        read: Callable[[dict[str, Any]], Kernel],
    ) -> Kernel:
        """The kernel that `read` makes with the front matter for a text.

        `UsageError` if no call is right.
        """
        self._pool = self._pool or self._adoption.pool()
        try:
            return read(self._adoption.table(text, path, entry, self._pool.worker(device)))
        except UsageError as error:
            raise UsageError(f"no front matter, and {error}") from None


def foreign_text(path: Path) -> str | None:
    """The text of a kernel file without front matter; None if it has any, or is no file."""
    from matbench.kernelfile import catalogue, compiled, front_matter, python_file, tables

    has_none = compiled.is_compiled(path) or python_file.is_python(str(path))
    if not path.is_file() or has_none or tables.beside_of(path).exists():
        return None
    text = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    return text if tables.FENCE.search(text) is None else None
