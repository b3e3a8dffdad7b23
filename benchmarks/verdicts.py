"""How often `compare` is right about unchanged kernels, and about slowed ones.

The slowed twin of a kernel is the same file with a bounded spin at the end, whose length is found
by measuring. `matbench compare`, each time in a new process, measures a copy of the first kernel
under another name and its twin against it. `--load` keeps one processor busy meanwhile.

For record files, `matbench run --repeat` records all kernels, then their twins, several times. Each
recording is compared with the one before: kernels with kernels and twins with twins, which must not
be FASTER or SLOWER, and the twins of either with the kernels of the other, which must be SLOWER.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import common
import msgspec
from msgspec.structs import replace

from matbench import backends
from matbench.analysis.statistics import ComparisonPlan
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.features.gate import recorded
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, Kernel, Problem
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.show.reasons import comparison_reason
from matbench.worker import comparing

GPU_KERNELS = "tiled,kahan,thread-tile-2d,vectorized,warp-tiled"
TILE = 16
#: The spin, which every thread executes: a chain that compilers cannot shorten, because each step
#: maps nonzero to nonzero.
SPIN = """
    unsigned spin_state = 2u * (unsigned)M + 1u;
#pragma unroll 1
    for (int spin_step = 0; spin_step < SPIN; ++spin_step)
        spin_state = (spin_state ^ (spin_state >> 15)) * 2891336453u;
    if (spin_state == 0u)
        C[0] = 0.0f;
}
"""
Verdicts = dict[str, list[Comparison]]


def slowed(kernel: Kernel, spin: int) -> str:
    """A kernel file's text, renamed, with a spin before the last brace; `entry` is unchanged."""
    name = f'// name = "{kernel.name}-slowed"\n// entry = "{kernel.entry}"\n'
    text = kernel.source.replace(f'// name = "{kernel.name}"\n', name)
    return text.rstrip().removesuffix("}") + SPIN.replace("SPIN", str(spin))


def as_kernels(run: common.Run) -> common.Run:
    """A run of twins, under the names of their kernels."""
    outcomes = []
    for outcome in run.outcomes:
        case = replace(outcome.case, kernel=outcome.case.kernel.removesuffix("-slowed"))
        outcomes.append(replace(outcome, case=case))
    return run._replace(outcomes=outcomes)


class Pair:
    """A kernel and its slowed twin on an open device."""

    def __init__(self, session: Session, kernel: Kernel, size: int, folder: Path) -> None:
        self.session, self.kernel = session, kernel
        self.file = folder / f"{kernel.name}.cu"
        self.problem = Problem(size, size, size)
        self.plain = self.case(kernel)

    def case(self, kernel: Kernel) -> Case:
        first = {name: values[0] for name, values in kernel.sweep.items()}
        params = first | ({"TILE": TILE} if "TILE" in first else {})
        case = sweep.case(kernel, self.problem, params, self.session.backend.info)
        if case.skip is not None:
            raise SystemExit(f"{common.label(case)}: {case.skip}")
        return case

    def twin(self, spin: int) -> Case:
        """The case of the kernel with a spin, whose file is written."""
        self.file.write_text(slowed(self.kernel, spin), encoding="utf-8")
        return self.case(catalogue.load(self.file))

    def compare(self, other: Case, plan: ComparisonPlan, seed: int) -> Comparison:
        """The kernel against itself or its twin."""
        record = comparing.here(self.session, self.plain, other, plan, seed)
        if record.comparison is None:
            raise SystemExit(f"{common.label(other)} was not compared: {comparison_reason(record)}")
        return record.comparison

    def calibrate(self, by: float, pairs: int, tolerance: float) -> tuple[Case, dict[str, object]]:
        """The twin that is slower by `by` ± `tolerance` (shares), and a row about it.

        The cost of a spin is roughly proportional to its length, apart from what other blocks hide,
        so each attempt scales the previous one by wanted over measured slowdown.
        """
        plan = ComparisonPlan(looks=(pairs,), maximum_time_ns=120e9)
        spin = 100
        for attempt in range(12):
            twin = self.twin(spin)
            ratio = self.compare(twin, plan, seed=attempt).ratio or 1.0
            if abs(ratio - 1 - by) <= tolerance:
                return twin, {"kernel": self.kernel.name, "spin": spin, "ratio": ratio}
            factor = by / (ratio - 1) if ratio > 1 else 4
            spin = max(1, round(spin * min(max(factor, 0.1), 4)))
        raise SystemExit(f"{common.label(self.plain)}: no spin slows it by {by:.0%}; try --by")


