"""One case from source to outcome, with failures on the way."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import msgspec
import numpy as np
import pytest
from support.kernels import GOOD_BODY, KernelWriter
from support.optional import present

from matbench.analysis import limits, statistics
from matbench.backends import Backend
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.features.tune.looking import look_here
from matbench.kernelfile import catalogue, sweep
from matbench.measure import launches
from matbench.measure.launches import Launches
from matbench.measure.options import CHECKS, Options
from matbench.measure.samples import SampleCheck, Samples
from matbench.measure.session import Session
from matbench.model import Case, NumericContract, Problem

QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3, blocks=False)
PLAN = statistics.ComparisonPlan(looks=(12,), maximum_time_ns=1e7)


@pytest.fixture
def timed(backend: Backend) -> Session:
    """A session with timing, on the device that is already open."""
    return Session(backend, Cache(), QUICK)


def case_of(path: Any, session: Session, size: int = 24) -> Case:
    case = sweep.case(
        catalogue.load(path), Problem(size, size, size), {"TILE": 8}, session.backend.info
    )
    assert case.skip is None
    return case


def test_a_kernel_that_cannot_be_clocked_is_measured_all_the_same(
    write_kernel: KernelWriter, timed: Session
) -> None:
    timed.options = msgspec.structs.replace(timed.options, blocks=True)
    # A name of the clocked build's own.
    taken = "#define thread 1.5f\n" + GOOD_BODY.replace("sum = 0.0f", "sum = 0.0f * thread")
    outcome = timed.measure(case_of(write_kernel(body=taken), timed))
    assert outcome.status == "measured"
    assert outcome.median_ns is not None
    assert outcome.blocks is None
    assert any(note.startswith("not clocked: ") for note in outcome.notes)


def test_shared_memory_that_only_the_launch_sizes_does_not_begin_as_zeros(
    write_kernel: KernelWriter, timed: Session
) -> None:
    kept = "extern __shared__ float kept[];\nfloat sum = 0.0f * kept[threadIdx.x]"
    launch = 'block = ["TILE", "TILE"]\ngrid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]\n'
    path = write_kernel(
        body=GOOD_BODY.replace("float sum = 0.0f", kept), launch=f"{launch}shared_bytes = 256"
    )
    assert "shared memory" in (timed.measure(case_of(path, timed)).reason or "")


def test_no_verdict_on_a_kernel_that_is_wrong_in_its_turn(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome says which of the two was wrong; the other one stays right."""
    case = case_of(write_kernel(), timed)
    other = case_of(write_kernel("other"), timed)
    judged, calls = Samples.verdicts, []

    def wrong_once(samples: Samples) -> list[SampleCheck]:
        found = judged(samples)
        calls.append(found)
        if len(calls) == 9:
            return [found[0]._replace(wrong=5, first=1)]
        return found

    monkeypatch.setattr(Samples, "verdicts", wrong_once)
    duel = timed.compare(case, other, PLAN, seed=0)
    assert duel.comparison is None
    statuses = [duel.baseline.status, duel.candidate.status]
    assert sorted(statuses) == ["measured", "wrong"]
    for outcome in (duel.baseline, duel.candidate):
        assert outcome.median_ns is None
    [reason] = [o.reason for o in (duel.baseline, duel.candidate) if o.status == "wrong"]
    told = "5 of 576 elements wrong, first C[0, 1]; right when launched again with the same inputs"
    assert told in present(reason)


