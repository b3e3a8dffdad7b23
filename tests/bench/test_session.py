"""One case from source to outcome, with failures on the way."""

from __future__ import annotations

from itertools import count, pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import products
from support.fixtures import QUICK, Noted, Watch
from support.kernels import GOOD_BODY, PADDED, KernelWriter, kernel_text
from support.optional import present
from support.products import right

from matbench.analysis import limits, ranking, statistics
from matbench.backends import open_backend
from matbench.backends.protocol import Buffer, Work
from matbench.bench import checks as all_checks
from matbench.bench import launches
from matbench.bench.launches import Launches, Times
from matbench.bench.matrices import BatchArena, Guarded, drawn_places
from matbench.bench.options import CHECKS
from matbench.bench.samples import SampleCheck, Samples
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import CaseError, OutOfMemoryError
from matbench.features.tune.looking import look_here
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, NumericContract, Problem
from matbench.worker import comparing

PLAN = statistics.ComparisonPlan(looks=(12,), maximum_time_ns=1e7)


def case_of(path: Path, session: Session, size: int = 24) -> Case:
    return products.case_of(path, size, session.backend.info, TILE=8)


def test_a_kernel_without_a_clock_is_measured(write_kernel: KernelWriter, timed: Session) -> None:
    timed.options = msgspec.structs.replace(timed.options, blocks=True)
    # A name that the clocked build's own entry has.
    taken = "#define ulong 1.5f\n" + GOOD_BODY.replace("sum = 0.0f", "sum = 0.0f * ulong")
    outcome = right(timed, case_of(write_kernel(body=taken), timed))
    assert outcome.median_ns is not None
    assert outcome.blocks is None
    assert any(note.startswith("not clocked: ") for note in outcome.notes)


