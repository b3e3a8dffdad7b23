"""The summary for a pull request: what comes first, what is folded, and that names stay text."""

from __future__ import annotations

import functools
import html
import re
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from pytest_regressions.file_regression import FileRegressionFixture
from support import records

from matbench.analysis import statistics
from matbench.features.gate.summary import summary
from matbench.model import Problem
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Outcome

ABOUT = [records.environment()]
#: The longest comment that GitHub accepts.
LONGEST = 65_536


@functools.cache
def comparison(factor: float) -> Comparison:
    return statistics.compare_samples(
        records.steady().samples_ns, records.steady(factor).samples_ns
    )


def compared(
    factor: float = 1.0, kernel: str = "tiled", *,
    names: tuple[str, str] = ("tiled at main", "tiled"), candidate: Outcome | None = None,
    **case: Any,
) -> ComparisonRecord:  # fmt: skip
    baseline, new = (records.outcome(kernel, cold=records.steady(f), **case) for f in (1.0, factor))
    new = candidate or new
    found = comparison(factor) if new.samples_ns else None
    old_name, new_name = names
    return records.in_turns(found, baseline, new, baseline_name=old_name, candidate_name=new_name)


def undecided(reason: str = "who knows", **case: Any) -> ComparisonRecord:
    record = compared(**case)
    assert record.comparison is not None
    found = msgspec.structs.replace(
        record.comparison, verdict="UNDECIDED", reason=reason, interval=(0.9, 1.04)
    )
    return msgspec.structs.replace(record, comparison=found)


def rendered(text: str) -> str:
    """HTML, by CommonMark's rules with tables and raw HTML, as in comments."""
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def cells(text: str) -> list[list[str]]:
    """The rows of all tables, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", rendered(text), re.DOTALL)
    found = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[html.unescape(cell) for cell in row] for row in found if row]


WRONG = records.outcome("tiled", status="wrong", reason="integers: 3 of 9 wrong")
FAILED = records.outcome("tiled", status="failed", reason="took too long")


def pages() -> dict[str, str]:
    given: list[tuple[list[ComparisonRecord], float | None]] = [
        ([compared(1.2)], 0.03), ([compared(1.2), compared(1.3)], 0.03), ([compared(1.2)], 0.5),
        ([compared(1.2)], None), ([compared()], None), ([compared(0.5), undecided()], 0.03),
        ([undecided()], 0.03), ([undecided()], 0.05), ([undecided()], None),
        ([compared(1.2), compared(candidate=WRONG)], 0.03), ([compared(candidate=FAILED)], None),
        ([], 0.03),
    ]  # fmt: skip
    found = {
        f"{[outcome_of(record) for record in records]}, {allowed} allowed": summary(
            records, ABOUT, allowed
        )
        for records, allowed in given
    }
    every = [
        compared(), compared(0.5), undecided("noisy"), compared(1.2), compared(candidate=WRONG),
    ]  # fmt: skip
    pairs = [compared(kernel=f"k{n}", names=(f"k{n} at main", f"k{n}")) for n in range(12)]
    return found | {
        "changes are shown, the rest is folded": summary(
            every, ABOUT, 0.03, ["driver differs: was 1, now 2"]
        ),
        "each pair is named once": summary(pairs, ABOUT, None),
    }


def outcome_of(record: ComparisonRecord) -> str:
    return record.verdict or record.candidate.status


def test_pages(file_regression: FileRegressionFixture) -> None:
    found = pages()
    assert {len(row) for text in found.values() for row in cells(text)} == {8}
    text = "".join(f"=== {name}\n\n{shown}\n" for name, shown in found.items())
    file_regression.check(text, encoding="utf-8")


# Size


def many(count: int, factor: float) -> list[ComparisonRecord]:
    return [compared(factor, problem=Problem(n, n, n)) for n in range(1, count + 1)]


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_two_thousand_cases_fit_into_a_comment(factor: float) -> None:
    text = summary(many(2000, factor), ABOUT, 0.03)
    assert 50_000 < len(text) < LONGEST
    shown = len(cells(text))
    assert f"… and {2000 - shown:,} more" in text
    assert text.count("<details>") == text.count("</details>") == (factor == 1.0)
    assert (
        html.unescape(text).rstrip().endswith("cold samples: the cache is overwritten before each")
    )
    assert ("2,000 SLOWER" if factor > 1 else "2,000 SAME") in text


def test_changes_that_fill_it_leave_no_open_fold() -> None:
    text = summary([*many(2000, 1.2), compared()], ABOUT, 0.03)
    assert len(text) < LONGEST
    assert text.count("<details>") == text.count("</details>")


def test_only_the_first_of_many_remarks_are_shown() -> None:
    remarks = [f"the source of k{n} differs" for n in range(3000)]
    text = summary([compared(1.2)], ABOUT, 0.03, remarks)
    assert len(text) < 10_000
    assert "- the source of k19 differs\n- … and 2,980 more\n" in text
    assert cells(text)


def test_hostile_lengths_do_not_exceed_it() -> None:
    long = "@#" * 1000
    device = records.device(name=long, driver=long, toolkit=long)
    case: dict[str, Any] = {"device": long, "params": {long: 1}}
    found = [compared(1.2, long, names=(f"{n}{long}", f"{n}{long}"), **case) for n in range(40)]
    about = [records.environment(host=f"{n}{long}", devices=(device,)) for n in range(40)]
    assert len(summary(found, about, 0.03, [long] * 3000)) < LONGEST