@contextmanager
def busy(*, is_on: bool) -> Iterator[None]:
    """One busy processor meanwhile."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if is_on else None
    yield
    if loop is not None:
        loop.kill()
        loop.wait()


def by_compare(pair: Pair, count: int, *where: str) -> Verdicts:
    """What `matbench compare` says of a copy of the kernel and of its twin, each in a process."""
    twin = pair.file
    copy = twin.with_name("copy.cu")
    named = f'// name = "copy"\n// entry = "{pair.kernel.entry}"\n'
    text = pair.kernel.source.replace(f'// name = "{pair.kernel.name}"\n', named)
    copy.write_text(text, encoding="utf-8")
    verdicts: Verdicts = {"compare: unchanged": [], "compare: slowed": []}
    start = time.perf_counter()
    for _ in range(count):
        for comparisons, file in zip(verdicts.values(), (copy, twin), strict=True):
            words = [pair.kernel.name, str(file), *where, "--format", "json"]
            done = subprocess.run(
                [sys.executable, "-m", "matbench", "compare", *words],
                capture_output=True,
                check=False,
            )
            if done.returncode:
                sys.exit(f"matbench compare: exit {done.returncode}\n{done.stderr.decode()}")
            records = msgspec.json.decode(done.stdout)
            [found] = (record for record in records if record["type"] == "comparison")
            comparison = msgspec.convert(found, ComparisonRecord).comparison
            assert comparison is not None
            comparisons.append(comparison)
    print(f"{(time.perf_counter() - start) / (2 * count):.1f} s a comparison", flush=True)
    return verdicts


def by_diff(kernels: Sequence[str], twins: Sequence[str], recordings: int) -> Verdicts:
    """What `compare` says of the recordings of two command lines."""
    verdicts: Verdicts = {"diff: unchanged": [], "diff: slowed": []}
    runs = []
    for number in range(recordings):
        runs.append((common.run(*kernels), as_kernels(common.run(*twins))))
        print(f"recording {number + 1} of {recordings}", flush=True)
    for old, new in itertools.pairwise(runs):
        verdicts["diff: unchanged"] += compared(old[0], new[0]) + compared(old[1], new[1])
        verdicts["diff: slowed"] += compared(old[0], new[1]) + compared(new[0], old[1])
    return verdicts


def compared(old: common.Run, new: common.Run) -> list[Comparison]:
    """What `compare` says of two recordings."""
    sides = [(run.environments, run.outcomes) for run in (old, new)]
    records = recorded.compare_records(sides[0], sides[1], ("old", "new"), 0.01).records
    return [record.comparison for record in records if record.comparison is not None]


def report(findings: common.Findings, verdicts: Verdicts) -> None:
    """A table of all verdicts, and the shares of those that are right or wrong."""
    rows: list[dict[str, object]] = []
    for what, comparisons in verdicts.items():
        count = Counter(one.verdict for one in comparisons)
        ratios = [one.ratio for one in comparisons if one.ratio is not None]
        row: dict[str, object] = {"comparison": what, "times": len(comparisons)}
        row |= {verdict: count[verdict] for verdict in ("SAME", "FASTER", "SLOWER", "UNDECIDED")}
        row |= {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}
        rows.append(row)
        is_slowed = what.endswith("slowed")
        share = (count["SLOWER"] + (0 if is_slowed else count["FASTER"])) / len(comparisons)
        name = f"{what}: {'SLOWER' if is_slowed else 'FASTER or SLOWER'}"
        bar = 0.95 if is_slowed else findings.by_kind(0.01, 1 / 40)
        findings.figures.append(common.Figure(name, share, "share", bar, at_least=is_slowed))
    findings.table("Verdicts", rows)
    findings.tables |= verdicts


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--kernels", help=f"default: {GPU_KERNELS} on a GPU, tiled on a CPU")
    parser.add_argument("--size", type=int, help="default: 2048 on a GPU, 256 on a CPU")
    parser.add_argument("--by", type=float, help="slowdown (0.02 on a GPU, 0.10 on a CPU)")
    parser.add_argument(
        "--comparisons", type=int, help="by `compare`, and as many with the twin (60; 0: none)"
    )
    parser.add_argument(
        "--recordings", type=int, help="to compare (11 on a GPU, 41 on a CPU; 0: none)"
    )
    parser.add_argument("--load", action="store_true", help="beside a busy loop")
    parser.add_argument("--repeat", type=int, default=5, help="processes of a recording")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("verdicts", chosen, info)
    gpu = info.kind == "gpu"
    kernels = (chosen.kernels or (GPU_KERNELS if gpu else "tiled")).split(",")
    size = chosen.size or (2048 if gpu else 256)
    by = chosen.by or (0.02 if gpu else 0.10)

    with tempfile.TemporaryDirectory() as folder:
        known, cache = catalogue.Catalogue(catalogue.builtin()), Cache()
        session = Session(backends.open_backend(info, cache), cache, Options(blocks=False))
        with closing(session):
            findings.conditions.append(session.backend.conditions())
            pairs = [Pair(session, known.get(name), size, Path(folder)) for name in kernels]
            tolerance = by * (0.1 if gpu else 0.2)
            twins = [pair.calibrate(by, 200 if gpu else 400, tolerance) for pair in pairs]
            findings.table("The twins", [row for _, row in twins])
            findings.conditions.append(session.backend.conditions())
        setting = ["--set", f"TILE={TILE}"] if "TILE" in pairs[0].kernel.sweep else []
        where = ["--sizes", str(size), *setting, *common.on(info)]
        with busy(is_on=chosen.load):
            count = 60 if chosen.comparisons is None else chosen.comparisons
            verdicts = by_compare(pairs[0], count, *where) if count else {}
        rest = ["--sizes", str(size), "--set", f"TILE={TILE}", "--no-blocks", *common.on(info)]
        rest += ["--repeat", str(chosen.repeat)]
        files = [str(pair.file) for pair in pairs]
        recordings = (11 if gpu else 41) if chosen.recordings is None else chosen.recordings
        if recordings:
            verdicts |= by_diff([*kernels, *rest], [*files, *rest], recordings)
    report(findings, verdicts)
    findings.close()


if __name__ == "__main__":
    main()
