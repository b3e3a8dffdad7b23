#!/usr/bin/env python3
"""Measure whether `matbench history` blames the right commits, and how much a bisection measures.

A new repository has 40 versions of a kernel: its file, its table and a header change. Three commits
slow it down, one in each file; the others change comments, names or code that is not used.
`history` must blame these three in every run and no other, and `history --bisect` in at most 8
comparisons for each. Both run in turns, each with an empty record file.

    python benchmarks/history.py --output results/cpu-history.json
    python benchmarks/history.py --slowdown 5% --runs 2 --output results/h200-history.json
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from common import Figure, Findings, on, parser

from matbench import backends
from matbench.records.comparison import ComparisonRecord
from matbench.records.reading import Contents

VERSIONS = 40
#: The versions that are slower than the one before, and the file that makes them so.
SLOWER = {9: "mine.cu", 22: "work.h", 33: "mine.toml"}
#: The most comparisons of a bisection for each of them.
MOST = 8
#: What cannot be told apart by the clock of a CPU that other programs use, and by a GPU's.
MARGINS = {"cpu": 0.1, "gpu": 0.02}
SIZES = {"cpu": "192", "gpu": "1024"}

TABLE = """name = "mine"
summary = "{summary}"
[sweep]
SCALE = [{scale}]
[launch]
block = [16, 16]
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
"""
#: How many terms are added for nothing, of 1000 that count.
HEADER = """#pragma once
{comment}
#define TERMS(K, own) ((int)((long long)(K) * {scale} / 1000 * (own) / 1000 * SCALE / 1000))
"""
#: Terms beyond K have the weight 0, which no compiler can know: K is at least 0.
SOURCE = """#include "work.h"
{unused}
extern "C" __global__ void mine(const float *A, const float *B, float *C, int M, int N, int K)
{{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float {total} = 0.0f; {comment}
    const float beyond = K < 0 ? 1.0f : 0.0f;
    int k = 0;
    for (int i = 0; i < TERMS(K, {scale}); ++i) {{
        const float product = A[(size_t)row * K + k] * B[(size_t)k * N + column];
        {total} += (i < K ? 1.0f : beyond) * product;
        k = k + 1 < K ? k + 1 : 0;
    }}
    C[(size_t)row * N + column] = {total};
}}
"""


def options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--slowdown", default="30%", help="of each of the three; default: 30%%")
    made.add_argument("--runs", type=int, default=5, help="default: 5")
    made.add_argument("--sizes", help="default: 192 (CPU), 1024 (GPU)")
    made.add_argument("--margin", help="default: 10%% (CPU), 2%% (GPU)")
    made.add_argument("--max-time", default="10", help="of a comparison, in seconds; default: 10")
    return made.parse_args()


def files(version: int, slowdown: float) -> dict[str, str]:
    """The files of a version. Of every four, one changes a comment, one a header's comment, one the
    summary, and one code that does nothing."""
    of = dict.fromkeys(SLOWER.values(), 1000)
    for slow, name in SLOWER.items():
        if version >= slow:
            of[name] = round(1000 * (1 + slowdown))
    comment, header, summary, unused = ((version + 3 - kind) // 4 for kind in range(4))
    names = ("sum", "total", "result")
    return {
        "mine.cu": SOURCE.format(
            comment=f"// thought about {comment} times", scale=of["mine.cu"],
            total=names[unused % 3], unused=f"#define UNUSED_{unused} {unused}",
        ),
        "work.h": HEADER.format(comment=f"// edition {header}", scale=of["work.h"]),
        "mine.toml": TABLE.format(summary=f"Attempt {summary}", scale=of["mine.toml"]),
    }  # fmt: skip


def repository(folder: Path, slowdown: float) -> dict[str, int]:
    """Commits all versions; returns the number of each commit, by its short hash."""

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main", ".")
    numbers = {}
    for version in range(VERSIONS):
        for name, text in files(version, slowdown).items():
            (folder / name).write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "-q", "-m", f"version {version}")
        numbers[git("rev-parse", "--short", "HEAD")] = version
    return numbers


class Told(NamedTuple):
    """What one call says: the versions that it blames, and what it measured for that."""

    blamed: list[int]
    comparisons: int
    wall_s: float


def told(folder: Path, numbers: dict[str, int], arguments: list[str], findings: Findings) -> Told:
    """Call `history` with an empty record file."""
    with tempfile.TemporaryDirectory() as own:
        file = Path(own) / "history.jsonl"
        words = ["history", "mine.cu", *arguments, "--resume", str(file), "--format", "csv"]
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "matbench", *words],
            cwd=folder, env={**os.environ, "MATBENCH_STATE_DIR": own}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        wall_s = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"matbench {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        rows = csv.DictReader(io.StringIO(done.stdout))
        blamed = [numbers[row["commit"]] for row in rows if row["blamed"] == "true"]
        measured = Contents(file)
        findings.saw(measured.outcomes)
        compared = [f for f, _ in measured.findings if isinstance(f, ComparisonRecord)]
        return Told(blamed, len(compared), wall_s)


def main() -> None:
    given = options()
    info = backends.choose(given.backend, given.device)
    findings = Findings("history", given, info)
    slowdown = float(given.slowdown.removesuffix("%")) / 100
    margin = given.margin or f"{MARGINS[info.kind]:.0%}"
    shared = [*on(info), "--sizes", given.sizes or SIZES[info.kind], "--max-time", given.max_time]
    kinds = {"every version": ["--threshold", margin], "bisection": ["--bisect", margin]}
    rows, wrong, missed, most = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        numbers = repository(Path(folder), slowdown)
        for run in range(given.runs):
            for kind, how in kinds.items():
                result = told(Path(folder), numbers, [*shared, *how], findings)
                wrong += len(set(result.blamed) - SLOWER.keys())
                missed += len(SLOWER.keys() - set(result.blamed))
                most = max(most, result.comparisons if kind == "bisection" else 0)
                rows.append({"run": run + 1, "what": kind, **result._asdict()})
                print(f"{rows[-1]}; so far {missed} missed, {wrong} blamed wrongly", flush=True)
    findings.table(
        f"Versions {', '.join(map(str, SLOWER))} of {VERSIONS} are slower by {given.slowdown}; "
        f"margin {margin}", rows,
    )  # fmt: skip
    findings.figures += [
        Figure("slowdowns missed", missed, "of all runs", 0),
        Figure("other commits blamed", wrong, "of all runs", 0),
        Figure("comparisons of a bisection for each slowdown", most / len(SLOWER), "", MOST),
    ]
    findings.close()


if __name__ == "__main__":
    main()
