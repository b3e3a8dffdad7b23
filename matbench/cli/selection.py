"""Which kernels and cases a run is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import click
import msgspec

from matbench import workloads
from matbench.cli.console import say
from matbench.cli.kernel_files import KernelFiles
from matbench.cli.options import DeviceOptions
from matbench.errors import UsageError
from matbench.workloads import WORKLOADS

if TYPE_CHECKING:
    from matbench.model import Case, DeviceInfo, Kernel, Problem

Cases = list[tuple["DeviceInfo", "Case"]]


@dataclass(frozen=True)
class SelectionOptions:
    """Which kernels, when none are named, and which baselines beside them."""

    group: str | None
    workload: str | None
    baselines: tuple[str, ...]
    tuned: bool

    OPTIONS: ClassVar = (
        click.option(
            "--group",
            type=click.Choice(["tutorial", "ladder", "blas", "baseline", "all"]),
            help="Run a whole group; tutorial when no kernel is named.",
        ),
        click.option(
            "--workload",
            type=click.Choice(list(WORKLOADS)),
            help="What is computed, when no kernel is named: matmul by default.",
        ),
        click.option(
            "--baseline",
            "baselines",
            multiple=True,
            metavar="LIST",
            help="Add baselines beside the kernels: cublas, cublas-tf32, cublas-bf16, numpy …, or "
            "'cublas*' for all of them; repeatable.",
        ),
        click.option(
            "--tuned",
            is_flag=True,
            help="Use the parameters that `matbench tune` kept for this device.",
        ),
    )

    def kernels(
        self, names: Sequence[str], files: KernelFiles, *, of_every_workload: bool = False
    ) -> list[Kernel]:
        """The kernels that are named, added and grouped; with none of them, the default ones.

        Those are the tutorial's matrix products, and of another workload the ladder's kernels too.
        A folder's kernels all run unless some are named. Baselines come on top. A group has the
        kernels of one workload, or those `of_every_workload`.
        """
        catalogue, added, folder = files.catalogue(names)
        named = files.named(list(names))
        if not names:
            # A folder may hold all kinds.
            added += [k for k in folder if self.workload in (None, k.workload)]
        for kernel in named + added:
            if self.workload not in (None, kernel.workload):
                raise UsageError(
                    f"--workload {self.workload}: {kernel.name} computes {kernel.workload}"
                )
        of = self.workload or workloads.DEFAULT
        if self.group is not None:
            found = catalogue.group(self.group, None if of_every_workload else of)
            if not found:
                raise UsageError(
                    f"--group {self.group}: it has no kernel of {of}; see `matbench list`"
                )
            named += found
        chosen = named + added
        if not chosen:
            default = ("tutorial",) if of == workloads.DEFAULT else ("tutorial", "ladder")
            chosen = [kernel for each in default for kernel in catalogue.group(each, of)]
        chosen += catalogue.baselines(self.baselines, {kernel.workload for kernel in chosen})
        return list({kernel.name: kernel for kernel in chosen}.values())

    def cases(
        self,
        kernels: Sequence[Kernel],
        problems: Sequence[Problem],
        overrides: dict[str, tuple[int, ...]],
        device: DeviceOptions,
    ) -> Cases:
        """Each case with its device: the one chosen, or the CPU for baselines of the host."""
        from matbench.kernelfile import sweep

        plain = [kernel for kernel in kernels if not kernel.on_host]
        found: Cases = []
        if plain:
            info = device.choose()
            if self.tuned:
                found += [(info, case) for case in _tuned_cases(plain, problems, info)]
            else:
                found += [(info, case) for case in sweep.cases(plain, problems, overrides, info)]
        for kernel in kernels:
            if kernel.on_host:
                info, missing = _host_of(kernel)
                for case in sweep.cases([kernel], problems, overrides, info):
                    found.append((info, case if missing is None else skipped(case, missing)))
        return found


def skipped(case: Case, reason: str) -> Case:
    return msgspec.structs.replace(case, skip=reason, launch=None)


def _host_of(kernel: Kernel) -> tuple[DeviceInfo, str | None]:
    """The CPU that a host baseline runs on, and why it cannot run there."""
    from matbench import backends
    from matbench.backends import host

    if kernel.library is not None:
        return host.device(), None
    try:
        return backends.host_device(), None
    except backends.UnavailableError as error:
        return host.device(), str(error)


def _tuned_cases(
    kernels: Sequence[Kernel], problems: Sequence[Problem], info: DeviceInfo
) -> list[Case]:
    """What tuning kept; a kernel that it kept nothing for is named once."""
    from matbench.kernelfile import sweep
    from matbench.measure import tuning
    from matbench.records.tuned import Store

    store = Store()
    found: list[Case] = []
    untuned = set()
    for problem in problems:
        for kernel in kernels:
            if kernel.workload != problem.workload:
                continue
            case = tuning.tuned_case(kernel, problem, info, store)
            if case is not None:
                found.append(case)
                continue
            if (kernel.sweep or kernel.tune) and kernel.name not in untuned:
                untuned.add(kernel.name)
                say(
                    f"{kernel.name} is not tuned on {info.name}; its own sweep runs instead "
                    f"(`matbench tune {kernel.name}`)",
                    err=True,
                )
            found += sweep.cases([kernel], [problem], {}, info)
    return found
