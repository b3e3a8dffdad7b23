"""The tables of an explanation."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec
from support import records
from support.h200 import H200, LIMITS, case_of, outcome_of, split_case

from matbench.features.explain import occupancy
from matbench.features.explain.architectures import device_of, named
from matbench.features.explain.explanation import explanation
from matbench.features.explain.record import Explanation, HardwareCounters, MachineCode, Traffic
from matbench.features.explain.view import facts, report
from matbench.kernelfile import sweep
from matbench.model import Resources
from matbench.records.outcome import Build
from matbench.show import formats
from matbench.show.table import Section
from matbench.show.units import UNKNOWN

BUILT = Resources(registers=32, static_shared_bytes=2048, spilled_bytes=0)
TOO_WIDE = "needs TILE * TILE <= max_threads_per_block (TILE = 32, max_threads_per_block = 512)"


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


def sections(found: Explanation) -> tuple[Section, ...]:
    return report([found], [records.environment(devices=(H200,))]).sections


def test_the_driver_stands_beside_the_table_where_they_differ() -> None:
    for driver, shown in ((2, "2"), (1, "2 (driver: 1)")):
        (row,) = sections(explained(driver_blocks=driver))[1].rows
        assert shown in row.cells


def test_counted_traffic_stands_beside_the_model() -> None:
    counted = HardwareCounters(
        dram_read_bytes=98304.0, dram_written_bytes=0.0, shared_bytes=4096.0, bank_conflicts=7.0,
        achieved_occupancy=0.5,
    )  # fmt: skip
    found = {fact.name: fact for fact in facts(explained(counters=counted))}
    assert found["measured DRAM traffic"][1:] == (
        "98.3 kB",
        "2.00 × the minimum, 1.20 × the modelled",
    )
    assert found["measured bank conflicts"].figure == "7"
    assert found["measured occupancy"].figure == "50%"
    assert found["measured shared memory"].figure == "4.10 kB"


def test_each_figure_has_its_unit() -> None:
    found = {fact.name: fact.figure for fact in facts(explained(n=1000))}
    assert found["operations"] == "2,000,000,000"
    assert found["modelled loads"] == "62,500,000"
    assert found["minimum traffic"] == "12.0 MB"
    assert found["measured time"] == "1.000 ms"
    assert found["measured rate"] == "2.00 TFLOP/s"
    assert found["minimum bandwidth"] == "12.0 GB/s"
    assert found["measured copy"] == "4.00 TB/s"
    assert found["measured multiply-adds"] == "60.0 TFLOP/s"
    assert found["peak at this clock"] == "66.9 TFLOP/s"
    assert found["blocks"] == "1,024"


def test_the_clock_allows_what_the_kernel_multiplies_with() -> None:
    case = split_case("fp16x3", 1000)
    found = explanation(case, H200, H200, outcome_of(case, 1e6), LIMITS)
    [fact] = [fact for fact in facts(found) if fact.name == "peak at this clock"]
    assert fact[1:] == ("357 TFLOP/s", "at 1,980 MHz, with 3 × float16 for each product")


def test_spills_are_counted() -> None:
    found = explained()
    assert "spilled" not in str(facts(found))
    spilled = msgspec.structs.replace(BUILT, spilled_bytes=1234)
    build = Build(resources=spilled)
    outcome = msgspec.structs.replace(outcome_of(case_of("tiled", 64), 1e6), build=build)
    found = msgspec.structs.replace(found, outcome=outcome)
    assert ("spilled registers", "1,234 bytes", "per thread") in facts(found)


def test_the_margin_of_a_measured_time_is_shown() -> None:
    timing = records.timing(1, interval_ns=(0.97e6, 1.03e6))
    found = {fact.name: fact.remark for fact in facts(explained(cold=timing))}
    assert found["measured time"] == "median of a short run, cold: ± 3.0%"


def test_there_is_a_section_for_each_architecture() -> None:
    _, g80, hopper, here = sections(explained("g80", "hopper", tiles=(16, 8)))
    assert g80.heading[0].startswith("G80 1.0: a multiprocessor holds 768 threads, 8 blocks")
    assert hopper.heading[0].startswith("Hopper 9.0: ")
    assert here.heading[0] == f"this device: {H200.label}"
    assert [row.cells[0] for row in g80.rows] == ["TILE=16", "TILE=8"]
    assert [row.best for row in g80.rows] == [True, False]


def test_what_is_unknown_is_said() -> None:
    unknown = sections(explained("g80", tiles=(16,), compiled=None))[1].heading
    assert "registers unknown: assumed not to limit" in unknown
    assert "static shared memory unknown: assumed to be 0" in unknown
    assert any("launch parameters" in line for line in unknown)
    known = sections(explained("hopper", tiles=(16,)))[1].heading
    assert len(known) == 1


def test_what_cannot_be_launched_has_its_reason_in_place_of_limiters() -> None:
    (row,) = sections(explained("g80"))[1].rows
    assert (row.status, row.reason) == ("illegal", TOO_WIDE)


def test_the_roof_is_that_of_the_copy_or_of_multiply_adds() -> None:
    found = {fact.name: fact[1:] for fact in facts(explained(n=1000))}
    assert found["roof at the minimum traffic"] == ("60.0 TFLOP/s", "limited by multiply-adds")
    assert found["roof at the modelled traffic"] == ("31.5 TFLOP/s", "limited by the copy")
    case = case_of("tiled", 64)
    unlimited = explanation(case, H200, H200, outcome_of(case, 1e6), None)
    assert "roof" not in str(facts(unlimited))


def test_what_is_known_of_the_traffic_is_said() -> None:
    def traffic(n: int, **changes: Any) -> str:
        case = case_of("tiled", n)
        kernel = msgspec.structs.replace(case.kernel, **changes)
        case = msgspec.structs.replace(case, kernel=kernel)
        found = explanation(case, H200, H200, outcome_of(case, 1e6), LIMITS)
        [fact] = [fact for fact in facts(found) if fact.name == "modelled traffic"]
        return f"{fact.figure}, {fact.remark}"

    assert traffic(1000) == "254 MB, without caches: 21.2 × the minimum"
    assert traffic(1) == "4.25 B, less than the minimum: the model is not valid at this size"
    assert traffic(1000, model={}).endswith("no global_loads, and no machine code was read")
    code = MachineCode(architecture="sm_90", instructions={})
    found = msgspec.structs.replace(explained(), code=code, traffic=Traffic(1, 1, 1.0))
    why = "[model] has no global_loads, nor does all of it follow from the machine code"
    assert ("modelled traffic", UNKNOWN, why) in facts(found)


def test_without_an_environment_of_its_device_it_is_named_by_the_case() -> None:
    assert report([explained()], []).sections[0].heading[0].endswith("on cuda NVIDIA H200")


def test_csv_has_a_line_for_all_that_fits() -> None:
    text = formats.text(report([explained("g80", tiles=(16, 32))], []), "csv")
    names = ["architecture", "params", "resident_blocks", "limiters", "reason"]
    rows = [[row[name] for name in names] for row in csv.DictReader(io.StringIO(text))]
    assert rows == [
        ["G80 1.0", "TILE=16", "1", "registers", ""],
        ["G80 1.0", "TILE=32", "", "", TOO_WIDE],
        ["Hopper 9.0", "TILE=16", "8", "threads; registers", ""],
    ]
