"""The cost of the harness: wall time of the 18-case sweep, and where it goes.

`matbench run` runs the sweep with an empty cache (except for the references, whose cost is shown
separately) and with a warm one. Then three variants are profiled, each in its own process with a
warm cache:

  bare      in one process: every case is checked once, without guards, and timed
  checked   in one process: all checks, all guards
  isolated  by `matbench run` itself: all checks, all guards, in a worker that may die
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import common
import numpy as np
from click.testing import CliRunner

from matbench import backends, cli
from matbench.cache import Cache
from matbench.measure import builders, checks, judge, launches, oracle, process, worker
from matbench.measure.options import Options
from matbench.measure.oracle import matmul
from matbench.measure.session import Session
from matbench.model import Case, DeviceInfo
from matbench.records import reading, writing
from matbench.records.outcome import Accuracy

WAYS = ("bare", "checked", "isolated")
NOTHING = Accuracy(None, None, None)


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--sizes",
        help=f"default: {common.GPU_SIZES} on a GPU, {common.CPU_SIZES} on a CPU",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        default=3,
        metavar="N",
        help="repetitions, of which the median counts",
    )
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # the child's own
    return parser


# -- in a child ----------------------------------------------------------------------------------


def work(way: str, info: DeviceInfo, sizes: str) -> dict[str, Any]:
    """One variant of the sweep: the seconds of each part, and the number of cases measured."""
    watch = common.Stopwatch()
    with ExitStack() as stack:
        if way == "isolated":
            measured = isolated(stack, watch, info, sizes)
        else:
            cases = common.cases(common.KERNELS, sizes, info)
            measured = in_process(stack, watch, info, cases, bare=way == "bare")
    return {"seconds": watch.seconds, "calls": watch.calls, "measured": measured}


def in_process(
    stack: ExitStack, watch: common.Stopwatch, info: DeviceInfo, cases: list[Case], *, bare: bool
) -> int:
    """Profile all cases in this process; `bare`: check them once against the reference only."""

    def timed(what: str, owner: Any, name: str) -> None:
        patch = mock.patch.object(owner, name, watch.around(what, getattr(owner, name)))
        stack.enter_context(patch)

    chosen = Options()
    if bare:
        chosen = Options(checks=frozenset({"reference"}), guarded=False)
        leave_out_second_looks(stack)
    timed("inputs and reference", matmul, "reference_trial")
    timed("inputs of further checks", matmul, "integer_trial")
    timed("upload", judge.Judge, "upload")
    timed("builds, from the cache", Session, "_build")
    timed("checks before", checks.Checks, "before_timing")
    timed("sampling", launches, "sample_until_known")
    timed("clocking blocks", launches.Launches, "_block_times")
    timed("checks after", checks.Checks, "after_timing")
    with watch.running("opening the device"):
        cache = Cache()
        session = Session(backends.open_backend(info, cache), cache, chosen)
    with watch.running("all cases"):
        outcomes = [session.measure(case).outcome for case in cases if case.skip is None]
    with watch.running("closing the device"):
        session.close()
    return sum(outcome.status == "measured" for outcome in outcomes)


def leave_out_second_looks(stack: ExitStack) -> None:
    """Skip all trials but the reference, and the verification of samples."""
    once = checks.Checks._trial

    def reference_only(run: Any, trial: Any, check: str, **options: Any) -> Accuracy:
        return once(run, trial, check, **options) if check == "reference" else NOTHING

    def tiny(*_: Any) -> oracle.Trial:
        one = np.ones((1, 1), np.float32)
        return oracle.Trial("left out", (one, one), exact=one)

    def nothing(*_: Any, **_more: Any) -> None:
        pass

    for owner, name, stand_in in (
        (checks.Checks, "_trial", reference_only),
        (checks.Checks, "after_timing", nothing),
        (launches.Launches, "_make_ready", nothing),
        (launches.Launches, "_compare", nothing),
        (launches.Launches, "verify", nothing),
        (matmul, "integer_trial", tiny),
    ):
        stack.enter_context(mock.patch.object(owner, name, stand_in))


def isolated(stack: ExitStack, watch: common.Stopwatch, info: DeviceInfo, sizes: str) -> int:
    """Profile all cases run by the command itself: what its process waits for."""
    call = process.Pool.call
    called = set()

    def timed(pool: Any, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        first = "" if id(pool) in called else "the worker's start and first "
        called.add(id(pool))
        method = args[0] if function is worker._do else function  # the first is the session's
        with watch.running(f"{first}{method.__name__.strip('_')}"):
            return call(pool, function, *args, **options)

    stack.enter_context(mock.patch.object(process.Pool, "call", timed))
    for what, owner, name in (
        ("starting compilers", builders.Builders, "start"),
        ("waiting for a compiler", builders.Builders, "wait"),
        ("ending the processes", worker.Crew, "__exit__"),
        ("writing records", writing.RecordWriter, "write"),
    ):
        patch = mock.patch.object(owner, name, watch.around(what, getattr(owner, name)))
        stack.enter_context(patch)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    stack.enter_context(mock.patch.dict(os.environ, {"MATBENCH_STATE_DIR": str(folder)}))
    words = ["run", *common.KERNELS, "--sizes", sizes, *common.on(info), "--format", "plain"]
    file = folder / "records.jsonl"
    with watch.running("the command"):
        done = CliRunner().invoke(cli.main, [*words, "--output", str(file)])
    if not file.exists():
        raise SystemExit(done.output)
    return sum(outcome.status == "measured" for outcome in reading.read(file)[1])


# -- in the parent -------------------------------------------------------------------------------


def child(way: str, sizes: str, info: DeviceInfo, cache: Path) -> dict[str, Any]:
    """Run one variant in its own process: its wall time and its parts."""
    command = [sys.executable, __file__, "--way", way, "--sizes", sizes, *common.on(info)]
    environment = {**os.environ, "MATBENCH_CACHE_DIR": str(cache)}
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    parts = sum(
        found["seconds"].get(name, 0.0)
        for name in ("opening the device", "all cases", "closing the device", "the command")
    )
    found["seconds"]["starting Python, imports, choosing the device"] = wall_s - parts
    return {"wall_s": wall_s, **found}


def parts_table(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The median time of each part over the repetitions, longest first."""
    names = dict.fromkeys(name for one in found for name in one["seconds"])
    rows = [
        {
            "part": name,
            "calls": found[0]["calls"].get(name, 1),
            "s": statistics.median(one["seconds"].get(name, 0.0) for one in found),
        }
        for name in names
    ]
    return sorted(rows, key=lambda row: -row["s"])


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    if chosen.way:
        print(json.dumps(work(chosen.way, info, chosen.sizes)))
        return
    findings = common.Findings("harness", chosen, info)
    sizes = common.sizes_of(chosen, info)
    cases = common.cases(common.KERNELS, sizes, info)
    sweep = f"{len(cases)} cases (n = {sizes})"
    arguments = [*common.KERNELS, "--sizes", sizes, *common.on(info)]
    figures = findings.figures

    empty_s: list[float] = []
    warm_s: list[float] = []
    with tempfile.TemporaryDirectory() as top:
        for number in range(chosen.repetitions):
            cache = Path(top, f"cache-{number}")
            start = time.perf_counter()
            for problem in dict.fromkeys(case.problem for case in cases):
                matmul.reference_trial(problem, Cache(cache))
            reference_s = time.perf_counter() - start
            for walls in (empty_s, warm_s):
                found = common.run(*arguments, cache=cache)
                findings.saw(found.outcomes)
                walls.append(found.wall_s)
        measured = sum(outcome.status == "measured" for outcome in found.outcomes)
        figures += [
            common.Figure(
                f"{sweep}, {measured} measured: built from nothing",
                statistics.median(empty_s),
                "s",
                findings.bar(8.0, 120.0),
            ),
            common.Figure(
                f"{sweep}: warm cache", statistics.median(warm_s), "s", findings.bar(5.0, 100.0)
            ),
            common.Figure("the references alone, which are in both caches", reference_s, "s"),
        ]
        ways: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(chosen.repetitions):
            for way in WAYS:
                ways[way].append(child(way, sizes, info, cache))

    for way in WAYS:
        wall_s = statistics.median(one["wall_s"] for one in ways[way])
        done = ways[way][0]["measured"]
        findings.table(f"{way}: {wall_s:.2f} s, {done} measured; its parts", parts_table(ways[way]))
    wall = {way: statistics.median(one["wall_s"] for one in ways[way]) for way in WAYS}
    figures += [common.Figure(f"{way}, warm cache", seconds, "s") for way, seconds in wall.items()]
    checks = (wall["checked"] - wall["bare"]) / wall["bare"]
    worker_s = (wall["isolated"] - wall["checked"]) / wall["bare"]
    figures += [
        common.Figure("added by guards and further checks", checks, "share"),
        common.Figure("added by isolation", worker_s, "share"),
        common.Figure("added by both", checks + worker_s, "share", 0.25),
    ]
    findings.close()


if __name__ == "__main__":
    main()
