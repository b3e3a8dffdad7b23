"""Repeats the 18-case sweep in fresh processes: how much does each case's median vary?"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import common


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=10, metavar="N")
    parser.add_argument(
        "--sizes",
        help=f"default: {common.GPU_SIZES} on a GPU, {common.CPU_SIZES} on a CPU",
    )
    return parser


def spread(medians: Sequence[float]) -> tuple[float, float]:
    """The relative spread of medians: of all (max / min - 1), and of the middle half."""
    low, middle, high = statistics.quantiles(medians, n=4, method="inclusive")
    return max(medians) / min(medians) - 1, (high - low) / middle


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("repeatability", chosen, info)
    sizes = common.sizes_of(chosen, info)
    medians: dict[str, list[float]] = {}
    short: set[str] = set()
    walls = []
    for number in range(chosen.repetitions):
        found = common.run(*common.KERNELS, "--sizes", sizes, *common.on(info))
        findings.saw(found.outcomes)
        walls.append(found.wall_s)
        print(f"repetition {number + 1}: {found.wall_s:.2f} s", flush=True)
        for outcome in found.outcomes:
            if outcome.median_ns is not None:
                medians.setdefault(common.label(outcome), []).append(outcome.median_ns)
                short |= {common.label(outcome)} if common.is_short(outcome) else set()
    print()
    bars = {False: findings.bar(0.005, 0.10), True: findings.bar(0.02, 0.25)}
    rows: list[dict[str, object]] = []
    spreads: dict[bool, list[float]] = {False: [], True: []}
    for label, found_ns in medians.items():
        if len(found_ns) < 2:
            continue
        whole, middle = spread(found_ns)
        figure = common.Figure(label, whole, "share", bars[label in short])
        spreads[label in short].append(whole)
        rows.append(
            {
                "case": label,
                "times": len(found_ns),
                "median ms": statistics.median(found_ns) / 1e6,
                "middle half": common.shown(middle, "share"),
                "max / min - 1": common.shown(whole, "share"),
                "bar": common.judged(figure)["bar"],
                "met": common.judged(figure)["met"],
            }
        )
    findings.table("Medians of each case over the repetitions", rows)
    findings.worst("largest spread (max / min - 1) of a case's medians", spreads, bars)
    findings.figures.append(common.Figure("a sweep, median", statistics.median(walls), "s"))
    findings.close()


if __name__ == "__main__":
    main()
