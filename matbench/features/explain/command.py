"""`matbench explain`: why a kernel is as fast as it is."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench import signals
from matbench.cli.app import main
from matbench.cli.console import (
    Interruption,
    exit_with,
    open_console,
    say,
    say_printed,
    show_report,
)
from matbench.cli.kernel_files import KernelFiles, kernel_argument
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    format_option,
    grouped,
    require_device,
)
from matbench.cli.outputs import require_apart
from matbench.cli.progress import progress
from matbench.errors import CaseError, MatbenchError, UsageError

if TYPE_CHECKING:
    from matbench.analysis.architectures import Architecture
    from matbench.features.explain.widths import Builds
    from matbench.model import Case, DeviceInfo, Kernel, Problem, Resources
    from matbench.records.explanation import (
        Explanation,
        HardwareCounters,
        Limits,
        MachineCode,
        Width,
    )
    from matbench.records.outcome import Outcome
    from matbench.worker.worker import Worker

#: The architecture to explain a kernel for if there is no device.
_CURRENT = "hopper"


@main.command()
@kernel_argument
@grouped
@click.option(
    "--arch",
    metavar="LIST",
    help="Architectures by family, chip or compute capability: g80,kepler,9.0. `this` means the "
    f"device in use. Default: this; without a device, {_CURRENT}.",
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw the roofline to FILE (.svg or .png), replacing it if it exists.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Also read hardware counters of one launch with Nsight Compute (ncu).",
)
@format_option
def explain(
    kernel: str,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    deadlines: DeadlineOptions,
    arch: str | None,
    plot: str | None,
    counters: bool,
    fmt: str,
) -> None:
    """Explain what limits a kernel's speed.

    Shows the kernel's modelled global traffic next to the minimum, its speed next to the
    limits measured on this device, and for each tile width how many blocks fit on a multiprocessor,
    on any architecture. Explains the case given by --set, else the fastest.

    \b
    matbench explain tiled --sizes 1000
    matbench explain tiled --set TILE=16 --arch g80,kepler,hopper,this
    matbench explain mine.cu --plot roofline.svg
    """
    from matbench.features.explain import counters as ncu
    from matbench.features.explain import other_devices, widths
    from matbench.kernelfile import sweep

    if counters:
        ncu.executable()
    chosen = _chosen(files, kernel, plot)
    info = _device(device, needed=counters or arch == "this")
    named, here = _architectures(arch, info)
    if counters and info is not None and info.backend != "cuda":
        raise UsageError(f"--counters needs CUDA; this is {info.label}")
    problem = sizes.one_problem(chosen)
    problems = sizes.problems([chosen]) if sizes.sizes is None else [problem]
    overrides = constants.values([chosen])
    tile = _tile(overrides)
    params = list(sweep.parameter_sets(chosen, _widened(chosen, overrides)))
    devices = [*([info] if info else []), *map(other_devices.device_of, named)]
    problem = widths.largest_legal(chosen, problems, params, devices)
    looks = Looks(chosen, problem, params, info, named)
    with Interruption() as interruption:
        looks.measure(deadlines)
        looks.fit()
    if not (looks.measured or looks.widths):
        interruption.exit(*looks.progress)
    if here:
        looks.fit_here()
    case, outcome = looks.chosen(tile)
    counted = None
    if counters and info is not None and not interruption:
        with interruption:
            counted = ncu.count(info, case, deadlines.timeout)
    code = None if interruption else looks.machine_code(case, outcome)
    _show(looks, case, outcome, counted, code, plot, fmt)
    interruption.exit(*looks.progress)
    if outcome is not None:
        exit_with([outcome])


def _chosen(files: KernelFiles, name: str, plot: str | None) -> Kernel:
    """The kernel, if it has a source, and if the roofline can be drawn."""
    from matbench.features.charts import drawing

    if plot is not None:
        drawing.require(Path(plot))
    chosen = files.one(name)
    require_apart({"--plot": plot}, files.read_for([chosen]))
    if not chosen.kind.is_launched:
        what = f"{chosen.name} is {chosen.kind.called}"
        raise UsageError(f"{what}; it has no source in CUDA C to explain")
    require_device(chosen)
    return chosen


class Looks:
    """Findings on a kernel's parameters: measured on this device, computed for others."""

    def __init__(
        self,
        kernel: Kernel,
        problem: Problem,
        params: Sequence[dict[str, int]],
        device: DeviceInfo | None,
        architectures: Sequence[Architecture],
    ) -> None:
        self.kernel = kernel
        self.problem = problem
        self.params = params
        self.device = device
        self.architectures = architectures
        self.measured: list[tuple[Case, Outcome]] = []
        self.widths: list[Width] = []
        self.limits: Limits | None = None

    @property
    def progress(self) -> tuple[int, int, str]:
        """How many widths are done, out of how many."""
        done = len(self.measured) + sum(not width.here for width in self.widths)
        devices = len(self.architectures) + (self.device is not None)
        return done, devices * len(self.params), "widths"

    def measure(self, deadlines: DeadlineOptions) -> None:
        """Measure every case briefly on this device, and the device's limits."""
        from matbench.kernelfile import sweep
        from matbench.worker.worker import WorkerPool

        if self.device is None:
            return
        info = self.device
        cases = [sweep.case(self.kernel, self.problem, values, info) for values in self.params]
        options = LaunchOptions(cold=True, hot=False, graph=False, max_time=None).quick()
        with (
            WorkerPool(options, deadlines.deadlines, say_printed) as pool,
            progress(len(cases) + 1) as display,
        ):
            pool.build_ahead([(info, case) for case in cases])
            for case in cases:
                display.begin(case.label)
                self.measured.append((case, pool.worker(info).measure(case)))
            ran = [case for case, outcome in self.measured if outcome.status == "measured"]
            if ran:
                display.begin("the device's limits")
                self._measure_limits(pool.worker(info), ran[0])

    def _measure_limits(self, worker: Worker, case: Case) -> None:
        from matbench.features.explain import limits

        try:
            # Other processes lower a CPU's limits, so they are measured each time.
            anew = worker.device.kind == "cpu"
            self.limits = worker.run(limits.measured, anew, case=case)
        except CaseError as error:
            say(f"the device's limits could not be measured: {error.reason}", err=True)

    def fit(self) -> None:
        """Compute what fits on the named architectures; nvcc compiles for several at once."""
        from concurrent.futures import ThreadPoolExecutor

        from matbench.features.explain import widths

        builds = self._builds()

        def fitted(wanted: tuple[Architecture, dict[str, int]]) -> Width:
            return widths.elsewhere(self.problem, wanted[1], wanted[0], builds)

        with signals.defer_interrupts(), ThreadPoolExecutor(os.cpu_count()) as at_once:
            others = list(at_once.map(fitted, itertools.product(self.architectures, self.params)))
        self.widths += others

    def fit_here(self) -> None:
        """The same for this device, with its measurements."""
        from matbench.features.explain import widths

        if self.device is not None:
            builds = self._builds()
            self.widths += [
                widths.here(case, self.device, outcome, builds) for case, outcome in self.measured
            ]

    def chosen(self, tile: int | None) -> tuple[Case, Outcome | None]:
        """The case to explain."""
        from matbench.features.explain import explanation

        return explanation.chosen(self.kernel, self.problem, self.params, tile, self.measured)

    def machine_code(self, case: Case, outcome: Outcome | None) -> MachineCode | None:
        """What the case's machine code shows, for this GPU or else the first of the named ones.

        None, with a note, if the tools are missing or the case cannot be launched there.
        """
        from matbench.analysis import architectures, ranking
        from matbench.cache import Cache
        from matbench.features.explain import disassembly, machine_code, other_devices
        from matbench.kernelfile import sweep

        gpu = self.device if self.device is not None and self.device.backend == "cuda" else None
        architecture = (
            architectures.of_capability(gpu.compute_capability) if gpu is not None
            else next(iter(self.architectures), None)
        )  # fmt: skip
        if architecture is None or (outcome is not None and outcome.status == "wrong"):
            return None
        at = gpu or other_devices.device_of(architecture)
        placed = sweep.case(self.kernel, self.problem, case.params, at)
        if placed.launch is None or placed.skip is not None:
            return None
        try:
            code = disassembly.disassembled(
                architecture.compute_capability, self.kernel, case.params, Cache()
            )
            return machine_code.machine_code(
                (code.listing, code.entry, code.architecture),
                placed,
                architecture,
                resources=code.resources,
                multiprocessors=gpu.limits["multiprocessors"] if gpu else None,
                sm_mhz=ranking.held_mhz(outcome.timing) if gpu and outcome else None,
            )
        except MatbenchError as error:
            say(f"machine code not read: {error}", err=True)
            return None

    def _builds(self) -> Builds:
        from matbench import backends
        from matbench.cache import Cache
        from matbench.features.explain.widths import Builds

        cache = Cache()

        def compiled(architecture: Architecture, params: dict[str, int]) -> Resources | None:
            at = architecture.compute_capability
            try:
                return backends.compiled_by_nvcc(at, self.kernel, params, cache).resources
            except backends.UnavailableError:
                return None

        return Builds(self.kernel, compiled, [outcome for _, outcome in self.measured])


