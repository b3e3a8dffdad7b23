"""Shared code of the benchmarks: options, runs of the command line, tables, and JSON.

A benchmark prints its figures next to their targets (bars) but asserts nothing: it always exits 0,
so that figures that miss their target are still printed and saved.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from tabulate import tabulate

from matbench import backends
from matbench.backends import host
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile import sizes as sizes_
from matbench.model import Case, Conditions, DeviceInfo, Problem
from matbench.records import provenance, reading
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome

T = TypeVar("T")

KERNELS = ("naive-2d", "tiled")
GPU_SIZES = "256,1000,4096"
CPU_SIZES = "128,256,512"
#: Up to this size, launches are so short that the event timer's noise matters.
SHORT = 256


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark, to which each adds its own."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--backend", choices=["auto", "cuda", "opencl"], default="auto")
    made.add_argument("--device", help="device number or name, as in `matbench info`")
    made.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON")
    return made


def device(options: argparse.Namespace) -> DeviceInfo:
    """The device that the options select."""
    info: DeviceInfo = backends.choose(options.backend, options.device)
    return info


def sizes_of(options: argparse.Namespace, info: DeviceInfo) -> str:
    """`--sizes`, or the default for the device: on a GPU the sizes of the 18-case sweep."""
    return str(options.sizes or (GPU_SIZES if info.kind == "gpu" else CPU_SIZES))


def cases(kernels: Iterable[str], sizes: str, info: DeviceInfo) -> list[Case]:
    """The sweep of some of matbench's kernels, over the values in their files."""
    known = catalogue.Catalogue(catalogue.builtin())
    problems = [Problem(m, n, k) for m, n, k in sizes_.parse_sizes(sizes)]
    return sweep.cases([known.get(name) for name in kernels], problems, {}, info)


def label(found: Outcome | Case) -> str:
    """A short label of a case: `tiled T=16 n=1000`."""
    case = found.case if isinstance(found, Outcome) else found
    kernel = case.kernel.name if isinstance(case, Case) else case.kernel
    values = [f"{'T' if k == 'TILE' else k}={v}" for k, v in case.params.items()]
    return " ".join([kernel, *values, f"n={case.problem.size}"])


def is_short(case: Case | Outcome) -> bool:
    """Whether a case is so small that its target is wider."""
    problem = case.case.problem if isinstance(case, Outcome) else case.problem
    return max(problem.M, problem.N, problem.K) <= SHORT


# -- runs of the command line --------------------------------------------------------------------


class Run(NamedTuple):
    """One run of `matbench run` in its own process; `wall_s` is its wall time."""

    wall_s: float
    environments: list[Environment]
    outcomes: list[Outcome]


def run(*arguments: str, cache: Path | None = None) -> Run:
    """Run `matbench run` with these arguments; returns its records and its wall time.

    The record of the user's last run is kept; so is the user's cache if another one is given.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        words = ["run", *arguments, "--output", str(file), "--format", "plain"]
        done, wall_s = matbench(words, Path(folder), cache)
        if not file.exists():
            sys.exit(f"matbench {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        return Run(wall_s, *reading.read(file))


def matbench(
    words: Sequence[str], state: Path, cache: Path | None = None
) -> tuple[subprocess.CompletedProcess[str], float]:
    """One call of the command line, and its wall time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "matbench", *words],
        env=surroundings(state, cache),
        capture_output=True,
        text=True,
        check=False,
    )
    return done, time.perf_counter() - start


def surroundings(state: Path, cache: Path | None = None) -> dict[str, str]:
    """The environment of a child process, with its own state folder and, if given, cache."""
    own = {"MATBENCH_STATE_DIR": str(state)}
    if cache is not None:
        own["MATBENCH_CACHE_DIR"] = str(cache)
    return {**os.environ, **own}


def on(info: DeviceInfo) -> list[str]:
    """The arguments that select a device."""
    return ["--backend", info.backend, "--device", str(info.index)]


# -- profiling -----------------------------------------------------------------------------------


class Stopwatch:
    """Total seconds and number of calls of functions, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[what] = self.seconds.get(what, 0.0) + spent
            self.calls[what] = self.calls.get(what, 0) + 1

    def around(self, what: str, function: Callable[..., T]) -> Callable[..., T]:
        """The function, timed whenever it is called."""

        def timed(*args: Any, **kwargs: Any) -> T:
            with self.running(what):
                return function(*args, **kwargs)

        return timed


# -- figures, tables, JSON -----------------------------------------------------------------------


class Figure(msgspec.Struct, frozen=True):
    """One number and its target (bar): an upper limit, or a lower one."""

    what: str
    value: float | None
    unit: str
    bar: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; an unknown value never meets it."""
        if self.bar is None:
            return None
        if self.value is None:
            return False
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def row(self) -> dict[str, Any]:
        """The figure as a row of a table."""
        return {"figure": self.what, **judged(self)}


