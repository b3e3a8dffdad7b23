"""Trials of kernels: at awkward shapes, without their claims, under compute-sanitizer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import psutil

from matbench.analysis.ranking import Weakening, weakenings
from matbench.bench.options import Options
from matbench.cli.console import progress, say, show_rich
from matbench.cli.options import DeadlineOptions, ReportOptions, SizeOptions
from matbench.features.check import claim_checker, sanitizer, view
from matbench.features.check.claim_checker import conditions
from matbench.features.check.probe import Need, Probe
from matbench.features.probes import cases
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Kernel
from matbench.records.environment import run_environment
from matbench.records.outcome import Claims, Outcome
from matbench.show import outcomes, safe
from matbench.worker.scheduler import TaskGroup
from matbench.worker.worker import Worker, WorkerPool

T = TypeVar("T")
R = TypeVar("R")


class Probing:
    """What a kernel was seen to do: at awkward shapes, without its claims, under the sanitizer."""

    def __init__(
        self, kernel: Kernel, devices: tuple[DeviceInfo, ...], values: dict[str, tuple[int, ...]],
        *, quick: bool, sanitize: bool,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.devices = devices
        #: The cases, each with its purpose.
        self.probed = probed = _probed(kernel, values, devices[0], quick=quick)
        can_run = any(case.skip is None for _, case in probed)
        tried = not quick and kernel.kind.is_launched and can_run
        stated = Claims.from_kernel(kernel)
        self.claims = [*weakenings(stated), *conditions(stated)] if tried else []
        # At one shape with partial tiles on every side, for each set of parameters.
        shapes = {str(c.params): c for what, c in probed if what == "primes" and c.skip is None}
        tools = sanitizer.TOOLS if sanitize else ()
        self.runs = [(case, tool) for case in shapes.values() for tool in tools]
        self._probes: dict[int, Probe] = {}
        self._needs: dict[Weakening, Need] = {}
        #: What each run of the sanitizer found.
        self.findings: list[list[str]] = []

    @property
    def probes(self) -> list[Probe]:
        return [self._probes[index] for index in sorted(self._probes)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [probe.outcome for probe in self.probes]

    @property
    def needs(self) -> list[Need]:
        """How much of its claims the kernel needs, as far as that was tried."""
        return [self._needs[claim] for claim in self.claims if claim in self._needs]

    @property
    def progress(self) -> tuple[int, int]:
        """How many trials are done, out of how many."""
        done = len(self._probes) + len(self._needs) + len(self.findings)
        return done, len(self.probed) + len(self.claims) + len(self.runs)

    def probe(self, pool: WorkerPool) -> None:
        """Run every probe, on any of the devices."""

        def probe(worker: Worker, index: int) -> Probe:
            purpose, case = self.probed[index]
            return Probe(purpose=purpose, outcome=worker.measure(case, is_timed=False))

        doing = {
            index: f"{case.label}, {case.problem.inputs}: {purpose}"
            for index, (purpose, case) in enumerate(self.probed)
        }
        pool.build_ahead([(self.devices[0], case) for _, case in self.probed])
        self._probes.update(self._each(pool, doing, probe))

    def try_claims(self, deadlines: DeadlineOptions) -> None:
        """Run the kernel without each of its claims, or with weaker ones.

        It may fail then, so its output and the driver's are not shown.
        """
        if not self.claims:
            return

        def need(worker: Worker, claim: Weakening) -> Need:
            return claim_checker.ClaimChecker(worker, self.probed, self.outcomes).need(claim)

        doing = {claim: f"{self.kernel.name} without {claim.declared}" for claim in self.claims}
        with WorkerPool(Options(timed=False), deadlines.deadlines) as pool:
            self._needs.update(self._each(pool, doing, need))

    def _each(
        self, pool: WorkerPool, doing: Mapping[T, str], do: Callable[[Worker, T], R]
    ) -> Iterator[tuple[T, R]]:
        """What each item gives on any of the devices; meanwhile it is shown what is being done."""
        with progress(len(doing)) as display:

            def one(worker: Worker, item: T) -> R:
                display.begin(doing[item], place=worker.device.place)
                found = do(worker, item)
                display.end(worker.device.place)
                return found

            groups = [TaskGroup(self.devices, [item]) for item in doing]
            yield from pool.distribute(groups, one, self.kernel)

    def run_sanitizer(self, deadlines: DeadlineOptions) -> None:
        if not self.runs:
            return
        with progress(len(self.runs)) as display:
            for case, tool in self.runs:
                display.begin(f"{tool}: {case.label}")
                findings = sanitizer.run(self.devices[0], case, tool, deadlines.timeout)
                self.findings.append([f"{case.label}: {finding}" for finding in findings])


def _probed(
    kernel: Kernel, values: dict[str, tuple[int, ...]], info: DeviceInfo, *, quick: bool
) -> list[tuple[str, Case]]:
    """The cases of a kernel, each with its purpose."""
    if quick:
        unset = SizeOptions(sizes=None, inputs=(), seed=0, alpha=None, beta=None, batch=None)
        problems = unset.problems([kernel], smoke=True)
        return [("quick", case) for case in sweep.quick([kernel], problems, values, info)]
    # The largest matrices fit into the host's memory, too.
    memory = psutil.virtual_memory().total if info.kind == "gpu" else None
    return cases.probed(kernel, values, info, memory)


def show(trials: list[Probing], shown: ReportOptions) -> None:
    """Print the probes, the claims and the sanitizer's findings of each kernel."""
    devices = {info.identity: info for each in trials for info in each.devices}
    about = run_environment(sys.argv[1:], [*devices.values()], {})
    found = [record for each in trials for record in (*each.probes, *each.needs)]
    every = [outcome for each in trials for outcome in each.outcomes]
    report = replace(outcomes.report(every, [about]), records=lambda: [about, *found])
    if shown.fmt == "rich":
        for number, each in enumerate(trials):
            blank = [""] if number else []
            where = each.devices[0]
            show_rich(*blank, *view.renderables(each.kernel.name, where, each.probes, each.needs))
        shown.draw(report)
    else:
        shown.show(report)
    runs = [findings for each in trials for findings in each.findings]
    findings = list(chain.from_iterable(runs))
    for finding in findings:
        say(safe.line(finding), err=shown.fmt != "rich")
    if runs:
        say(f"compute-sanitizer: {len(runs)} runs, findings: {len(findings)}", err=True)