@pytest.mark.parametrize(
    ("every", "checks", "status"),
    [
        (1, CHECKS, "wrong"),
        (3, CHECKS, "measured"),
        (1000, CHECKS, "measured"),
        (1, CHECKS - {"idle"}, "measured"),
    ],
)
def test_work_that_outlives_its_launch_is_seen(
    every: int,
    checks: frozenset[str],
    status: str,
    write_kernel: KernelWriter,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each such launch leaves the device busy; occasionally another program does, too.

    Only on a GPU; the CPU here stands for one.
    """
    monkeypatch.setattr(launches, "_OUTLIVING", ("gpu", "cpu"))
    options = msgspec.structs.replace(QUICK, checks=checks, minimum_samples=10)
    timed = Session(backend, Cache(), options)
    case = case_of(write_kernel(), timed, size=128)
    time_ns, calls = timed.backend.time_ns, count(1)

    def outlived(program: Any, launch: Any, arguments: Any, *, cold: bool) -> float:
        taken = time_ns(program, launch, arguments, cold=cold)
        if next(calls) % every == 0:
            for _ in range(50):
                program.launch(launch, arguments)
        return taken

    monkeypatch.setattr(timed.backend, "time_ns", outlived)
    outcome = timed.measure(case)
    assert outcome.status == status, outcome.reason
    if status == "wrong":
        late = r"idle: still running [1-9][0-9,]* µs after the event"
        assert re.match(late, present(outcome.reason))


def test_both_sides_of_a_comparison_carry_their_samples(
    write_kernel: KernelWriter, timed: Session
) -> None:
    case = case_of(write_kernel(), timed)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert present(duel.comparison).samples == (12, 12)
    assert len(duel.baseline.samples_ns) == len(duel.candidate.samples_ns) == 12


def test_a_comparison_of_hot_launches_takes_means_of_many(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each launch of a hot sample has its own buffers, as many as half of the cache holds."""
    changes = {"cold": False, "hot": True, "back_to_back": True}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    take, sets = timed.backend.time_hot_ns, []

    def counted(program: Any, launch: Any, arguments: Any, **more: Any) -> float:
        sets.append([id(each[2]) for each in arguments])
        return take(program, launch, arguments, **more)

    monkeypatch.setattr(timed.backend, "time_hot_ns", counted)
    case = case_of(write_kernel(), timed, size=24)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert duel.comparison is not None
    assert duel.candidate.mode == "hot"
    counts = [len(each) for each in sets]
    assert counts[:2] == [3, 3]  # the time of a launch, for each of the two
    assert len(counts) == 2 + 2 * 2 + 2 * 12  # then the warm-up, then the pairs
    assert min(counts[2:]) > 3  # a launch this short is repeated
    assert all(len(set(each)) == len(each) for each in sets)
    cache_bytes = timed.backend.info.properties["last-level cache (bytes)"]
    assert max(counts) * 3 * 4 * 24 * 24 <= int(cache_bytes or 0) / 2


def test_a_long_launch_is_timed_once_in_a_hot_sample(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"cold": False, "hot": True, "back_to_back": True}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    counts: list[int] = []

    def slow(program: Any, launch: Any, arguments: Any, **more: Any) -> float:
        counts.append(len(arguments))
        for given in arguments:
            timed.backend.time_ns(program, launch, given, cold=False)
        return 1e8

    monkeypatch.setattr(timed.backend, "time_hot_ns", slow)
    case = case_of(write_kernel(), timed, size=8)
    assert look_here(timed, case, 4, 1e12, check=True).status == "measured"
    assert counts[0] == 3  # to know how long a launch takes
    assert set(counts[1:]) == {2}  # a warm-up, and the launch that counts


@pytest.mark.parametrize(("what", "side"), [("guards", 0), ("guards", 1), ("inputs", 0)])
def test_every_set_of_a_batch_is_looked_at(
    what: str,
    side: int,
    write_kernel: KernelWriter,
    timed: Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = {"cold": False, "hot": True, "back_to_back": True}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    case = case_of(write_kernel(), timed, size=24)
    take, judge = timed.backend.time_hot_ns, timed.judge

    def overwritten(program: Any, launch: Any, arguments: Any, **more: Any) -> float:
        taken = take(program, launch, arguments, **more)
        [_, second] = present(timed._prepared).sets((24, 24), 2)
        if what == "guards":
            last, behind = second.C.guard_words - 1, second.C.guard_words + second.C.words
            judge.fill(second.C.raw, (last, behind)[side], 1, 7)
        else:
            judge.fill(second.inputs[0].raw, second.inputs[0].guard_words, 1, 7)
        return taken

    monkeypatch.setattr(timed.backend, "time_hot_ns", overwritten)
    outcome = timed.measure(case)
    assert outcome.status == "wrong"
    assert present(outcome.reason).startswith(f"{what}: ")


def test_the_times_of_a_wrong_kernel_are_none(write_kernel: KernelWriter, timed: Session) -> None:
    off = GOOD_BODY.replace("= sum;", "= sum + 1.0f;")
    outcome = timed.measure(case_of(write_kernel(body=off), timed))
    assert outcome.status == "wrong"
    assert "each off by +1" in present(outcome.reason)
    assert outcome.median_ns is None
    assert outcome.samples_ns == ()


def test_cold_and_hot_samples_are_recorded_alike(
    write_kernel: KernelWriter, timed: Session
) -> None:
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


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_time_that_is_impossible_is_wrong_on_a_gpu_and_noted_on_a_cpu(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    floor = limits.Floor(1e15, "to wait for ever")
    monkeypatch.setattr(limits, "floor_of_operations", lambda *_: floor)
    case = case_of(write_kernel(), timed)
    info = msgspec.structs.replace(timed.backend.info, kind=kind)
    monkeypatch.setattr(timed.backend, "info", info)
    monkeypatch.setattr(
        timed, "_copy_bytes_per_s", lambda _: None
    )  # which would take half a minute
    timed.options = msgspec.structs.replace(timed.options, cold=kind == "gpu", hot=kind == "cpu")
    outcome = timed.measure(case)
    said = "is impossible: it takes at least 1e+12 µs to wait for ever"
    if kind == "gpu":
        assert outcome.status == "wrong"
        assert present(outcome.reason).startswith("impossible: ")
        assert said in present(outcome.reason)
        assert (outcome.cold, outcome.hot, outcome.blocks) == (None, None, None)
    else:
        assert outcome.status == "measured"
        assert any(said in note for note in outcome.notes)


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


def test_what_was_written_to_matbenchs_own_copies_is_noticed(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(write_kernel(), timed)
    timed.measure(case)
    prepared = present(timed._prepared)
    upload = prepared.others[0].inputs[0]  # used before the samples, not after
    untimed = Launches.time

    def scribbled(launches: Launches) -> Any:
        found = untimed(launches)
        timed.judge.fill(upload, 0, 1, 12345)
        return found

    monkeypatch.setattr(Launches, "time", scribbled)
    outcome = timed.measure(case)
    assert outcome.status == "wrong"
    assert present(outcome.reason).startswith("sources: wrote to memory that is not its own")
    monkeypatch.undo()
    assert timed.measure(case).status == "measured"


def test_a_source_that_could_tell_builds_apart_is_refused(
    write_kernel: KernelWriter, timed: Session
) -> None:
    body = "#ifdef MATBENCH_SPECIAL\n#endif\n" + GOOD_BODY
    with pytest.raises(CaseError, match="builds: the source uses `MATBENCH_SPECIAL`"):
        timed.measure(case_of(write_kernel(body=body), timed))


#: GOOD_BODY that also writes out of bounds, if WHERE holds for the first number of A.
OUTSIDE = GOOD_BODY.replace(
    "    float sum",
    "    if (row == 0 && column == 0 && WHERE) WRITE;\n    float sum",
)
WHOLE = "A[0] == rint(A[0]) && A[1] == rint(A[1]) && A[2] == rint(A[2])"


def test_a_write_outside_on_inputs_from_the_host_is_not_blamed_on_a_sample(
    write_kernel: KernelWriter, timed: Session
) -> None:
    body = OUTSIDE.replace("WHERE", WHOLE).replace("WRITE", "C[M * N + 2] = 1.0f")
    outcome = timed.measure(case_of(write_kernel(body=body), timed))
    assert outcome.reason == "guards: wrote outside C: 1 element, starting 3 after its end"


def test_a_write_outside_says_more_than_changed_inputs(
    write_kernel: KernelWriter, timed: Session
) -> None:
    write = "((__global float *)A)[M * K - 1] = ((__global float *)A)[M * K] = 7.0f"
    if timed.backend.info.backend == "cuda":
        write = write.replace("__global ", "")
    body = OUTSIDE.replace("WHERE", "1").replace("WRITE", write)
    outcome = timed.measure(case_of(write_kernel(body=body), timed))
    assert outcome.reason == "guards: wrote outside A: 1 element, starting 1 after its end"


def test_what_a_case_spoiled_before_it_failed_is_made_anew(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(write_kernel(), timed)

    def spoil(launches: Launches) -> None:
        C = launches.checks.C
        launches.judge.fill(C.raw, C.guard_words + C.words, 5, 1)
        raise CaseError("the device's clock did not advance during a launch")

    with monkeypatch.context() as patch:
        patch.setattr(Launches, "time", spoil)
        with pytest.raises(CaseError):
            timed.measure(case)
    outcome = timed.measure(case)
    assert outcome.status == "measured", outcome.reason


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
def test_guards_are_256_rows_wide_or_as_long_as_a_vector(
    problem: Problem, least: int, timed: Session
) -> None:
    prepared = timed._prepare(problem, NumericContract())
    [buffers] = prepared.sets((problem.M, problem.N), 1)
    assert least <= buffers.C.guard_words < least + 2**13
