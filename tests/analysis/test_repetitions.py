"""The repetitions of a case: which belong together, and what they become in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import record_files, records
from support.devices import GPU
from support.golden import TableRegression
from support.optional import present
from support.records import environment, outcome, repeated, timing

from matbench.analysis import gathering, ranking
from matbench.model import Problem, Skip
from matbench.records.outcome import Outcome


def around(median: float, repetition: int = 1, kernel: str = "tiled", **changes: Any) -> Outcome:
    """Samples close to a median, in nanoseconds."""
    samples = tuple(median * (1 + share / 100) for share in (-2, -1, -1, 0, 1, 1, 2))
    interval = (median * 0.98, median * 1.02)
    cold = timing(samples_ns=samples, interval_ns=interval)
    return records.outcome(kernel, cold=cold, repetition=repetition, **changes)


def numbers(found: list[list[Outcome]]) -> list[list[int]]:
    return [[one.repetition for one in together] for together in found]


# Which belong together


def test_the_repetitions_of_a_run_are_together_case_by_case() -> None:
    """As `run --repeat` writes them: every case, then every case again."""
    written = [around(1.0, n, kernel) for n in (1, 2, 3) for kernel in ("tiled", "kahan")]
    found = gathering.sets(written)
    assert numbers(found) == [[1, 2, 3]] * 2
    assert [{one.case.kernel for one in together} for together in found] == [{"tiled"}, {"kahan"}]


@pytest.mark.parametrize(
    "change", [{"params": {"TILE": 8}}, {"sha256": "1" * 64}, {"device": "Another"}]
)
def test_another_case_is_no_repetition(change: dict[str, Any]) -> None:
    assert numbers(gathering.sets([around(1.0), around(1.0, 2, **change)])) == [[1], [2]]


def test_two_runs_in_one_file_are_two_sets(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    record_files.write(file, *repeated(around(1.0), 3))
    record_files.write(file, *repeated(around(2.0), 2), mode="resume")
    found = gathering.sets(record_files.read(file)[1])
    assert numbers(found) == [[1, 2, 3], [1, 2]]
    assert [together[0].median_ns for together in found] == [1.0, 2.0]
    assert [gathering.merge(together).median_ns for together in found] == [1.0, 2.0]


def test_runs_without_repetitions_stay_apart() -> None:
    assert numbers(gathering.sets([around(1.0), around(1.1)])) == [[1], [1]]


def test_what_a_resumed_run_adds_belongs_to_the_set(tmp_path: Path) -> None:
    """Interrupted after two of five processes, and the first had failed."""
    file = tmp_path / "out.jsonl"
    failed = records.outcome(status="failed", reason="took too long")
    record_files.write(file, failed, around(1.0, 2))
    record_files.write(file, *(around(1.0, n) for n in (1, 3, 4, 5)), mode="resume")
    [together] = gathering.sets(gathering.without_retried(record_files.read(file)[1]))
    assert sorted(one.repetition for one in together) == [1, 2, 3, 4, 5]
    # The control: the retry would begin another set.
    assert len(gathering.sets(record_files.read(file)[1])) == 2


# What they become


def test_a_case_of_one_process_stays_as_it_is() -> None:
    one = around(1.0)
    assert gathering.merge([one]) is one


def processes(*every: float | str, hot: bool = False) -> list[Outcome]:
    """One after the other: its median in nanoseconds, or its status."""
    found = []
    for n, one in enumerate(every, 1):
        if isinstance(one, str):
            changes: dict[str, Any] = {"status": one, "reason": f"in {n}", "repetition": n}
            found.append(records.outcome(**changes))
            continue
        half = timing(samples_ns=(one / 2,), interval_ns=(one / 2, one / 2)) if hot else None
        found.append(msgspec.structs.replace(around(one, n), hot=half))
    return found


def test_what_processes_become(table_regression: TableRegression) -> None:
    """The one with the median time stands for all, of an even number the faster of two; each counts
    as a round. A wrong or failed one decides."""

    def merged(question: str) -> str:
        found = gathering.merge(eval(f"processes({question})", {"processes": processes}))
        said = [found.status, f"repetition {found.repetition}", *filter(None, [found.reason])]
        for name in ("cold", "hot"):
            if (taken := getattr(found, name)) is not None:
                rounds = ranking.round_medians_ns(taken)
                interval = " to ".join(f"{end:g}" for end in taken.interval_ns)
                said.append(f"{name} {taken.median_ns:g}, {interval} ns")
                said.append(f"rounds of {taken.rounds}, {rounds}; {sorted(taken.samples_ns)}")
        return "; ".join([*said, *found.notes])

    table_regression("processes.txt", merged)


medians = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=12)


@given(medians)
def test_the_interval_covers_all(found: list[float]) -> None:
    every = [around(ns, n + 1) for n, ns in enumerate(found)]
    merged = gathering.merge(every)
    own = next(one for one in every if one.median_ns == merged.median_ns)
    low, high = present(present(merged.cold).interval_ns)
    own_low, own_high = present(present(own.cold).interval_ns)
    assert low <= own_low <= own_high <= high
    if len(found) < 6:  # too few for 95%: the interval is from the fastest to the slowest
        assert low <= min(one.median_ns or 0 for one in every)
        assert max(one.median_ns or 0 for one in every) <= high
    msgspec.json.decode(msgspec.json.encode(merged), type=Outcome)


def test_a_skipped_case_stays_skipped() -> None:
    found = repeated(records.outcome(status="skipped", skip=Skip("unavailable", "no")), 3)
    assert gathering.merge(found) == found[0]


# Several GPUs of one model


TWO = tuple(
    msgspec.structs.replace(GPU, index=index, properties={"UUID": f"GPU-{index}"})
    for index in range(2)
)
ABOUT = [environment(devices=TWO)]


def on(index: int, kernel: str = "tiled", ms: float = 1.0, n: int = 64, T: int = 16) -> Outcome:
    return outcome(
        kernel, ms, problem=Problem(n, n, n), params={"TILE": T}, backend="cuda", device=GPU.name,
        device_kind="gpu", device_id=f"GPU-{index}",
    )  # fmt: skip


def test_devices_that_measured_different_problems_share_a_table() -> None:
    given = [on(0, n=64), on(1, n=128), on(1, n=256)]
    assert gathering.told_apart(given, ABOUT) == (given, ABOUT)
    [table] = ranking.tables(given)
    assert len(table.problems) == 3


def test_devices_that_measured_the_same_problem_are_never_ranked_together() -> None:
    given = [on(1, ms=1.0), on(0, ms=2.0), on(0, "other", ms=3.0)]
    found, about = gathering.told_apart(given, ABOUT)
    assert [o.case.device for o in found] == [
        "A GPU (cuda:0)", "A GPU (cuda:0)", "A GPU (cuda:1)"
    ]  # fmt: skip
    assert [info.name for info in about[0].devices] == ["A GPU (cuda:0)", "A GPU (cuda:1)"]
    rivals = [[row.rivals for row in table.rows] for table in ranking.tables(found)]
    assert rivals == [[2, 2], [1]]


def test_places_that_two_devices_had_are_not_used() -> None:
    elsewhere = msgspec.structs.replace(TWO[0], properties={"UUID": "GPU-7"})
    about = [*ABOUT, environment(devices=(elsewhere,))]
    assert gathering.places(about) == {"GPU-0": "GPU-0", "GPU-1": "cuda:1", "GPU-7": "GPU-7"}
