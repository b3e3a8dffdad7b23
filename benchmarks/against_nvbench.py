"""Compares with NVBench (package `cuda-bench`): the same machine code, cold, in turns.

NVBench, in its own process, launches the cubins that matbench built, on the same inputs and through
the same PyCUDA stream, with its own defaults (cold and batched). Its raw samples are read from its
binary output; medians are compared with medians, and means with means.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import common

from matbench import backends
from matbench.backends.protocol import Buffer
from matbench.cache import Cache
from matbench.model import Case, DeviceInfo, Problem
from matbench.workloads.matmul import trials as matmul

#: The samples of each case in ns, one list per round.
Samples = dict[str, list[list[float]]]
#: The samples of one round in ns, and the wall time in seconds.
Taken = tuple[dict[str, list[float]], float]


class Stream:
    """PyCUDA's stream for NVBench: the CUDA stream protocol, version 0."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def measure_with_nvbench(info: DeviceInfo, cases: Sequence[Case], target: Path) -> None:
    """Measure all cases with NVBench's defaults, into its JSON with binary samples."""
    import cuda.bench as nvbench

    @cache
    def opened() -> Any:
        # Opened once NVBench is ready, so that both share the primary context.
        return backends.open_backend(info, Cache())

    @cache
    def matrices(problem: Problem) -> dict[str, Buffer]:
        backend = opened()
        A, B = matmul.inputs(problem)
        nbytes = {"A": A.nbytes, "B": B.nbytes, "C": 4 * problem.M * problem.N}
        buffers = {name: backend.allocate(count) for name, count in nbytes.items()}
        backend.write(buffers["A"], A)
        backend.write(buffers["B"], B)
        return buffers

    def product(state: Any) -> None:
        backend, case = opened(), cases[state.get_int64("case")]
        problem, launch = case.problem, case.launch
        known = {**matrices(problem), "M": problem.M, "N": problem.N, "K": problem.K}
        arguments = [known[name] for name in case.kernel.args]
        program = backend.build(case.kernel, case.params)
        state.set_stream(Stream(backend.stream.handle))
        state.exec(lambda _: program.launch(launch, arguments))

    nvbench.register(product).add_int64_axis("case", list(range(len(cases))))
    nvbench.run_all_benchmarks([__file__, "--jsonbin", str(target), "--device", str(info.index)])


def nvbench_samples(info: DeviceInfo, sizes: str, cases: Sequence[Case]) -> Taken:
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
        found = read_samples(target)
        return {common.label(cases[case]): ns for case, ns in found.items()}, wall_s


def read_samples(target: Path) -> dict[int, list[float]]:
    """The cold samples in NVBench's output, in ns, by number of the case."""
    from cuda.bench.results import BenchmarkResult

    return {
        int(state.point["case"]): [1e9 * seconds for seconds in state.samples]
        for states in BenchmarkResult.from_json(target).subbenches.values()
        for state in states
        if state.samples
    }


def matbench_samples(findings: common.Findings, arguments: Sequence[str]) -> Taken:
    """The same of `matbench run`."""
    run = common.run(*arguments)
    findings.saw(run.outcomes)
    measured = [outcome for outcome in run.outcomes if outcome.samples_ns]
    return {common.label(one.case): list(one.samples_ns) for one in measured}, run.wall_s


def main() -> None:
    parser = common.parser(__doc__)
    parser.set_defaults(backend="cuda")
    parser.add_argument("--sizes", default=common.GPU_SIZES)
    parser.add_argument("--rounds", type=int, default=3, help="of NVBench and matbench in turns")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)  # NVBench's output
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    cases = common.cases(common.KERNELS, chosen.sizes, info)
    if chosen.child:
        measure_with_nvbench(info, cases, chosen.child)
        return
    findings = common.Findings("against_nvbench", chosen, info)
    print(f"NVBench: cuda-bench {metadata.version('cuda-bench')}\n", flush=True)
    arguments = [*common.KERNELS, "--sizes", chosen.sizes, *common.on(info)]
    common.run(*arguments)  # builds and references into the cache

    tools: dict[str, Callable[[], Taken]] = {
        "NVBench": lambda: nvbench_samples(info, chosen.sizes, cases),
        "matbench": lambda: matbench_samples(findings, arguments),
    }
    samples: dict[str, Samples] = {tool: defaultdict(list) for tool in tools}
    walls_s: dict[str, list[float]] = {tool: [] for tool in tools}
    for number in range(chosen.rounds):
        for tool in sorted(tools, reverse=number % 2 == 1):
            taken, wall_s = tools[tool]()
            walls_s[tool].append(wall_s)
            for case, samples_ns in taken.items():
                samples[tool][case].append(samples_ns)
            print(f"round {number + 1}: {tool} {wall_s:.1f} s", flush=True)
    compare(findings, cases, samples["matbench"], samples["NVBench"])
    how = {
        "NVBench": "NVBench at its defaults (cold and batched), cubins and inputs at hand",
        "matbench": "matbench, all checks included, warm cache",
    }
    for tool, seconds in walls_s.items():
        what = f"wall time of {len(cases)} cases: {how[tool]}"
        findings.figures.append(common.Figure(what, statistics.median(seconds), "s"))
    findings.close()


def compare(
    findings: common.Findings, cases: Sequence[Case], ours: Samples, theirs: Samples
) -> None:
    """Compare medians and means, each as the median over the rounds."""
    bars = {False: 0.01, True: 0.03}
    for what, center in (("medians", statistics.median), ("means", statistics.fmean)):
        rows: list[dict[str, object]] = []
        apart: dict[bool, list[float]] = {False: [], True: []}
        for case in cases:
            label, short = common.label(case), common.is_short(case)
            if not (ours.get(label) and theirs.get(label)):
                rows.append({"case": label, "ratio": "NOT MEASURED"})
                apart[short].append(math.inf)
                continue
            our = [center(samples) for samples in ours[label]]
            their = [center(samples) for samples in theirs[label]]
            ratio = statistics.median(our) / statistics.median(their)
            apart[short].append(abs(ratio - 1))
            rows.append(
                {
                    "case": label,
                    "matbench ms": statistics.median(our) / 1e6,
                    "NVBench ms": statistics.median(their) / 1e6,
                    "ratio": ratio,
                    "of rounds": [round(a / b, 4) for a, b in zip(our, their, strict=False)],
                }
            )
        findings.table(f"{what.capitalize()}, and of several rounds the median of those", rows)
        findings.worst(f"{what}: a case, apart from NVBench", apart, bars)


if __name__ == "__main__":
    main()
