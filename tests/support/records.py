"""Records for tests: a measured case unless a test says otherwise.

`outcome("tiled", ms=2.5, params={"TILE": 8}, notes=("busy",))` takes fields of the case and of the
outcome alike; `cold=timing(2.5, settled=False)` says more about the samples.
"""

from __future__ import annotations

import statistics
from typing import Any

import msgspec

from matbench.model import Problem
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import CaseRecord, Outcome, Timing
from support.devices import device as device


def environment(**changes: Any) -> Environment:
    """A run on `device()`."""
    fields: dict[str, Any] = {
        "schema": 2, "argv": ("matbench", "run"), "time": "2026-11-21T12:00:00+00:00",
        "host": "host", "os": "Linux", "python": "CPython 3.12", "packages": {"numpy": "2.0"},
        "devices": (device(),), "project_revision": None,
    }  # fmt: skip
    return Environment(**(fields | changes))


def timing(ms: float = 0.0011, **changes: Any) -> Timing:
    """Three samples around a median of `ms` milliseconds; the median follows other samples."""
    median = ms * 1e6
    samples = changes.pop("samples_ns", (0.9 * median, median, 1.1 * median))
    fields: dict[str, Any] = {
        "samples_ns": tuple(samples),
        "median_ns": statistics.median(samples) if samples else None,
        "seed": "9f3c2b",
    }
    return Timing(**(fields | changes))


def steady(factor: float = 1.0, **changes: Any) -> Timing:
    """Twenty samples that hardly vary; they take `factor` times as long."""
    samples = (factor * (100_000.0 + 10 * (i % 5)) for i in range(20))
    return timing(samples_ns=tuple(samples), **changes)


def outcome(kernel: str = "tiled", ms: float | None = None, **changes: Any) -> Outcome:
    """The outcome of a case; fields of a `CaseRecord` may be named directly.

    A measured one has cold samples around `ms`, 1.1 µs by default, unless `cold` or `hot` is given.
    """
    case: dict[str, Any] = {
        "kernel": kernel,
        "sha256": "0" * 64,
        "group": "tutorial",
        "params": {"TILE": 16},
        "problem": Problem(17, 33, 65),
        "backend": "opencl",
        "device": "A Processor",
        "device_kind": "cpu",
        "device_id": "opencl:0",
        "storage": "float32",
    }
    named = {name: changes.pop(name) for name in CaseRecord.__struct_fields__ if name in changes}
    fields: dict[str, Any] = {"case": CaseRecord(**(case | named)), "status": "measured"} | changes
    if fields["status"] == "measured" and not {"cold", "hot"} & fields.keys():
        fields["cold"] = timing() if ms is None else timing(ms)
    return Outcome(**fields)


def in_turns(comparison: Comparison | None, *sides: Outcome, **names: Any) -> ComparisonRecord:
    """A comparison of two cases, each `outcome()` by default, by the names of their kernels."""
    baseline, candidate = sides or (outcome(), outcome())
    named = {"baseline_name": baseline.case.kernel, "candidate_name": candidate.case.kernel} | names
    return ComparisonRecord(baseline=baseline, candidate=candidate, comparison=comparison, **named)


def repeated(found: Outcome, times: int = 5) -> list[Outcome]:
    """The same outcome in several processes."""
    return [msgspec.structs.replace(found, repetition=one + 1) for one in range(times)]
