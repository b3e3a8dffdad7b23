"""The traffic of a case, and the contents of an explanation."""

from __future__ import annotations

import msgspec
import pytest
from support import records
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of
from support.records import outcome

from matbench.errors import UsageError
from matbench.features.explain.explanation import explanation, traffic
from matbench.features.explain.record import Bottleneck, Explanation, Traffic
from matbench.features.explain.view import facts
from matbench.model import Conditions, Parameter, Problem


def explained() -> Explanation:
    case = case_of("tiled", 4096)
    return explanation(case, H200, H200, outcome_of(case, 1e6), LIMITS)


def test_the_clock_is_that_of_the_samples_or_else_of_the_limits() -> None:
    case = case_of("tiled", 64)
    assert explained().sm_mhz == 1980
    assert explained().clock_flop_per_s == 132 * 128 * 2 * 1980e6
    timing = records.timing(1, conditions=tuple(Conditions(sm_mhz=c) for c in (1500, 1400, 1700)))
    result = explanation(case, H200, H200, outcome_of(case, 1, cold=timing), LIMITS)
    assert result.sm_mhz == 1550


# Traffic


def moved(name: str, problem: Problem, **params: int) -> Traffic:
    return traffic(KERNELS.get(name), problem, params, H200.limits)


def square(n: int) -> Problem:
    return Problem(n, n, n)


@pytest.mark.parametrize(
    ("name", "params", "loads"),
    [
        ("naive-2d", {"TILE": 16}, 2e9),
        ("thread-1d", {}, 2e9),
        ("tiled", {"TILE": 8}, 2.5e8),
        ("tiled", {"TILE": 16}, 1.25e8),
        ("tiled", {"TILE": 32}, 6.25e7),
    ],
)
def test_tiles_divide_loads_by_their_width(name: str, params: dict[str, int], loads: float) -> None:
    assert moved(name, square(1000), **params).loads == loads


def test_the_least_traffic_stands_beside_the_modelled() -> None:
    found = moved("naive-2d", Problem(200, 300, 400), TILE=16)
    assert found.operations == 2 * 200 * 300 * 400
    assert found.least_bytes == 4 * (200 * 400 + 400 * 300 + 200 * 300)
    assert found.bytes == 4 * (2 * 200 * 300 * 400 + 200 * 300)
    assert found.intensity == pytest.approx(48e6 / found.bytes)
    assert found.least_intensity == pytest.approx(48e6 / found.least_bytes)


@pytest.mark.parametrize(("beta", "batch", "Cs"), [(0.0, 1, 1), (0.5, 1, 2), (0.5, 3, 2)])
def test_the_least_traffic_reads_C_if_it_is_added(beta: float, batch: int, Cs: int) -> None:
    found = moved("naive-2d", Problem(200, 300, 400, beta=beta, batch=batch), TILE=16)
    assert found.least_bytes == 4 * (200 * 400 + 400 * 300 + Cs * 200 * 300) * batch


@pytest.mark.parametrize("batch", [1, 3])
def test_every_product_of_a_batch_is_stored(batch: int) -> None:
    found = moved("batched-small", Problem(20, 30, 40, batch=batch), TILE=16)
    assert found.stores == 20 * 30 * batch
    case = outcome("batched-small", problem=Problem(20, 30, 40, batch=batch)).case
    shown = Explanation(case=case, traffic=found, bound=Bottleneck(by="memory"))
    [stores] = [fact for fact in facts(shown) if fact.name == "modelled stores"]
    assert "the output, once" in str(stores)


def test_without_a_claim_only_the_least_is_modelled() -> None:
    kernel = msgspec.structs.replace(KERNELS.get("tiled"), model={})
    found = traffic(kernel, square(1000), {"TILE": 16}, H200.limits)
    assert found == Traffic(2 * 10**9, 12 * 10**6, 2e9 / 12e6)


def test_a_dot_product_is_counted_by_its_own_measure() -> None:
    found = moved("dot-tree", Problem(1, 2**20, 1, workload="dot"), THREADS=256, BLOCKS=32)
    assert (found.operations, found.loads) == (2 * 2**20, 2 * 2**20)
    assert found.least_bytes == 4 * (2 * 2**20 + 1)


def test_inputs_of_16_bits_are_half_the_bytes() -> None:
    half = tuple(Parameter("__half", name, True) for name in "AB")
    parameters = (*half, Parameter("float", "C", True))
    kernel = msgspec.structs.replace(KERNELS.get("naive-2d"), parameters=parameters)
    found = traffic(kernel, square(100), {"TILE": 16}, H200.limits)
    assert found.least_bytes == 2 * 2 * 10**4 + 4 * 10**4
    assert found.bytes == 2 * 2 * 10**6 + 4 * 10**4


def test_a_claim_of_no_traffic_is_refused() -> None:
    kernel = msgspec.structs.replace(
        KERNELS.get("tiled"), model={"global_loads": "0 - M * N"}, path="idle.cu"
    )
    with pytest.raises(UsageError, match=r"^idle.cu: \[model\] gives 0 bytes of traffic"):
        traffic(kernel, square(33), {"TILE": 16}, H200.limits)
    kernel = msgspec.structs.replace(kernel, model={"global_loads": "M * TILES"})
    with pytest.raises(UsageError, match=r"^idle.cu: \[model\]: .*TILES"):
        traffic(kernel, square(33), {"TILE": 16}, H200.limits)
