"""Limits that follow from a device's clock and caches."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from support.golden import TableRegression
from support.h200 import H200
from support.optional import present
from support.records import outcome

from matbench.analysis import limits
from matbench.model import Arithmetic
from matbench.records.outcome import Claims, TimingMode


def test_the_clock_allows_the_lanes_of_a_unit_times_multiprocessors(
    table_regression: TableRegression,
) -> None:
    """Those that multiply in a precision, and the fastest for operands whose rate is known, on an
    architecture. float64 is done by tensor cores if there are any."""

    def lanes(question: str) -> str:
        of, kind, capability = question.split()
        major, minor = map(int, capability.split("."))
        device = msgspec.structs.replace(H200, compute_capability=(major, minor))
        precision: Any = kind
        if of == "fastest":
            floor = limits.floor_of_operations(1_000_000, device, 1000, precision)
            return f"{1_000_000 / (132 * 2 * floor.ns):g}" if floor else "not known"
        rate = limits.of_clock(device, 1000, precision)
        return f"{rate / (132 * 2 * 1e9):g}" if rate else "not known"

    table_regression("lanes.txt", lanes)


def test_a_case_is_limited_by_what_it_multiplies_with() -> None:
    def allowed(arithmetic: Arithmetic | None, claims: Claims) -> float | None:
        return limits.of_case(H200, 1000, outcome(arithmetic=arithmetic, claims=claims).case)

    split, tf32 = Claims(error_constant=8.0), Claims(precision="tf32")
    assert allowed(None, Claims()) == limits.of_clock(H200, 1000)
    assert allowed(None, tf32) == limits.of_clock(H200, 1000, "tf32")
    assert allowed(Arithmetic(3, "float16"), split) == 132 * 2048 * 2 * 1e9 / 3
    assert allowed(Arithmetic(2, "tf32"), tf32) == 132 * 1024 * 2 * 1e9 / 2
    assert allowed(None, split) is None, "how it multiplies is not told"


def test_without_a_clock_or_a_known_architecture_nothing_is_claimed() -> None:
    unknown = msgspec.structs.replace(H200, compute_capability=None)
    assert limits.of_clock(H200, None) is None
    assert limits.of_clock(unknown, 1980) is None


def test_only_what_fits_is_held_by_the_cache_and_only_if_it_was_left_alone() -> None:
    cached = msgspec.structs.replace(H200, properties={"last-level cache (bytes)": 1000})
    held = {mode for mode in get_args(TimingMode) if limits.held_by_cache(cached, 999, mode)}
    assert held == {"hot", "hot graph"}
    assert not limits.held_by_cache(cached, 1000, "hot")
    assert not limits.held_by_cache(H200, 999, "hot"), "its cache is not known"


# -- lower bounds of a launch's time -------------------------------------------------------------

MEASURED = limits.Bandwidth(copy_bytes_per_s=4e12, read_bytes_per_s=4.5e12)


def test_inputs_cannot_be_read_faster_than_the_device_reads() -> None:
    info = msgspec.structs.replace(H200, properties={"last-level cache (bytes)": 60_000_000})
    floor = present(limits.floor_of_bytes(4_500_000_000, 1_000, info, MEASURED))
    assert floor.ns == pytest.approx(1e6)  # what is written stays in the cache
    cache_bytes = int(info.properties["last-level cache (bytes)"] or 0)
    written_bytes = cache_bytes + 4_000_000_000
    more = present(limits.floor_of_bytes(4_500_000_000, written_bytes, info, MEASURED))
    assert more.ns == pytest.approx(2e6)


def test_the_fastest_unit_counts_even_for_float32() -> None:
    """Tensor cores of 16-bit inputs: 132 × 2,048 × 2 × 1.98 GHz."""
    floor = present(limits.floor_of_operations(2 * 8192**3, H200, 1980))
    assert floor.ns == pytest.approx(2 * 8192**3 / (132 * 2048 * 2 * 1.98e9) * 1e9)
    assert limits.floor_of_operations(1000, H200, None) is None
    assert limits.floor_of_operations(0, H200, 1980) is None


@pytest.mark.parametrize(("ns", "beyond"), [(94.9, True), (95.1, False), (100.0, False)])
def test_five_per_cent_are_allowed(ns: float, beyond: bool) -> None:
    floors = [None, limits.Floor(10.0, "to do little"), limits.Floor(100.0, "to do it all")]
    said = limits.impossible(ns, floors)
    assert (said is not None) == beyond
    if said is not None:
        assert "0.1 µs to do it all" in said
    assert limits.impossible(float("nan"), floors) is not None
