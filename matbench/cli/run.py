"""`matbench run`: check and time kernels over sizes and parameters."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
import msgspec

from matbench import signals, workloads
from matbench.bench.options import Deadlines, Options
from matbench.cli import options, registry
from matbench.cli.app import main
from matbench.cli.console import (
    Display,
    Interruption,
    exit_with,
    progress,
    require_apart,
    say,
    say_printed,
    show_report,
)
from matbench.cli.registry import FeatureOptions
from matbench.cli.selection import (
    Adopter,
    Batch,
    ContractOptions,
    Devices,
    KernelFiles,
    PlacedCases,
    SelectionOptions,
    files_of,
    is_path,
    kernel_names,
    read_for,
)
from matbench.errors import MatbenchError, UsageError
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import CaseRecord, Outcome
from matbench.worker.output import Listener
from matbench.worker.scheduler import TaskGroup
from matbench.workloads import MATMUL, workload_of

if TYPE_CHECKING:
    from matbench.analysis.gathering import CaseKey
    from matbench.records.writing import Mode, RecordWriter
    from matbench.worker.worker import CaseRunner

Infos = tuple[DeviceInfo, ...]

#: What most people need, before all other options in the help.
_MOST_USED = (
    "--sizes", "--set", "--group", "--baseline", "--device", "--max-time", "--smoke", "--fastest",
    "--output", "--format",
)  # fmt: skip


def _key(text: str) -> int:
    """The key of a sample: up to 16 hexadecimal digits."""
    if not re.fullmatch("[0-9a-fA-F]{1,16}", text):
        raise UsageError(
            f"--replay {text!r:.40}: not a key; copy the one in the reason, such as 9f3c2b"
        )
    return int(text, 16)


@dataclass(frozen=True)
class RunOptions(ContractOptions):
    """Further options of `run`."""

    smoke: bool = options.option(
        "--smoke",
        is_flag=True,
        help=f"Check every kernel at small awkward sizes ({MATMUL.smoke_sizes}), for CI, or at the "
        "nearest ones that it allows.",
    )
    repeat: int = options.option(
        "--repeat",
        type=click.IntRange(1, 100),
        default=1,
        metavar="N",
        help="Measure everything N times, each time in new processes, to show how much results "
        "vary between them. `compare` needs 5 in both files for its best verdicts.",
    )
    uncertainty: float | None = options.option(
        "--uncertainty",
        type=options.Share(),
        help="Sample until the median is known to within ±SHARE, unless launches rotate. Default: "
        "0.5% (GPU) or 2% (CPU).",
    )
    adopt: bool = options.option(
        "--adopt", is_flag=True, help="Find out how to call files without front matter first."
    )
    no_blocks: bool = options.option("--no-blocks", is_flag=True, help="Skip per-block times.")

    def measuring(
        self, launches: options.LaunchOptions, replay: int | None, sustained_s: float | None
    ) -> Options:
        """The options of the worker; a smoke run takes just enough samples to time each case."""
        return Options(
            blocks=not (self.no_blocks or self.smoke or "rotating" in launches.method),
            cold="cold" in launches.method or not launches.hot,
            hot=launches.hot,
            graph="graph" in launches.method,
            rotating="rotating" in launches.method,
            uncertainty=1e9 if self.smoke else self.uncertainty,
            max_time_s=0.05 if self.smoke else launches.max_time,
            minimum_samples=3 if self.smoke else 10,
            rounds=1 if self.smoke or replay is not None or "rotating" in launches.method else None,
            replay=replay,
            sustained_s=sustained_s,
        )


@main.command(first=_MOST_USED)
@click.argument("kernels", nargs=-1, shell_complete=kernel_names)
@options.grouped
@click.option(
    "--replay",
    metavar="KEY",
    type=_key,
    help="Launch once, untimed, on the inputs of a wrong sample. KEY is in its reason.",
)
@options.fastest_option
@options.allow_skips_option
def run(
    kernels: tuple[str, ...],
    selection: SelectionOptions,
    files: KernelFiles,
    sizes: options.SizeOptions,
    constants: options.ConstantOptions,
    device: options.DeviceOptions,
    launches: options.LaunchOptions,
    seconds: options.SustainedOptions,
    more: RunOptions,
    output: options.OutputOptions,
    deadlines: options.DeadlineOptions,
    features: FeatureOptions,
    replay: int | None,
    fastest: bool,
    allow_skips: bool,
    shown: options.CaseReportOptions,
) -> None:
    """Check and time KERNELS over sizes and parameters.

    Each is a name, a file, FILE@REV or a folder of *.cu files. Without KERNELS: the tutorial's, or
    those of a --workload. `--method cold,hot` times both kinds of launches.

    \b
    matbench run --sizes 256,1000
    matbench run tiled kahan --set TILE=16,32 --sizes 512x1024x768
    matbench run mine.cu --output mine.jsonl
    matbench run --workload dot --sizes 2^20
    matbench run --group ladder --baseline cublas,cublas-tf32 --fastest
    """
    from matbench.records.environment import last_run_path
    from matbench.worker.process import start_server

    if replay is not None and output.resume is not None:
        raise UsageError("--replay cannot be combined with --resume")
    seconds.require_without(smoke=more.smoke, replay=replay)
    if more.adopt and not registry.has(registry.ADOPTION):
        raise UsageError("--adopt needs the feature `adopt`")
    with Adopter(lambda: device.choose_all()[0], is_on=more.adopt) as adopter:
        paths = {file for name in filter(is_path, kernels) for file in files_of(name)}
        batch = Batch(**vars(files), several=len(paths) > 1, adopter=adopter, contract=more.asked)
        if more.smoke and not (kernels or selection.group or selection.workload):
            selection = replace(selection, group="all")
        every = more.smoke and selection.workload is None
        chosen = selection.kernels(kernels, batch, of_every_workload=every)
    require_apart(
        {"--output": output.output, **shown.outputs},
        [*read_for(chosen, kernels), last_run_path(), output.resume],
    )
    if "rotating" in launches.method:
        seconds.require_without(method=launches.method)
        if more.smoke:
            raise UsageError("--method rotating cannot be combined with --smoke")
        if all("signed" in workload_of(kernel).inputs for kernel in chosen):
            sizes = replace(sizes, inputs=sizes.inputs or ("signed",))
    problems = sizes.problems(chosen, smoke=more.smoke)
    values = constants.values(chosen)
    address = features["cluster"].cluster if "cluster" in features else None
    cluster = None
    if address is not None:
        cluster = registry.load(registry.CLUSTER).connected(address, device)
    where = cluster or device
    if cluster is None:
        start_server()
    cases = selection.cases(chosen, problems, values, where, quick=more.smoke)
    launches.require_able(*(info for infos, _ in cases for info in infos))
    measuring = more.measuring(launches, replay, seconds.sustained)
    sweep = Sweep(cases, measuring, more.repeat, cluster)
    with Interruption() as interruption:
        settings = sizes.recorded | ({"repeat": more.repeat} if more.repeat > 1 else {})
        sweep.work_through(output, deadlines.deadlines, settings, force=shown.force)
    sweep.show(shown, fastest=fastest, interrupted=bool(interruption))
    wrong = {outcome.case.kernel for outcome in sweep.outcomes if outcome.status == "wrong"}
    to_check = [case.kernel.path for _, case in cases if case.kernel.name in wrong]
    if to_check and shown.fmt == "rich" and "check" in registry.COMMANDS and replay is None:
        say(f"next: matbench check {shlex.quote(to_check[0])}", err=True)
    resume = output.resuming(sweep.last_run) if interruption and replay is None else None
    interruption.exit(len(sweep.outcomes), len(cases) * more.repeat, "cases", resume=resume)
    exit_with(sweep.outcomes, allow_skips=allow_skips)


class RemoteDevices(Devices, Protocol):
    """Devices of other machines, and the pool that measures there."""

    def pool(
        self, options: Options, deadlines: Deadlines, listener: Listener | None
    ) -> CaseRunner: ...


class Sweep:
    """Measures cases on one or several devices; each is recorded as soon as it is done.

    One device measures all cases of a problem. Those that have only some of their rounds when
    Ctrl-C or an error ends the sweep are recorded then, as interrupted.
    """

    def __init__(
        self, cases: PlacedCases, options: Options, repeat: int, cluster: RemoteDevices | None
    ) -> None:
        self.cases = cases
        self.cluster = cluster
        every = [info for infos, _ in cases for info in infos]
        self.devices = list({(info.backend, info.identity): info for info in every}.values())
        self.options = options
        self.repeat = repeat
        self.outcomes: list[Outcome] = []
        #: That of the output file, if any, and that of the record of the last run.
        self.writers: list[RecordWriter] = []

    @property
    def last_run(self) -> Path | None:
        """The record of the last run, if it has outcomes of this one."""
        last = self.writers[-1] if self.writers else None
        return last.path if last is not None and last.written and last.error is None else None

    def work_through(
        self,
        output: options.OutputOptions,
        deadlines: Deadlines,
        settings: dict[str, Any],
        *,
        force: bool,
    ) -> None:
        """Measure all cases that a resumed file does not contain."""
        from matbench.worker.worker import WorkerPool

        with ExitStack() as stack:
            how = self.options, deadlines, say_printed
            pool = WorkerPool(*how) if self.cluster is None else self.cluster.pool(*how)
            stack.enter_context(pool)
            gpus = [info for info in self.devices if info.kind == "gpu"]
            pool.start(gpus or self.devices[:1])  # while this process imports the rest
            self.writers = self._writers(output, settings, force=force)
            for writer in self.writers:
                stack.enter_context(writer)
                for note in writer.notes:
                    say(note, err=True)
            known = self._known()
            repetitions = [self._divided(known, number + 1) for number in range(self.repeat)]
            pool.build_ahead([(infos[0], case) for infos, case in repetitions[0][1]])
            done = sum(len(recorded) for recorded, _ in repetitions)
            display = stack.enter_context(progress(len(self.cases) * self.repeat, done))
            for number, (recorded, left) in enumerate(repetitions, 1):
                if number > 1:
                    pool.renew()
                self.outcomes += recorded
                self._measure(number, left, pool, display)

    def _divided(
        self, known: dict[CaseKey, Outcome], repetition: int
    ) -> tuple[list[Outcome], PlacedCases]:
        """The outcomes of a repetition that a resumed file has, and the cases that remain."""
        if not known:
            return [], self.cases
        found = [(self._recorded(known, *placed, repetition), placed) for placed in self.cases]
        recorded = [outcome for outcome, _ in found if outcome is not None]
        return recorded, [placed for outcome, placed in found if outcome is None]

    def _measure(
        self, repetition: int, cases: PlacedCases, pool: CaseRunner, display: Display
    ) -> None:
        """Measure what is left of a repetition, and record each outcome when it is complete."""
        from matbench.analysis.gathering import outcome_key
        from matbench.worker.rounds import interrupted

        def keep(outcome: Outcome) -> None:
            for writer in reversed(self.writers):  # the copy first
                writer.write(outcome)
            self.outcomes.append(outcome)

        begun: dict[CaseKey, Outcome] = {}  # those with rounds left
        try:
            for visit in pool.measured(self._groups(cases), display.show):
                outcome = msgspec.structs.replace(visit.outcome, repetition=repetition)
                key = outcome_key(outcome)
                begun[key] = outcome
                if visit.share == 1.0:
                    with signals.defer_interrupts():  # what is recorded counts as done
                        del begun[key]
                        keep(outcome)
                display.done(outcome, visit.place, visit.own_share)
        except (KeyboardInterrupt, MatbenchError) as error:
            # If a record cannot be written, that is the error to show.
            is_lost = isinstance(error, MatbenchError)
            with signals.defer_interrupts(), suppress(*[MatbenchError] * is_lost):
                for outcome in begun.values():
                    keep(interrupted(outcome))
            raise

    def show(self, shown: options.CaseReportOptions, *, fastest: bool, interrupted: bool) -> None:
        """Print the table of the outcomes so far."""
        from matbench.show import outcomes

        if self.writers and (self.outcomes or not interrupted):
            environment = self.writers[-1].environment
            report = outcomes.report(self.outcomes, [environment], fastest=fastest)
            show_report(report, shown.fmt)
            if not interrupted:  # what continues the run draws all of it
                shown.draw(report)

    def _writers(
        self, output: options.OutputOptions, settings: dict[str, Any], *, force: bool
    ) -> list[RecordWriter]:
        from matbench.records.environment import last_run_path, run_environment
        from matbench.records.writing import RecordWriter

        environment = run_environment(sys.argv[1:], self.devices, settings)
        last = RecordWriter(last_run_path(), environment, "force", best_effort=True)
        if output.file is None:
            return [last]
        mode: Mode = "resume" if output.resume is not None else "force" if force else "new"
        return [RecordWriter(output.file, environment, mode), last]

    def _known(self) -> dict[CaseKey, Outcome]:
        """The finished cases of a resumed file.

        In a cluster those of any device of the model count, also of one that has left it.
        """
        from matbench.analysis import gathering

        known = gathering.finished(self.writers[0].outcomes)  # none unless it resumes
        if self.cluster is None:
            return known
        return {key._replace(device_id=""): outcome for key, outcome in known.items()}

    def _groups(self, left: Iterable[tuple[Infos, Case]]) -> list[TaskGroup[Case]]:
        """Groups of these cases; a device that has measured some of a group measures the rest.

        The largest come first; of equals the first, since a ladder begins with its slowest rungs.
        """
        begun = {outcome.case.contest: outcome.case.device_id for outcome in self.outcomes}
        found: dict[object, tuple[Infos, list[Case]]] = {}
        for infos, case in left:
            own = infos[0].backend, infos[0].name, case.problem
            where = tuple(info for info in infos if info.identity == begun.get(own)) or infos
            together = own, *(info.identity for info in where)
            found.setdefault(together, (where, []))[1].append(case)
        return [
            TaskGroup(infos, cases, max(workloads.work_of(c.problem) for c in cases))
            for infos, cases in found.values()
        ]

    def _recorded(
        self, known: dict[CaseKey, Outcome], infos: Infos, case: Case, repetition: int
    ) -> Outcome | None:
        """The known outcome of a case on one of these devices, if it was timed the same way."""
        from matbench.analysis import gathering

        key = gathering.CaseKey.from_case(CaseRecord.from_case(case, infos[0]), repetition)
        ids = ["" if self.cluster is not None else info.identity for info in infos]
        keys = (key._replace(device_id=device_id) for device_id in ids)
        found = next((known[one] for one in keys if one in known), None)
        if found is None or found.status != "measured":
            return found
        how = self.options.on(infos[0].kind)
        taken = {found.mode, found.hot and found.hot.mode} - {None}
        asked_s, lasting = how.sustained_s or 0.0, found.sustained
        is_apart = case.kernel.kind.is_apart  # whose own time is a small part of what was asked
        is_short = lasting is None or (not is_apart and lasting.duration_s < asked_s / 2)
        if case.can_be_sustained and asked_s and is_short:
            return None
        return found if taken == how.modes else None
