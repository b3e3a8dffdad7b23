"""A watched file: the last version in detail, earlier ones on one line each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from pytest_regressions.file_regression import FileRegressionFixture
from support.tables import compared, outcome, printed

from matbench.features.watch import view as watch
from matbench.features.watch.versions import SavedVersion
from matbench.model import Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Claims
from matbench.worker.comparing import Contender

AT = Problem(1000, 1000, 1000)


def version(number: int, wrong: str = "", record: ComparisonRecord | None = None) -> SavedVersion:
    made = SavedVersion(number, "12:00:0" + str(number), wrong)
    if not wrong:
        case: Any = SimpleNamespace(params={"TILE": 16})
        made.contenders[AT] = Contender(made.label, case, outcome("mine", 0.25))
        made.comparisons[AT] = record or compared(0.5, baseline_name="version 1",
                                                  candidate_name=made.label)  # fmt: skip
    return made


def claiming(record: ComparisonRecord) -> ComparisonRecord:
    case = msgspec.structs.replace(record.baseline.case, claims=Claims(precision="tf32"))
    side = msgspec.structs.replace(record.baseline, case=case)
    return msgspec.structs.replace(record, baseline=side)


def pages() -> dict[str, list[SavedVersion]]:
    alone, message = version(1), "\n".join(f"line {n}" for n in range(20))
    alone.comparisons.clear()
    same = compared(1.004, verdict="SAME", baseline_name="version 1")
    return {
        "the last version is the table of its comparisons": [version(1), version(2)],
        "claims of a version stand below": [version(2, record=claiming(same))],
        "not compared yet": [alone],
        "could not be compared": [version(2, record=compared(None, baseline_name="version 1"))],
        "wrong, with a long message": [version(1), version(2, message)],
        "only some versions before": [version(n % 10) for n in range(12)],
    }


def test_pages(file_regression: FileRegressionFixture) -> None:
    lines = []
    for name, versions in pages().items():
        for width in (100, 80):
            screen = printed(watch.screen("mine.cu", versions, width), width)
            assert max(map(len, screen.splitlines())) <= width
            lines.append(f"=== {name}, {width} columns\n\n{screen}\n\n")
        lines += [f"line: {watch.line(versions[-1])}\n\n"]
    lines += [watch.line(version(1, "no such\nthing")), "\n"]
    lines += [watch.line(SavedVersion(3, "12:00:03")), "\n"]
    file_regression.check("".join(lines), encoding="utf-8")
