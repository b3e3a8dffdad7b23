"""The option that runs kernels with the parameters that `matbench tune` has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from matbench.cli.console import say
from matbench.cli.options import option
from matbench.cli.selection import CaseMaker, SelectionOptions

if TYPE_CHECKING:
    from matbench.model import Case, DeviceInfo, Kernel, Problem


@dataclass(frozen=True)
class TunedOptions:
    """Whether to use tuned parameters."""

    TITLE: ClassVar = SelectionOptions.TITLE

    tuned: bool = option(
        "--tuned",
        is_flag=True,
        help="Use the parameters that `matbench tune` saved for this device.",
    )

    @property
    def make_cases(self) -> CaseMaker | None:
        """Makes cases with tuned parameters; None for the usual sweep."""
        return self._cases if self.tuned else None

    def _cases(
        self,
        kernels: list[Kernel],
        problems: Sequence[Problem],
        overrides: dict[str, tuple[int, ...]],
        info: DeviceInfo,
    ) -> list[Case]:
        """Cases with tuned parameters; a kernel without any is reported once."""
        from matbench.features.tune import search
        from matbench.features.tune.stored import Store
        from matbench.kernelfile import sweep

        store = Store()
        cases: list[Case] = []
        untuned = set()
        for problem in problems:
            for kernel in kernels:
                if kernel.workload != problem.workload:
                    continue
                case = search.tuned_case(kernel, problem, info, store)
                if case is not None:
                    cases.append(case)
                    continue
                if (kernel.sweep or kernel.tune) and kernel.name not in untuned:
                    untuned.add(kernel.name)
                    say(
                        f"{kernel.name} is not tuned for {info.name}; running its own sweep "
                        f"instead (to tune it: `matbench tune {kernel.name}`)",
                        err=True,
                    )
                cases += sweep.cases([kernel], [problem], {}, info)
        return cases
