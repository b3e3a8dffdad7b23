"""Kills `matbench run` with `kill -9` at random moments of a sweep, then uses `--resume`.

After each kill the file must be readable. After each resumed run it must contain every case once,
and the cases finished before the kill must be unchanged.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import common

from matbench.errors import UsageError
from matbench.records import reading, resuming
from matbench.records.outcome import Outcome

SIZES = "17,33,64,65x31x129"
#: How long a worker may survive its main process before it is killed, in seconds.
PATIENCE_S = 20.0


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--max-time", default="0.1", help="sampling time per case, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    return parser


class Sweep:
    """One sweep into one file, in its own process session so that its workers can be found."""

    def __init__(self, words: list[str], file: Path) -> None:
        self.words = words
        self.file = file

    def start(self, option: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "matbench", "run", *self.words, option, str(self.file)],
            env=common.surroundings(self.file.parent),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def read(self) -> tuple[list[Outcome], list[str]]:
        """The outcomes in the file, and notes on its end."""
        notes: list[str] = []
        if not self.file.exists():
            return [], ["no file yet"]
        return reading.read(self.file, notes)[1], notes

    def begin(self) -> subprocess.Popen[bytes]:
        """Start it and wait for its first outcome."""
        process = self.start("--output")
        while process.poll() is None and not (self.file.exists() and self.file.stat().st_size):
            time.sleep(0.002)
        return process

    def length_s(self) -> float:
        """From the first outcome to the end, in seconds."""
        process = self.begin()
        start = time.perf_counter()
        process.communicate()
        return time.perf_counter() - start


def survivors_s(group: int) -> float | None:
    """How long processes of a group survive; None if they had to be killed."""
    start = time.perf_counter()
    while time.perf_counter() - start < PATIENCE_S:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return time.perf_counter() - start
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    return None


def kill_and_resume(words: list[str], moment_s: float, cases: int) -> dict[str, Any]:
    """Kill a sweep and resume it: what the file contained before and after."""
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(words, Path(folder) / "records.jsonl")
        process = sweep.begin()
        time.sleep(moment_s)
        process.kill()
        process.communicate()
        orphans_s = survivors_s(process.pid)
        row: dict[str, Any] = {"after s": round(moment_s, 3), "workers gone s": orphans_s}
        try:
            before, notes = sweep.read()
        except UsageError as error:
            return {**row, "file": f"NOT VALID: {error}", "right": "NO"}
        row |= {"file": "; ".join(note.split(": ")[-1] for note in notes) or "whole"}
        row |= {"finished": len(before)}

        resumed = sweep.start("--resume")
        _, said = resumed.communicate()
        try:
            after, _ = sweep.read()
        except UsageError as error:
            return {**row, "file": f"NOT VALID when resumed: {error}", "right": "NO"}
        keys = [resuming.outcome_key(outcome) for outcome in after]
        lost = sum(outcome not in after for outcome in before)
        row |= {
            "resumed": len(after) - len(before),
            "lost": lost,
            "twice": len(keys) - len(set(keys)),
            "exit": resumed.returncode,
        }
        right = (
            not lost
            and after[: len(before)] == before
            and len(keys) == len(set(keys)) == cases
            and resumed.returncode == 0
        )
        if resumed.returncode:
            print(said.decode(errors="replace"))
        return {**row, "right": "yes" if right else "NO"}


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("interrupted", chosen, info, timed=False)
    cases = len(common.cases(common.KERNELS, chosen.sizes, info))
    words = [*common.KERNELS, "--sizes", chosen.sizes, "--max-time", chosen.max_time]
    words += [*common.on(info), "--format", "plain"]

    with tempfile.TemporaryDirectory() as folder:
        Sweep(words, Path(folder) / "warm.jsonl").length_s()  # builds and references are cached
        length_s = Sweep(words, Path(folder) / "timed.jsonl").length_s()
    print(f"{cases} cases; from the first outcome to the end {length_s:.2f} s\n")

    moments = random.Random(chosen.seed)
    rows = [
        {"kill": number + 1, **kill_and_resume(words, moments.uniform(0, 0.9 * length_s), cases)}
        for number in range(chosen.kills)
    ]
    findings.table("Kills", rows)
    lived = [row["workers gone s"] for row in rows]
    findings.figures += [
        common.Figure(
            f"of {chosen.kills} kills: nothing lost, nothing twice, the file valid",
            sum(row["right"] == "yes" for row in rows), "kills", chosen.kills, at_least=True,
        ),
        common.Figure(
            f"kills whose workers lived on for more than {PATIENCE_S:g} s",
            sum(seconds is None for seconds in lived), "kills", 0,
        ),
    ]  # fmt: skip
    findings.close()


if __name__ == "__main__":
    main()
