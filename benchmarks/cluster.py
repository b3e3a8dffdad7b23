"""A sweep over a Dask cluster on this machine: what it costs per case, and what losses cost.

The cost is measured with cases that only sleep. Then Dask workers are killed with `kill -9` at
random moments of a real sweep, and the command once; `--resume` must finish it with nothing lost
and nothing twice.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import common
import psutil

from matbench.measure.cluster import joined
from matbench.measure.handing_out import Group
from matbench.measure.options import Deadlines, Options
from matbench.measure.remote_crew import RemoteCrew
from matbench.model import Case, DeviceInfo
from matbench.records import reading, resuming

KERNELS = ("naive-2d", "tiled")
TILES = "8,16"
PER_SIZE = 4


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--cases", type=int, default=200, help="a multiple of 4")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--sleep-ms", type=float, default=500.0)
    parser.add_argument("--rounds", type=int, default=5, help="how often the cost is measured")
    parser.add_argument("--seed", type=int, default=0)
    return parser


class Started:
    """A scheduler and workers that only this machine can reach, in processes of their own."""

    SCRIPT = """
import logging, sys
from distributed import LocalCluster
if __name__ == "__main__":
    dashboard = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, host="127.0.0.1", memory_limit=0,
        resources={sys.argv[2]: 1}, silence_logs=logging.CRITICAL, scheduler_kwargs=dashboard,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""

    def __init__(self, workers: int, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT, str(workers), kind.upper()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # its input ends

    def busy(self) -> list[psutil.Process]:
        """The Dask workers that have a process of matbench."""
        found = []
        for worker in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                if worker.children():
                    found.append(worker)
        return found


# -- cost ----------------------------------------------------------------------------------------


def sleep_only(seconds: float) -> None:
    """In a Dask worker: from now on every case sleeps."""
    import time

    from matbench.measure.outcomes import Found, not_measured
    from matbench.measure.worker import Worker

    def measure(self: Worker, case: Case) -> Found:
        time.sleep(seconds)
        return Found(not_measured(case, self.device, "skipped", "only slept"))

    Worker.measure = measure  # type: ignore[method-assign]


def cost_ms(address: str, info: DeviceInfo, cases: list[Case], sleep_s: float) -> list[float]:
    """What a case took longer than its sleep: the mean of each worker, in ms."""
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    counts: Counter[str] = Counter()

    def begin(_: DeviceInfo, __: Case, place: str) -> None:
        begun.setdefault(place, time.perf_counter())

    with joined(address, info.backend) as cluster:
        cluster.client.run(sleep_only, sleep_s)
        devices = tuple(cluster.choose_all())
        groups = [
            Group(devices, cases[first : first + PER_SIZE])
            for first in range(0, len(cases), PER_SIZE)
        ]
        with RemoteCrew(cluster, Options(), Deadlines(), None) as crew:
            for place, _ in crew.measured(groups, begin):
                ended[place] = time.perf_counter()
                counts[place] += 1
    return [
        1e3 * ((ended[place] - begun[place]) / counts[place] - sleep_s) for place in sorted(counts)
    ]


def costs(chosen: argparse.Namespace, info: DeviceInfo) -> list[dict[str, Any]]:
    """A row for each number of workers."""
    rows = []
    made = common.cases(KERNELS, ",".join(map(str, range(16, 16 + chosen.cases))), info)
    for workers in sorted({1, 2, chosen.workers}):
        with Started(workers, info.kind) as cluster:
            cases = made[: PER_SIZE * 3 * workers]
            found = [
                cost_ms(cluster.address, info, cases, chosen.sleep_ms / 1e3)
                for _ in range(chosen.rounds + 1)
            ][1:]  # the first imports
        means = [statistics.mean(each) for each in found]
        rows.append(
            {
                "workers": workers,
                "cases": len(cases),
                "ms per case": statistics.median(means),
                "least": min(means),
                "most": max(means),
            }
        )
    return rows


# -- losses --------------------------------------------------------------------------------------


class Sweep:
    """One sweep over a cluster into one file."""

    def __init__(self, file: Path, words: list[str]) -> None:
        self.file = file
        self.words = words

    def start(self, option: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "matbench", *self.words, option, str(self.file)],
            env=common.surroundings(self.file.parent),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def done(self) -> int:
        """The number of recorded cases."""
        return self.file.read_bytes().count(b'{"type":"outcome"') if self.file.exists() else 0


def losses(
    chosen: argparse.Namespace, info: DeviceInfo
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Each kill, and what was in the file at the end."""
    moments = random.Random(chosen.seed)
    sizes = ",".join(str(16 + number) for number in range(chosen.cases // PER_SIZE))
    at = sorted(moments.sample(range(2, chosen.cases - chosen.workers), chosen.kills + 1))
    command = moments.randrange(1, len(at) - 1)  # the kill that hits the command
    rows: list[dict[str, Any]] = []
    noted: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Started(chosen.workers, info.kind) as cluster,
    ):
        words = ["run", *KERNELS, "--set", f"TILE={TILES}", "--sizes", sizes, "--no-blocks"]
        words += ["--max-time", "0.01", "--cluster", cluster.address]
        sweep = Sweep(Path(folder) / "records.jsonl", words)
        start = time.perf_counter()
        process = sweep.start("--output")
        for number, when in enumerate(at):
            while sweep.done() < when or not cluster.busy():
                if process.poll() is not None:
                    break
                time.sleep(0.005)
            row = {"kill": number + 1, "after cases": sweep.done()}
            if number == command:
                before = sweep.file.read_bytes()
                process.kill()
                noted.append(process.communicate()[1])
                kept = sweep.file.read_bytes().startswith(before)
                rows.append({**row, "killed": "the command", "kept": "yes" if kept else "NO"})
                process = sweep.start("--resume")
                continue
            worker = moments.choice(cluster.busy())
            worker.kill()
            rows.append({**row, "killed": f"worker {worker.pid}", "kept": ""})
        noted.append(process.communicate()[1])
        wall_s = time.perf_counter() - start
        outcomes = reading.read(sweep.file)[1]
    keys = {resuming.outcome_key(outcome)._replace(device_id="") for outcome in outcomes}
    for reason in {outcome.reason for outcome in outcomes if outcome.reason}:
        print(f"not measured: {reason}")
    return rows, {
        "recorded": len(outcomes),
        "lost": chosen.cases - len(keys),
        "twice": len(outcomes) - len(keys),
        "not measured": sum(outcome.status != "measured" for outcome in outcomes),
        "running cases lost": sum(text.count("is tried again") for text in noted),
        "exit": process.returncode,
        "wall s": round(wall_s, 1),
    }


def main() -> None:
    chosen = options().parse_args()
    info = common.device(chosen)
    findings = common.Findings("cluster", chosen, info)
    rows = costs(chosen, info) if chosen.rounds else []
    findings.table(f"Cost of a case that sleeps {chosen.sleep_ms:g} ms, beside its sleep", rows)
    kills, result = losses(chosen, info)
    findings.table(f"Kills in a sweep of {chosen.cases} cases on {chosen.workers} workers", kills)
    findings.table("The record file at the end", [result])
    findings.figures += [
        *(
            common.Figure(f"cost of a case, {row['workers']} workers", row["ms per case"], "ms", 30)
            for row in rows
        ),
        common.Figure("cases lost", result["lost"], "cases", 0),
        common.Figure("cases recorded twice", result["twice"], "cases", 0),
        common.Figure("cases that were not measured", result["not measured"], "cases", 0),
    ]
    findings.close()


if __name__ == "__main__":
    main()
