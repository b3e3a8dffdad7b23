"""Host memory of a sweep, and of the main process after 10,000 cases.

Memory is the proportional set size (PSS): pages that processes share are divided among them. The
peak of a process is that of any moment; that of all together is of one moment. On a GPU the sweep
is that of 18 cases at n ≤ 4096.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import common
import psutil

from matbench import cli
from matbench.measure import worker
from matbench.measure.outcomes import Found
from matbench.model import Case
from matbench.records.outcome import CaseRecord, Outcome, Timing

_MB = 1e6
_EVERY_S = 0.02
#: The samples of a usual case.
_SAMPLES = tuple(1000.0 + i % 17 for i in range(156))


def peaks(process: psutil.Process) -> tuple[dict[str, float], dict[str, float], float]:
    """The highest PSS of each process, all processes at the moment of their highest sum, and the
    seconds until it; until the process ends."""
    highest: dict[str, float] = {}
    together: dict[str, float] = {}
    started, when_s = time.monotonic(), 0.0
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        now: dict[str, float] = {}
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error, OSError):
                    now[_name(each, process)] = each.memory_full_info().pss / _MB
        for name, value in now.items():
            highest[name] = max(value, highest.get(name, 0.0))
        if sum(now.values()) > sum(together.values()):
            together, when_s = now, time.monotonic() - started
        time.sleep(_EVERY_S)
    return highest, together, when_s


def _name(process: psutil.Process, main: psutil.Process) -> str:
    if process.pid == main.pid:
        return "main process"
    words = " ".join(process.cmdline())
    kind = "resource tracker" if "resource_tracker" in words else process.name()
    return f"{kind} {process.pid}"


def pretended() -> None:
    """`matbench run` without measuring, in this process; prints its peak memory in MB."""

    def measure(self: worker.Worker, case: Case) -> Found:
        taken = Timing(samples_ns=_SAMPLES, median_ns=1008.0, seed="1")
        record = CaseRecord.of(case, self.device)
        kinds = self.options.on(self.device.kind)
        cold, hot = (taken if kind else None for kind in (kinds.cold, kinds.hot))
        return Found(Outcome(case=record, status="measured", cold=cold, hot=hot))

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(worker.Worker, "measure", measure))
        for name in ("start", "build_ahead"):
            stack.enter_context(mock.patch.object(worker.Crew, name, lambda *_: None))
        sizes = ",".join(f"{m}x{n}x33" for m in range(1, 101) for n in range(1, 101))
        words = ["run", "tiled", "--set", "TILE=8", "--sizes", sizes, *sys.argv[2:]]
        with contextlib.suppress(SystemExit):
            cli.main(words, prog_name="matbench")


def main() -> None:
    if sys.argv[1:2] == ["--pretend"]:
        pretended()
        return
    parser = common.parser(__doc__)
    parser.add_argument("--sizes")
    chosen = parser.parse_args()
    info = common.device(chosen)
    findings = common.Findings("memory", chosen, info, timed=False)
    words = [*common.KERNELS, "--sizes", common.sizes_of(chosen, info), *common.on(info)]
    common.run(*words)  # fills the cache
    with tempfile.TemporaryDirectory() as folder:
        for what, command, bar in (
            ("the sweep", ["-m", "matbench", "run", *words], findings.bar(700.0, 700.0)),
            ("10,000 cases", [__file__, "--pretend", *common.on(info)], 500.0),
        ):
            done = subprocess.Popen(
                [sys.executable, *command, "--format", "plain"],
                env=common.surroundings(Path(folder)),
                stdout=subprocess.DEVNULL,
            )
            highest, together, when_s = peaks(psutil.Process(done.pid))
            done.wait()
            rows = [
                {"process": name, "peak, MB": value, "then, MB": together.get(name, 0.0)}
                for name, value in sorted(highest.items(), key=lambda item: -item[1])
            ]
            findings.table(f"{what}, highest in all after {when_s:.1f} s", rows)
            findings.figures.append(
                common.Figure(f"{what}: host memory", sum(together.values()), "MB", bar)
            )
    findings.close()


if __name__ == "__main__":
    main()