def judged(figure: Figure) -> dict[str, Any]:
    """The cells of one figure: its value, its target, and whether that is met."""
    sign = "≥" if figure.at_least else "≤"
    bar = None if figure.bar is None else f"{sign} {shown(figure.bar, figure.unit)}"
    met = {True: "yes", False: "NO", None: None}[figure.met]
    return {"value": shown(figure.value, figure.unit), "bar": bar, "met": met}


def shown(value: float | None, unit: str) -> str | None:
    """A number with its unit; shares as percentages."""
    if value is None or not math.isfinite(value):
        return None
    if unit == "share":
        return f"{100 * value:.3g}%"
    return f"{value:,.0f} {unit}" if float(value).is_integer() else f"{value:,.3g} {unit}"


class Findings:
    """The results of a benchmark: printed at once, written to a file at the end."""

    def __init__(
        self, name: str, options: argparse.Namespace, info: DeviceInfo, *, timed: bool = True
    ) -> None:
        self.name = name
        self.timed = timed
        self.output: Path | None = options.output
        self.info = info
        self.figures: list[Figure] = []
        self.tables: dict[str, list[Any]] = {}
        self.conditions: list[Conditions] = []
        print(f"{name} on {info.label}")
        print(f"driver {info.driver}; {info.toolkit}")
        if info.kind == "cpu" and timed:
            print("CPU RUN: these are not GPU timings; the targets (bars) are those for CPUs.")
        print(flush=True)
        self._look()

    def _look(self) -> None:
        if self.info.kind == "cpu":
            self.conditions.append(host.conditions())

    def bar(self, gpu: float, cpu: float) -> float:
        """The target for this kind of device."""
        return gpu if self.info.kind == "gpu" else cpu

    def worst(
        self,
        what: str,
        apart: dict[bool, list[float]],
        bars: dict[bool, float],
    ) -> None:
        """The largest difference of the cases beyond n = 256 (False), and up to it (True)."""
        for short, sign in ((False, ">"), (True, "≤")):
            if apart[short]:
                value = max(apart[short])
                figure = Figure(f"{what}, n {sign} {SHORT}", value, "share", bars[short])
                self.figures.append(figure)

    def saw(self, outcomes: Iterable[Outcome]) -> None:
        """Keep the clocks and the load during these measurements."""
        for outcome in outcomes:
            for timing in filter(None, (outcome.cold, outcome.hot)):
                self.conditions += timing.conditions

    def table(self, title: str, rows: Sequence[dict[str, Any]]) -> None:
        """Print a table and keep it."""
        self.keep(title, rows)
        print(f"{title}\n")
        print(tabulate(rows, headers="keys", tablefmt="simple", floatfmt=",.4g", intfmt=","))
        print(flush=True)

    def keep(self, title: str, rows: Sequence[Any]) -> None:
        """Keep rows for the file without printing them."""
        self.tables[title] = list(rows)

    def close(self) -> None:
        """Print all figures with their targets, and write the output file."""
        if self.figures:
            self.table("Figures", [figure.row() for figure in self.figures])
        self._look()
        print(conditions_in_words(self.conditions))
        loads = [moment.load for moment in self.conditions if moment.load is not None]
        if (
            self.info.kind == "cpu"
            and self.timed
            and loads
            and max(loads) > 1.5 * (os.cpu_count() or 1)
        ):
            print("WARNING: other processes used this CPU; the times are too long.")
        if self.output is None:
            return
        environment = provenance.environment(sys.argv[1:], [self.info], {})
        record = {
            "benchmark": self.name,
            "environment": environment,
            "conditions": conditions_in_words(self.conditions),
            "figures": [
                {**msgspec.structs.asdict(figure), "met": figure.met} for figure in self.figures
            ],
            "tables": {title: rows for title, rows in self.tables.items() if title != "Figures"},
        }
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        self.output.write_bytes(text + b"\n")
        print(f"wrote {self.output}")


def conditions_in_words(conditions: Sequence[Conditions]) -> str:
    """The ranges of a GPU's clocks, temperature and power, and of a CPU's load."""
    told = []
    for name, unit in (
        ("sm_mhz", "MHz SM clock"),
        ("memory_mhz", "MHz memory clock"),
        ("temperature_c", "°C"),
        ("power_w", "W"),
        ("load", "load average"),
    ):
        values = [getattr(c, name) for c in conditions if getattr(c, name) is not None]
        if values:
            low, high = f"{min(values):,.4g}", f"{max(values):,.4g}"
            if name.endswith("_mhz"):
                low, high = f"{min(values):,}", f"{max(values):,}"
            told.append(f"{low if low == high else f'{low} to {high}'} {unit}")
    throttled = sorted({reason for c in conditions for reason in c.throttled})
    if throttled:
        told.append(f"clocks throttled by {', '.join(throttled)}")
    governors = sorted({c.governor for c in conditions if c.governor})
    if governors:
        told.append(f"frequency governor {', '.join(governors)}")
    return "conditions: " + ("; ".join(told) or "clocks and load unknown")
