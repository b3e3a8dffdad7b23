"""Writes down what the processes of a command spend their time on, for `benchmarks/harness.py`.

Python imports this file at its start if the file's folder is in `PYTHONPATH`: matbench itself
stays as it is. The times are of `time.monotonic_ns`, a clock that all processes share.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What each function is part of. A part within another counts as itself, except in `WHOLE`.
PARTS = {
    "imports": ["importlib.import_module"],
    "kernel files": [
        "matbench.kernelfile.catalogue.builtin",
        "matbench.kernelfile.catalogue.Catalogue.__init__",
        "matbench.kernelfile.sweep.cases",
    ],
    "device": ["matbench.backends.choose", "matbench.backends.open_backend"],
    "builds": ["matbench.measure.session.Session._build", "matbench.measure.judge.Judge.program"],
    "inputs": ["matbench.measure.prepared.Prepared.__init__"],
    "reference": ["matbench.measure.oracle.matmul.product"],
    "checks": [
        "matbench.measure.checks.Checks.before_timing",
        "matbench.measure.checks.Checks.after_timing",
    ],
    "verification of samples": [
        "matbench.measure.launches.Launches._make_ready",
        "matbench.measure.launches.Launches._compare",
        "matbench.measure.launches.Launches.verify",
    ],
    "timed launches": [
        "matbench.measure.launches.Launches._once_ns",
        "matbench.measure.launches.Launches._mean_ns",
    ],
    "statistics": ["matbench.measure.launches.sample_until_known"],
    "block times": ["matbench.measure.launches.Launches._block_times"],
    "limits of the device": ["matbench.measure.session.Session.limits"],
    "collecting garbage": ["gc.collect"],
    "records": [
        "matbench.records.provenance.environment",
        "matbench.records.writing.RecordWriter.write",
        "matbench.records.writing.RecordWriter.__enter__",
    ],
    "display": [
        "matbench.cli.progress.Display.begin",
        "matbench.cli.progress.Display.done",
        "matbench.cli.run.Sweep.show",
    ],
    "waiting": ["matbench.measure.process._wait"],
    "ending the worker": ["matbench.measure.worker.Crew.__exit__"],
}
WHOLE = ("imports", "block times", "limits of the device")


class Record:
    """What the main thread of this process does, in a file of one line per stretch of time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{os.getpid()}.txt"
        self.parts = ["other"]
        self.since_ns = time.monotonic_ns()
        self.lines: list[str] = []

    @property
    def is_free(self) -> bool:
        """Whether a part can begin now: in the main thread, and not in a whole one."""
        in_main = threading.current_thread() is threading.main_thread()
        return in_main and self.parts[-1] not in WHOLE

    @contextmanager
    def doing(self, part: str) -> Iterator[None]:
        self._turn()
        self.parts.append(part)
        try:
            yield
        finally:
            self._turn()
            self.parts.pop()
            if len(self.parts) == 1 or part == "waiting":  # a worker is killed at its end
                self.write()

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        self.lines.append(f"{self.since_ns} {now_ns} {self.parts[-1]}\n")
        self.since_ns = now_ns

    def write(self) -> None:
        self._turn()
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(self.lines)
        self.lines = []


def timed(record: Record, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose time is recorded when the main thread calls it."""

    @functools.wraps(function)
    def called(*args: Any, **more: Any) -> Any:
        if not record.is_free:
            return function(*args, **more)
        with record.doing(part):
            return function(*args, **more)

    return called


def replace_loaded(record: Record, left: dict[str, str]) -> None:
    """Replace the functions, of those `left`, whose modules have been loaded."""
    for name, part in list(left.items()):
        *path, last = name.split(".")
        modules = [".".join(path[:count]) for count in range(len(path), 0, -1)]
        loaded = next((module for module in modules if module in sys.modules), "")
        owners = path[loaded.count(".") + 1 :]
        place: Any = sys.modules.get(loaded)
        for owner in owners:
            place = getattr(place, owner, None)
        if place is not None and hasattr(place, last):
            del left[name]
            setattr(place, last, timed(record, part, getattr(place, last)))


def is_loaded(name: str, names: Sequence[str]) -> bool:
    """Whether an import loads nothing new."""
    found = sys.modules.get(name)
    return found is not None and all(hasattr(found, each) for each in names)


def begin(folder: Path) -> None:
    """Record what this process does from now on."""
    record = Record(folder)
    left = {name: part for part, names in PARTS.items() for name in names}
    plain = builtins.__import__
    load = timed(record, "imports", plain)

    def loading(name: str, *args: Any, **more: Any) -> Any:
        wanted = args[2] if len(args) > 2 else more.get("fromlist")
        if is_loaded(name, wanted or ()):
            return plain(name, *args, **more)
        found = load(name, *args, **more)
        if record.is_free:
            replace_loaded(record, left)
        return found

    builtins.__import__ = loading
    atexit.register(record.write)


if "MATBENCH_WALL_TIME" in os.environ:
    begin(Path(os.environ["MATBENCH_WALL_TIME"]))
