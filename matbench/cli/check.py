"""`matbench check`: a kernel at awkward shapes, and under compute-sanitizer."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.console import (
    Interruption,
    exit_with,
    say,
    say_printed,
    show_report,
    show_rich,
)
from matbench.cli.kernel_files import KernelFiles, kernel_argument
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    allow_skips_option,
    format_option,
    grouped,
)
from matbench.cli.progress import progress
from matbench.cli.selection import skipped
from matbench.errors import UsageError
from matbench.model import Case

if TYPE_CHECKING:
    from matbench.analysis.claims import Weakening
    from matbench.measure.worker import Worker

#: After this many timeouts, the remaining probes of a set of parameters are skipped.
_DEADLINES = 2


@main.command()
@kernel_argument
@grouped(
    files=KernelFiles,
    constants=ConstantOptions,
    device=DeviceOptions,
    deadlines=DeadlineOptions,
)
@click.option(
    "--large/--no-large",
    default=None,
    help="Also probe the largest C that fits in memory, where 32-bit indices overflow. Default: "
    "only on a GPU.",
)
@click.option("--sanitize", is_flag=True, help="Also run all four tools of compute-sanitizer.")
@allow_skips_option
@format_option
def check(
    kernel: str,
    files: KernelFiles,
    constants: ConstantOptions,
    device: DeviceOptions,
    deadlines: DeadlineOptions,
    large: bool | None,
    sanitize: bool,
    allow_skips: bool,
    fmt: str,
) -> None:
    """Probe a kernel at awkward shapes: which of them does it get right?

    Reasons for wrong results follow the table. If the kernel's file makes claims that weaken a
    check, it also runs without them, or with weaker ones, to show how much of each it needs.

    \b
    matbench check tiled
    matbench check mine.cu --sanitize
    """
    from matbench.analysis.claims import weakenings
    from matbench.kernelfile import sweep
    from matbench.measure import sanitize as sanitizer
    from matbench.measure.handing_out import Group
    from matbench.measure.needs import Trials
    from matbench.measure.options import Options
    from matbench.measure.prepared import host_memory_bytes
    from matbench.measure.worker import Crew
    from matbench.records import encoding, provenance
    from matbench.records.outcome import Claims
    from matbench.records.probe import Need, Probe
    from matbench.show import outcomes, probes, safe

    chosen = files.one(kernel)
    if chosen.library is not None and (chosen.on_host or sanitize):
        raise UsageError(f"{chosen.name} is a library routine; use `matbench run` to check it")
    if sanitize:
        sanitizer.executable()
    infos = tuple(device.choose_alike(chosen))
    info = infos[0]
    if sanitize and info.backend != "cuda":
        raise UsageError(f"--sanitize needs CUDA; this is {info.backend}")
    wants_large = info.kind == "gpu" if large is None else large
    memory = host_memory_bytes() if wants_large else None
    probed = sweep.probed(chosen, constants.values([chosen]), info, memory)

    can_run = any(case.skip is None for _, case in probed)
    claims = weakenings(Claims.of(chosen)) if chosen.library is None and can_run else []

    by_index: dict[int, Probe] = {}
    by_claim: dict[str, Need] = {}
    with (
        Interruption() as interruption,
        Crew(Options(timed=False), deadlines.deadlines, say_printed) as crew,
        progress(len(probed)) as display,
    ):
        crew.build_ahead([(info, case) for _, case in probed])
        given_up: dict[str, str] = {}

        def probe(worker: Worker, index: int) -> Probe:
            purpose, case = probed[index]
            place = worker.device.place
            display.begin(f"{case.label}, {case.problem.inputs}: {purpose}", place=place)
            if case.skip is None and worker.deadlines_passed(case) >= _DEADLINES:
                reason = given_up.setdefault(str(case.params), _given_up(case, probed[index:]))
                case = skipped(case, reason)
                probed[index] = purpose, case
            outcome = worker.measure(case)
            display.end(place)
            return Probe(purpose=purpose, outcome=outcome)

        for index, done in crew.hand_out([Group(infos, [i]) for i in range(len(probed))], probe):
            by_index[index] = done
    found = [by_index[index] for index in sorted(by_index)]
    if claims and not interruption:
        # Without its claims a kernel may fail, so its output and the driver's are not shown.
        with (
            interruption,
            Crew(Options(timed=False), deadlines.deadlines) as crew,
            progress(len(claims)) as display,
        ):

            def need(worker: Worker, claim: Weakening) -> Need:
                place = worker.device.place
                display.begin(f"{chosen.name} without {claim.declared}", place=place)
                tried = Trials(worker, probed, [each.outcome for each in found]).need(claim)
                display.end(place)
                return tried

            for claim, tried in crew.hand_out([Group(infos, [c]) for c in claims], need):
                by_claim[claim.declared] = tried
    needs = [by_claim[claim.declared] for claim in claims if claim.declared in by_claim]
    runs = _under_sanitizer(probed) if sanitize else []
    findings: list[list[str]] = []
    if runs and not interruption:
        with interruption, progress(len(runs)) as display:
            for case, tool in runs:
                display.begin(f"{tool}: {case.label}")
                said = sanitizer.run(info, case, tool, deadlines.timeout)
                findings.append([f"{case.label}: {finding}" for finding in said])
    told = list(chain.from_iterable(findings))
    steps = len(probed) + len(claims) + len(runs)
    complete = len(found) + len(needs) + len(findings), steps
    if not found:
        interruption.exit(*complete, "probes")
    about = provenance.environment(sys.argv[1:], infos, {})
    if fmt == "rich":
        show_rich(*probes.renderables(chosen.name, info, found, needs))
    elif fmt == "json":
        say(encoding.array([about, *found, *needs]))
    else:
        show_report(outcomes.report([probe.outcome for probe in found], [about]), fmt)
    for line in told:
        say(safe.line(line))
    if findings:
        say(f"compute-sanitizer: {len(findings)} runs, findings: {len(told)}", err=True)
    interruption.exit(*complete, "probes")
    if told:
        sys.exit(1)
    exit_with([probe.outcome for probe in found], allow_skips=allow_skips, done="probed")


def _given_up(case: Case, left: list[tuple[str, Case]]) -> str:
    """Why the remaining probes of these parameters are skipped, and how many there are."""
    many = sum(other.params == case.params and other.skip is None for _, other in left)
    return f"{many} probes skipped after {_DEADLINES} timeouts (see --timeout)"


def _under_sanitizer(probed: list[tuple[str, Case]]) -> list[tuple[Case, str]]:
    """All tools, for each set of parameters, at one shape with partial tiles on every side."""
    from matbench.measure import sanitize

    cases = {str(c.params): c for purpose, c in probed if purpose == "primes" and c.skip is None}
    return [(case, tool) for case in cases.values() for tool in sanitize.TOOLS]
