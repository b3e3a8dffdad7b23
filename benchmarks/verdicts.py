"""How often `compare` is right: a kernel against itself, and against itself slowed by 2%.

The slowed kernel is the same file with a bounded spin at the end; its length is found by measuring.
All comparisons run in this process, with the time budget of `matbench compare`.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import statistics
import tempfile
from pathlib import Path

import common

from matbench import backends
from matbench.analysis.statistics import ComparisonPlan
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.measure.options import Options
from matbench.measure.session import Session
from matbench.model import Case, Kernel, Problem
from matbench.records.comparison import Comparison

#: The spin, which every thread executes. CUDA waits for its clock; OpenCL, which has no clock here,
#: computes a chain that compilers cannot shorten: each step maps nonzero to nonzero.
SPIN = """
#ifdef __CUDACC__
    for (const long long spin_end = clock64() + SPIN; clock64() < spin_end;)
        ;
#else
    unsigned spin_state = 2u * (unsigned)M + 1u;
#pragma unroll 1
    for (int spin_step = 0; spin_step < SPIN; ++spin_step)
        spin_state = (spin_state ^ (spin_state >> 15)) * 2891336453u;
    if (spin_state == 0u)
        C[0] = 0.0f;
#endif
}
"""


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--kernel", default="tiled")
    parser.add_argument("--tile", type=int, default=16)
    parser.add_argument("--size", type=int, help="default: 1000 on a GPU, 256 on a CPU")
    parser.add_argument("--same", type=int, help="A/A comparisons (200 on a GPU, 40 on a CPU)")
    parser.add_argument("--slowed", type=int, help="A/B comparisons (100 on a GPU, 20 on a CPU)")
    parser.add_argument("--by", type=float, help="slowdown (0.02 on a GPU, 0.10 on a CPU)")
    parser.add_argument(
        "--pairs", type=int, help="pairs per measured ratio (2,000 on a GPU, 300 on a CPU)"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser


def slowed(source: str, name: str, spin: int) -> str:
    """A kernel file's text, renamed, with a spin before the last brace; `entry` is unchanged."""
    line = f'// name = "{name}"\n'
    if source.count(line) != 1:
        raise ValueError(f"the front matter of {name} has no line {line.strip()}")
    entry = "" if "\n// entry =" in source else f'// entry = "{name.replace("-", "_")}"\n'
    text = source.replace(line, f'// name = "{name}-slowed"\n{entry}')
    body = text.rstrip().removesuffix("}")
    return body + SPIN.replace("SPIN", str(spin))


