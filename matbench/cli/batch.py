"""Several kernel files, of which some may be bad: these are failed rows, the rest is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from matbench.cli.adoption import Adopter, foreign_text
from matbench.cli.console import say
from matbench.cli.kernel_files import KernelFiles
from matbench.cli.options import DeviceOptions
from matbench.errors import UsageError, refusing

if TYPE_CHECKING:
    from matbench.kernelfile.contract import Contract
    from matbench.model import Kernel


@dataclass(frozen=True)
class Batch(KernelFiles):
    """Kernel files; with an `adopter`, those without front matter are adopted first.

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
            breach = self.contract.breach(kernel) if self.contract is not None else ""
            return msgspec.structs.replace(kernel, breach=breach)
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
    from matbench.model import Kernel, LaunchRules

    reason = str(error).removeprefix(f"{path}: ")
    rules = LaunchRules(block=(), grid=())
    return Kernel(name=path, launch=rules, path=path, file=path, refused=reason)
