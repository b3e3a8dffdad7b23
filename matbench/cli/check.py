"""`matbench check`: a kernel at awkward shapes, and under compute-sanitizer."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.options import (
    deadline_options,
    device_options,
    format_option,
    one_kernel,
)
from matbench.cli.shared import (
    Interruption,
    deadlines_of,
    one_kernel_of,
    progress,
    show_report,
    show_rich,
    skipped,
)
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.model import Case, Outcome

#: So many probes of a set of parameters that pass their deadline are enough to know that it hangs.
_DEADLINES = 2


@main.command()
@one_kernel
@click.option("--tiles", metavar="LIST", help="Values of TILE, in place of the kernel's own.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=LIST",
    help="Values of another swept constant; repeatable.",
)
@device_options
@click.option(
    "--large/--no-large",
    default=None,
    help="Also the largest C that memory allows, where indices overflow (default: on a GPU).",
)
@click.option(
    "--sanitize", is_flag=True, help="Also run under compute-sanitizer: all four of its tools."
)
@format_option
@deadline_options
def check(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    backend: str,
    device: str | None,
    large: bool | None,
    sanitize: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Probe a kernel at awkward shapes: which of them it gets right.

    What is wrong at the others is said below the table.

    \b
    matbench check tiled
    matbench check mine.cu --sanitize
    """
    from matbench import backends
    from matbench.kernelfile import sweep
    from matbench.measure import bench
    from matbench.measure import sanitize as sanitizer
    from matbench.measure.worker import Crew
    from matbench.records import results
    from matbench.show import report

    chosen = one_kernel_of(kernel, kernel_files, kernels_dir)
    if chosen.library is not None and (chosen.on_host or sanitize):
        raise UsageError(f"{chosen.name} is a library's product; `matbench run` checks it")
    if sanitize:
        sanitizer.executable()
    overrides = sweep.parse_settings(settings, tiles, [chosen])
    info = backends.host_device() if chosen.on_host else backends.choose(backend, device)
    if sanitize and info.backend != "cuda":
        raise UsageError(f"--sanitize watches CUDA alone; this is {info.backend}")
    wants_large = info.kind == "gpu" if large is None else large
    memory = bench.host_memory_bytes() if wants_large else None
    probed = sweep.probed(chosen, overrides, info, memory)

    outcomes: list[Outcome] = []
    given_up: dict[str, str] = {}
    deadlines = deadlines_of(timeout, build_timeout)
    with (
        Interruption() as interruption,
        Crew(bench.Options(timed=False), deadlines) as crew,
        progress(len(probed)) as advance,
    ):
        crew.build_ahead([(info, case) for _, case in probed])
        worker = crew.worker(info)
        for index, (purpose, case) in enumerate(probed):
            advance(f"{case.label}, {case.problem.inputs}: {purpose}")
            if case.skip is None and worker.deadlines_passed(case) >= _DEADLINES:
                reason = given_up.setdefault(str(case.params), _given_up(case, probed[index:]))
                case = skipped(case, reason)
                probed[index] = purpose, case
            outcomes.append(worker.run(case))
    runs = _under_sanitizer(probed) if sanitize else []
    findings: list[list[str]] = []
    if runs and not interruption:
        with interruption, progress(len(runs)) as advance:
            for case, tool in runs:
                advance(f"{tool}: {case.label}")
                said = sanitizer.run(info, case, tool, timeout)
                findings.append([f"{case.label}: {finding}" for finding in said])
    found = list(chain.from_iterable(findings))
    done = len(outcomes) + len(findings), len(probed) + len(runs)
    if not outcomes:
        interruption.exit(*done, "probes")
    if fmt == "rich":
        purposes = [purpose for purpose, _ in probed]
        show_rich(*report.check(chosen.name, info, purposes, outcomes))
    else:
        about = results.environment(sys.argv[1:], [info], {})
        show_report(report.outcome_report(outcomes, [about]), fmt)
    for line in found:
        click.echo(line)
    if findings:
        counted = f"{len(findings)} runs, {len(found)} findings"
        click.echo(f"compute-sanitizer: {counted}", err=True)
    interruption.exit(*done, "probes")
    if found or any(outcome.status in ("wrong", "failed") for outcome in outcomes):
        sys.exit(1)


def _given_up(case: Case, left: list[tuple[str, Case]]) -> str:
    """Why the probes of these parameters that are left are not made, and how many they are."""
    many = sum(other.params == case.params and other.skip is None for _, other in left)
    return f"{many} probes left out: {_DEADLINES} had passed their deadline (see --timeout)"


def _under_sanitizer(probed: list[tuple[str, Case]]) -> list[tuple[Case, str]]:
    """All tools, for each set of parameters at one shape with edges everywhere."""
    from matbench.measure import sanitize

    cases = {str(c.params): c for purpose, c in probed if purpose == "primes" and c.skip is None}
    return [(case, tool) for case in cases.values() for tool in sanitize.TOOLS]