class Arena:
    """An open device on which a kernel is compared with itself and with its slowed twin."""

    def __init__(self, session: Session, kernel: Kernel, tile: int, problem: Problem) -> None:
        self.session = session
        self.kernel = kernel
        self.params = {name: values[0] for name, values in kernel.sweep.items()}
        if "TILE" in self.params:
            self.params["TILE"] = tile
        self.problem = problem
        self.plain = self.case(kernel)

    def case(self, kernel: Kernel) -> Case:
        case = sweep.case(kernel, self.problem, self.params, self.session.backend.info)
        if case.skip is not None:
            raise SystemExit(f"{common.label(case)}: {case.skip}")
        return case

    def twin(self, spin: int) -> Case:
        """The case of the kernel with a spin."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "slowed.cu"
            path.write_text(slowed(self.kernel.source, self.kernel.name, spin), encoding="utf-8")
            return self.case(catalogue.load(path, "slowed.cu"))

    def compare(self, candidate: Case, plan: ComparisonPlan, seed: int) -> Comparison:
        found = self.session.compare(self.plain, candidate, plan, seed)
        if found.comparison is None:
            raise SystemExit(f"{common.label(candidate)} was not compared: {found.reason}")
        return found.comparison

    def ratio(self, candidate: Case, pairs: int, seed: int) -> Comparison:
        """The ratio of medians over a fixed number of pairs."""
        plan = ComparisonPlan(looks=(pairs,), maximum_time_ns=120e9)
        return self.compare(candidate, plan, seed)


def calibrate(
    arena: Arena, by: float, pairs: int, tolerance: float
) -> tuple[int, list[dict[str, object]]]:
    """The spin that slows the kernel by `by` ± `tolerance` (shares), and all attempts.

    The cost of a spin is roughly proportional to its length, apart from what other blocks hide, so
    each attempt scales the previous one by wanted over measured slowdown.
    """
    spin = 1000
    tries: list[dict[str, object]] = []
    best = math.inf, spin
    for attempt in range(12):
        found = arena.ratio(arena.twin(spin), pairs, seed=attempt)
        assert found.ratio is not None
        slowdown = found.ratio - 1
        tries.append({"spin": spin, "slowdown": common.shown(slowdown, "share")})
        best = min(best, (abs(slowdown - by), spin))
        if best[0] <= tolerance:
            break
        factor = by / slowdown if slowdown > 0 else math.inf
        spin = max(1, round(spin * min(max(factor, 0.1), 4)))
    return best[1], tries


def comparisons(arena: Arena, candidate: Case, count: int, seed: int) -> list[Comparison]:
    """Comparisons with the default budget, each in its own random order."""
    plan = ComparisonPlan()
    seeds = random.Random(seed)
    return [arena.compare(candidate, plan, seeds.randrange(2**32)) for _ in range(count)]


def row(what: str, found: list[Comparison]) -> dict[str, object]:
    """One line of the table: the count of each verdict, and the ratios."""
    count = collections.Counter(comparison.verdict for comparison in found)
    ratios = [comparison.ratio for comparison in found if comparison.ratio is not None]
    return {
        "comparison": what,
        "times": len(found),
        **{verdict: count[verdict] for verdict in ("SAME", "FASTER", "SLOWER", "UNDECIDED")},
        "median ratio": statistics.median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
    }


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("verdicts", chosen, info)
    gpu = info.kind == "gpu"
    by = chosen.by or (0.02 if gpu else 0.10)
    pairs = chosen.pairs or (2000 if gpu else 300)
    same, other = chosen.same or (200 if gpu else 40), chosen.slowed or (100 if gpu else 20)

    kernel = catalogue.Catalogue(catalogue.builtin()).get(chosen.kernel)
    size = chosen.size or (1000 if gpu else 256)
    cache = Cache()
    session = Session(backends.open_backend(info, cache), cache, Options(blocks=False))
    try:
        findings.conditions.append(session.backend.conditions())
        arena = Arena(session, kernel, chosen.tile, Problem(size, size, size))
        print(f"{common.label(arena.plain)} against itself, and slowed by {by:.1%}\n", flush=True)
        spin, tries = calibrate(
            arena, by, max(pairs // 2, 20), tolerance=by * (0.05 if gpu else 0.2)
        )
        findings.table("The spin (clock cycles in CUDA, steps in OpenCL) and what it costs", tries)
        twin = arena.twin(spin)
        true = [arena.ratio(candidate, pairs, seed=99) for candidate in (arena.plain, twin)]
        findings.conditions.append(session.backend.conditions())

        alike = comparisons(arena, arena.plain, same, chosen.seed)
        findings.conditions.append(session.backend.conditions())
        apart = comparisons(arena, twin, other, chosen.seed + 1)
        findings.conditions.append(session.backend.conditions())
    finally:
        session.close()

    findings.table(
        f"True ratios, from {pairs:,} pairs each",
        [
            {
                "comparison": what,
                "ratio": found.ratio,
                "low": found.interval[0] if found.interval else None,
                "high": found.interval[1] if found.interval else None,
            }
            for what, found in zip(("A/A", "A/B"), true, strict=True)
        ],
    )
    rows = [
        row(what, found)
        | {"median pairs": statistics.median(comparison.samples[0] for comparison in found)}
        for what, found in (("A/A", alike), ("A/B", apart))
    ]
    findings.table("Verdicts", rows)
    wrong = sum(found.verdict in ("FASTER", "SLOWER") for found in alike)
    slower = sum(found.verdict == "SLOWER" for found in apart)
    findings.figures += [
        common.Figure(
            f"A/A: FASTER or SLOWER, of {same}", wrong, "times", max(1, round(0.01 * same))
        ),
        common.Figure(f"A/B: SLOWER, of {other}", slower / other, "share", 0.95, at_least=True),
    ]
    findings.keep("A/A", alike)
    findings.keep("A/B", apart)
    findings.close()


if __name__ == "__main__":
    main()
