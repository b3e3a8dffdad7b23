"""The cost of verifying every sample, and its effect on medians.

Verified and bare launches alternate on the same inputs: a verified one, with new inputs before it
and the comparison after it, then a bare one on the same inputs.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing

import common

from matbench import backends
from matbench.backends.protocol import Work
from matbench.bench.launches import Launches
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue
from matbench.model import Case


def measure(session: Session, case: Case, pairs: int) -> tuple[float, float, float]:
    """The medians of verified and bare launches in ns, and the share of time spent on verification.

    There are fewer pairs if launches are long.
    """
    built = session._build(case)
    with session._runnable(case, built) as runnable:
        launches = Launches(runnable)
        launches.once_ns()
        first_ns = launches.once_ns()
        verified, bare, spent_ns = [], [], 0.0
        for _ in range(max(11, min(pairs, round(2e9 / first_ns)))):
            began = time.perf_counter_ns()
            verified.append(launches.once_ns())
            session.backend.synchronize()  # the comparison
            spent_ns += time.perf_counter_ns() - began
            call = built.program.call(launches.launch, runnable.arguments)
            bare.append(session.backend.timed_ns(Work([call], is_cold=session.options.cold)))
            call.give()
        launches.verify()
    median = statistics.median(verified)
    return median, statistics.median(bare), 1 - median * len(verified) / spent_ns


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=101, help="pairs of short launches")
    parser.add_argument("--ladder", action="store_true", help="measure the ladder as well")
    parser.add_argument("--sizes", help="default: those of the 18-case sweep")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("verification", chosen, info)
    kernels = list(common.KERNELS)
    if chosen.ladder:
        ladder = catalogue.Catalogue(catalogue.builtin()).group("ladder")
        kernels += [kernel.name for kernel in ladder if kernel.source]
    cases = common.cases(kernels, common.sizes_of(chosen, info), info)

    rows: list[dict[str, object]] = []
    differences: dict[bool, list[float]] = {False: [], True: []}
    shares = []
    cache = Cache()
    session = Session(backends.open_backend(info, cache), cache, Options(blocks=False))
    with closing(session):
        findings.conditions.append(session.backend.conditions())
        for case in sorted(cases, key=lambda case: case.problem):
            if case.skip is not None:
                continue
            verified_ns, bare_ns, share = measure(session, case, chosen.pairs)
            ratio = verified_ns / bare_ns
            differences[common.is_short(case)].append(abs(ratio - 1))
            if verified_ns > 10e6:
                shares.append(share)
            label = common.label(case)
            print(label, f"{ratio:.4f}", flush=True)
            row = {"case": label, "verified ms": verified_ns / 1e6, "bare ms": bare_ns / 1e6}
            rows.append(row | {"ratio": ratio, "all but launches": share})
        findings.conditions.append(session.backend.conditions())
    findings.table("Verified and bare launches in turns, on the same inputs", rows)
    bars = {False: findings.by_kind(0.005, 0.10), True: findings.by_kind(0.02, 0.25)}
    findings.worst("largest difference between the medians", differences, bars)
    if shares:
        text = "largest share of all but the launch, launches over 10 ms"
        bar = findings.by_kind(0.12, 0.5)
        findings.figures.append(common.Figure(text, max(shares), "share", bar))
    findings.close()


if __name__ == "__main__":
    main()
