"""`matbench grade`: the numerical profile of kernels."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

import click

from matbench import signals
from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, require_apart, say, say_printed
from matbench.cli.options import SEED
from matbench.cli.selection import KernelFiles, SelectionOptions, kernel_names, read_for
from matbench.features.grade.record import Grade, Letter
from matbench.model import Case, DeviceInfo


@main.command()
@click.argument("kernels", nargs=-1, metavar="[KERNEL|FILE]...", shell_complete=kernel_names)
@options.grouped
@click.option(
    "--at-least",
    type=click.Choice(["A", "B", "C"]),
    help="Exit 1 if a kernel has a lower grade, or none.",
)
@click.option("--tree", is_flag=True, help="Also print the order of 32 terms as a tree.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the inputs.")
@click.option(
    "--output", metavar="FILE", help="Write a record of each kernel to FILE (JSON Lines)."
)
def grade(
    kernels: tuple[str, ...], selection: SelectionOptions, files: KernelFiles,
    constants: options.ConstantOptions, device: options.DeviceOptions,
    deadlines: options.DeadlineOptions, at_least: str | None, tree: bool, seed: int,
    output: str | None, shown: options.ReportOptions,
) -> None:  # fmt: skip
    """Describe the arithmetic of kernels: errors, range, order.

    Multiplies chosen inputs and reads C: no source is needed. A kernel has grade A if each element
    is as accurate as a sum of rounded operations can be. Its first parameters are graded, or all
    that --set names.

    \b
    matbench grade tiled kahan
    matbench grade mine.cu --baseline cublas --at-least A
    """
    chosen = selection.kernels(kernels, files)
    require_apart({"--output": output, **shown.outputs}, read_for(chosen, kernels))

    from matbench.bench.options import Options
    from matbench.features.grade import steps, view
    from matbench.features.grade.multiplier import problem_of
    from matbench.records.environment import run_environment
    from matbench.records.writing import Mode, RecordWriter
    from matbench.worker.worker import WorkerPool

    problems = dict.fromkeys(problem_of(kernel, 256, 256, 256) for kernel in chosen)
    overrides = constants.values(chosen)
    placed = selection.cases(chosen, list(problems), overrides, device)
    # For each kernel its first parameters that can run, or all that --set names; on one device of
    # each model.
    first: dict[tuple[object, ...], tuple[DeviceInfo, Case]] = {}
    for alike, case in sorted(placed, key=lambda pair: pair[1].skip is not None):
        named = [value for name, value in case.params.items() if name in overrides]
        first.setdefault((case.kernel.name, alike[0].name, *named), (alike[0], case))
    order = [kernel.name for kernel in chosen]
    cases = sorted(first.values(), key=lambda pair: order.index(pair[1].kernel.name))
    devices = list({info.label: info for info, _ in cases}.values())
    about = run_environment(sys.argv[1:], devices, {"seed": seed})
    mode: Mode = "force" if shown.force else "new"
    writer = RecordWriter(Path(output), about, mode) if output else None
    how = Options(timed=False, blocks=False, checks=frozenset())
    grades: list[Grade] = []
    with (
        writer or nullcontext(),
        Interruption() as interruption,
        WorkerPool(how, deadlines.deadlines, say_printed) as pool,
        progress(len(cases) * len(steps.STEPS)) as display,
    ):
        others = [(info, one) for info, case in cases for _, one in steps.variations(case, info)]
        pool.build_ahead([*cases, *others])
        for info, case in cases:
            name, _, _ = case.label.rpartition(" at ")
            graded = steps.grade(pool.worker(info, case.kernel), case, seed, name, display.begin)
            with signals.defer_interrupts():  # what is recorded counts as done
                if writer is not None:
                    writer.write(graded)
                grades.append(graded)
    if not grades:
        interruption.exit(0, len(cases), "kernels")
    shown.show(view.report(grades, [about]))
    for graded in grades if tree and shown.fmt not in ("csv", "json") else ():
        say("\n".join([f"\n{view.name_of(graded)}: order of addition", *view.tree(graded)]))
    interruption.exit(len(grades), len(cases), "kernels")
    letters = get_args(Letter)  # the best first
    allowed = letters[: letters.index(at_least) + 1] if at_least is not None else letters
    skipped = [case.skip is not None for _, case in cases]
    failed = [
        one.letter not in allowed or (one.reason and not is_skipped)
        for one, is_skipped in zip(grades, skipped, strict=True)
    ]
    if any(failed) or all(skipped):
        sys.exit(1)
