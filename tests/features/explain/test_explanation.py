"""The case that is explained, and the contents of an explanation."""

from __future__ import annotations

import msgspec
import pytest
from support import records
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of, split_case

from matbench.features.explain import widths
from matbench.features.explain.explanation import chosen, explanation
from matbench.features.explain.other_devices import named
from matbench.model import Arithmetic, Case, Conditions, Problem
from matbench.records.explanation import Bottleneck, Explanation
from matbench.records.outcome import Outcome

PROBLEM = Problem(64, 64, 64)
PARAMS = [{"TILE": tile} for tile in (8, 16, 32)]


def found(**times: float | None) -> list[tuple[Case, Outcome]]:
    """Cases of `tiled` with their times by tile, such as `T8=2.0`; None: wrong."""
    pairs = []
    for name, time in times.items():
        case = case_of("tiled", 64, int(name[1:]))
        pairs.append((case, outcome_of(case, time or 1.0, status="measured" if time else "wrong")))
    return pairs


def pick(pairs: list[tuple[Case, Outcome]], tile: int | None = None) -> int:
    case, outcome = chosen(KERNELS.get("tiled"), PROBLEM, PARAMS, tile, pairs)
    assert outcome is None or outcome.case.params == case.params
    return case.params["TILE"]


@pytest.mark.parametrize(
    ("times", "tile"),
    [
        ({"T8": 3.0, "T16": 1.0, "T32": 2.0}, 16),
        ({"T8": None, "T16": 2.0, "T32": 1.5}, 32),
        ({"T8": 2.0, "T16": 2.0}, 8),
    ],
)
def test_the_fastest_is_explained(times: dict[str, float | None], tile: int) -> None:
    assert pick(found(**times)) == tile


def test_a_tile_that_was_asked_for_is_explained_however_slow() -> None:
    assert pick(found(T8=3.0, T16=1.0, T32=2.0), 32) == 32
    assert pick(found(T8=1.0, T16=None), 16) == 16, "even if it is wrong"


def test_without_any_time_the_first_that_was_tried_is_explained() -> None:
    case, outcome = chosen(KERNELS.get("tiled"), PROBLEM, PARAMS, None, found(T16=None, T8=None))
    assert case.params == {"TILE": 16}
    assert outcome is not None
    assert outcome.status == "wrong"


def test_without_anything_tried_the_first_parameters_are_explained() -> None:
    case, outcome = chosen(KERNELS.get("tiled"), PROBLEM, PARAMS, None, [])
    assert (case.params, case.launch, outcome) == ({"TILE": 8}, None, None)
    case, _ = chosen(KERNELS.get("tiled"), PROBLEM, PARAMS, 32, [])
    assert case.params == {"TILE": 32}


def explained(median_ns: float = 1e6, name: str = "tiled", n: int = 4096) -> Explanation:
    case = case_of(name, n)
    return explanation(case, H200, outcome_of(case, median_ns), LIMITS, [])


def test_rates_are_those_of_the_median() -> None:
    result = explained(2e6)
    assert result.operations_per_s == 2 * 4096**3 / 2e-3
    assert result.case == result.outcome.case if result.outcome else False
    assert result.bound.by == "doubtful limit"


def test_the_clock_is_that_of_the_samples_or_else_of_the_limits() -> None:
    case = case_of("tiled", 64)
    assert explained().sm_mhz == 1980
    assert explained().clock_flop_per_s == 132 * 128 * 2 * 1980e6
    timing = records.timing(1, conditions=tuple(Conditions(sm_mhz=c) for c in (1500, 1400, 1700)))
    result = explanation(case, H200, outcome_of(case, 1, cold=timing), LIMITS, [])
    assert result.sm_mhz == 1550


def test_what_the_clock_allows_is_for_what_the_kernel_multiplies_with() -> None:
    """Three products on tensor cores for each that counts; and of a split none, if not told."""
    case = split_case("tf32x3", 4096)
    told = outcome_of(case, 1e6)
    assert told.case.arithmetic == Arithmetic(3, "tf32")
    allowed = explanation(case, H200, told, LIMITS, []).clock_flop_per_s
    assert allowed == 132 * 1024 * 2 * 1980e6 / 3
    untold = msgspec.structs.replace(told, case=msgspec.structs.replace(told.case, arithmetic=None))
    assert explanation(case, H200, untold, LIMITS, []).clock_flop_per_s is None


def test_without_a_device_nothing_is_measured() -> None:
    kernel = KERNELS.get("tiled")
    builds = widths.Builds(kernel, lambda *_: None)
    width = widths.elsewhere(PROBLEM, {"TILE": 16}, named("g80"), builds)
    case = Case(kernel, PROBLEM, {"TILE": 16}, None)
    result = explanation(case, None, None, None, [width])
    assert (result.case.kernel, result.case.device) == ("tiled", "")
    assert (result.operations_per_s, result.clock_flop_per_s, result.sm_mhz) == (None, None, None)
    assert result.bound == Bottleneck(by="not known")
    assert result.traffic.loads == 2 * 64**3 / 16
