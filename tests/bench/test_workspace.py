"""Workspaces: scratch memory of a case's own size, undefined before a launch, between guards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixtures import QUICK, Noted, Watch
from support.kernels import GOOD_BODY, SIZES, STORED, changed, kernel_text
from support.optional import present, some
from support.products import right

from matbench.analysis import statistics
from matbench.backends.protocol import Buffer, Work
from matbench.bench import launches
from matbench.bench.device_kernels import OUTSIDE_WORKSPACE, UNWORKED
from matbench.bench.matrices import BatchArena, Guarded
from matbench.bench.options import CHECKS
from matbench.bench.prepared import Prepared
from matbench.bench.session import Session
from matbench.errors import OutOfMemoryError
from matbench.features.grade.multiplier import Multiplier
from matbench.features.timeline.clocking import clocked_here
from matbench.features.tune.looking import look_here
from matbench.kernelfile import catalogue, front_matter, sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem, Skip
from matbench.worker import comparing

ARGS = 'args = ["A", "B", "C", "workspace", "M", "N", "K"]'
#: Sums are collected in the workspace.
BODY = changed(
    GOOD_BODY, (SIZES, f"TYPE *workspace, {SIZES}"),
    ("float sum = 0.0f;", "const size_t element = (size_t)row * N + column;\n"
        "    float *sums = (float *)workspace;\n    FIRST"),
    ("sum +=", "sums[element] +="), (STORED, "C[element] = sums[element];"),
)  # fmt: skip


def text(
    name: str = "mine", *, kind: str = "float", first: str = "sums[element] = 0.0f;",
    nbytes: str = '"4 * M * N"', body: str = BODY,
) -> str:  # fmt: skip
    body = body.replace("TYPE", kind).replace("FIRST", first)
    return kernel_text(name, front=ARGS, launch=f"workspace_bytes = {nbytes}", body=body)


def case_of(path: Path, source: str, session: Session, *sizes: int) -> Case:
    path.write_text(source)
    M, N, K = sizes or (24, 17, 9)
    found = sweep.case(catalogue.load(path), Problem(M, N, K), {"TILE": 8}, session.backend.info)
    assert found.skip is None, found.skip
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.cu"


# -- its size ------------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([4, 8, 16]))
def test_its_size_is_that_of_the_case(device: DeviceInfo, M: int, N: int, TILE: int) -> None:
    source = text(nbytes='"4 * M * ceil_div(N, TILE) * TILE + multiprocessors"')
    kernel = front_matter.parse(source.encode(), "mine.cu")
    case = sweep.case(kernel, Problem(M, N, 1), {"TILE": TILE}, device)
    covered, launch = -(-N // TILE) * TILE, present(case.launch)
    assert launch.workspace_bytes == 4 * M * covered + device.limits["multiprocessors"]


@pytest.mark.parametrize(("nbytes", "words"), [(0, 0), (1, 1), (4, 1), (4097, 1025)])
@pytest.mark.parametrize("guards", [True, False])
def test_memory_is_between_guards(nbytes: int, words: int, guards: bool, timed: Session) -> None:
    timed.options = msgspec.structs.replace(QUICK, guarded=guards)
    timed.prepare(Problem(3, 3, 3), front_matter.parse(text().encode(), "x.cu").contract)
    prepared = present(timed._prepared)
    made = prepared.workspace(nbytes)
    assert made.extent.words == words
    assert made.data.nbytes == 4 * max(1, words)
    assert (made.start >= 4 * 2**16) == guards
    made.arena.release()


def test_more_than_devices_have_is_not_done(file: Path, timed: Session, device: DeviceInfo) -> None:
    source = text(nbytes='"2**50"')
    with pytest.raises(OutOfMemoryError, match="out of device memory"):
        timed.measure(case_of(file, source, timed))
    assert timed.measure(case_of(file, text(), timed)).status == "measured"
    kernel = front_matter.parse(text(nbytes='"2**63"').encode(), "mine.cu")
    skip = sweep.case(kernel, Problem(8, 8, 8), {"TILE": 8}, device).skip
    assert skip == Skip("limit", "workspace_bytes", {"asked": 2.0**63, "allowed": 2**63 - 1})


def test_it_is_given_back_after_each_case(file: Path, timed: Session) -> None:
    right(timed, case_of(file, text(), timed))
    held = len(present(timed._prepared)._held)
    for nbytes in ('"4 * M * N"', '"8 * M * N"', '"12 * M * N"'):
        assert timed.measure(case_of(file, text(nbytes=nbytes), timed)).status == "measured"
    assert len(present(timed._prepared)._held) == held


# -- kernels that use it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", some(["float", "void", "char", "unsigned", "float4"], "void", "float4")
)
def test_a_kernel_may_use_it_as_any_type(kind: str, file: Path, timed: Session) -> None:
    timed.options = msgspec.structs.replace(timed.options, blocks=True)
    found = right(timed, case_of(file, text(kind=kind), timed))
    assert found.median_ns is not None
    assert found.blocks is not None, found.notes
    assert present(found.case.launch).workspace_bytes == 4 * 24 * 17


def test_an_empty_one_has_an_address(file: Path, timed: Session) -> None:
    body = BODY.replace("sums[element] +=", "sum +=").replace("= sums[element];", "= sum;")
    first = "float sum = workspace ? 0.0f : 1.0f;"
    for guarded in (True, False):
        timed.options = msgspec.structs.replace(QUICK, guarded=guarded)
        right(timed, case_of(file, text(first=first, nbytes="0", body=body), timed))


def test_two_kernels_with_workspaces_are_compared(file: Path, timed: Session) -> None:
    first = case_of(file, text("first"), timed)
    second = case_of(file, text("second", nbytes='"8 * M * N"'), timed)
    plan = statistics.ComparisonPlan(looks=(12,), maximum_time_ns=1e7)
    record = comparing.here(timed, first, second, plan, 1)
    assert record.comparison is not None
    assert (record.baseline.status, record.candidate.status) == ("measured", "measured")
    assert timed._sides == [], "the next comparison has its own"


def test_turns_give_back(
    file: Path, timed: Session, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, freed, held = case_of(file, text(), timed), noted(Prepared, "free"), list[int]()
    monkeypatch.setattr(timed.kernels, "hold", held.append)
    assert timed.begin_turns(case, case.kernel.contract, 1) is None
    taken = timed.turn(0)
    assert isinstance(taken, tuple)
    assert min(taken) > 0
    assert held[-1] >= 500_000, "the host enqueues slowly after another process's turn"
    workspace = present(timed._sides[0][0].runnable.buffers.workspace)
    timed.place_turns(1)
    assert any(one is workspace.arena.buffer for _, one in freed), "another has its place"
    assert timed.end_turns(0) is None
    before = len(freed)
    timed.leave_turns()
    assert len(freed) == before + 1


def test_a_quick_look_and_block_times_have_one(file: Path, timed: Session) -> None:
    case = case_of(file, text(), timed)
    assert look_here(timed, case, 3, 1e9, check=True).status == "measured"
    timed.options = msgspec.structs.replace(timed.options, blocks=True)
    assert clocked_here(timed, case)[1] is not None


def multiplier(kernel: Kernel, session: Session) -> Multiplier:
    return Multiplier(
        session.backend, lambda case: session._build(case, ("plain",)).program, kernel, {"TILE": 8}
    )


def test_a_graded_kernel_has_one_without_zeros(file: Path, timed: Session) -> None:
    ones = np.ones((5, 5))
    right = multiplier(case_of(file, text(), timed).kernel, timed)
    assert (right.multiply(ones, ones) == 5).all()
    wrong = multiplier(case_of(file, text(first=""), timed).kernel, timed)
    assert np.isnan(wrong.multiply(ones, ones)).all()


# -- kernels that misuse it ----------------------------------------------------------------------


def test_a_kernel_that_shows_what_it_holds_is_told_so(file: Path, timed: Session) -> None:
    body = re.sub(r" *for .*\n.*\n", "", BODY)
    found = timed.measure(case_of(file, text(first="", body=body), timed))
    assert found.status == "wrong"
    assert "408 NaN read from the workspace, which was not written before" in str(found.reason)


@pytest.mark.parametrize(
    ("write", "told"),
    [
        ("((char *)workspace)[4 * M * N] = 0", "1 element, starting 1 after its end"),
        ("((char *)workspace)[4 * M * N + 4999] = 0", "1 element, starting 1,250 after its end"),
        ("((char *)workspace)[-1] = 0", "1 element, starting 1 before its start"),
    ],
)
def test_a_byte_outside_is_noticed(write: str, told: str, file: Path, timed: Session) -> None:
    first = f"sums[element] = 0.0f; if (element == 0) {write};"
    found = timed.measure(case_of(file, text(first=first), timed))
    assert found.reason == f"guards: wrote outside the workspace: {told}"


def test_a_byte_outside_an_empty_one_is_noticed(file: Path, timed: Session) -> None:
    body = BODY.replace("(float *)workspace", "C")
    first = "sums[element] = 0.0f; if (element == 0) ((char *)workspace)[4] = 0;"
    found = timed.measure(case_of(file, text(first=first, nbytes="0", body=body), timed))
    assert "outside the workspace: 1 element, starting 1 after its end" in str(found.reason)


def test_a_byte_outside_in_a_timed_launch_is_noticed(
    file: Path, timed: Session, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(file, text(), timed)
    made = workspaces(monkeypatch)

    def overwritten(_: Work, taken_ns: float) -> float:
        own = made[0]
        timed.kernels.fill(own.arena.buffer, own.start // 4 + own.extent.words, 1, 0)
        return taken_ns

    watch(after=overwritten)
    reason = str(timed.measure(case).reason)
    assert reason.startswith("guards: wrote outside the workspace: 1 element, starting 1 after")


def test_an_input_beside_it_that_a_timed_launch_changes_is_noticed(
    file: Path, timed: Session, watch: Watch
) -> None:
    case = case_of(file, text(), timed)

    def overwritten(work: Work, taken_ns: float) -> float:
        [call] = work.calls
        timed.kernels.fill(cast(Buffer, call.arguments[0]), 5, 1, 7)
        return taken_ns

    watch(after=overwritten)
    reason = timed.measure(case).reason
    assert reason == "inputs: changed its input A: 1 element, the first at offset 5"


def workspaces(patch: pytest.MonkeyPatch) -> list[Guarded]:
    """The workspaces that are made from now on."""
    made: list[Guarded] = []
    make = Prepared.workspace

    def kept(prepared: Prepared, nbytes: int) -> Guarded:
        made.append(make(prepared, nbytes))
        return made[-1]

    patch.setattr(Prepared, "workspace", kept)
    return made


def words(session: Session, made: Guarded) -> np.ndarray:
    found = np.empty(made.arena.buffer.nbytes // 4, np.uint32)
    session.backend.read(made.arena.buffer, found)
    return found


@pytest.mark.parametrize("batches", [False, True], ids=["single", "back to back"])
def test_before_each_timed_launch_each_one_holds_poison(
    batches: bool, file: Path, timed: Session, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "_MOST_SETS", 4)
    changes: dict[str, Any] = {"cold": not batches, "hot": batches, "back_to_back": batches}
    changes["checks"] = CHECKS - {"surprises"}  # which look at all memory
    timed.options = msgspec.structs.replace(timed.options, **changes)
    case = case_of(file, text(), timed)
    made = workspaces(monkeypatch)
    laid_out, lay_out = [], BatchArena.lay_out

    def recorded(arena: BatchArena, *more: Any) -> list[list[Guarded]]:
        laid_out.append(lay_out(arena, *more))
        return laid_out[-1]

    monkeypatch.setattr(BatchArena, "lay_out", recorded)
    taken: list[int] = []

    def looked_at(work: Work) -> None:
        given: list[Any] = [call.arguments[3] for call in work.calls]
        decoys = [decoy[3].data for decoy in laid_out[-1]] if batches and laid_out else []
        for own in (*given, *decoys):
            found = np.empty(own.nbytes // 4, np.uint32)
            timed.backend.read(own, found)
            assert (found == UNWORKED).all()
        [first] = made
        found, guard = words(timed, first), first.start // 4
        assert (found[:guard] == OUTSIDE_WORKSPACE).all()
        assert (found[guard + first.extent.words :] == OUTSIDE_WORKSPACE).all()
        taken.append(len(given))

    watch(looked_at)
    right(timed, case)
    assert len(taken) > 3
    assert max(taken) > 1 or not batches


def test_a_batch_has_only_as_many_as_fit_into_the_cache(
    file: Path, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"cold": False, "hot": True, "back_to_back": True, "checks": CHECKS - {"reordered"}}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    cache_bytes = int(timed.backend.info.properties["last-level cache (bytes)"] or 0)
    case = case_of(file, text(nbytes=str(cache_bytes // 2)), timed)
    made = workspaces(monkeypatch)
    assert timed.measure(case).status == "measured"
    assert len(made) == 1


def test_poison_is_nan_in_every_type() -> None:
    for value in (UNWORKED, OUTSIDE_WORKSPACE):
        held = np.full(2, value, np.uint32)
        for kind in (np.float16, np.float32, np.float64):
            assert np.isnan(held.view(kind)).all()
        upper = held.view(np.uint16).astype(np.uint32) << 16  # bfloat16
        assert np.isnan(upper.view(np.float32)).all()
