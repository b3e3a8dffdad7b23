"""`matbench check`: kernels at awkward shapes, and under compute-sanitizer."""

from __future__ import annotations

import sys

import click

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, exit_with, require_apart, say_printed
from matbench.cli.selection import KernelFiles, kernel_names, read_for
from matbench.errors import UsageError


@main.command()
@click.argument(
    "kernels", nargs=-1, required=True, metavar="KERNEL|FILE...", shell_complete=kernel_names
)
@options.grouped
@click.option(
    "--quick", is_flag=True, help="Probe only the small sizes of `run --smoke`, and no claims."
)
@click.option("--sanitize", is_flag=True, help="Also run all four tools of compute-sanitizer.")
@options.allow_skips_option
def check(
    kernels: tuple[str, ...], files: KernelFiles, constants: options.ConstantOptions,
    device: options.DeviceOptions, deadlines: options.DeadlineOptions, quick: bool, sanitize: bool,
    allow_skips: bool, shown: options.CaseReportOptions,
) -> None:  # fmt: skip
    """Probe kernels at awkward shapes: which do they get right?

    Reasons for wrong results follow the table. If a kernel's file makes claims that weaken a
    check, it also runs without them, or with weaker ones, to show how much of each it needs.

    \b
    matbench check tiled kahan --quick
    matbench check mine.cu --sanitize
    """
    if quick and sanitize:
        raise UsageError("--quick cannot be combined with --sanitize")
    chosen = list({kernel.name: kernel for kernel in files.loaded(kernels).named(kernels)}.values())
    for kernel in chosen if sanitize else ():
        if not kernel.kind.is_launched:
            what = f"{kernel.name} is {kernel.kind.called}"
            raise UsageError(f"{what}; use `matbench run` to check it")

    from matbench.bench.options import Options
    from matbench.features.check import probing
    from matbench.features.nvidia_tools import observer
    from matbench.worker.worker import WorkerPool

    if sanitize:
        observer.executable("compute-sanitizer")
    require_apart(shown.outputs, read_for(chosen, kernels))
    values = constants.values(chosen)
    trials = []
    for kernel in chosen:
        infos = device.choose_alike(kernel)
        if sanitize and infos[0].backend != "cuda":
            raise UsageError(f"--sanitize needs CUDA; this is {infos[0].backend}")
        trials.append(probing.Probing(kernel, infos, values, quick=quick, sanitize=sanitize))
    with Interruption() as interruption:
        for each in trials:
            with WorkerPool(Options(timed=False), deadlines.deadlines, say_printed) as pool:
                each.probe(pool)
            each.try_claims(deadlines)
            each.run_sanitizer(deadlines)
    done, total = (sum(counts) for counts in zip(*(each.progress for each in trials), strict=True))
    begun = [each for each in trials if each.probes]
    if begun:
        probing.show(begun, shown)
    interruption.exit(done, total, "probes")
    if any(finding for each in begun for finding in each.findings):
        sys.exit(1)
    exit_with([o for each in begun for o in each.outcomes], allow_skips=allow_skips, done="probed")
