"""Outcomes like those of a sweep, on named devices, and their tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import RenderableType

from matbench.model import Conditions, DeviceInfo, Problem, Skip
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Accuracy, BlockTimes, Claims, Outcome, Timing
from matbench.show import formats, outcomes, terminal
from matbench.show.table import Report
from support import devices, records

CPU = devices.device(driver="2026.1")
GPU = devices.gpu(driver="580.1", toolkit="CUDA 13.0")
H200 = msgspec.structs.replace(
    GPU, name="An H200", compute_capability=(9, 0), limits={"multiprocessors": 132}
)


def environment(**changes: Any) -> Any:
    return records.environment(**({"devices": (CPU, GPU)} | changes))


def timing(ms: float, **changes: Any) -> Timing:
    """Settled samples around `ms`, known to ±1%."""
    known: dict[str, Any] = {"interval_ns": (ms * 0.99e6, ms * 1.01e6), "settled": True}
    return records.timing(ms, **(known | changes))


def outcome(
    kernel: str, ms: float | None = None, device: DeviceInfo = CPU, **changes: Any
) -> Outcome:
    """A case at size 1000; with a time, all of what a measured one has.

    `precision`, `result` and fields of a `Timing` may be named directly.
    """
    where: dict[str, Any] = {
        "problem": Problem(1000, 1000, 1000),
        "backend": device.backend,
        "device": device.name,
        "device_kind": device.kind,
    }
    said = {name: changes.pop(name) for name in ("precision", "result") if name in changes}
    if said:
        where["claims"] = Claims(**said)
    if ms is None:
        return records.outcome(kernel, **({"cold": None} | where | changes))
    own = {name: changes.pop(name) for name in Timing.__struct_fields__ if name in changes}
    notes = {"notes": own.pop("notes")} if "notes" in own else {}
    measured: dict[str, Any] = {
        "accuracy": Accuracy(2.2e-6, 3.4e-7, 0.31),
        "blocks": BlockTimes(median_ns=ms * 1e5, perturbation=0.001),
    }
    if changes.get("status", "measured") == "measured" and "hot" not in changes:
        measured["cold"] = timing(ms, **own)
    return records.outcome(kernel, **(where | measured | notes | changes))


def hot(kernel: str, ms: float, device: DeviceInfo = CPU, **changes: Any) -> Outcome:
    """A case with hot samples alone."""
    return outcome(kernel, ms, device, hot=timing(ms), **changes)


def perturbed(kernel: str, ms: float, share: float, device: DeviceInfo = CPU) -> Outcome:
    """A case whose block clock slowed its launch."""
    return outcome(kernel, ms, device, blocks=BlockTimes(median_ns=ms * 1e5, perturbation=share))


def on_h200(kernel: str, ms: float, mhz: int | None = 1980, **changes: Any) -> Outcome:
    clocks = (345, mhz, mhz) if mhz else ()
    conditions = tuple(Conditions(sm_mhz=clock) for clock in clocks)
    return outcome(kernel, ms, H200, **({"conditions": conditions} | changes))


def compared(ratio: float | None = 1.4, size: int = 1000, **changes: Any) -> ComparisonRecord:
    """The candidate takes `ratio` times as long as the baseline; None: it was skipped."""
    at = Problem(size, size, size)
    names = {"baseline_name": "tiled", "candidate_name": "shared-row"}
    kernel = changes.pop("kernel", "shared-row")
    params = changes.pop("params", {"THREADS": 256})
    base_params = changes.pop("baseline_params", {"TILE": 16})
    verdict = changes.pop("verdict", "SLOWER" if ratio and ratio > 1 else "FASTER")
    reason = changes.pop("reason", "the whole interval is above 1")
    baseline = outcome("tiled", 0.25, GPU, problem=at, params=base_params)
    candidate = outcome(
        kernel, (ratio or 1) * 0.25, GPU, problem=at, params=params,
        accuracy=Accuracy(6.2e-8, 1e-8, 0.1),
    )  # fmt: skip
    found = None
    if ratio is None:
        skip = Skip("condition", "K * 4 <= 49152", {"K": size})
        candidate = outcome(
            kernel, device=GPU, problem=at, params=params, status="skipped", skip=skip
        )
    else:
        interval = (ratio * 0.99, ratio * 1.01)
        found = Comparison(ratio, interval, verdict, 1, (24, 24), reason)
    fields: dict[str, Any] = {"baseline": baseline, "candidate": candidate, "comparison": found}
    return ComparisonRecord(**(names | fields | changes))


MIXED = (
    outcome("slow", 40),
    outcome("wrong-one", 1, status="wrong", reason="last column: expected 1, found 2"),
    outcome("fast", 10),
    outcome("missing", status="skipped", skip=Skip("condition", "TILE * TILE <= 64", {"TILE": 16})),
    outcome("broken", status="failed", reason="broken.cu:3: error: no || here\n    x = y\n    ^"),
    outcome("small", 0.25, problem=Problem(256, 256, 256)),
    outcome("odd", 2, problem=Problem(65, 31, 129)),
    outcome("tiled", 0.5, GPU),
    outcome("naive", 0.4, GPU),
    outcome("numpy", 9, group="baseline", backend="host"),
)


def made(*found: Outcome) -> Report:
    return outcomes.report(found, [environment()])


def rows(table: Report) -> list[dict[str, str]]:
    """The rows of the CSV."""
    return list(csv.DictReader(io.StringIO(formats.text(table, "csv"))))


def printed(parts: Iterable[RenderableType], width: int | None = None) -> str:
    """What a terminal shows, without trailing spaces."""
    console = terminal.Screen(width=width or 10_000, file=io.StringIO())
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def shown(table: Report, width: int | None = None) -> str:
    return printed(terminal.renderables(table, width), width)


def line_of(text: str, *words: str) -> str:
    found = [line for line in text.splitlines() if all(word in line for word in words)]
    assert len(found) == 1, (words, found)
    return found[0]
