"""Checking: a record whose values contradict each other is refused with its line number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.launches import UNEVEN, analysed, sampled
from support.paths import ROOT
from support.record_files import only, write
from support.records import environment, outcome, timing

from matbench.errors import MatbenchError, UsageError
from matbench.model import Launch, Resources
from matbench.records import encoding
from matbench.records.blocks import Bar, Timeline
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Accuracy, BlockTimes, Build, ErrorCells
from matbench.records.reading import read
from matbench.records.writing import RecordWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


WHOLE = json.loads(
    encoding.line(
        outcome(
            build=Build(
                duration_s=1.0,
                resources=Resources(registers=32),
                resident_blocks=4,
                occupancy=0.5,
            ),
            accuracy=Accuracy(0.1, 0.01, 0.5),
            cold=timing(samples_ns=(1.0, 2.0, 6.0), interval_ns=(1.0, 6.0), warmups=2, attempts=1),
            hot=timing(graph=True),
            blocks=BlockTimes(median_ns=1.0, imbalance=0.1, perturbation=-0.01, sm_mhz=1980.0),
            launch=Launch((1, 2, 3), (16, 16, 1), 64),
            copy_bytes_per_s=1e12,
        )
    )
)


CLOCKED = json.loads(
    encoding.line(
        msgspec.structs.replace(
            analysed(sampled(UNEVEN)),
            timeline=Timeline(
                lanes=2,
                slots=1,
                multiprocessors=(3, 5),
                bars=(Bar(0, 0, 9, 0, 0), Bar(1, 2, 4, 0, 2)),
            ),
        )
    )
)
WRONG = json.loads(
    encoding.line(
        outcome(
            status="wrong",
            error_map=ErrorCells(
                shape=(2, 5), step=2, wrong_elements=1, exact=True, least_power=-3, rows=(".0!",)
            ),
        )
    )
)

GRADED = json.loads((ROOT / "results" / "cpu-grade.jsonl").read_text().splitlines()[1])
COMPARED = json.loads(
    encoding.line(
        ComparisonRecord(
            baseline_name="a",
            candidate_name="b",
            baseline=outcome("a"),
            candidate=outcome("b"),
            comparison=Comparison(0.5, (0.4, 0.6), 0.01, "FASTER", 1, (3, 3), ""),
        )
    )
)


def changed(whole: dict[str, Any] = WHOLE, **changes: Any) -> dict[str, Any]:
    """A record with other values; `cold__median_ns` is the median of its cold samples."""
    record: dict[str, Any] = json.loads(json.dumps(whole))
    for place, value in changes.items():
        *groups, name = place.split("__")
        holder = record
        for group in groups:
            holder = holder[group]
        assert name in holder
        holder[name] = value
    return record


def bin_(low_us: float, high_us: float) -> dict[str, float]:
    return {"low_us": low_us, "high_us": high_us, "blocks": 1}


def message(record: dict[str, Any], path: Path) -> str:
    """Why a file with this record on its third line is refused."""
    lines = [encoding.line(environment()), encoding.line(outcome()), json.dumps(record)]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError) as raised:
        read(path)
    text = str(raised.value)
    assert text.startswith(f"{path}:3: not a record: ")
    assert text.endswith("; fix or remove the line")
    return text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cold__median_ns": -2.0}, ">= 0.001 - at `$.cold.median_ns`"),
        ({"cold__median_ns": 0}, ">= 0.001 - at `$.cold.median_ns`"),
        ({"cold__samples_ns": [1, 1e19, 6]}, "<= 1e+18 - at `$.cold.samples_ns[1]`"),
        ({"hot__samples_ns": [-1, 1, 6]}, ">= 0.001 - at `$.hot.samples_ns[0]`"),
        ({"cold__interval_ns": [6, 1]}, "interval_ns is reversed: 6 to 1 - at `$.cold`"),
        ({"cold__interval_ns": [3, 6]}, "median_ns 2 is outside its interval 3 to 6"),
        ({"cold__interval_ns": [1, 1.9]}, "median_ns 2 is outside its interval 1 to 1.9"),
        ({"cold__interval_ns": [-1, 6]}, ">= 0.001 - at `$.cold.interval_ns[0]`"),
        ({"cold__median_ns": 2.1}, "but the median of the samples is 2 - at `$.cold`"),
        ({"cold__samples_ns": [1, 2, 3, 4]}, "is 2, but the median of the samples is 2.5"),
        ({"hot__median_ns": 5.0}, "but the median of the samples is 1100 - at `$.hot`"),
        ({"cold__graph": True}, "cold samples cannot come from a graph"),
        ({"status": "wrong"}, "a wrong case cannot have times - at `$.cold`"),
        ({"status": "skipped", "cold": None, "hot": None}, "cannot have times - at `$.blocks`"),
        ({"status": "failed", "cold": None}, "a failed case cannot have times - at `$.hot`"),
        ({"accuracy__max_rel_err": -0.1}, "$.accuracy.max_rel_err"),
        ({"accuracy__avg_rel_err": -0.1}, "$.accuracy.avg_rel_err"),
        ({"accuracy__bound_ratio": -0.1}, "$.accuracy.bound_ratio"),
        ({"build__occupancy": -0.1}, "$.build.occupancy"),
        ({"build__duration_s": -0.1}, "$.build.duration_s"),
        ({"build__resident_blocks": -1}, "$.build.resident_blocks"),
        ({"build__resources__registers": -1}, ">= 0 - at `$.build.resources.registers`"),
        ({"blocks__imbalance": -0.1}, "$.blocks.imbalance"),
        ({"blocks__median_ns": 0}, "$.blocks.median_ns"),
        ({"blocks__sm_mhz": -1}, "$.blocks.sm_mhz"),
        ({"cold__warmups": -1}, "$.cold.warmups"),
        ({"cold__attempts": -1}, "$.cold.attempts"),
        ({"copy_bytes_per_s": -1}, "$.copy_bytes_per_s"),
        ({"case__claims__error_constant": -1}, "$.case.claims.error_constant"),
        ({"case__launch__grid": [1, -2, 3]}, ">= 0 - at `$.case.launch.grid[1]`"),
        ({"case__launch__shared_bytes": 2**63}, "$.case.launch.shared_bytes"),
        ({"case__problem__K": 0}, ">= 1 - at `$.case.problem.K`"),
        ({"case__problem__workload": "x\n"}, "workload 'x\\n' is unknown"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_contradiction_is_refused_with_its_line(
    changes: dict[str, Any], reason: str, path: Path
) -> None:
    assert reason in message(changed(**changes), path)


@pytest.mark.parametrize(
    ("whole", "changes", "reason"),
    [
        (CLOCKED, {"timeline__multiprocessors": [3]}, "1 multiprocessors for 2 lanes"),
        (CLOCKED, {"timeline__bars": []}, "length >= 1 - at `$.timeline.bars`"),
        (CLOCKED, {"timeline__bars": [[0, 0, 9, 0, 0]] * 10_001}, "length <= 10000"),
        (CLOCKED, {"timeline__bars": [[0, 0, 9, 0]]}, "at least length 5"),
        (CLOCKED, {"timeline__bars": [[0, 0, 9e99, 0, 0]]}, "$.timeline.bars[0][2]"),
        (CLOCKED, {"timeline__bars": [[2, 0, 9, 0, 0]]}, "a lane that is not there"),
        (CLOCKED, {"timeline__bars": [[0, 9, 8, 0, 0]]}, "an end before its start"),
        (CLOCKED, {"timeline__bars": [[0, 0, 9, 1, 0]]}, "a slot that is not there"),
        (CLOCKED, {"timeline__bars": [[0, 5, 9, 0, 0], [0, 0, 4, 0, 1]]}, "not in order"),
        (CLOCKED, {"timeline__bars": [[0, -1, 9, 0, 0]]}, ">= 0 - at `$.timeline.bars[0][1]`"),
        (CLOCKED, {"timeline__slots": 0}, ">= 1 - at `$.timeline.slots`"),
        (WRONG, {"error_map__rows": [".0"]}, "not 1 rows of 3 cells"),
        (WRONG, {"error_map__rows": [".0!", "..."]}, "not 1 rows of 3 cells"),
        (WRONG, {"error_map__rows": [".0\n"]}, "$.error_map.rows[0]"),
        (WRONG, {"error_map__rows": [".0<"]}, "$.error_map.rows[0]"),
        (WRONG, {"error_map__step": 0}, "$.error_map.step"),
        (WRONG, {"status": "failed"}, "a failed case has no wrong elements"),
        (WRONG, {"error_map__least_power": 10**400}, "$.error_map.least_power"),
        (CLOCKED, {"timeline__lanes": 2**40}, "<= 10000 - at `$.timeline.lanes`"),
        (CLOCKED, {"histogram": []}, "length >= 1 - at `$.histogram`"),
        (CLOCKED, {"histogram": [bin_(0, -1)]}, ">= 0.0 - at `$.histogram[0].high_us`"),
        (CLOCKED, {"histogram": [bin_(0, 1), bin_(1, 1)]}, "a bin that does not end above its"),
        (CLOCKED, {"ticks_per_ns": 0}, "$.ticks_per_ns"),
        (CLOCKED, {"tail_share": 2}, "$.tail_share"),
        (CLOCKED, {"resident_median": None}, "multiprocessors are only partly known"),
        (CLOCKED, {"counter_offset_ticks": None}, "counters are compared without an offset"),
        (GRADED, {"u": -0.0}, "$.u"),
        (GRADED, {"growth__sizes": [], "growth__errors": []}, "a slope without sizes"),
        (GRADED, {"growth__sizes": [16]}, "7 errors for 1 sizes - at `$.growth`"),
        (COMPARED, {"comparison__ratio": 5e-324}, "$.comparison.ratio"),
        (COMPARED, {"comparison__interval": [0, 1]}, "$.comparison.interval[0]"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) and len(value) == 1 else "",
)
def test_what_cannot_be_shown_is_refused(
    whole: dict[str, Any], changes: dict[str, Any], reason: str, path: Path
) -> None:
    path.write_text(f"{encoding.line(environment())}\n{json.dumps(whole)}\n")
    read(path)
    assert reason in message(changed(whole, **changes), path)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cold__median_ns": 2.0 * (1 + 1e-12)},
        {"cold__median_ns": None},
        {"cold__samples_ns": []},
        {"cold__interval_ns": [2, 2]},
        {"blocks__imbalance": -1e-15},
        {"blocks__perturbation": -0.5},
        {"cold": None, "hot": None},
    ],
)
def test_what_rounding_does_or_nobody_knows_is_no_contradiction(
    changes: dict[str, Any], path: Path
) -> None:
    path.write_text(f"{encoding.line(environment())}\n{json.dumps(changed(**changes))}\n")
    assert len(read(path)[1]) == 1


def test_a_record_that_could_not_be_read_again_is_not_written(path: Path) -> None:
    impossible = outcome(cold=timing(samples_ns=(1.0, 2.0, 3.0), median_ns=7.0))
    with (
        RecordWriter(path, environment()) as writer,
        pytest.raises(MatbenchError, match=r"x\.jsonl: an outcome contradicts itself: median_ns"),
    ):
        writer.write(impossible)
    assert only(path.parent) == []
    write(path, outcome())
    with RecordWriter(path, environment(), "append", best_effort=True) as writer:
        writer.write(impossible)
    assert "contradicts itself" in str(writer.error)
    assert read(path)[1] == [outcome()]
