"""The cost of the harness: wall time of the 18-case sweep, and where it goes.

`matbench run` runs the sweep with an empty cache and with a warm one, while `probe/` records what
its processes do: each moment counts as what the command itself does, or if it waits for its worker,
as what the worker does. Then two variants are profiled, each in its own process with a warm cache:

  bare      in one process: every case is checked once, without guards, and timed
  checked   in one process: all checks, all guards

`results/h200-harness.json` and `results/cpu-harness.json` are written by it, and the table in
docs/timing.md is made from them by docs/generate_readme.py.
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
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import common
import numpy as np

from matbench import backends
from matbench.cache import Cache
from matbench.measure import checks, judge, launches, oracle
from matbench.measure.options import Options
from matbench.measure.oracle import matmul
from matbench.measure.session import Session
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Accuracy

WAYS = ("bare", "checked")
PROBE = Path(__file__).parent / "probe"
#: What the parts of the wall time are called, in the order of the table. Those of the worker begin
#: with "worker: ".
PARTS = (
    "Python's start and end", "imports", "kernel files", "device", "worker: start",
    "worker: imports", "worker: device", "worker: builds", "worker: inputs", "worker: reference",
    "worker: checks", "worker: timed launches", "worker: verification of samples",
    "worker: block times", "worker: statistics", "worker: limits of the device",
    "worker: collecting garbage", "between the processes", "records", "display",
    "ending the worker", "other",
)  # fmt: skip
#: The time of these is mostly that of the kernels themselves.
OF_KERNELS = ("worker: timed launches", "worker: block times")
WALL_TIME = "where the wall time goes"
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


# -- in the parent -------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """What a process did from one moment to another, in nanoseconds."""

    begin_ns: int
    end_ns: int
    part: str


def recorded(folder: Path) -> tuple[list[Stretch], list[Stretch]]:
    """What the probe recorded: the command's own stretches, and those of its worker."""
    own: list[Stretch] = []
    worker: list[Stretch] = []
    for path in sorted(folder.iterdir()):
        lines = [line.split(" ", 2) for line in path.read_text("utf-8").splitlines()]
        found = [Stretch(int(begin), int(end), part) for begin, end, part in lines]
        parts = {stretch.part for stretch in found}
        # Others are compilers', beside which the command goes on.
        into = own if "waiting" in parts else worker if "inputs" in parts else []
        into += found
    return own, worker


def parts_of(
    own: Sequence[Stretch], worker: Sequence[Stretch], began_ns: int, ended_ns: int
) -> dict[str, float]:
    """The seconds of each part of a command's wall time; together they are all of it."""
    worker = [Stretch(began_ns, worker[0].begin_ns, "start"), *worker]
    spent = Counter({PARTS[0]: own[0].begin_ns - began_ns + ended_ns - own[-1].end_ns})
    for begin_ns, end_ns, part in own:
        if part != "waiting":
            spent[part] += end_ns - begin_ns
            continue
        seen_ns = 0
        for started_ns, stopped_ns, doing in worker:
            both_ns = max(0, min(end_ns, stopped_ns) - max(begin_ns, started_ns))
            if doing != "other":
                spent[f"worker: {doing}"] += both_ns
                seen_ns += both_ns
        spent["between the processes"] += end_ns - begin_ns - seen_ns
    return {part: spent[part] / 1e9 for part in (*PARTS, *(spent.keys() - set(PARTS)))}


def profiled(arguments: Sequence[str], cache: Path) -> tuple[common.Run, dict[str, float]]:
    """A run of `matbench run`, and the seconds of each part of its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(PROBE), *filter(None, [os.environ.get("PYTHONPATH")])])
        asked = {"MATBENCH_WALL_TIME": folder, "PYTHONPATH": path}
        with mock.patch.dict(os.environ, asked):
            began_ns = time.monotonic_ns()
            run = common.run(*arguments, cache=cache)
        ended_ns = began_ns + round(run.wall_s * 1e9)
        return run, parts_of(*recorded(Path(folder)), began_ns, ended_ns)


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


def wall_time_table(runs: dict[str, list[tuple[float, dict[str, float]]]]) -> list[dict[str, Any]]:
    """The seconds of each part with each cache, and of all.

    They are those of the repetition in the middle, so that they add up to its wall time.
    """
    columns = {
        f"{which} cache": sorted(found, key=lambda run: run[0])[(len(found) - 1) // 2][1]
        for which, found in runs.items()
    }
    for parts in columns.values():
        whole = sum(parts.values())
        parts["all"] = whole
        parts["all but the kernels"] = whole - sum(parts[part] for part in OF_KERNELS)
    names = dict.fromkeys(part for parts in columns.values() for part in parts)
    return [
        {"part": part, **{which: parts.get(part, 0.0) for which, parts in columns.items()}}
        for part in names
    ]


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

    runs: dict[str, list[tuple[float, dict[str, float]]]] = {"empty": [], "warm": []}
    ways: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as top:
        for number in range(chosen.repetitions):
            cache = Path(top, f"cache-{number}")
            for which in runs:
                run, parts = profiled(arguments, cache)
                findings.saw(run.outcomes)
                runs[which].append((run.wall_s, parts))
            for way in WAYS:
                ways[way].append(child(way, sizes, info, cache))
        measured = sum(outcome.status == "measured" for outcome in run.outcomes)
        for which, bars in (("empty", (8.0, 120.0)), ("warm", (5.0, 100.0))):
            wall_s = statistics.median(wall_s for wall_s, _ in runs[which])
            what = f"{sweep}, {measured} measured: {which} cache"
            figures.append(common.Figure(what, wall_s, "s", findings.bar(*bars)))
        findings.table(WALL_TIME, wall_time_table(runs))

    for way in WAYS:
        wall_s = statistics.median(one["wall_s"] for one in ways[way])
        done = ways[way][0]["measured"]
        findings.table(f"{way}: {wall_s:.2f} s, {done} measured; its parts", parts_table(ways[way]))
    wall = {way: statistics.median(one["wall_s"] for one in ways[way]) for way in WAYS}
    figures += [common.Figure(f"{way}, warm cache", seconds, "s") for way, seconds in wall.items()]
    warm_s = statistics.median(wall_s for wall_s, _ in runs["warm"])
    checks = (wall["checked"] - wall["bare"]) / wall["bare"]
    worker_s = (warm_s - wall["checked"]) / wall["bare"]
    figures += [
        common.Figure("added by guards and further checks", checks, "share"),
        common.Figure("added by isolation", worker_s, "share"),
        common.Figure("added by both", checks + worker_s, "share", 0.25),
    ]
    findings.close()


if __name__ == "__main__":
    main()
