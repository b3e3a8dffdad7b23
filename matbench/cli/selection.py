"""The kernels and cases of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import click
import msgspec

from matbench import workloads
from matbench.cli.kernel_files import KernelFiles, is_path
from matbench.cli.options import DeviceOptions, option
from matbench.errors import UsageError
from matbench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matbench.model import Case, DeviceInfo, Kernel, Problem, Skip

#: Each case with the devices of one model that may measure it: any one of them.
PlacedCases = list[tuple[tuple["DeviceInfo", ...], "Case"]]


class Devices(Protocol):
    """Where cases can run: the devices of this machine that were selected, or a cluster's."""

    def choose_all(self) -> list[DeviceInfo]: ...


@dataclass(frozen=True)
class SelectionOptions:
    """The kernels to run if none are named, and the baselines to add."""

    TITLE: ClassVar = "Kernels"

    group: str | None = option(
        "--group",
        type=click.Choice(["tutorial", "ladder", "gallery", "baseline", "all"]),
        help="Run a whole group. Default if no kernel is named: tutorial.",
    )
    workload: str | None = option(
        "--workload",
        type=click.Choice(list(WORKLOADS)),
        help="Workload. Default if no kernel is named: matmul.",
    )
    baselines: tuple[str, ...] = option(
        "--baseline",
        multiple=True,
        metavar="LIST",
        help="Add baselines: cublas, cublas-tf32, cublaslt-best, numpy and others, 'cublas*' "
        "for all of cuBLAS, or a file's kernel or function. Repeatable.",
    )

    def kernels(
        self, names: Sequence[str], files: KernelFiles, *, of_every_workload: bool = False
    ) -> list[Kernel]:
        """The kernels given by name, file, folder and group, or else the default ones; plus
        baselines.

        Default: the tutorial's matrix products; for another workload also its gallery kernels. A
        group has the kernels of one workload, or those `of_every_workload`.
        """
        baselines = [name.strip() for text in self.baselines for name in text.split(",")]
        own = [*filter(is_path, baselines)]
        loaded = files.loaded([*names, *own])
        catalogue, chosen = loaded.known, loaded.named(names)
        for kernel in chosen:
            if self.workload not in (None, kernel.workload):
                raise UsageError(
                    f"--workload {self.workload}: {kernel.name} computes {kernel.workload}"
                )
        of = self.workload or workloads.DEFAULT
        if self.group is not None:
            found = catalogue.group(self.group, None if of_every_workload else of)
            if not found:
                raise UsageError(
                    f"--group {self.group}: no kernel in it computes {of}; see `matbench kernels`"
                )
            chosen += found
        if not chosen:
            default = ("tutorial",) if of == workloads.DEFAULT else ("tutorial", "gallery")
            chosen = [kernel for each in default for kernel in catalogue.group(each, of)]
        chosen += loaded.named(own)
        known = [name for name in baselines if name not in own]
        if known:
            chosen += catalogue.baselines(known, {kernel.workload for kernel in chosen})
        return list({kernel.name: kernel for kernel in chosen}.values())

    def cases(
        self,
        kernels: Sequence[Kernel],
        problems: Sequence[Problem],
        overrides: dict[str, tuple[int, ...]],
        device: Devices,
        *,
        quick: bool = False,
    ) -> PlacedCases:
        """Each case with its devices: those selected, or the CPU for host baselines.

        Each model has its own cases; of a `quick` check, sizes that kernels exclude are
        moved to allowed ones near them.
        """
        from matbench.kernelfile import sweep
        from matbench.model import Skip

        hosted = [kernel for kernel in kernels if kernel.on_host]
        plain = [kernel for kernel in kernels if kernel not in hosted]
        found: PlacedCases = []
        models: dict[tuple[str, str], list[DeviceInfo]] = {}
        for info in device.choose_all() if plain else []:
            models.setdefault((info.backend, info.name), []).append(info)
        for alike in models.values():
            chosen = sweep.quick if quick else sweep.cases
            placed = chosen(plain, problems, overrides, alike[0])
            found += [(tuple(alike), case) for case in placed]
        for kernel in hosted:
            info, missing = _host_of(kernel)
            if not isinstance(device, DeviceOptions):
                missing = "runs on the CPU of one host: measure it without --cluster"
            for case in sweep.cases([kernel], problems, overrides, info):
                if missing is not None:
                    case = without_launch(case, Skip("unavailable", missing))
                found.append(((info,), case))
        return found


def without_launch(case: Case, skip: Skip) -> Case:
    """A case that is not run, for a reason that is not in its kernel file."""
    return msgspec.structs.replace(case, skip=skip, launch=None)


def _host_of(kernel: Kernel) -> tuple[DeviceInfo, str | None]:
    """The CPU that a host baseline runs on, and the reason if it cannot run there."""
    from matbench import backends
    from matbench.backends import host

    try:
        return backends.host_device(kernel), None
    except backends.UnavailableError as error:
        return host.device(), str(error)
