"""Compares with NVBench (package `cuda-bench`): the same machine code, cold, in turns.

NVBench, in its own process, launches the cubins that matbench built, on the same inputs and through
the same PyCUDA stream, with its own defaults. Its raw samples are read from its binary output;
medians are compared with medians, and means with means.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import common

from matbench import backends
from matbench.backends import Argument, Backend, Buffer
from matbench.cache import Cache
from matbench.measure.oracle import matmul
from matbench.model import Case, DeviceInfo, Problem


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.set_defaults(backend="cuda")
    parser.add_argument("--sizes", default=common.GPU_SIZES)
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds of NVBench and matbench in turns"
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)  # NVBench's output
    return parser


# -- in NVBench's process ------------------------------------------------------------------------


class Stream:
    """PyCUDA's stream for NVBench: the CUDA stream protocol, version 0."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class Matrices:
    """A, B and C of one problem on the device; those of the previous problem are released."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.problem: Problem | None = None
        self.buffers: dict[str, Buffer] = {}

    def of(self, problem: Problem) -> dict[str, Buffer]:
        if problem != self.problem:
            for buffer in self.buffers.values():
                self.backend.release(buffer)
            A, B = matmul.inputs(problem)
            self.buffers = {
                "A": self.backend.allocate(A.nbytes),
                "B": self.backend.allocate(B.nbytes),
                "C": self.backend.allocate(4 * problem.M * problem.N),
            }
            self.backend.write(self.buffers["A"], A)
            self.backend.write(self.buffers["B"], B)
            self.problem = problem
        return self.buffers


def measure_with_nvbench(info: DeviceInfo, cases: Sequence[Case], target: Path) -> None:
    """Measure all cases with NVBench's defaults, into its JSON with binary samples."""
    import cuda.bench as nvbench

    @cache
    def opened() -> tuple[Any, Matrices]:
        # Opened once NVBench is ready, so that both share the primary context.
        backend = backends.open_backend(info, Cache())
        return backend, Matrices(backend)

    def product(state: Any) -> None:
        backend, matrices = opened()
        case = cases[state.get_int64("case")]
        assert case.launch is not None
        launch, problem = case.launch, case.problem
        buffers = matrices.of(problem)
        sizes = {"M": problem.M, "N": problem.N, "K": problem.K}
        arguments: list[Argument] = [buffers.get(n) or sizes[n] for n in case.kernel.args]
        program = backend.build(case.kernel, case.params)
        state.set_stream(Stream(backend.stream.handle))
        state.exec(lambda _: program.launch(launch, arguments))

    nvbench.register(product).add_int64_axis("case", list(range(len(cases))))
    nvbench.run_all_benchmarks([__file__, "--jsonbin", str(target), "--device", str(info.index)])


# -- in the parent -------------------------------------------------------------------------------


def nvbench_samples(
    info: DeviceInfo, sizes: str, cases: Sequence[Case]
) -> tuple[dict[str, list[float]], float]:
    """NVBench's samples of each case, in ns, and its wall time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "nvbench.json"
        command = [sys.executable, __file__, "--child", str(target), "--sizes", sizes]
        command += common.on(info)
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - start
        if not target.exists():
            sys.exit(f"NVBench: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr}")
        found = {
            common.label(cases[number]): samples for number, samples in read_samples(target).items()
        }
        if len(found) < len(cases):
            print(f"NVBench measured {len(found)} of {len(cases)} cases; its output:")
            print(done.stdout[-2000:], done.stderr[-2000:])
        return found, wall_s


def read_samples(target: Path) -> dict[int, list[float]]:
    """The cold samples in NVBench's output, in ns, by number of the case."""
    from cuda.bench.results import BenchmarkResult

    found = {}
    for states in BenchmarkResult.from_json(target).subbenches.values():
        for state in states:
            if state.samples:
                found[int(state.point["case"])] = [1e9 * seconds for seconds in state.samples]
    return found


