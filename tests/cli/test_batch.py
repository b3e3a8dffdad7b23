"""`matbench run` with several files: a bad one is a row, and the rest is measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import candidates
from support.cli import QUICK, Matbench, csv_rows, last_run
from support.kernels import GOOD_BODY, WRONG_BODY, kernel_text

from matbench.records.outcome import Outcome
from matbench.show import formats
from matbench.show.table import JUnitCase

pytestmark = pytest.mark.usefixtures("few_sizes")

FOREIGN = GOOD_BODY.replace("ENTRY", "foreign").replace("TILE", "16")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**texts: str) -> list[str]:
    """Files of these texts, by their names without `.cu`."""
    for name, text in texts.items():
        Path(f"{name}.cu").write_text(text)
    return [f"{name}.cu" for name in texts]


def by_kernel(outcomes: list[Outcome]) -> dict[str, tuple[str, str | None]]:
    return {outcome.case.kernel: (outcome.status, outcome.reason) for outcome in outcomes}


def test_paths_that_the_system_refuses_are_rows(matbench: Matbench) -> None:
    names = ["long" * 75 + ".cu", "longer" * 75 + ".cu"]
    matbench("run", "--adopt", *names, "--sizes", "17", code=1)
    assert [outcome.status for outcome in last_run()] == ["failed", "failed"]
    assert all("File name too long" in (outcome.reason or "") for outcome in last_run())


@pytest.mark.usefixtures("scripted_device")
def test_names_that_occur_twice_are_paths(matbench: Matbench) -> None:
    other = kernel_text("same", body=WRONG_BODY)
    files = write(a=kernel_text("same"), b=other, c=kernel_text("tiled"), d=kernel_text("own"))
    done = matbench("run", *files, "--sizes", "17", *QUICK, code=1)
    assert "wrong" not in done.stderr  # in a pipe, the table alone tells
    found = {name: status for name, (status, _) in by_kernel(last_run()).items()}
    assert found == {"a.cu": "measured", "b.cu": "wrong", "c.cu": "measured", "own": "measured"}


# -- adopted on the way ----------------------------------------------------------------------------


def test_files_without_front_matter_are_adopted(matbench: Matbench) -> None:
    mistaken = FOREIGN.replace("k < K", "k < K - 1")
    files = write(good=kernel_text("good"), foreign=FOREIGN, mistaken=mistaken)
    done = matbench("run", *files, "--adopt", "--sizes", "17", *QUICK, code=1)
    found = by_kernel(last_run())
    assert found["foreign"] == ("measured", None)
    status, reason = found["mistaken.cu"]
    assert status == "failed"
    assert (reason or "").startswith("no front matter, and none of the calls of `foreign`")
    assert "adopted foreign.cu for this run" in done.stderr
    assert sorted(path.name for path in Path.cwd().iterdir()) == sorted(files)


def test_front_matter_with_a_mistake_is_not_replaced(matbench: Matbench) -> None:
    grid = 'grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]'
    files = write(lacking=kernel_text("lacking", launch=grid), beside=FOREIGN)
    Path("beside.toml").write_text("launch = 7\n")
    matbench("run", *files, "--adopt", "--sizes", "17", *QUICK, code=1)
    found = by_kernel(last_run())
    assert "`launch.block` is missing" in (found["lacking.cu"][1] or "")
    assert "launch" in (found["beside.cu"][1] or "")
    assert "no front matter, and" not in (found["beside.cu"][1] or "")


def test_what_is_not_asked_for_is_wrong_and_what_was_assumed_is_noted(matbench: Matbench) -> None:
    transposed, told = candidates.FAULTY["b-transposed"]
    files = write(transposed=transposed, square=candidates.SQUARE)
    words = ("--adopt", "--sizes", "17,8x9x5", *QUICK, "--format", "junit")
    suite = ElementTree.fromstring(matbench("run", *files, *words, code=1).stdout)[0]
    found = {case.get("name"): case for case in suite}
    assert {name: [child.tag for child in case] for name, case in found.items()} == {
        "transposed at 17, NT": ["failure"],
        "transposed at 8x9x5, NT": ["failure"],
        "square at 17": ["system-out"],
        "square at 8x9x5": ["skipped", "system-out"],
    }
    assert told in (found["transposed at 17, NT"][0].get("message") or "")
    assert "adopted for M == N and N == K" in (found["square at 17"][0].text or "")
    notes = {note for outcome in last_run() for note in outcome.notes}
    assert "adopted for M == N and N == K" in notes
    own = write(own=kernel_text("own"))
    matbench("run", *own, "--sizes", "17", *QUICK, "--contract", "layout=column-major", code=1)
    [(status, reason)] = by_kernel(last_run()).values()
    assert (status, reason) == (
        "wrong", "computes C = A·B; asked for C = A·B, column-major"
    )  # fmt: skip


# -- JUnit -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("scripted_device")
def test_cases_of_one_size_are_told_apart(matbench: Matbench) -> None:
    front = 'args = ["A", "B", "C", "M", "N", "K", "alpha", "beta"]\nbeta = [0, 0.5]'
    body = GOOD_BODY.replace("int K)", "int K, float alpha, float beta)").replace(
        "= sum;", "= alpha * sum + (beta == 0 ? 0 : beta * C[(size_t)row * N + column]);"
    )
    write(both=kernel_text("both", front=front, body=body))
    words = ("--sizes", "17", "--inputs", "uniform,signed", "--alpha", "1,2", "--output", "o.jsonl")
    suite = ElementTree.fromstring(
        matbench("run", "both.cu", *words, *QUICK, "--format", "junit").stdout
    )[0]
    names = [case.get("name") for case in suite]
    assert len({*names}) == len(names) == 8
    assert "both TILE=8 at 17, signed inputs, alpha = 2, beta = 0.5" in names
    table = csv_rows(matbench("report", "o.jsonl", "--format", "csv").stdout)
    columns = ("alpha", "beta", "batch", "inputs", "layout", "transpose")
    found = {tuple(row[name] for name in columns) for row in table}
    assert len(found) == 8
    assert ("2.0", "0.5", "1", "signed", "row-major", "NN") in found


def told(matbench: Matbench, *words: str, code: int) -> list[tuple[str | None, ...]]:
    """The name of each test, how it ended, and the reason, up to the first number."""
    root = ElementTree.fromstring(matbench(*words, "--format", "junit", code=code).stdout)
    return [
        (
            case.get("name"),
            child.tag,
            re.split(r" [\d.]", child.get("message") or child.text or "")[0],
        )
        for case in root.iter("testcase")
        for child in [*case, ElementTree.Element("passed")][:1]
    ]


@pytest.mark.usefixtures("scripted_device")
def test_checks_and_comparisons_are_tests(matbench: Matbench) -> None:
    """A comparison fails if the candidate is wrong, or slower than is allowed."""
    write(
        fast=kernel_text("fast", body="#define TAKES 1000\n" + GOOD_BODY),
        slow=kernel_text("slow", body="#define TAKES 3000\n" + GOOD_BODY),
        wrong=kernel_text("wrong", body=WRONG_BODY),
    )
    at = ("--sizes", "17", "--max-time", "0.1")
    gate = ("--fail-if-slower", "5%")
    name = "slow against fast TILE=8 at 17"
    for words, code, ended in (
        (gate, 1, (name, "failure", "SLOWER:")),
        ((), 0, (name, "system-out", "SLOWER:")),
    ):
        assert told(matbench, "compare", "fast.cu", "slow.cu", *at, *words, code=code) == [ended]
    found = told(matbench, "compare", "fast.cu", "wrong.cu", *at, code=1)
    assert [case[:2] for case in found] == [("wrong against fast TILE=8 at 17", "failure")]
    found = told(matbench, "compare", "wrong.cu", "fast.cu", *at, code=1)
    assert [case[:2] for case in found] == [("fast against wrong TILE=8 at 17", "skipped")]
    found = told(matbench, "check", "wrong.cu", "--quick", code=1)
    assert found[0][:2] == ("wrong TILE=8 at 1", "failure")


def test_cases_of_one_name_are_numbered() -> None:
    one, other = JUnitCase("suite", "name"), JUnitCase("another", "name")
    first, second = ElementTree.fromstring(formats.junit([one, other, one]).encode())
    assert [case.get("name") for case in first] == ["name", "name (2)"]
    assert [case.get("name") for case in second] == ["name"]


@given(st.text(), st.text())
def test_any_text_is_well_formed(name: str, reason: str) -> None:
    made = formats.junit([JUnitCase(name, reason, "error", reason)])
    assert ElementTree.fromstring(made.encode())[0][0][0].tag == "error"
    assert json.dumps(made)
