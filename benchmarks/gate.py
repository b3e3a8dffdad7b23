"""How often `diff` is right: record files of unchanged kernels, and of kernels slowed a little.

Each recording is `matbench run --repeat` of the kernels and of their slowed twins (as in
verdicts.py). It is compared with the recording before: kernels with themselves and twins with
themselves, which must not be FASTER or SLOWER, and the twins of either recording with the kernels
of the other, which must be SLOWER. On a CPU, another program keeps one processor busy during every
second pair of recordings, so that in half of the comparisons only one side had it; slowed kernels
are compared if neither had.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import common
import msgspec
import verdicts

from matbench import backends
from matbench.analysis import comparison
from matbench.cache import Cache
from matbench.kernelfile import catalogue
from matbench.measure.options import Options
from matbench.measure.session import Session
from matbench.model import Problem
from matbench.records.comparison import Comparison
from matbench.records.outcome import Outcome

GPU_KERNELS = "tiled,kahan,thread-tile-2d,vectorized,warp-tiled"
_BUSY = "while True: pass"


@contextmanager
def other_load(wanted: bool) -> Iterator[None]:
    """Another program that keeps one processor busy."""
    program = subprocess.Popen([sys.executable, "-c", _BUSY]) if wanted else None
    time.sleep(1)
    try:
        yield
    finally:
        if program is not None:
            program.kill()
            program.wait()


def twins(
    session: Session, kernels: Sequence[str], size: int, by: float, pairs: int, folder: Path
) -> tuple[list[Path], list[dict[str, object]]]:
    """The file of each kernel's slowed twin, and how slow it is."""
    known = catalogue.Catalogue(catalogue.builtin())
    files, rows = [], []
    for name in kernels:
        arena = verdicts.Arena(session, known.get(name), 16, Problem(size, size, size))
        gpu = session.backend.info.kind == "gpu"
        spin, _ = verdicts.calibrate(arena, by, pairs, by * (0.1 if gpu else 0.2))
        true = arena.ratio(arena.twin(spin), pairs, seed=99)
        files.append(folder / f"{name}-slowed.cu")
        files[-1].write_text(verdicts.slowed(arena.kernel.source, name, spin), encoding="utf-8")
        rows.append({"kernel": name, "spin": spin, "ratio in turns": true.ratio})
    return files, rows


def named_as(outcomes: Sequence[Outcome], *, slowed: bool) -> list[Outcome]:
    """The outcomes of the kernels, or those of their twins under the kernels' names."""
    found = []
    for outcome in outcomes:
        name = outcome.case.kernel
        if name.endswith("-slowed") == slowed:
            case = msgspec.structs.replace(outcome.case, kernel=name.removesuffix("-slowed"))
            found.append(msgspec.structs.replace(outcome, case=case))
    return found


def compared(old: common.Run, new: common.Run, slowed: tuple[bool, bool]) -> list[Comparison]:
    """What `diff` says of two recordings."""
    sides = [
        (run.environments, named_as(run.outcomes, slowed=twin))
        for run, twin in zip((old, new), slowed, strict=True)
    ]
    records = comparison.compare_records(sides[0], sides[1], ("old", "new"), 0.01).records
    return [record.comparison for record in records if record.comparison is not None]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--kernels", help=f"default: {GPU_KERNELS} on a GPU, tiled on a CPU")
    parser.add_argument("--size", type=int, help="default: 2048 on a GPU, 256 on a CPU")
    parser.add_argument("--pairs", type=int, help="pairs of recordings (10 on a GPU, 40 on a CPU)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--by", type=float, help="slowdown (0.02 on a GPU, 0.10 on a CPU)")
    chosen = parser.parse_args()
    info = common.device(chosen)
    findings = common.Findings("gate", chosen, info)
    gpu = info.kind == "gpu"
    kernels = (chosen.kernels or (GPU_KERNELS if gpu else "tiled")).split(",")
    size, pairs = chosen.size or (2048 if gpu else 256), chosen.pairs or (10 if gpu else 40)
    by = chosen.by or (0.02 if gpu else 0.10)

    with tempfile.TemporaryDirectory() as folder:
        cache = Cache()
        session = Session(backends.open_backend(info, cache), cache, Options(blocks=False))
        try:
            findings.conditions.append(session.backend.conditions())
            files, rows = twins(session, kernels, size, by, 200 if gpu else 400, Path(folder))
            findings.conditions.append(session.backend.conditions())
        finally:
            session.close()
        findings.table("The twins", rows)
        words = [*kernels, *map(str, files), "--sizes", str(size), "--set", "TILE=16"]
        words += ["--no-blocks", "--repeat", str(chosen.repeat), *common.on(info)]
        recordings = []
        loaded = [not gpu and number % 4 >= 2 for number in range(pairs + 1)]
        for number, busy in enumerate(loaded):
            with other_load(busy):
                recordings.append(common.run(*words))
            print(
                f"recording {number + 1} of {pairs + 1}: {recordings[-1].wall_s:.1f} s", flush=True
            )

    alike: dict[bool, list[Comparison]] = {False: [], True: []}
    apart: list[Comparison] = []
    for number, (old, new) in enumerate(itertools.pairwise(recordings)):
        other = loaded[number] != loaded[number + 1]
        alike[other] += compared(old, new, (False, False)) + compared(old, new, (True, True))
        if not (loaded[number] or loaded[number + 1]):
            apart += compared(old, new, (False, True)) + compared(new, old, (False, True))
    table = [verdicts.row("A/A", alike[False]), verdicts.row(f"slowed by {by:.0%}", apart)]
    if not gpu:
        table.insert(1, verdicts.row("A/A, with other load", alike[True]))
    findings.table(f"Verdicts of `diff`, {chosen.repeat} processes on each side", table)
    every = alike[False] + alike[True]
    wrong = sum(found.verdict in ("FASTER", "SLOWER") for found in every)
    slower = sum(found.verdict == "SLOWER" for found in apart)
    bar = 0.01 if gpu else 1 / 40
    findings.figures += [
        common.Figure(f"A/A: FASTER or SLOWER, of {len(every)}", wrong / len(every), "share", bar),
        common.Figure(
            f"slowed: SLOWER, of {len(apart)}",
            slower / len(apart), "share", 0.95 if gpu else 0.75, at_least=True,
        ),
    ]  # fmt: skip
    findings.keep("A/A", every)
    findings.keep("slowed", apart)
    findings.close()


if __name__ == "__main__":
    main()
