#!/usr/bin/env python3
"""The same kernels under each `--method` of matbench, and as other harnesses time them.

The rules, from their documentation and sources, on inputs that never change:

- `do_bench` of Triton: the mean of launches for 100 ms, each after 256 MB were overwritten.
- KernelBench's events: the mean of 100 launches, each after 256 MB were overwritten and without
  anything in the queue but that, after three warm-ups.
- `Timer` of PyTorch: the host's time of launches back to back.
- A loop: 1,000 launches between two events.

    python benchmarks/methods.py --output results/h200-methods.json
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import common
from common import Figure

from matbench import backends
from matbench.kernelfile import catalogue

METHODS = ("cold", "hot", "graph", "rotating")
SIZES = (256, 4096)
TILE = 16
_TRIALS, _WARM_UPS, _LOOP = 100, 3, 1000
_OVERWRITTEN = 256 << 20  # bytes


def measured(kernel: str, settings: list[str], device: list[str]) -> dict[int, dict[str, float]]:
    """The median at each size by each method, in microseconds."""
    found: dict[int, dict[str, float]] = {n: {} for n in SIZES}
    sizes = ",".join(map(str, SIZES))
    for method in METHODS:
        run = common.run(kernel, *settings, "--sizes", sizes, "--method", method, *device)
        for outcome in run.outcomes:
            timing = outcome.cold if method == "cold" else outcome.hot
            if timing is None or timing.median_ns is None:
                raise SystemExit(f"{common.label(outcome.case)}, {method}: {outcome.reason}")
            found[outcome.case.problem.N][method] = timing.median_ns / 1e3
    return found


def launches(n: int) -> dict[str, Callable[[], object]]:
    """Launches of the same kernels on inputs in [0, 1), through CuPy and PyTorch."""
    import cupy
    import torch

    tiled = catalogue.Catalogue(catalogue.builtin()).get("tiled")
    compiled = cupy.RawKernel(tiled.source, tiled.entry, options=(f"-DTILE={TILE}",))
    A, B, C = (cupy.random.rand(n, n, dtype=cupy.float32) for _ in range(3))
    size = cupy.int32(n)
    blocks = -(-n // TILE)
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def launch() -> None:
        with stream:
            compiled((blocks, blocks), (TILE, TILE), (A, B, C, size, size, size))

    a, b = (torch.rand(n, n, device="cuda").to(torch.bfloat16) for _ in range(2))
    out = torch.empty(n, n, device="cuda")
    return {
        "tiled": launch,
        "cublas-bf16": lambda: torch.mm(a, b, out_dtype=torch.float32, out=out),
    }


def by_rules(launch: Callable[[], object]) -> dict[str, float]:
    """The time by each rule, in microseconds."""
    import torch
    from torch.utils.benchmark import Timer
    from triton.testing import do_bench

    def event() -> Any:
        return torch.cuda.Event(enable_timing=True)

    found = {"do_bench (Triton)": 1e3 * do_bench(launch)}
    for _ in range(_WARM_UPS):
        launch()
    times = []
    for _ in range(_TRIALS):
        torch.cuda.synchronize()
        begin, end = event(), event()
        torch.empty(_OVERWRITTEN // 8, dtype=torch.int64, device="cuda").fill_(42)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    found["events (KernelBench)"] = statistics.fmean(times)
    timer = Timer("launch()", globals={"launch": launch})
    found["Timer (PyTorch)"] = 1e6 * timer.blocked_autorange(min_run_time=0.5).median
    begin, end = event(), event()
    begin.record()
    for _ in range(_LOOP):
        launch()
    end.record()
    torch.cuda.synchronize()
    found[f"loop of {_LOOP:,}"] = 1e3 * begin.elapsed_time(end) / _LOOP
    return found


def main() -> None:
    chosen = common.parser(__doc__).parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    if info.backend != "cuda":
        raise SystemExit("methods: the other harnesses need CUDA")
    findings = common.Findings("methods", chosen, info)
    device, settings = common.on(info), {"tiled": ["--set", f"TILE={TILE}"], "cublas-bf16": []}
    medians = {kernel: measured(kernel, given, device) for kernel, given in settings.items()}
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for kernel, launch in launches(n).items():
            times = medians[kernel][n] | by_rules(launch)
            rows.append({"kernel": kernel, "n": n, **times})
            slowest, quickest = max(times.values()), min(times.values())
            findings.figures.append(Figure(f"{kernel}, n = {n}", slowest / quickest, "×"))
    findings.table("Microseconds", rows)
    findings.close()


if __name__ == "__main__":
    main()
