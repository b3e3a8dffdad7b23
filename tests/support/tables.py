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
from matbench.records.environment import Environment
from matbench.records.outcome import Accuracy, BlockTimes, CaseRecord, Claims, Outcome, Timing
from matbench.show import comparisons, formats, outcomes, terminal
from matbench.show.table import Report
from support import devices, records, toml
from support.paths import TESTS

CPU = devices.device(driver="2026.1")
GPU = devices.gpu(driver="580.1", toolkit="CUDA 13.0")
H200 = msgspec.structs.replace(
    GPU, name="An H200", compute_capability=(9, 0), limits={"multiprocessors": 132}
)

NEWER = devices.gpu(driver="590.2", toolkit="CUDA 14.0")
#: By the names that they have in tables.
DEVICES = {"cpu": CPU, "gpu": GPU, "h200": H200, "newer": NEWER}


def environment(**changes: Any) -> Environment:
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


#: The types of the fields that a row of TOML may name.
_FIELDS = {
    field.name: field.type
    for of in (Accuracy, Timing, CaseRecord, Outcome)
    for field in msgspec.structs.fields(of)
}


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(row.get("unknown", ()))
    for name, value in row.items():
        if name == "rising":
            count, first, step = value
            fields["samples_ns"] = [first + step * i for i in range(count)]
        elif name in {"cold", "hot"}:
            fields[name] = timing(**_typed(value))
        elif name == "accuracy":
            fields[name] = Accuracy(**_typed(value))
        elif name != "unknown":
            fields[name] = msgspec.convert(value, _FIELDS.get(name, Any))
    return fields


def declared(row: dict[str, Any]) -> Outcome:
    """What a row of TOML says in the words of `outcome`: `on` a device of `DEVICES`, at a `size`.

    `unknown` names fields that are None, and `rising` samples have a count, a first and a step.
    """
    fields = _typed(row)
    on, size = fields.pop("on", "cpu"), fields.pop("size", 1000)
    fields.setdefault("problem", Problem(size, size, size))
    return on_h200(**fields) if on == "h200" else outcome(device=DEVICES[on], **fields)


def hot(kernel: str, ms: float, device: DeviceInfo = CPU, **changes: Any) -> Outcome:
    """A case with hot samples alone."""
    return outcome(kernel, ms, device, hot=timing(ms), **changes)


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
    one, other = (
        msgspec.convert(changes.pop(f"{side}_claims", {}), Claims)
        for side in ("baseline", "candidate")
    )
    baseline = outcome("tiled", 0.25, GPU, problem=at, params=base_params, claims=one)
    candidate = outcome(
        kernel, (ratio or 1) * 0.25, GPU, problem=at, params=params, claims=other,
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


#: Those of the first golden page: every status, on two devices and the host.
MIXED = tuple(
    declared(row)
    for row in next(iter(toml.table(TESTS / "golden/pages-outcomes.toml").values()))["outcomes"]
)


def made(*found: Outcome) -> Report:
    return outcomes.report(found, [environment()])


def _environment(row: dict[str, Any]) -> Environment:
    on = (DEVICES[name] for name in row.get("devices", ("cpu", "gpu")))
    return environment(**(row | {"devices": tuple(on)}))


def report(row: dict[str, Any]) -> Report:
    """The table of a row of TOML: of outcomes, or of comparisons; one without `ratio` is skipped.

    They are of one run on the usual devices, unless it names other `environments`.
    """
    about = [_environment(each) for each in row.get("environments", [{}])]
    if "outcomes" in row:
        found = [declared(each) for each in row["outcomes"]]
        return outcomes.report(found, about, fastest=row.get("fastest", False))
    pairs = [
        compared(**({"ratio": None} | each | {"notes": tuple(each.get("notes", ()))}))
        for each in row["comparisons"]
    ]
    return comparisons.report(pairs, about)


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
