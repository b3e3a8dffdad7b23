"""A sweep of good kernels, without and with the tests' hostile kernels in between.

The medians of the good ones must be the same. A worker is also killed from outside in the middle of
a case. Every hostile kernel ends by itself; two of them exceed a deadline first.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import threading
from pathlib import Path
from typing import Any

import common

from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_sizes
from matbench.measure.options import Deadlines, Options
from matbench.measure.worker import Crew
from matbench.model import Case, DeviceInfo, Problem
from matbench.records.outcome import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent.parent / "tests" / "measure" / "hostile_kernels"
GPU_SIZES, CPU_SIZES = "256,1000", "128,256"
#: The kernel that runs while its worker is killed: it is correct, and takes about 8 seconds.
VICTIM = "hostile-spin"


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", help=f"default: {GPU_SIZES} on a GPU, {CPU_SIZES} on a CPU")
    parser.add_argument(
        "--timeout", type=float, default=5.0, help="time limit per case, in seconds"
    )
    parser.add_argument(
        "--build-timeout", type=float, default=12.0, help="time limit per build, in seconds"
    )
    return parser


def expected() -> dict[str, dict[str, Any]]:
    """What is expected of each hostile kernel, including the reason of its row."""
    found: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text())
    return found


def interleaved(good: list[Case], hostile: list[Case]) -> list[Case]:
    """The good cases in order, with the hostile ones spread evenly between and after them."""
    mixed: list[Case] = []
    for number, case in enumerate(good):
        share = slice(number * len(hostile) // len(good), (number + 1) * len(hostile) // len(good))
        mixed += [case, *hostile[share]]
    return mixed


def work_through(info: DeviceInfo, cases: list[Case], deadlines: Deadlines) -> list[Outcome]:
    """Measure all cases with one crew, as `matbench run` does."""
    with Crew(Options(), deadlines) as crew:
        crew.build_ahead([(info, case) for case in cases])
        return [crew.worker(info).measure(case).outcome for case in cases]


def kill_in_the_middle(info: DeviceInfo, victim: Case, after: Case) -> list[Outcome]:
    """Kill the worker while it runs a long case; then measure another case on the same device."""
    with Crew(Options(blocks=False), Deadlines(run_s=60.0)) as crew:
        worker = crew.worker(info)
        worker.measure(after)  # so that all is built and the worker is running
        killer = threading.Timer(3.0, os.kill, (worker.pool.call(os.getpid), signal.SIGKILL))
        killer.start()
        return [worker.measure(case).outcome for case in (victim, after)]


def medians(outcomes: list[Outcome], names: set[str]) -> dict[str, float]:
    """The medians of the named kernels, in ns."""
    return {
        common.label(outcome): outcome.median_ns
        for outcome in outcomes
        if outcome.case.kernel in names and outcome.median_ns is not None
    }


def said(outcome: Outcome, expectation: dict[str, Any]) -> bool | None:
    """Whether the row has the reason expected on this backend; None if it is harmless there."""
    backend = outcome.case.backend
    if backend not in expectation["backends"]:
        return None
    words = expectation.get("reason") or expectation["reason_on"][backend]
    reason = (outcome.reason or "").lower()
    return outcome.status != "measured" and any(word.lower() in reason for word in words)


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("hostile", chosen, info)
    sizes = chosen.sizes or (GPU_SIZES if info.kind == "gpu" else CPU_SIZES)
    deadlines = Deadlines(build_s=chosen.build_timeout, run_s=chosen.timeout)
    good = common.cases(common.KERNELS, sizes, info)
    known = expected()
    problems = [Problem(m, n, k) for m, n, k in parse_sizes(sizes)]
    kernels = [
        catalogue.load(path, f"tests/measure/hostile_kernels/{path.name}")
        for path in sorted(FOLDER.glob("*.cu"))
    ]
    hostile = {p: sweep.cases(kernels, [p], {}, info) for p in problems}
    mixed = [
        case
        for problem in problems
        for case in interleaved([c for c in good if c.problem == problem], hostile[problem])
    ]

    before = work_through(info, good, deadlines)
    between = work_through(info, mixed, deadlines)
    after = work_through(info, good, deadlines)
    for outcomes in (before, between, after):
        findings.saw(outcomes)

    names = set(common.KERNELS)
    first, with_them, last = (medians(found, names) for found in (before, between, after))
    bars = {False: findings.bar(0.01, 0.15), True: findings.bar(0.03, 0.30)}
    rows: list[dict[str, Any]] = []
    apart: dict[bool, list[float]] = {False: [], True: []}
    for case in good:
        label, short = common.label(case), common.is_short(case)
        alone = [found[label] for found in (first, last) if label in found]
        if not alone or label not in with_them:
            rows.append({"case": label, "met": "NOT MEASURED"})
            apart[short].append(float("inf"))
            continue
        ratio = with_them[label] / statistics.median(alone)
        figure = common.Figure(label, abs(ratio - 1), "share", bars[short])
        apart[short].append(abs(ratio - 1))
        rows.append(
            {
                "case": label,
                "alone ms": first[label] / 1e6,
                "with hostile ms": with_them[label] / 1e6,
                "alone again ms": last[label] / 1e6,
                "ratio": ratio,
                "of the two alone": last[label] / first[label],
                "bar": common.judged(figure)["bar"],
                "met": common.judged(figure)["met"],
            }
        )
    findings.table("Good kernels, without and with hostile ones between them", rows)

    verdicts = []
    rows = []
    for outcome in between:
        kernel = outcome.case.kernel
        if kernel in known:
            verdicts.append(said(outcome, known[kernel]))
            reason = (outcome.reason or "").splitlines() or [""]
            rows.append(
                {
                    "hostile kernel": kernel,
                    "size": outcome.case.problem.size,
                    "status": outcome.status,
                    "as expected": {True: "yes", False: "NO", None: "harmless here"}[verdicts[-1]],
                    "reason": reason[0][:110],
                }
            )
    findings.table("Hostile kernels", rows)

    victim = next(case for case in hostile[problems[0]] if case.kernel.name == VICTIM)
    killed, next_one = kill_in_the_middle(info, victim, good[0])
    rows = [
        {"case": common.label(outcome), "status": outcome.status, "reason": outcome.reason}
        for outcome in (killed, next_one)
    ]
    findings.table("A worker killed from outside, and the case after it", rows)

    findings.worst("a good case, apart from its medians without", apart, bars)
    findings.figures += [
        common.Figure(
            "hostile rows that did not say why in the words expected",
            sum(verdict is False for verdict in verdicts), "rows", 0,
        ),
        common.Figure(
            "killed worker: its case failed for that, and the next was measured",
            float(
                killed.status == "failed"
                and "SIGKILL" in (killed.reason or "")
                and next_one.status == "measured"
            ),
            "of 1", 1, at_least=True,
        ),
    ]  # fmt: skip
    findings.close()


if __name__ == "__main__":
    main()
