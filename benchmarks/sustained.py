#!/usr/bin/env python3
"""How well `--sustained` repeats, whether its energy is right, and what `compare` makes of it.

A kernel is measured several times, some minutes apart. Meanwhile `nvidia-smi`, another program,
reads the power of the GPU; its mean over the same seconds is compared with that of the energy
counter. Then the kernel is compared, in sustained blocks, with itself, which must be neither FASTER
nor SLOWER, and with a slowed twin, which must be SLOWER.

    python benchmarks/sustained.py --output results/h200-sustained.json
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import common
from common import Figure
from msgspec.structs import replace
from verdicts import Pair

from matbench import backends
from matbench.analysis.statistics import ComparisonPlan
from matbench.backends.protocol import Backend
from matbench.bench.options import Options, Round
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue

#: Pairs of blocks of a comparison, as in `compare --sustained 9`.
PAIRS = 9
_QUERY = "--query-gpu=power.draw.instant", "--format=csv,noheader,nounits", "-lms", "50"


def options() -> argparse.Namespace:
    made = common.parser(__doc__)
    made.add_argument("--kernel", help="default: bf16-wgmma (GPU), tiled (CPU)")
    made.add_argument("--size", type=int, help="default: 8192 (GPU), 256 (CPU)")
    made.add_argument("--seconds", type=float, default=10.0, help="of --sustained; default: 10")
    made.add_argument("--runs", type=int, default=5, help="default: 5")
    made.add_argument("--apart", type=float, default=120.0, help="seconds; default: 120")
    made.add_argument("--between", help="a command to run between two runs; it must end in time")
    made.add_argument("--twin-of", default="tiled", help="the kernel to compare; default: tiled")
    made.add_argument("--twin-size", type=int, help="default: 2048 (GPU), 256 (CPU)")
    made.add_argument("--by", type=float, help="slowdown (0.02 on a GPU, 0.10 on a CPU)")
    made.add_argument("--comparisons", type=int, default=6, help="of each kind; default: 6")
    return made.parse_args()


@contextmanager
def power_read(backend: Backend) -> Iterator[Callable[[float, float], float | None]]:
    """`nvidia-smi` reads the power until the end; gives its mean between two moments, in watts."""
    if backend.info.kind == "cpu":
        yield lambda _start, _end: None
        return
    readings: list[tuple[float, float]] = []
    which = f"--id={backend.info.index}"
    with subprocess.Popen(["nvidia-smi", which, *_QUERY], stdout=subprocess.PIPE, text=True) as smi:
        assert smi.stdout is not None
        import threading

        def read() -> None:
            assert smi.stdout is not None
            readings.extend((time.perf_counter(), float(line)) for line in smi.stdout)

        threading.Thread(target=read, daemon=True).start()
        try:
            yield lambda start, end: statistics.fmean(
                watts for at, watts in readings if start <= at <= end
            )
        finally:
            smi.terminate()


def runs(session: Session, pair: Pair, given: argparse.Namespace) -> list[dict[str, object]]:
    """A row for each run: speed, clock, power, energy, and the power that `nvidia-smi` saw."""
    rows: list[dict[str, object]] = []
    for number in range(given.runs):
        began = time.monotonic()
        session.measure(pair.plain)
        with power_read(session.backend) as mean_w:
            outcome = session.measure(pair.plain, Round(2, is_sustained=True))
            ended = time.perf_counter()
            lasting = outcome.sustained
            if lasting is None:
                raise SystemExit(f"{common.label(pair.plain)}: {outcome.reason}")
            # Without the first and last second of what was measured.
            seen_w = mean_w(ended - given.seconds, ended - 1)
        rows.append(
            {
                "run": number + 1,
                "ms": lasting.mean_ns / 1e6,
                "steady": lasting.steady,
                "SM MHz": lasting.sm_mhz,
                "°C": lasting.temperature_c,
                "W": lasting.power_w,
                "J": lasting.energy_j,
                "W (nvidia-smi)": seen_w,
                "idle W": lasting.idle_w,
                "throttled": ", ".join(lasting.throttled),
            }
        )
        print(rows[-1], flush=True)
        if number + 1 < given.runs:
            if given.between:
                subprocess.run(given.between, shell=True, check=False)
            time.sleep(max(0.0, given.apart - (time.monotonic() - began)))
    return rows


def verdicts(session: Session, pair: Pair, by: float, count: int) -> list[dict[str, object]]:
    """A row for the kernel against itself, and one against its slowed twin."""
    twin, about = pair.calibrate(by, 60, 0.1 * by)
    print(about, flush=True)
    session.options = replace(session.options, sustained_s=float(PAIRS))
    seeds = random.Random(0)
    rows: list[dict[str, object]] = []
    for what, other in (("itself", pair.plain), ("slowed", twin)):
        made = [
            pair.compare(other, ComparisonPlan(looks=(PAIRS,)), seeds.randrange(2**32))
            for _ in range(count)
        ]
        ratios = [one.ratio for one in made if one.ratio is not None]
        told = Counter(str(one.verdict) for one in made)
        rows.append({"against": what, **dict(told), "lowest": min(ratios), "highest": max(ratios)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    given = options()
    info = backends.choose(given.backend, given.device)
    findings, gpu = common.Findings("sustained", given, info), info.kind == "gpu"
    known, cache = catalogue.Catalogue(catalogue.builtin()), Cache()
    how = Options(blocks=False, sustained_s=given.seconds)
    with tempfile.TemporaryDirectory() as folder:
        with closing(Session(backends.open_backend(info, cache), cache, how)) as session:
            kernel = known.get(given.kernel or ("bf16-wgmma" if gpu else "tiled"))
            size = given.size or (8192 if gpu else 256)
            rows = runs(session, Pair(session, kernel, size, Path(folder)), given)
            if rows:
                findings.table(f"{kernel.name} at {size}, {given.seconds:g} s", rows)
        joules = [row["J"] for row in rows if isinstance(row["J"], float)]
        if joules:
            spread = max(joules) / min(joules) - 1
            findings.figures.append(Figure("energy, all runs", spread, "share", 0.03))
            apart = [abs(float(str(r["W"])) / float(str(r["W (nvidia-smi)"])) - 1) for r in rows]
            findings.figures.append(Figure("power, nvidia-smi's", max(apart), "share", 0.03))
        if given.comparisons:
            by = given.by or findings.by_kind(0.02, 0.10)
            with closing(
                Session(backends.open_backend(info, cache), cache, Options(blocks=False))
            ) as session:
                twins = Pair(
                    session,
                    known.get(given.twin_of),
                    given.twin_size or (2048 if gpu else 256),
                    Path(folder),
                )
                told = verdicts(session, twins, by, given.comparisons)
            findings.table(f"{given.twin_of}, slowed by {by:.0%}", told)
            wrong = sum(int(str(told[0].get(word, 0))) for word in ("FASTER", "SLOWER"))
            findings.figures.append(Figure("itself: FASTER or SLOWER", wrong, "verdicts", 0))
            right = int(str(told[1].get("SLOWER", 0)))
            findings.figures.append(
                Figure("slowed: SLOWER", right, "verdicts", given.comparisons, at_least=True)
            )
    findings.close()


if __name__ == "__main__":
    main()
