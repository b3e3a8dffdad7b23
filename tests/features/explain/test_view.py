"""The tables of an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from pytest_regressions.file_regression import FileRegressionFixture
from support import records, tables
from support.golden import paged
from support.h200 import H200, LIMITS, case_of, outcome_of, split_case

from matbench.features.explain import occupancy
from matbench.features.explain.architectures import device_of, named
from matbench.features.explain.explanation import explanation
from matbench.features.explain.record import (
    Bottleneck,
    Explanation,
    HardwareCounters,
    Limits,
    MachineCode,
    Occupancy,
    Traffic,
)
from matbench.features.explain.view import report, words
from matbench.kernelfile import sweep
from matbench.model import Case, Resources
from matbench.records.outcome import Build
from matbench.show import formats

BUILT = Resources(registers=32, static_shared_bytes=2048, spilled_bytes=0)


def explained(
    *archs: str, n: int = 64, tiles: tuple[int, ...] = (32,),
    counters: HardwareCounters | None = None, driver_blocks: int = 2,
    compiled: Resources | None = BUILT, **changes: Any,
) -> Explanation:  # fmt: skip
    case = case_of("tiled", n, tiles[0])
    build = Build(
        resources=Resources(registers=32, static_shared_bytes=8192, spilled_bytes=0),
        resident_blocks=driver_blocks,
    )
    outcome = outcome_of(case, 1e6, build=build, **changes)
    fits = []
    for device in map(device_of, map(named, archs)):
        for tile in tiles:
            at = sweep.case(case.kernel, case.problem, {"TILE": tile}, device)
            fits.append(occupancy.fit(at, device, lambda *_: compiled, here=False))
    fits.append(occupancy.fit(case, H200, lambda *_: compiled, build, here=True))
    return explanation(case, H200, H200, outcome, LIMITS, fits, counters)


COUNTED = HardwareCounters(
    dram_read_bytes=98304.0, dram_written_bytes=0.0, shared_bytes=4096.0, bank_conflicts=7.0,
    achieved_occupancy=0.5,
)  # fmt: skip
SPILLED = Build(resources=msgspec.structs.replace(BUILT, spilled_bytes=1234))
UNREAD = MachineCode(architecture="sm_90", instructions={})


def of(case: Case, limits: Limits | None = LIMITS, **model: Any) -> Explanation:
    kernel = msgspec.structs.replace(case.kernel, **model)
    case = msgspec.structs.replace(case, kernel=kernel)
    return explanation(case, H200, H200, outcome_of(case, 1e6), limits)


def pages() -> dict[str, Explanation]:
    plain, tiled = explained(), case_of("tiled", 64)
    spills = msgspec.structs.replace(outcome_of(tiled, 1e6), build=SPILLED)
    return {
        "the driver agrees": plain,
        "the driver counts other blocks": explained(driver_blocks=1),
        "counters stand beside the model": explained(counters=COUNTED),
        "at 1000": explained(n=1000),
        "less traffic than the minimum": explained(n=1),
        "several products on tensor cores": of(split_case("fp16x3", 1000)),
        "spills": msgspec.structs.replace(plain, outcome=spills),
        "a margin of 3%": explained(cold=records.timing(1, interval_ns=(0.97e6, 1.03e6))),
        "a section for each architecture": explained("g80", "hopper", tiles=(16, 8)),
        "nothing was compiled": explained("g80", "hopper", tiles=(16,), compiled=None),
        "too wide": explained("g80", tiles=(16, 32)),
        "no limits, so no roof": of(tiled, None),
        "no model and no machine code": of(tiled, model={}),
        "nothing was counted": explained(counters=HardwareCounters()),
        "counted, without a valid model": explained(n=1, counters=COUNTED),
        "nothing fits on one": explained("g80", "sm_20"),
        "on a CPU": msgspec.structs.replace(
            plain, whole_numbers=True, operations_per_s=None, clock_flop_per_s=None,
            outcome=outcome_of(tiled, 1e6, build=Build()),
            case=msgspec.structs.replace(plain.case, backend="opencl", device_kind="cpu"),
            fits=(msgspec.structs.replace(plain.fits[0], architecture=None, here=False),),
        ),
        "not all follows from machine code": msgspec.structs.replace(
            plain, code=UNREAD, traffic=Traffic(1, 1, 1.0)
        ),
    }  # fmt: skip


def sentences() -> Iterator[str]:
    """What limits a case, at the edges of what is told apart."""
    plain = explained()
    [fit] = plain.fits
    half = Occupancy(1, 32, 0.5, {}, ())
    edge = Bottleneck(by="neither", least_share=0.1)
    bounds: list[dict[str, Any]] = [
        {"by": "memory"}, {"by": "memory", "counted_share": 0.9}, {"modelled_share": 1.0},
        {"modelled_share": 0.7}, {"modelled_share": 0.7, "counted_share": 0.1},
    ]  # fmt: skip
    for changes in bounds:
        bound = msgspec.structs.replace(edge, **changes)
        yield from words(msgspec.structs.replace(plain, bound=bound))
    fits: list[dict[str, Any]] = [
        {"occupancy": half}, {"occupancy": None}, {"params": {"TILE": 8}}
    ]  # fmt: skip
    for changes in fits:
        other = msgspec.structs.replace(fit, **changes)
        yield from words(msgspec.structs.replace(plain, fits=(other,)))
    yield from words(msgspec.structs.replace(plain, whole_numbers=True))


def test_pages(file_regression: FileRegressionFixture) -> None:
    about = [records.environment(devices=(msgspec.structs.replace(H200, name="other"), H200))]
    shown = {name: report([found], about) for name, found in pages().items()}
    texts = {name: tables.shown(page) for name, page in shown.items()}
    texts["too wide, as CSV"] = formats.text(shown["too wide"], "csv")
    texts["narrow"] = tables.shown(shown["too wide"], 110)
    texts["words"] = "\n".join(sentences())
    file_regression.check(paged(texts), encoding="utf-8")


def test_without_an_environment_of_its_device_it_is_named_by_the_case() -> None:
    assert report([explained()], []).sections[0].heading[0].endswith("on cuda NVIDIA H200")
