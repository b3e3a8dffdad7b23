"""Limits that follow from a device's clock and caches."""

from __future__ import annotations

import msgspec
import pytest
from support.h200 import H200
from support.optional import present
from support.records import outcome

from matbench.analysis import limits
from matbench.model import Arithmetic, Precision, Storage
from matbench.records.outcome import Claims


@pytest.mark.parametrize(
    ("precision", "lanes"),
    [("float32", 128), ("float16", 2048), ("tf32", 1024), ("float64", 128), ("e4m3", 4096),
     ("e5m2", 4096), ("int8", 4096)],
)  # fmt: skip
def test_the_clock_allows_the_lanes_of_a_unit_times_multiprocessors(
    precision: Precision, lanes: int
) -> None:
    assert limits.of_clock(H200, 1000, precision) == 132 * lanes * 2 * 1e9


@pytest.mark.parametrize(
    ("capability", "lanes"), [((7, 0), 32), ((8, 0), 64), ((8, 6), 2), ((9, 0), 128)]
)
def test_float64_is_done_by_tensor_cores_if_there(capability: tuple[int, int], lanes: int) -> None:
    device = msgspec.structs.replace(H200, compute_capability=capability)
    assert limits.of_clock(device, 1000, "float64") == 132 * lanes * 2 * 1e9


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
    assert limits.held_by_cache(cached, 999, "hot")
    assert limits.held_by_cache(cached, 999, "hot graph")
    assert not limits.held_by_cache(cached, 1000, "hot")
    assert not limits.held_by_cache(cached, 999, "cold")
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


@pytest.mark.parametrize(
    ("capability", "storage", "lanes"),
    [
        ((9, 0), "float16", 2048), ((9, 0), "e4m3", 4096), ((9, 0), "int8", 4096),
        ((8, 0), "int8", 2048), ((7, 5), "int8", 1024), ((8, 9), "e4m3", 1024),
        ((6, 1), "float32", 128), ((6, 1), "int8", None),  # four products in an instruction
        ((8, 6), "float32", None), ((12, 0), "bfloat16", None), ((12, 0), "e4m3", None),
    ],
)  # fmt: skip
def test_the_fastest_unit_is_one_for_the_operands_whose_rate_is_known(
    capability: tuple[int, int], storage: Storage, lanes: int | None
) -> None:
    device = msgspec.structs.replace(H200, compute_capability=capability)
    floor = limits.floor_of_operations(1_000_000, device, 1000, storage)
    assert (floor is None) == (lanes is None)
    if floor is not None:
        assert floor.ns == pytest.approx(1_000_000 / (132 * (lanes or 0) * 2))


@pytest.mark.parametrize(("ns", "beyond"), [(94.9, True), (95.1, False), (100.0, False)])
def test_five_per_cent_are_allowed(ns: float, beyond: bool) -> None:
    floors = [None, limits.Floor(10.0, "to do little"), limits.Floor(100.0, "to do it all")]
    said = limits.impossible(ns, floors)
    assert (said is not None) == beyond
    if said is not None:
        assert "0.1 µs to do it all" in said
    assert limits.impossible(float("nan"), floors) is not None