def version() -> str:
    """The version of NVBench's package."""
    from importlib.metadata import version as installed

    return installed("cuda-bench")


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    cases = common.cases(common.KERNELS, chosen.sizes, info)
    if chosen.child:
        measure_with_nvbench(info, cases, chosen.child)
        return
    findings = common.Findings("against_nvbench", chosen, info)
    try:
        print(f"NVBench: cuda-bench {version()}\n", flush=True)
    except ImportError:
        print("NVBench is not installed; run: pip install cuda-bench cuda-bindings")
        return
    arguments = [*common.KERNELS, "--sizes", chosen.sizes, *common.on(info)]
    common.run(*arguments)  # builds and references into the cache

    ours: dict[str, list[list[float]]] = {common.label(case): [] for case in cases}
    theirs: dict[str, list[list[float]]] = {common.label(case): [] for case in cases}
    ours_s, theirs_s = [], []
    for number in range(chosen.rounds):
        for which in ("nvbench", "matbench") if number % 2 == 0 else ("matbench", "nvbench"):
            if which == "nvbench":
                samples, wall_s = nvbench_samples(info, chosen.sizes, cases)
                theirs_s.append(wall_s)
                for name, taken in samples.items():
                    theirs[name].append(taken)
            else:
                found = common.run(*arguments)
                findings.saw(found.outcomes)
                ours_s.append(found.wall_s)
                for outcome in found.outcomes:
                    if outcome.samples_ns:
                        ours[common.label(outcome)].append(list(outcome.samples_ns))
        print(
            f"round {number + 1}: NVBench {theirs_s[-1]:.1f} s, matbench {ours_s[-1]:.1f} s",
            flush=True,
        )
    print()
    compare(findings, cases, ours, theirs)
    for what, walls in (
        ("matbench, all checks included, warm cache", ours_s),
        ("NVBench at its defaults (cold and batched), cubins and inputs at hand", theirs_s),
    ):
        what = f"wall time of {len(cases)} cases: {what}"
        findings.figures.append(common.Figure(what, statistics.median(walls), "s"))
    findings.close()


def compare(
    findings: common.Findings,
    cases: Sequence[Case],
    ours: dict[str, list[list[float]]],
    theirs: dict[str, list[list[float]]],
) -> None:
    """Compare medians and means, each as the median over the rounds."""
    bars = {False: 0.01, True: 0.03}
    for what, center in (("medians", statistics.median), ("means", statistics.fmean)):
        rows: list[dict[str, object]] = []
        apart: dict[bool, list[float]] = {False: [], True: []}
        for case in cases:
            label, short = common.label(case), common.is_short(case)
            if not ours[label] or not theirs[label]:
                rows.append({"case": label, "met": "NOT MEASURED"})
                apart[short].append(math.inf)
                continue
            our = [center(samples) for samples in ours[label]]
            their = [center(samples) for samples in theirs[label]]
            ratio = statistics.median(our) / statistics.median(their)
            figure = common.Figure(label, abs(ratio - 1), "share", bars[short])
            apart[short].append(abs(ratio - 1))
            rows.append(
                {
                    "case": label,
                    "matbench ms": statistics.median(our) / 1e6,
                    "samples": sum(map(len, ours[label])),
                    "NVBench ms": statistics.median(their) / 1e6,
                    "their samples": sum(map(len, theirs[label])),
                    "ratio": ratio,
                    "of rounds": f"{min(a / b for a, b in zip(our, their, strict=False)):.4f} to "
                    f"{max(a / b for a, b in zip(our, their, strict=False)):.4f}",
                    "bar": common.judged(figure)["bar"],
                    "met": common.judged(figure)["met"],
                }
            )
        findings.table(f"{what.capitalize()}, and of several rounds the median of those", rows)
        findings.worst(f"{what}: a case, apart from NVBench", apart, bars)


if __name__ == "__main__":
    main()