def _show(
    looks: Looks,
    case: Case,
    outcome: Outcome | None,
    counted: HardwareCounters | None,
    code: MachineCode | None,
    plot: str | None,
    fmt: str,
) -> None:
    """Combine the findings, print them and draw the roofline."""
    from matbench.features.explain import explanation, view
    from matbench.records import provenance

    info = looks.device
    result = explanation.explanation(case, info, outcome, looks.limits, looks.widths, counted, code)
    about = provenance.environment(sys.argv[1:], [info] if info is not None else [], {})
    if plot is not None:
        _draw(result, Path(plot))
    chart = _chart_width() if fmt in ("rich", "plain") else None
    show_report(view.report(result, [about], chart=chart), fmt)


def _chart_width() -> int:
    """The width of a text chart."""
    console = open_console()
    return min(console.width, 100) if console.is_terminal else 76


def _draw(explanation: Explanation, path: Path) -> None:
    from matbench.features.explain import roofline_picture
    from matbench.features.explain.roofline import roofline

    roof = roofline(explanation)
    if roof is None:
        say(f"{path}: not drawn: no floating-point rate was measured", err=True)
        return
    roofline_picture.draw(roof, path, f"{explanation.case.label} on {explanation.case.device}")


def _architectures(arch: str | None, info: DeviceInfo | None) -> tuple[list[Architecture], bool]:
    """The named architectures, and whether this device is among them."""
    from matbench.features.explain.other_devices import named

    if arch is None:
        arch = "this" if info is not None else _CURRENT
    names = [name.strip().lower() for name in arch.split(",")]
    wanted = [named(name) for name in names if name != "this"]
    return list({target.name: target for target in wanted}.values()), "this" in names


def _tile(overrides: dict[str, tuple[int, ...]]) -> int | None:
    """The TILE to explain, if exactly one is given."""
    given = overrides.get("TILE", ())
    return given[0] if len(given) == 1 else None


def _widened(kernel: Kernel, overrides: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The overrides, with the usual widths added if at most one TILE is given."""
    from matbench.features.explain.widths import TILES

    given = overrides.get("TILE", ())
    if "TILE" not in (*kernel.sweep, *kernel.tune) or len(given) > 1:
        return overrides
    every = sorted({*TILES, *kernel.sweep.get("TILE", ()), *given})
    return overrides | {"TILE": tuple(every)}


def _device(device: DeviceOptions, *, needed: bool) -> DeviceInfo | None:
    """The device in use; None if there is none and none was asked for."""
    from matbench import backends

    try:
        return device.choose()
    except backends.NoDeviceError as error:
        if needed or device.backend != "auto" or device.device is not None:
            raise
        say(f"not measured: {error}", err=True)
        return None
