"""Shared code of the benchmarks: options, runs of the command line, tables, and JSON.

A benchmark prints its figures next to their targets (bars) but asserts nothing: it always exits 0,
so that figures that miss their target are still printed and saved.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tabulate import tabulate

from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_sizes
from matbench.model import Case, Conditions, DeviceInfo, Problem, settings_of
from matbench.records import reading
from matbench.records.environment import Environment, run_environment
from matbench.records.outcome import CaseRecord, Outcome

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
    made.add_argument("--device", help="device number or name, as in `matbench doctor`")
    made.add_argument("--output", type=Path, metavar="FILE", help="write the figures as JSON")
    return made


def on(info: DeviceInfo) -> list[str]:
    """The arguments that select a device."""
    return ["--backend", info.backend, "--device", str(info.index)]


def sizes_of(options: argparse.Namespace, info: DeviceInfo) -> str:
    """`--sizes`, or the default for the device: on a GPU the sizes of the 18-case sweep."""
    return str(options.sizes or (GPU_SIZES if info.kind == "gpu" else CPU_SIZES))


def cases(kernels: Iterable[str], sizes: str, info: DeviceInfo) -> list[Case]:
    """The sweep of some of matbench's kernels, over the values in their files."""
    known = catalogue.Catalogue(catalogue.builtin())
    problems = [Problem(m, n, k) for m, n, k in parse_sizes(sizes)]
    return sweep.cases([known.get(name) for name in kernels], problems, {}, info)


def label(case: Case | CaseRecord) -> str:
    """A short label of a case: `tiled TILE=16 n=1000`."""
    kernel = case.kernel if isinstance(case, CaseRecord) else case.kernel.name
    return f"{kernel} {settings_of(case.params)} n={case.problem.size}"


def is_short(case: Case) -> bool:
    """Whether a case is so small that its target is wider."""
    return max(case.problem.M, case.problem.N, case.problem.K) <= SHORT


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
        own = {"MATBENCH_STATE_DIR": folder}
        if cache is not None:
            own["MATBENCH_CACHE_DIR"] = str(cache)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "matbench", *words],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        wall_s = time.perf_counter() - start
        if not file.exists():
            sys.exit(f"matbench {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        contents = reading.Contents(file)
        return Run(wall_s, contents.environments, contents.outcomes)


class Figure(msgspec.Struct, frozen=True):
    """One number and its target (bar): an upper limit, or a lower one."""

    what: str
    value: float
    unit: str
    bar: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; NaN never meets it."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def row(self) -> dict[str, Any]:
        """The figure as a row of a table."""
        return msgspec.structs.asdict(self) | {"met": self.met}


class Findings:
    """The results of a benchmark: printed at once, written to a file at the end."""

    def __init__(
        self, name: str, options: argparse.Namespace, info: DeviceInfo, *, timed: bool = True
    ) -> None:
        self.name = name
        self.output: Path | None = options.output
        self.info = info
        self.figures: list[Figure] = []
        self.tables: dict[str, list[Any]] = {}
        self.conditions: list[Conditions] = []
        print(f"{name} on {info.label}\ndriver {info.driver}; {info.toolkit}")
        if info.kind == "cpu" and timed:
            print("CPU RUN: these are not GPU timings; the targets (bars) are those for CPUs.")
        print(flush=True)

    def by_kind(self, gpu: float, cpu: float) -> float:
        """The value for this kind of device."""
        return gpu if self.info.kind == "gpu" else cpu

    def worst(self, what: str, apart: dict[bool, list[float]], bars: dict[bool, float]) -> None:
        """The largest difference of the cases beyond n = 256 (False), and up to it (True)."""
        for short, sign in ((False, ">"), (True, "≤")):
            if apart[short]:
                about = f"{what}, n {sign} {SHORT}"
                self.figures.append(Figure(about, max(apart[short]), "share", bars[short]))

    def saw(self, outcomes: Iterable[Outcome]) -> None:
        """Keep the clocks and the load during these measurements."""
        for outcome in outcomes:
            for timing in filter(None, (outcome.cold, outcome.hot)):
                self.conditions += timing.conditions

    def table(self, title: str, rows: Sequence[dict[str, Any]]) -> None:
        """Print a table and keep it for the file."""
        self.tables[title] = list(rows)
        table = tabulate(rows, headers="keys", tablefmt="simple", floatfmt=",.4g", intfmt=",")
        print(f"{title}\n\n{table}\n", flush=True)

    def close(self) -> None:
        """Print all figures with their targets, and write the output file."""
        self.table("Conditions", ranges(self.conditions))
        self.table("Figures", [figure.row() for figure in self.figures])
        if self.output is None:
            return
        record = {
            "benchmark": self.name,
            "environment": run_environment(sys.argv[1:], [self.info], {}),
            "figures": self.tables.pop("Figures"),
            "tables": self.tables,
        }
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        self.output.write_bytes(text + b"\n")


def ranges(conditions: Sequence[Conditions]) -> list[dict[str, Any]]:
    """A row for each condition that is known: a GPU's clocks and power, a CPU's load, ..."""
    rows = []
    for name in Conditions.__struct_fields__:
        values = sorted({getattr(moment, name) for moment in conditions} - {None, ()})
        if values:
            rows.append({"condition": name, "lowest": values[0], "highest": values[-1]})
    return rows
