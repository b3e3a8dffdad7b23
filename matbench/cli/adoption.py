"""Reads many kernel files, for commands and programs that judge these: of several, some may be bad,
and those without front matter are adopted on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from matbench.cli import registry
from matbench.cli.console import say
from matbench.cli.options import DeviceOptions
from matbench.cli.selection import KernelFiles
from matbench.errors import UsageError, refusing

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
            kernel = asked.judged(read(found.table))
            if kernel.never is None:
                given = {"beta": asked.beta, **given} if "beta" in kernel.args else given
                kernel = read(tables.merged(found.table, given))
        except UsageError as error:
            raise UsageError(f"no front matter, and {error}") from None
        return msgspec.structs.replace(kernel, adoption=found)


def foreign_text(path: Path) -> str | None:
    """The text of a kernel file without front matter; None if it has any, or is no file."""
    from matbench.kernelfile import catalogue, front_matter, python_file, tables

    has_none = path.suffix in front_matter.COMPILED or python_file.is_python(str(path))
    if not path.is_file() or has_none or path.with_suffix(".toml").exists():
        return None
    text = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    return text if tables.FENCE.search(text) is None else None


@dataclass(frozen=True)
class Batch(KernelFiles):
    """Kernel files of a command; with an `adopter`, those without front matter are adopted first.

    Only if there are several is a bad file not an error. One that breaks the contract is wrong.
    """

    several: bool = False
    adopter: Adopter | None = None
    device: DeviceOptions | None = None
    contract: Contract | None = None

    def read(self, path: str) -> Kernel:
        from matbench.kernelfile import catalogue

        try:
            with refusing(path):
                kernel = self._adopted(path)
            catalogue.require_no_disguise(kernel)
            return kernel
        except UsageError as error:
            if not self.several:
                raise
            return _refused(path, error)

    def _adopted(self, path: str) -> Kernel:
        from matbench.kernelfile import catalogue
        from matbench.kernelfile.contract import Contract

        try:
            kernel = super().read(path)
            return kernel if self.contract is None else self.contract.judged(kernel)
        except UsageError:
            if self.adopter is None or self.device is None:
                raise
            text = foreign_text(Path(path))
            if text is None:
                raise
            info = self.device.choose_all()[0]
            kernel = self.adopter.adopted(
                text, Path(path), info, self.given, self.contract or Contract(),
                lambda table: catalogue.load(Path(path), given=table),
            )  # fmt: skip
            say(f"adopted {path} for this run; `matbench adopt` writes its table", err=True)
            return kernel


def _refused(path: str, error: UsageError) -> Kernel:
    """What stands for a file that cannot be used."""
    from matbench.model import Kernel, LaunchRules, Skip

    reason = str(error).removeprefix(f"{path}: ")
    rules = LaunchRules(block=(), grid=())
    return Kernel(name=path, launch=rules, path=path, file=path, never=Skip("refused", reason))
