"""Resident blocks per architecture, compared with a lecture and NVIDIA's tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.h200 import H200, KERNELS, case_of, outcome_of

from matbench.analysis.architectures import Architecture
from matbench.errors import BuildError, UsageError
from matbench.features.explain import widths
from matbench.features.explain.other_devices import device_of, named
from matbench.kernelfile import sweep
from matbench.model import Problem, Resources, Skip
from matbench.records.explanation import Width
from matbench.records.outcome import Build

CUBE = Problem(1000, 1000, 1000)


def nothing(architecture: Architecture, params: dict[str, int]) -> Resources | None:
    """No compiler."""
    return None


def on(
    arch: str, name: str, problem: Problem = CUBE, compiled: widths.Compile = nothing, **params: int
) -> Width:
    builds = widths.Builds(KERNELS.get(name), compiled)
    return widths.elsewhere(problem, params, named(arch), builds)


def test_g80_at_16_holds_three_blocks_where_the_lecture_counts_eight() -> None:
    """Shared memory holds eight blocks (2 KB of 16 KB), but threads only three (256 of 768)."""
    outcome = outcome_of(case_of("tiled", 64, 16), 1e6)
    given = Resources(static_shared_bytes=2 * 16 * 16 * 4)
    outcome = msgspec.structs.replace(outcome, build=Build(resources=given))
    builds = widths.Builds(KERNELS.get("tiled"), nothing, [outcome])
    found = widths.elsewhere(CUBE, {"TILE": 16}, named("g80"), builds)
    assert (found.shared_bytes, found.registers) == (2048, None)
    assert found.modelled_loads == 125e6
    assert found.occupancy is not None
    assert found.occupancy.by == {"threads": 3, "blocks": 8, "shared memory": 8}
    assert (found.occupancy.blocks, found.occupancy.limiters) == (3, ("threads",))
    assert found.reason is None


def test_a_tile_of_32_is_legal_from_fermi_on() -> None:
    found = on("fermi", "naive-2d", TILE=32)
    assert found.reason is None
    assert found.occupancy is not None
    assert found.occupancy.blocks == 1


def test_a_limit_of_the_kernel_is_its_reason() -> None:
    found = on("g80", "reverse-static", Problem(1, 500, 1, workload="reverse"))
    assert (found.status, found.reason) == ("illegal", "needs N <= 64 (N = 500)")


def test_what_an_architecture_lacks_is_named_by_it() -> None:
    params: dict[str, Any] = next(iter(sweep.parameter_sets(KERNELS.get("warp-tiled"), {})))
    found = on("kepler", "warp-tiled", **params)
    assert found.reason is not None
    assert found.reason.startswith("needs sm_80; the device is sm_30")


def test_what_does_not_build_says_so_in_one_line() -> None:
    def fails(architecture: Architecture, params: dict[str, int]) -> Resources | None:
        raise BuildError("error: no such thing\nat line 2")

    found = on("hopper", "tiled", compiled=fails, TILE=16)
    assert (found.status, found.reason) == ("illegal", "does not build: error: no such thing")


def test_registers_are_those_of_a_build_for_that_architecture() -> None:
    def compiled(architecture: Architecture, params: dict[str, int]) -> Resources | None:
        if architecture.compute_capability < (7, 5):
            return None
        return Resources(registers=64, static_shared_bytes=2048)

    new, old = (on(arch, "tiled", compiled=compiled, TILE=16) for arch in ("hopper", "g80"))
    assert (new.registers, new.shared_bytes) == (64, 2048)
    assert new.occupancy is not None
    assert new.occupancy.limiters == ("registers",)
    # Static shared memory is the same in every build; registers are not.
    assert (old.registers, old.shared_bytes) == (None, 2048)


def test_a_wrong_or_skipped_case_here_has_its_reason_and_no_time() -> None:
    case = case_of("tiled", 64)
    builds = widths.Builds(case.kernel, nothing)
    wrong = outcome_of(case, 1e6, status="wrong", reason="result: bad\nmore")
    found = widths.here(case, H200, wrong, builds)
    assert (found.status, found.reason, found.measured_ns) == ("wrong", "result: bad", None)
    unknown = msgspec.structs.replace(H200, compute_capability=None)
    skip = Skip("unavailable", "no memory")
    skipped = outcome_of(case, 1e6, status="skipped", skip=skip, build=None)
    found = widths.here(case, unknown, skipped, builds)
    assert (found.architecture, found.status, found.reason) == (None, "illegal", "no memory")
    assert (found.threads_per_block, found.occupancy) == (1024, None)


def test_a_width_that_this_device_cannot_launch_is_illegal_here() -> None:
    case = case_of("tiled", 64, 64)
    assert case.skip is not None
    skipped = outcome_of(case, 1e6, status="skipped", skip=case.skip, build=None)
    found = widths.here(case, H200, skipped, widths.Builds(case.kernel, nothing))
    assert found.here
    assert found.status == "illegal"
    assert found.threads_per_block == 64 * 64


def test_the_largest_size_that_a_device_can_run_is_taken() -> None:
    """Of the sizes 64 and 1048576, the first kernel takes only 64, the other both."""
    problems = [Problem(1, n, 1, workload="reverse") for n in (64, 2**20)]
    devices = [device_of(named(arch)) for arch in ("g80", "hopper")]
    for name, expected in (("reverse-static", 64), ("reverse-direct", 2**20)):
        kernel = KERNELS.get(name)
        params = list(sweep.parameter_sets(kernel, {}))
        assert expected == widths.largest_legal(kernel, problems, params, devices).N
    assert widths.largest_legal(kernel, problems, params, []).N == 2**20


# Architectures by family, chip and compute capability


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("g80", (1, 0)), ("fermi", (2, 0)), ("kepler", (3, 0)),
        ("gk110", (3, 5)), ("3.7", (3, 7)), ("maxwell", (5, 0)), ("Pascal", (6, 0)),
        ("volta", (7, 0)), ("sm_75", (7, 5)), ("ampere", (8, 0)), ("86", (8, 6)), ("ada", (8, 9)),
        ("hopper", (9, 0)), ("blackwell", (10, 0)), ("sm_120", (12, 0)),
    ],
)  # fmt: skip
def test_an_architecture_goes_by_family_chip_and_capability(
    name: str, capability: tuple[int, int]
) -> None:
    assert named(name).compute_capability == capability


@pytest.mark.parametrize(("name", "hint"), [("keppler", "'kepler'"), ("9.9", "known: g80")])
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        named(name)
