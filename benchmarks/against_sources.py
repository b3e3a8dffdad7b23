"""The tutorial's kernels at n = 1000 against the medians in the sources' table."""

from __future__ import annotations

import argparse
import statistics
from typing import NamedTuple

import common

SIZE = "1000"


class Source(NamedTuple):
    """One row of the table: a kernel, its tile, its median in ms, and our target (bar)."""

    kernel: str
    tile: int | None
    median_ms: float
    bar: float = 0.05


#: Measured on an NVIDIA H200, CUDA 13.0, driver 580, 2026-11-21: events, L2 flushed, median of 20.
MEASURED_ON = "NVIDIA H200, CUDA 13.0, driver 580, 2026-11-21"
SOURCES = (
    Source("thread-1d", None, 0.382, bar=0.10),  # varies by 6% from run to run
    Source("block-1d", None, 0.499),
    Source("shared-row", None, 0.352),
    Source("naive-2d", 16, 0.347),
    Source("tiled", 32, 0.256),
    Source("kahan", 32, 0.319),
)


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="number of fresh processes, of which the median counts",
    )
    return parser


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("against_sources", chosen, info)
    kernels = [source.kernel for source in SOURCES]
    medians: dict[Source, list[float]] = {source: [] for source in SOURCES}
    for _ in range(chosen.rounds):
        found = common.run(*kernels, "--sizes", SIZE, "--no-blocks", *common.on(info))
        findings.saw(found.outcomes)
        for outcome in found.outcomes:
            for source in SOURCES:
                same = outcome.case.kernel == source.kernel
                if same and source.tile == outcome.case.params.get("TILE") and outcome.median_ns:
                    medians[source].append(outcome.median_ns / 1e6)
    comparable = "H200" in info.name
    rows = []
    for source, found_ms in medians.items():
        ours = statistics.median(found_ms) if found_ms else None
        apart = abs(ours / source.median_ms - 1) if ours else None
        name = source.kernel if source.tile is None else f"{source.kernel} T={source.tile}"
        figure = common.Figure(
            f"{name}: apart from the sources by", apart, "share", source.bar if comparable else None
        )
        if comparable:
            findings.figures.append(figure)
        rows.append(
            {
                "kernel": name,
                "ours ms": ours,
                "lowest": min(found_ms, default=None),
                "highest": max(found_ms, default=None),
                "sources ms": source.median_ms,
                "ours / theirs": ours / source.median_ms if ours else None,
                "apart": common.judged(figure)["value"],
                "bar": common.judged(figure)["bar"],
                "met": common.judged(figure)["met"],
            }
        )
    findings.table(f"n = {SIZE}; the sources: {MEASURED_ON}", rows)
    if not comparable:
        print("Not an H200: the targets do not apply.\n")
    findings.close()


if __name__ == "__main__":
    main()
