"""The CPU default: one launch, a plain run, start-up time of commands, cost of the reference.

Measures OpenCL's CPU device even if there is a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import common

from matbench import backends
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.measure.options import Options
from matbench.measure.oracle import matmul
from matbench.measure.session import Session
from matbench.model import DeviceInfo, Problem


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", default="256,1000", help="sizes of the plain run")
    parser.add_argument("--starts", type=int, default=10, help="how often to start each command")
    parser.add_argument("--reference-size", type=int, default=2048, metavar="N")
    return parser


def start_up_s(words: list[str], count: int) -> float:
    """The median wall time of a command, in seconds."""
    with tempfile.TemporaryDirectory() as state:
        return statistics.median(common.matbench(words, Path(state))[1] for _ in range(count))


def reference_share(info: DeviceInfo, size: int) -> tuple[common.Stopwatch, int]:
    """Sweep 20 cases of one problem in this process with an empty cache, timing the reference."""
    watch = common.Stopwatch()
    known = catalogue.Catalogue(catalogue.builtin())
    kernels = [known.get(name) for name in ("naive-2d", "tiled")]
    tiles = {"TILE": (4, 8, 10, 12, 14, 16, 20, 24, 28, 32)}
    cases = sweep.cases(kernels, [Problem(size, size, size)], tiles, info)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch.dict(os.environ, {"MATBENCH_CACHE_DIR": folder}))
        product = watch.around("reference", matmul.product)
        stack.enter_context(mock.patch.object(matmul, "product", product))
        cache = Cache()
        session = Session(backends.open_backend(info, cache), cache, Options())
        with watch.running("sweep"):
            outcomes = [session.measure(case).outcome for case in cases if case.skip is None]
        session.close()
    return watch, sum(outcome.status == "measured" for outcome in outcomes)


def main() -> None:
    chosen = options().parse_args()
    info = backends.host_device()
    findings = common.Findings("cpu_default", chosen, info)

    with tempfile.TemporaryDirectory() as cache:
        arguments = ["--sizes", chosen.sizes, *common.on(info)]
        first = common.run(*arguments, cache=Path(cache))
        warm = common.run(*arguments, cache=Path(cache))
    findings.saw(warm.outcomes)
    for outcome in warm.outcomes:
        case = outcome.case
        if case.kernel == "tiled" and case.params == {"TILE": 16} and outcome.median_ns:
            bar = 30.0 if case.problem.size == "1000" else None
            what = f"a launch of {common.label(outcome)}"
            findings.figures.append(common.Figure(what, outcome.median_ns / 1e6, "ms", bar))
    for what, run in (("empty", first), ("warm", warm)):
        what = f"matbench run --sizes {chosen.sizes}, cache {what}, {len(run.outcomes)} cases"
        findings.figures.append(common.Figure(what, run.wall_s, "s", 60.0))

    for words in (["--help"], ["list"]):
        what = f"matbench {words[0]}, median of {chosen.starts}"
        spent = start_up_s(words, chosen.starts)
        findings.figures.append(common.Figure(what, spent, "s", 0.2))

    watch, measured = reference_share(info, chosen.reference_size)
    share = watch.seconds["reference"] / watch.seconds["sweep"]
    what = (
        f"share of the float64 reference in a sweep of 20 cases ({measured} measured) "
        f"at n = {chosen.reference_size}, {watch.calls['reference']} product(s)"
    )
    findings.figures.append(common.Figure(what, share, "share", 0.1))
    for name in ("reference", "sweep"):
        findings.figures.append(common.Figure(f"that {name}", watch.seconds[name], "s"))
    findings.close()


if __name__ == "__main__":
    main()
