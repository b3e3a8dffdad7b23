"""`matbench explain`: why a kernel is as fast as it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.options import (
    deadline_options,
    device_options,
    format_option,
    one_kernel,
    size_option,
)
from matbench.cli.shared import (
    Interruption,
    chart_width,
    deadlines_of,
    one_kernel_of,
    problems_of,
    progress,
    show_report,
)
from matbench.errors import CaseError, UsageError

if TYPE_CHECKING:
    from matbench.analysis.architectures import Architecture
    from matbench.analysis.explain import Width
    from matbench.measure.bench import Options
    from matbench.measure.limits import Limits
    from matbench.measure.worker import Deadlines
    from matbench.model import Case, DeviceInfo, Kernel, Outcome, Problem

    #: A case with its outcome, and the driver's count of its resident blocks.
    Look = tuple[Case, Outcome, int | None]

DEFAULT_ARCHITECTURES = "g80,gt200,kepler,this"


@main.command()
@one_kernel
@size_option
@click.option("--tile", metavar="T", help="Explain this TILE; the fastest of all when not given.")
@click.option("--tiles", metavar="LIST", help="Values of TILE to hold against each other.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=LIST",
    help="Values of another swept constant; repeatable.",
)
@click.option(
    "--arch",
    default=DEFAULT_ARCHITECTURES,
    show_default=True,
    metavar="LIST",
    help="Architectures by family, chip or compute capability; `this` is the device at hand.",
)
@device_options
@click.option("--plot", metavar="FILE", help="Draw the roofline: .svg or .png; replaces the file.")
@click.option(
    "--counters", is_flag=True, help="Also count what one launch does, with Nsight Compute (ncu)."
)
@format_option
@deadline_options
def explain(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    size: str | None,
    tile: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    arch: str,
    backend: str,
    device: str | None,
    plot: str | None,
    counters: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Say why a kernel is as fast as it is: traffic, occupancy, and what bounds it.

    Global traffic as the kernel's front matter models it stands beside the least there can be, the
    case beside what this device was measured to do at best, and each width of its tiles beside what
    a multiprocessor holds of it, on any architecture. What is modelled is never called measured.

    \b
    matbench explain tiled --size 1000
    matbench explain tiled --tile 16 --arch g80,gt200,kepler,hopper,this
    matbench explain mine.cu --plot roofline.svg
    """
    from matbench.analysis import explain as explaining
    from matbench.cache import Cache
    from matbench.kernelfile import sweep
    from matbench.measure import counters as ncu
    from matbench.measure.bench import Options
    from matbench.records import results
    from matbench.show import plots

    cache = Cache()
    cache.prepare()
    if plot is not None:
        plots.require(Path(plot), plots.CHART_SUFFIXES, (kernel, *kernel_files))
    if counters:
        ncu.executable()
    chosen = one_kernel_of(kernel, kernel_files, kernels_dir)
    if chosen.library is not None:
        raise UsageError(f"{chosen.name} is a library's product; there is no kernel to explain")
    if chosen.on_host:
        raise UsageError(f"{chosen.name} runs on the host alone; `matbench run` shows it")
    problems = problems_of([chosen], size)
    if size is not None and len(problems) > 1:
        raise UsageError(f"--size {size!r}: one size at a time")
    named, here = _architectures(arch)
    overrides = sweep.parse_settings(settings, None, [chosen])
    wanted, overrides = _widths_wanted(chosen, tile, tiles, overrides)
    info = _device(backend, device, needed=counters or not named)
    if counters and info is not None and info.backend != "cuda":
        raise UsageError(f"--counters needs CUDA; this is {info.label}")
    params = list(sweep.parameter_sets(chosen, overrides))
    at_hand = [info] if info is not None else []
    architectures = [explaining.device_of(architecture) for architecture in named]
    problem = explaining.largest_legal(chosen, problems, params, [*at_hand, *architectures])
    options = Options(blocks=False, precision=0.05, max_time_s=0.3, minimum_samples=3)
    deadlines = deadlines_of(timeout, build_timeout)

    measured: list[Look] = []
    limits = None
    widths: list[Width] = []
    cases = [sweep.case(chosen, problem, each, info) for each in params] if info else []
    with Interruption() as interruption:
        if info is not None:
            limits = _measure(info, cases, options, deadlines, measured)
    builds = explaining.Builds(chosen, [outcome for _, outcome, _ in measured], cache)
    asked = [(architecture, each) for architecture in named for each in params]
    if not interruption:
        with interruption:
            for architecture, each in asked:
                widths.append(explaining.width(problem, each, architecture, builds))
    done = len(measured) + len(widths), len(cases) + len(asked), "widths"
    if not (measured or widths):
        interruption.exit(*done)
    if info is not None and here:
        widths += [
            explaining.width_here(case, info, outcome, resident, builds)
            for case, outcome, resident in measured
        ]
    case, outcome = _explained(chosen, problem, params, wanted, measured)
    counted = None
    if counters and info is not None and not interruption:
        with interruption:
            counted = ncu.count(info, case, timeout)
    found = explaining.explained(case, info, outcome, limits, widths, counted)
    about = results.environment(sys.argv[1:], [info] if info is not None else [], {})
    roof = explaining.roofline(found)
    if plot is not None and roof is not None:
        plots.roofline(roof, Path(plot), f"{case.label} on {found.device}")
    elif plot is not None:
        click.echo(f"{plot}: not drawn: no floating-point rate was measured", err=True)
    chart = chart_width() if fmt in ("rich", "plain") else None
    show_report(explaining.as_report(found, [about], chart=chart), fmt)
    interruption.exit(*done)
    if outcome is not None and outcome.status in ("wrong", "failed"):
        sys.exit(1)


