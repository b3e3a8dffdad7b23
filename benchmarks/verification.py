"""The cost of verifying every sample, and its effect on medians.

Verified and bare launches alternate on the same inputs: a verified one, with new inputs before it
and the comparison after it, then a bare one on the same inputs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import NamedTuple

import common

from matbench import backends
from matbench.cache import Cache
from matbench.kernelfile import catalogue
from matbench.measure.launches import Launches
from matbench.measure.options import Options
from matbench.measure.session import Session
from matbench.model import Case, DeviceInfo

#: Launches longer than this have a target for the cost of verification.
LONG_NS = 10e6


class Found(NamedTuple):
    """One case: both medians, and the share of time spent on verification."""

    verified_ns: float
    bare_ns: float
    share: float


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--pairs", type=int, default=101, metavar="N", help="pairs of short launches"
    )
    parser.add_argument(
        "--ladder", action="store_true", help="measure the ladder's kernels as well"
    )
    parser.add_argument("--sizes", help="default: those of the 18-case sweep")
    return parser


def measure(session: Session, case: Case, pairs: int) -> Found | None:
    """Measure pairs of one case, fewer if launches are long; None if the case cannot run."""
    if case.skip is not None:
        return None
    built = session._build(case)
    with session._checks(case, built) as checks:
        launches = Launches(checks)
        launches.once_ns()
        first_ns = launches.once_ns()
        verified, bare, spent_ns = [], [], 0.0
        for _ in range(max(11, min(pairs, round(2e9 / first_ns)))):
            began = time.perf_counter_ns()
            verified.append(launches.once_ns())
            session.backend.synchronize()  # the comparison
            spent_ns += time.perf_counter_ns() - began
            bare.append(
                session.backend.time_ns(
                    built.program, checks.launch, checks.arguments, cold=session.options.cold
                )
            )
        launches.verify()
    median = statistics.median(verified)
    return Found(median, statistics.median(bare), 1 - median * len(verified) / spent_ns)


def swept(chosen: argparse.Namespace, info: DeviceInfo) -> list[Case]:
    """The 18 cases, and those of the ladder with --ladder."""
    found = common.cases(common.KERNELS, common.sizes_of(chosen, info), info)
    if chosen.ladder:
        ladder = [k.name for k in catalogue.builtin() if k.group == "ladder" and k.source]
        matmul = [name for name in ladder if not name.startswith("dot")]
        found += common.cases(matmul, common.sizes_of(chosen, info), info)
    return found


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("verification", chosen, info)
    cache = Cache()
    session = Session(backends.open_backend(info, cache), cache, Options(blocks=False))
    rows: list[dict[str, object]] = []
    differences: dict[bool, list[float]] = {False: [], True: []}
    shares = []
    for case in sorted(swept(chosen, info), key=lambda case: case.problem):
        found = measure(session, case, chosen.pairs)
        if found is None:
            continue
        difference = abs(found.verified_ns / found.bare_ns - 1)
        differences[common.is_short(case)].append(difference)
        if found.verified_ns > LONG_NS:
            shares.append(found.share)
        rows.append(
            {
                "case": common.label(case),
                "verified ms": found.verified_ns / 1e6,
                "bare ms": found.bare_ns / 1e6,
                "ratio": found.verified_ns / found.bare_ns,
                "all but launches": common.shown(found.share, "share"),
            }
        )
        print(common.label(case), f"{found.verified_ns / found.bare_ns:.4f}", flush=True)
    session.close()
    findings.table("Verified and bare launches in turns, on the same inputs", rows)
    bars = {False: findings.bar(0.005, 0.10), True: findings.bar(0.02, 0.25)}
    findings.worst("largest difference between the medians", differences, bars)
    if shares:
        text = "largest share of all but the launch, launches over 10 ms"
        findings.figures.append(common.Figure(text, max(shares), "share", findings.bar(0.12, 0.5)))
    findings.close()


if __name__ == "__main__":
    main()
