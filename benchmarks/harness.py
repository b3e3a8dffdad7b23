"""The wall time of the 18-case sweep: `matbench run` with an empty cache and with a warm one."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import common

from matbench import backends


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", help="default: those of the 18-case sweep, smaller on a CPU")
    parser.add_argument(
        "--repetitions", type=int, default=3, help="repetitions, of which the median counts"
    )
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("harness", chosen, info)
    sizes = common.sizes_of(chosen, info)
    arguments = [*common.KERNELS, "--sizes", sizes, *common.on(info)]

    walls_s: dict[str, list[float]] = {"empty": [], "warm": []}
    for _ in range(chosen.repetitions):
        with tempfile.TemporaryDirectory() as cache:
            for which in walls_s:
                run = common.run(*arguments, cache=Path(cache))
                findings.saw(run.outcomes)
                walls_s[which].append(run.wall_s)
                print(f"{which} cache: {run.wall_s:.2f} s", flush=True)

    findings.tables["wall times in s"] = [walls_s]
    bars = {"empty": findings.by_kind(8.0, 120.0), "warm": findings.by_kind(5.0, 100.0)}
    for which, bar in bars.items():
        what = f"{len(run.outcomes)} cases (n = {sizes}): {which} cache"
        findings.figures.append(common.Figure(what, statistics.median(walls_s[which]), "s", bar))
    findings.close()


if __name__ == "__main__":
    main()