def _architectures(arch: str) -> tuple[list[Architecture], bool]:
    """Those named, and whether the device at hand is among them."""
    from matbench.analysis import architectures

    names = [name.strip().lower() for name in arch.split(",")]
    named = [architectures.named(name) for name in names if name != "this"]
    return list({each.name: each for each in named}.values()), "this" in names


def _widths_wanted(
    kernel: Kernel, tile: str | None, tiles: str | None, overrides: dict[str, tuple[int, ...]]
) -> tuple[int | None, dict[str, tuple[int, ...]]]:
    """The TILE to explain, and the values to hold against each other."""
    from matbench.analysis import explain
    from matbench.kernelfile import sweep

    if "TILE" not in (*kernel.sweep, *kernel.tune):
        for option, value in (("--tile", tile), ("--tiles", tiles)):
            if value is not None:
                raise UsageError(f"{option} {value!r}: {kernel.name} has no TILE; leave it away")
        return None, overrides
    wanted = sweep.parse_values("--tile", tile) if tile is not None else ()
    if len(wanted) > 1:
        raise UsageError(f"--tile {tile!r}: one value; --tiles takes several")
    if tiles is not None:
        values = sweep.parse_values("--tiles", tiles)
    else:
        values = overrides.get("TILE") or (*explain.TILES, *kernel.sweep.get("TILE", ()))
    every = tuple(sorted({*values, *wanted}))
    return (wanted[0] if wanted else None), overrides | {"TILE": every}


def _device(backend: str, device: str | None, *, needed: bool) -> DeviceInfo | None:
    """The device at hand; None where there is none, and none was asked for."""
    from matbench import backends

    try:
        return backends.choose(backend, device)
    except backends.NoDeviceError as error:
        if needed or backend != "auto" or device is not None:
            raise
        click.echo(f"nothing is measured: {error}", err=True)
        return None


def _measure(
    info: DeviceInfo,
    cases: Sequence[Case],
    options: Options,
    deadlines: Deadlines,
    found: list[Look],
) -> Limits | None:
    """Find every case with its outcome and the driver's count of resident blocks; the limits."""
    from matbench.measure.worker import Crew

    with Crew(options, deadlines) as crew, progress(len(cases) + 1) as advance:
        crew.build_ahead([(info, case) for case in cases])
        worker = crew.worker(info)
        for case in cases:
            advance(case.label)
            outcome = worker.run(case)
            resident = None
            if outcome.status == "measured":
                with suppress(CaseError):
                    resident = worker.resident_blocks(case)
            found.append((case, outcome, resident))
        if not any(outcome.status == "measured" for _, outcome, _ in found):
            return None
        advance("the limits of the device")
        try:
            # What else runs on a CPU lowers what it can do: look again each time.
            return worker.limits(anew=info.kind == "cpu")
        except CaseError as error:
            click.echo(f"the limits of the device are not known: {error.reason}", err=True)
    return None


def _explained(
    kernel: Kernel,
    problem: Problem,
    params: Sequence[dict[str, int]],
    tile: int | None,
    measured: Sequence[Look],
) -> tuple[Case, Outcome | None]:
    """The case to explain: of the TILE asked for, else of all, the fastest; else the first."""
    from matbench.model import Case

    fit = [each for each in params if tile is None or each.get("TILE") == tile]
    mine = [(case, outcome) for case, outcome, _ in measured if case.params in fit]
    timed = [pair for pair in mine if pair[1].status == "measured"]
    if timed:
        return min(timed, key=lambda pair: pair[1].median_ns or 0.0)
    return mine[0] if mine else (Case(kernel, problem, fit[0], None), None)