def test_a_slow_launch_whose_time_is_known_is_clocked_once(
    write_kernel: KernelWriter, timed: Session, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matbench.bench.session.SLOW_NS", 0.0)
    timed.options = msgspec.structs.replace(timed.options, blocks=True)
    launched: list[float] = []

    def note(_: Work, taken_ns: float) -> float:
        launched.append(taken_ns)
        return taken_ns

    watch(after=note)
    outcome = timed.measure(case_of(write_kernel(), timed))
    slowdown = 1 + present(present(outcome.blocks).perturbation)
    assert any(ns / present(outcome.median_ns) == pytest.approx(slowdown) for ns in launched)


def test_shared_memory_sized_at_launch_is_not_0(write_kernel: KernelWriter, timed: Session) -> None:
    kept = "extern __shared__ float kept[];\nfloat sum = 0.0f * kept[threadIdx.x]"
    body = GOOD_BODY.replace("float sum = 0.0f", kept)
    path = write_kernel(body=body, launch="shared_bytes = 256")
    case = case_of(path, timed)
    # On a CPU, what is left there may not reach the threads that run a block next.
    assert any("shared memory" in (timed.measure(case).reason or "") for _ in range(9))


def test_no_verdict_on_a_kernel_that_is_wrong_in_its_turn(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome says which of the two was wrong; the other one stays right."""
    case = case_of(write_kernel(), timed)
    other = case_of(write_kernel("other"), timed)
    judged, calls = Samples.verdicts, []

    def wrong_once(samples: Samples) -> list[SampleCheck]:
        found = judged(samples)
        if found and found[0].draw.is_changed:
            calls.append(found)
            if len(calls) == 9:
                return [found[0]._replace(wrong=5, first=1)]
        return found

    monkeypatch.setattr(Samples, "verdicts", wrong_once)
    duel = comparing.here(timed, case, other, PLAN, seed=0)
    assert duel.comparison is None
    statuses = [duel.baseline.status, duel.candidate.status]
    assert sorted(statuses) == ["measured", "wrong"]
    for outcome in (duel.baseline, duel.candidate):
        assert outcome.median_ns is None
    assert present(timed._prepared).is_spoiled, "shared buffers are made again"
    [reason] = [o.reason for o in (duel.baseline, duel.candidate) if o.status == "wrong"]
    told = "5 of 576 elements wrong, first C[0, 1]; right when launched again with the same inputs"
    assert told in present(reason)


def test_a_comparison_places_data_and_code_anew(
    write_kernel: KernelWriter, timed: Session, watch: Watch, noted: Noted
) -> None:
    """Between blocks of pairs, the matrices move, and the other side's code is loaded first."""
    case, other = (case_of(write_kernel(name), timed) for name in ("mine", "other"))
    used: list[tuple[Any, int, int]] = []

    def note(work: Any) -> None:
        program, place = work.calls[0].program, work.calls[0].arguments[2].handle.int_ptr
        used.append((program, program.program.int_ptr, place))

    watch(note)
    reloads = noted(type(timed.program(case)), "reload")
    duel = comparing.here(timed, case, other, PLAN, seed=0)
    assert present(duel.comparison).samples == (12, 12)
    assert len(duel.baseline.samples_ns) == len(duel.candidate.samples_ns) == 12
    loaded = [program for (program,) in reloads]
    first, second = loaded[:2]
    assert first is not second
    assert loaded == [first, second, second, first] * 2 + [first, second]
    paired = used[-(2 * 12 + 2 * 5) :]
    for program in (first, second):
        ours = [(code, place) for other, code, place in paired if other is program]
        codes, places = zip(*ours, strict=True)
        assert min(len(set(codes)), len(set(places))) >= 2  # addresses may be used again
    assert timed.measure(case).status == "measured"


def test_a_difference_that_places_may_make_does_not_decide_on_this_device(
    write_kernel: KernelWriter, timed: Session, watch: Watch
) -> None:
    case, other = (case_of(write_kernel(name), timed) for name in ("mine", "other"))
    seen = dict[int, float]()
    least = ranking.LEAST[timed.backend.info.kind]
    verdicts = []
    for difference in (0.9 * least, 1.5 * least):

        def taken_ns(work: Any, _: float, by: float = difference) -> float:
            program = id(work.calls[0].program)
            return 1e6 * (1 + by * seen.setdefault(program, len(seen)))

        watch(after=taken_ns)
        plan = msgspec.structs.replace(PLAN, threshold=least / 10)
        verdicts.append(comparing.here(timed, case, other, plan, seed=0).verdict)
    assert verdicts[0] == "UNDECIDED"
    assert verdicts[1] in ("FASTER", "SLOWER")


def test_a_comparison_of_hot_launches_takes_means_of_many(
    write_kernel: KernelWriter, timed: Session, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each launch of a hot sample has its own buffers, as many as half of the cache holds."""
    back_to_back(timed, monkeypatch, "surprises")
    sets: list[list[int]] = []

    def note(work: Work) -> None:
        if is_batch(work):
            sets.append([id(call.arguments[2]) for call in work.calls])

    watch(note, lambda _, taken_ns: min(taken_ns, 5e3))  # also on a loaded machine
    case = case_of(write_kernel(), timed, size=24)
    duel = comparing.here(timed, case, case, PLAN, seed=0)
    assert duel.comparison is not None
    assert duel.candidate.mode == "hot"
    counts = [len(each) for each in sets]
    assert counts[:2] == [2, 2]  # the time of a launch, for each of the two
    # Then the warm-up, the pairs, and a warm-up at each of five other places.
    assert len(counts) == 2 + 2 * 2 + 2 * 12 + 2 * 5
    assert min(counts[2:]) > 2  # a launch this short is repeated
    assert all(len(set(each)) == len(each) for each in sets)
    cache_bytes = timed.backend.info.properties["last-level cache (bytes)"]
    assert max(counts) * 3 * 4 * 24 * 24 <= int(cache_bytes or 0) / 2
    sets.clear()
    timed.begin_turns(case, case.kernel.contract, 0)  # beside a function
    timed.turn(0)
    timed.leave_turns()
    assert len(sets.pop()) > 2


@pytest.mark.parametrize(("launch_ns", "times"), [(1e8, 1), (190e3, 5)])
def test_a_hot_sample_has_as_many_launches_as_take_a_millisecond(
    launch_ns: float, times: int, write_kernel: KernelWriter, timed: Session, watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    back_to_back(timed, monkeypatch, "surprises")
    counts: list[int] = []

    def note(work: Work) -> None:
        if is_batch(work):
            counts.append(len(work.calls))

    watch(note, lambda *_: launch_ns)
    case = case_of(write_kernel(), timed, size=8)
    assert look_here(timed, case, 4, 1e12, check=True).status == "measured"
    assert counts[0] == 2  # to know how long a launch takes
    assert set(counts[1:]) == {times}  # after a warm-up


def is_batch(work: Work) -> bool:
    """Whether these are launches back to back, after a warm-up."""
    return work.ready is not Work([]).ready


def back_to_back(timed: Session, monkeypatch: pytest.MonkeyPatch, *without: str) -> None:
    """Hot samples of few launches: to lay out many takes a CPU long."""
    monkeypatch.setattr(launches, "_MOST_SETS", 6)
    changes = {"cold": False, "hot": True, "back_to_back": True, "checks": CHECKS - set(without)}
    timed.options = msgspec.structs.replace(timed.options, **changes)


@pytest.mark.parametrize("check", ["decoys", None])
def test_sets_lie_elsewhere_in_each_batch_unless_there_is_no_chance(
    check: str | None, write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without chance, also in a batch of another size."""
    back_to_back(timed, monkeypatch, *({"decoys"} - {check}), "surprises")
    case = case_of(write_kernel(), timed, size=24)
    places: list[list[int]] = []
    laid_out: list[tuple[Buffer, int]] = []

    def recorded(checks: Any) -> Any:
        taken = Launches(checks)
        for sets in (3, 5, 5):
            arena = taken._laid_out(sets, sets, count())[0][0].C.arena
            places.append([one.start for one in arena.matrices if one.extent.name == "C"][:sets])
            laid_out.append((arena.buffer, len(arena.matrices)))
        return Times()

    assert timed.measure(case, times_of=recorded).status == "measured"
    few, many, again = places
    assert laid_out[1] == laid_out[2]  # no matrix is left of the batch before
    assert laid_out[0][0] not in present(timed._prepared)._held
    assert (many == again and many[:3] == few) == (check is None)


@pytest.mark.parametrize(
    ("place", "surprised", "check"),
    [
        *((place, False, "decoys") for place in ("before C", "behind C", "C of a decoy")),
        ("A of a decoy", False, "decoys"), ("inputs", False, "inputs"), ("inputs", True, "inputs"),
        ("elsewhere", False, None), ("elsewhere", True, "surprises"),
        ("between rows", False, "guards"), ("the order of terms", False, "decoys"),
    ],
)  # fmt: skip
def test_whatever_a_batch_changes_but_its_results_is_noticed(
    place: str, surprised: bool, check: str | None, write_kernel: KernelWriter, timed: Session,
    watch: Watch, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Decoys are enough, unless only a surprise looks there."""
    back_to_back(timed, monkeypatch, *(() if surprised else ("surprises",)))
    parts = PADDED if place == "between rows" else {}
    case = case_of(write_kernel(**parts), timed, size=24)
    values, lay_out = count(7), BatchArena.lay_out
    laid_out: list[tuple[BatchArena, list[list[Guarded]]]] = []

    def recorded(arena: BatchArena, *more: Any) -> list[list[Guarded]]:
        laid_out.append((arena, lay_out(arena, *more)))
        return laid_out[-1][1]

    def overwritten(work: Work, taken_ns: float) -> float:
        if not is_batch(work):
            return taken_ns
        arena, sets = laid_out[-1]
        A, _, C = sets[0]
        start, words = C.start // 4, C.extent.words
        buffer, at = {
            "before C": (arena.buffer, start - 1),
            "behind C": (arena.buffer, start + words),
            "between rows": (C.data, C.extent.width),
            "inputs": (A.data, 0),
            "C of a decoy": (sets[-1][2].data, 0),
            "A of a decoy": (sets[-1][0].data, 0),
            "elsewhere": (present(timed._samples).saved, 0),
            "the order of terms": (present(timed._samples)._order[0], 50),
        }[place]
        timed.kernels.fill(buffer, at, 1, next(values))
        return taken_ns

    monkeypatch.setattr(BatchArena, "lay_out", recorded)
    watch(after=overwritten)
    outcome = timed.measure(case)
    assert outcome.check == check, outcome.reason
    assert outcome.status == ("wrong" if check else "measured")


@pytest.mark.parametrize(("size", "launched"), [(24, 2), (20, 8)])
def test_a_check_launches_what_can_hardly_vary_more_often(
    size: int, launched: int, write_kernel: KernelWriter, session: Session, noted: Noted
) -> None:
    taken = noted(Launches, "once_ns")
    assert session.measure(case_of(write_kernel(), session, size)).status == "measured"
    assert len(taken) == launched


def test_surprises_come_before_and_after_the_samples_in_any_case(
    write_kernel: KernelWriter, timed: Session, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_to_back(timed, monkeypatch)
    monkeypatch.setattr(launches, "_SURPRISES", 10**9)
    surprise, events = Launches._surprise, list[str]()

    def counted(made: Launches, count: int) -> None:
        events.append("begin")
        surprise(made, count)
        events[-1:] = [] if events[-1] == "begin" else [events[-1], "surprise"]

    monkeypatch.setattr(Launches, "_surprise", counted)
    watch(lambda _: events.append("batch"))
    assert timed.measure(case_of(write_kernel(), timed)).status == "measured"
    of_surprise = ["begin", "batch", "surprise"]
    assert events[:4] == ["batch", *of_surprise]  # how long a launch takes comes first
    assert events[-3:] == of_surprise
    assert events[4:-3] == ["batch"] * (len(events) - 7)


def test_no_place_follows_from_the_others() -> None:
    places = sorted(drawn_places([1] * 8, [1] * 8, 1000, Random(0)))
    assert len({after - before for before, after in pairwise(places)}) > 4


@pytest.mark.parametrize(
    ("words", "alone"), [pytest.param(24 * 24 - 1, False, marks=pytest.mark.long), (24 * 24, True)]
)
def test_a_kernel_whose_variables_could_hold_c_is_launched_alone(
    words: int, alone: bool, write_kernel: KernelWriter, timed: Session, watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    back_to_back(timed, monkeypatch)
    counts: list[int] = []
    watch(lambda work: counts.append(len(work.calls)))
    keeps = GOOD_BODY.replace("float sum", "kept[0] = 0.0f; float sum", 1)
    path = write_kernel(body=f"__device__ float kept[{words}];\n{keeps}")
    assert timed.measure(case_of(path, timed)).status == "measured"
    assert (max(counts) == 1) == alone


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 90)), min_size=1, max_size=12),
    st.integers(0, 1000),
    st.randoms(use_true_random=False),
)
def test_places_leave_the_gaps(pieces: list[tuple[int, int]], spare: int, random: Random) -> None:
    pages, gaps = ([*column] for column in zip(*pieces, strict=True))
    total = sum(pages) + sum(gaps) + max(gaps) + spare
    places = drawn_places(pages, gaps, total, random)
    end, first = 0, min(range(len(places)), key=places.__getitem__)
    for piece in sorted(range(len(places)), key=places.__getitem__):
        assert places[piece] - end >= gaps[piece]
        end = places[piece] + pages[piece]
    assert total - end >= gaps[first]


def test_cold_and_hot_samples_are_alike(write_kernel: KernelWriter, timed: Session) -> None:
    """With both kinds, each has its own samples, interval, conditions and settled mark."""
    changes = {"cold": True, "hot": True, "uncertainty": 1e-9}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    outcome = timed.measure(case_of(write_kernel(), timed))
    cold, hot = present(outcome.cold), present(outcome.hot)
    for timing in (cold, hot):
        assert len(timing.samples_ns) >= 3
        assert timing.median_ns == pytest.approx(np.median(timing.samples_ns))
        assert timing.interval_ns is not None
        assert (timing.settled, timing.stopped) == (False, statistics.TIME_IS_UP)
        assert len(timing.conditions) >= 2
        assert timing.warmups is not None
        assert timing.seed is not None
    assert outcome.mode == "cold"
    assert outcome.median_ns == cold.median_ns


@pytest.mark.parametrize(("kind", "mode"), [("cpu", "hot"), ("gpu", "cold"), ("gpu", "hot")])
def test_a_time_that_is_impossible_is_wrong_and_noted_for_hot_samples_of_a_gpu(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch, kind: str,
    mode: str,
) -> None:  # fmt: skip
    floor = limits.Floor(1e15, "to wait for ever")
    monkeypatch.setattr(limits, "floor_of_operations", lambda *_: floor)
    monkeypatch.setattr(limits, "floors_of_cpu", lambda *_: [floor])
    case = case_of(write_kernel(), timed)
    info = msgspec.structs.replace(timed.backend.info, kind=kind)
    monkeypatch.setattr(timed.backend, "info", info)
    fast = limits.Bandwidth(1e15, 1e15)  # to measure it would take half a minute
    monkeypatch.setattr(timed, "_bandwidth", fast)
    timed.options = msgspec.structs.replace(timed.options, cold=mode == "cold", hot=mode == "hot")
    outcome = timed.measure(case)
    said = "is impossible: it takes at least 1e+12 µs to wait for ever"
    if (kind, mode) != ("gpu", "hot"):
        assert outcome.status == "wrong"
        assert present(outcome.reason).startswith("impossible: ")
        assert said in present(outcome.reason)
        assert (outcome.cold, outcome.hot, outcome.blocks) == (None, None, None)
    else:
        assert outcome.status == "measured"
        assert any(said in note for note in outcome.notes)


DOT = "const float *A, const float *B, float *C, int N"
NOTHING = f'extern "C" __global__ void ENTRY({DOT}) {{ C[0] = 0.0f; }}\n'


@pytest.mark.long
def test_a_cpu_is_slower(tmp_path: Path, timed: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no check of C: only the time tells that nothing was read."""
    (tmp_path / "mine.cu").write_text(
        kernel_text("mine", front='workload = "dot"', launch="block = [1]\ngrid = [1]\n",
                    body=NOTHING)
    )  # fmt: skip
    info = timed.backend.info
    single = msgspec.structs.replace(info, limits={**info.limits, "multiprocessors": 1})
    monkeypatch.setattr(timed.backend, "info", single)
    problem = Problem(1, 2**22, 1, workload="dot", inputs="signed")
    case = sweep.case(catalogue.load(tmp_path / "mine.cu"), problem, {"TILE": 8}, single)
    of_C = {"reference", "integers", "selection", "samples", "repeat"}
    for checks, status in ((CHECKS - of_C, "wrong"), (CHECKS - of_C - {"impossible"}, "measured")):
        timed.options = msgspec.structs.replace(timed.options, checks=checks)
        outcome = timed.measure(case)
        assert outcome.status == status, outcome.reason
        assert outcome.check == (None if status == "measured" else "impossible")


def test_nothing_that_a_wrong_kernel_may_have_written_to_is_used_again(
    write_kernel: KernelWriter, timed: Session
) -> None:
    good = case_of(write_kernel(), timed)
    bad = case_of(write_kernel("bad", body=GOOD_BODY.replace("= sum;", "= sum + 1.0f;")), timed)
    timed.measure(good)
    first = timed._prepared
    timed.measure(good)
    assert timed._prepared is first
    assert timed.measure(bad).status == "wrong"
    assert timed.measure(good).status == "measured"
    assert timed._prepared is not first


def test_matrices_of_another_problem_are_freed(write_kernel: KernelWriter, timed: Session) -> None:
    path, held = write_kernel(), []
    for size in (24, 32) * 2:
        timed.measure(case_of(path, timed, size))
        held.append(len(timed.backend.memory_without([])))
    assert held[:2] == held[2:]


@pytest.mark.parametrize("which", ["not used again", "used again"])
def test_what_was_written_to_matbenchs_own_copies_is_noticed(
    which: str, write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says more than a C that is wrong because of it."""
    case = case_of(write_kernel(), timed)
    timed.measure(case)
    prepared = present(timed._prepared)
    trial = prepared.reference if which == "used again" else prepared.others[0]
    scribbled = lambda _: timed.kernels.fill(trial.inputs[0], 0, 1, 12345)  # noqa: E731
    monkeypatch.setattr(all_checks, "AFTER_TIMING", (scribbled, *all_checks.AFTER_TIMING))
    outcome = timed.measure(case)
    assert outcome.status == "wrong"
    assert present(outcome.reason).startswith("sources: wrote to memory that is not its own")
    monkeypatch.undo()
    assert timed.measure(case).status == "measured"


def test_a_source_that_tells_builds_is_refused(write_kernel: KernelWriter, timed: Session) -> None:
    body = "#ifdef MATBENCH_SPECIAL\n#endif\n" + GOOD_BODY
    with pytest.raises(CaseError, match="builds: the source uses `MATBENCH_SPECIAL`"):
        timed.measure(case_of(write_kernel(body=body), timed))


#: GOOD_BODY that also writes out of bounds, if WHERE holds for the first number of A.
OUTSIDE = GOOD_BODY.replace(
    "    float sum", "    if (row == 0 && column == 0 && WHERE) WRITE;\n    float sum"
)
#: The address space, for OpenCL.
GLOBAL = "__global "
WHOLE = "A[0] == rint(A[0]) && A[1] == rint(A[1]) && A[2] == rint(A[2])"


def outside(session: Session, where: str, write: str) -> str:
    body = OUTSIDE.replace("WHERE", where).replace("WRITE", write)
    return body.replace(GLOBAL, "") if session.backend.info.backend == "cuda" else body


@pytest.mark.parametrize(
    ("where", "write", "front", "told"),
    [
        (WHOLE, "C[M * N + 2] = 1.0f", "", "C: 1 element, starting 3 after its end"),
        ("(__float_as_uint(A[1]) & 0x1FFF) != 0", "C[M * N + 2] = 1.0f", 'precision = "tf32"',
         "C: 1 element, starting 3 after its end"),
        ("1", f"(({GLOBAL}float *)A)[M * K - 1] = (({GLOBAL}float *)A)[M * K] = 7.0f", "",
         "A: 1 element, starting 1 after its end"),
    ],
    ids=["on inputs from the host", "before they are rounded", "beside changed inputs"],
)  # fmt: skip
def test_a_write_outside_is_named_and_not_blamed_on_a_sample(
    where: str, write: str, front: str, told: str, write_kernel: KernelWriter, timed: Session
) -> None:
    path = write_kernel(front=front, body=outside(timed, where, write))
    outcome = timed.measure(case_of(path, timed))
    assert outcome.reason == f"guards: wrote outside {told}"


@pytest.mark.parametrize("seed", range(3))
def test_an_input_that_one_launch_changed_is_named_after_others(
    seed: int, write_kernel: KernelWriter, timed: Session
) -> None:
    """The launch is repeated: the last one may have changed none."""
    write = f"(({GLOBAL}float *)A)[1] = 7.0f"
    body = outside(timed, "A[0] < 0.0f && A[1] != rint(A[1])", write)
    timed.options = msgspec.structs.replace(timed.options, minimum_samples=20)  # 3 may miss it
    outcome = timed.measure(case_of(write_kernel(f"changes_{seed}", body=body), timed))
    assert outcome.reason == "inputs: changed its input A: 1 element, the first at offset 1"


def test_a_closed_session_leaves_no_memory_allocated(
    device: DeviceInfo, write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one on the device needs none but what the device keeps for itself."""
    opened, held = open_backend(device, Cache()), []
    paths = write_kernel(), write_kernel("other")
    with monkeypatch.context() as patch:
        patch.setattr(opened, "close", lambda: held.append(len(opened.memory_without(()))))
        for _ in range(2):
            own = Session(opened, Cache(), QUICK)
            for path in paths:
                assert own.measure(case_of(path, own)).status == "measured"
            own.close()
    opened.close()
    assert held == held[:1] * 2


@pytest.mark.parametrize("without", ["", "B"])
def test_matrices_that_do_not_fit_into_one_allocation_have_one_each(
    without: str, write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If not even that is possible, none is left."""
    allocate, sizes = timed.backend.allocate, list[int]()

    def limited(nbytes: int, *, is_given: bool = False) -> Any:
        sizes.extend([nbytes] * is_given)
        if is_given and (nbytes > 2**20 or (without and len(sizes) == 3)):  # of all, of A, of B
            raise OutOfMemoryError("out of device memory")
        return allocate(nbytes, is_given=is_given)

    monkeypatch.setattr(timed.backend, "allocate", limited)
    case = case_of(write_kernel(), timed)
    if without:
        timed.prepare(case.problem, NumericContract())
        own = present(timed._prepared)
        held = len(own._held)
        with pytest.raises(OutOfMemoryError):
            own.buffers((24, 24))
        assert len(own._held) == held
        return
    assert timed.measure(case).status == "measured"
    own = present(timed._prepared)
    held = len(own._held)
    own.move()  # only what lies before those to come takes the place of A, B and C
    assert len(own._held) == held - 3 + 1
    body = outside(timed, "1", "C[M * N + 2] = 1.0f")
    outcome = timed.measure(case_of(write_kernel("outside", body=body), timed))
    assert outcome.reason == "guards: wrote outside C: 1 element, starting 3 after its end"


def test_what_a_case_spoiled_before_it_failed_is_made_anew(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(write_kernel(), timed)

    def spoil(launches: Launches, *, cold: bool) -> None:
        C = launches.runnable.C
        launches.kernels.fill(C.arena.buffer, C.start // 4 + C.extent.words, 5, 1)
        raise CaseError("the device's clock did not advance during a launch")

    for name in ("launches.Launches.sampler", "session.Samples"):  # as the latter, it fails at once
        with monkeypatch.context() as patch:
            patch.setattr(f"matbench.bench.{name}", spoil)
            with pytest.raises((CaseError, TypeError)):
                timed.measure(case)
    right(timed, case)


@pytest.mark.parametrize(
    ("problem", "least"),
    [
        (Problem(1, 1000, 64), 256 * 1000),
        (Problem(300, 1000, 64), 256 * 1000),
        (Problem(3, 3, 3), 2**16),
        (Problem(1, 100_000, 1, workload="reverse"), 100_000),
    ],
    ids=lambda value: value.size if isinstance(value, Problem) else "",
)
def test_guards_are_256_rows_or_a_vector(problem: Problem, least: int, timed: Session) -> None:
    timed.prepare(problem, NumericContract())
    prepared = present(timed._prepared)
    buffers = prepared.buffers((problem.M, problem.N))
    guards = [guard for guard in buffers.C.arena.guards if guard.extent.name == "C"]
    for guard in guards:
        assert least <= (guard.end - guard.start) // 4 < least + 2**13


@pytest.mark.parametrize(
    ("set_kib", "sets"), [(48, 64), (768, 8), (3 * 1024, 2), (12 * 1024, 2), (13 * 1024, 1)]
)
def test_a_hot_sample_has_the_sets_that_the_cache_holds(set_kib: int, sets: int) -> None:
    """An eighth of 50 MiB, two sets if both fit into half of it, and at most 64."""
    launches = SimpleNamespace(_cache_bytes=50 * 2**20, _set_bytes=set_kib * 1024)
    assert Launches._sets_in_cache(launches) == sets  # type: ignore[arg-type]
