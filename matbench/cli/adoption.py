"""Adopts files without front matter on the way, for commands and programs that judge many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from matbench.cli import registry
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.kernelfile.contract import Contract
    from matbench.model import DeviceInfo, Kernel
    from matbench.worker.worker import WorkerPool


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
        given: Mapping[str, Any],
        contract: Contract,
        read: Callable[[dict[str, Any]], Kernel],
    ) -> Kernel:
        """The kernel that `read` makes with the front matter for a text: with the keys `given`, and
        with others, so that it computes what the contract and these keys ask for, or as a breach.

        `UsageError` if no call is right.
        """
        from matbench.kernelfile import front_matter, syntax, tables

        front_matter.Reader(str(path), "", None, tables.Table(str(path), "", None, given)).front(
            dict(given)
        )  # raises an error if one of these keys is wrong
        asked = contract.pinned(given)
        self._pool = self._pool or self._adoption.pool()
        try:
            with syntax.located(path):
                found = self._adoption.adoption(text, path, given, self._pool.worker(device))
            kernel = read(found.table)
            if not (breach := asked.breach(kernel)):
                given = {"beta": asked.beta, **given} if "beta" in kernel.args else given
                kernel = read(tables.merged(found.table, given))
        except UsageError as error:
            raise UsageError(f"no front matter, and {error}") from None
        return msgspec.structs.replace(kernel, adoption=found, breach=breach)


def foreign_text(path: Path) -> str | None:
    """The text of a kernel file without front matter; None if it has any, or is no file."""
    from matbench.kernelfile import catalogue, front_matter, python_file, tables

    has_none = path.suffix in front_matter.COMPILED or python_file.is_python(str(path))
    if not path.is_file() or has_none or path.with_suffix(".toml").exists():
        return None
    text = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    return text if tables.FENCE.search(text) is None else None
