"""What `matbench adopt` finds out of files as others write them, or why not; and `matbench grade`
of kernels whose arithmetic is known."""

from __future__ import annotations

import re
import shutil
import time
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.cli import QUICK, Matbench, last_run
from support.expected import Backend, entries, tried
from support.fixtures import Noted
from support.optional import present
from support.paths import KERNELS

from matbench.bench.session import Session
from matbench.features.adopt import trials
from matbench.features.grade import multiplier, steps, view
from matbench.features.grade.multiplier import Multiplier
from matbench.features.grade.record import Grade, Statements
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo

FOREIGN = entries("foreign")
COMPUTES = {name: entry for name, entry in FOREIGN.items() if entry.expected.computes}
REFUSED = {name: entry for name, entry in FOREIGN.items() if not entry.expected.computes}
GRADED = entries("graded")
ONLY_CUDA = [name for name, entry in COMPUTES.items() if entry.expected.backends == ("cuda",)]


def test_there_are_enough_and_each_has_its_file() -> None:
    folder = FOREIGN["textbook.cu"].path.parent
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.cu*")}
    assert set(FOREIGN) == files
    assert len(COMPUTES) >= 48
    assert {path.stem for path in (KERNELS / "graded").glob("*.cu")} == set(GRADED)
    assert len(GRADED) >= 24


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(COMPUTES))
def test_a_foreign_file_is_adopted_and_runs(
    name: str, backend_name: Backend, size: str, tmp_path: Path, matbench: Matbench,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    entry = COMPUTES[name]
    if backend_name == "opencl":
        request.getfixturevalue("few_probes")
    path = Path(shutil.copy(entry.path, tmp_path))
    started = time.monotonic()
    output = matbench("adopt", path, "--backend", backend_name).stdout
    # Whether the sums of atomics were met in another order is luck.
    computes = f"computes {entry.expected.computes}, correct at "
    assert computes in output.replace(", deterministic = False", "")
    assert re.search(r"correct at (?:all \d+ sizes|the only size) tried", output)
    assert path.read_bytes() == entry.path.read_bytes()
    assert f"wrote {path.with_suffix('.toml')}" in output
    assert output.endswith(f"next: matbench run {path}\n")
    assert backend_name == "opencl" or time.monotonic() - started < 60
    matbench("run", path, "--sizes", size, "--backend", backend_name, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(REFUSED))
def test_no_table_is_written_for_a_wrong_kernel(
    name: str, backend_name: Backend, size: str, tmp_path: Path, matbench: Matbench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if name == "wrong/forever.cu":
        monkeypatch.setattr(trials, "_LAUNCH_S", 0.5)
        monkeypatch.setattr(trials, "_REPEATED_S", 0.5)
    entry = REFUSED[name]
    path = Path(shutil.copy(entry.path, tmp_path))
    output = matbench("adopt", path, "--backend", backend_name, code=1).stdout
    assert entry.expected.reason or entry.expected.any_of
    assert all(words in output for words in entry.expected.reason), output
    some_of = entry.expected.some_words(backend_name)
    assert not some_of or any(words in output for words in some_of), output
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ONLY_CUDA)
def test_only_nvcc(name: str, tmp_path: Path, matbench: Matbench, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("there is nvcc")
    path = Path(shutil.copy(COMPUTES[name].path, tmp_path))
    output = matbench("adopt", path, code=1).stdout
    assert "cannot be built here: " in output
    assert "CUDA" in output
    assert list(tmp_path.iterdir()) == [path]


# -- graded kernels --------------------------------------------------------------------------------


#: Expected values that are ranges.
RANGES = {"binades", "inputs", "growth"}
NOTHING: frozenset[str] = frozenset()


def graded(
    name: str, session: Session, size: int = 256, without: frozenset[str] = NOTHING
) -> Grade:
    """The grade, found in this process; `without` names steps that are left out."""

    def run(task: Any, *args: Any, case: Case) -> Statements:
        *_, step, _ = args
        if step in without:
            statement: Any = steps.STEPS[step].failed or tuple
            return Statements(**{step: statement()})
        found: Statements = task(session, *args)
        return found

    kernel, device = GRADED[name].kernel(), session.backend.info
    problem = multiplier.problem_of(kernel, size, size, size)
    case = sweep.case(kernel, problem, next(sweep.parameter_sets(kernel, {})), device)
    worker: Any = SimpleNamespace(run=run, device=device)
    return steps.grade(worker, case, 0, "", lambda what: None)


def said(grade: Grade) -> dict[str, Any]:
    """What a grade says, under the keys of the table of expected values."""
    sums, specials = present(grade.sums), present(grade.specials)
    return {
        "grade": grade.letter,
        "algorithm": present(grade.algorithm).verdict,
        "exponents": present(grade.range).verdict,
        "binades": present(grade.range).binades,
        "specials": specials.verdict if not specials.differ else [*specials.differ.values()],
        "subnormals": view.subnormals(specials),
        "order": re.split(r" \(K|(?<=^unclear):", view.order(grade))[0],
        "bits": sums.accumulator_bits,
        "rounding": sums.rounding,
        "products": sums.products,
        "inputs": sums.input_bits,
        "runs": present(grade.runs).verdict,
        "rows": present(grade.batches).verdict,
        "growth": present(grade.growth).slope,
    }


def several(value: Any) -> set[Any]:
    """The values that are right, or that were found: one or a list."""
    return set(value) if isinstance(value, list) else {value}


def surprises(name: str, grade: Grade, without: frozenset[str] = NOTHING) -> dict[str, Any]:
    """What is said that was not expected, by key."""
    found = {}
    row = present(GRADED[name].expected.grade)
    row = row | row.get(grade.case.backend, {})
    if grade.reason is not None:
        return {"reason": grade.reason}
    for key, value in said(grade).items():
        wanted = row.get(key)
        if wanted is None or wanted == "any" or key in without:
            continue
        if key in RANGES:
            right = value is not None and wanted[0] <= value <= wanted[1]
        else:
            right = bool(several(wanted) & several(value))
        if not right:
            found[key] = value
    return found


#: A grade must not take long.
MOST_LAUNCHES = 350
#: Runs are repeated where they may differ, which takes long on a CPU; on a GPU all are.
REPEATED = {"graded-atomics", "graded-split", "graded-in-order"}


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(GRADED))
def test_a_kernel_is_described_as_it_is(
    name: str, backend_name: Backend, size: str, request: pytest.FixtureRequest, noted: Noted
) -> None:
    launches = noted(Multiplier, "multiply")
    session = request.getfixturevalue("session" if backend_name == "opencl" else "checks")
    without = NOTHING if backend_name == "cuda" or name in REPEATED else frozenset({"runs"})
    grade = graded(name, session, int(size), without=without)
    assert surprises(name, grade, without) == {}
    assert len(launches) <= MOST_LAUNCHES or backend_name == "cuda"


def test_no_two_are_expected_to_look_alike() -> None:
    rows = {name: present(entry.expected.grade) for name, entry in GRADED.items()}
    for one, other in combinations(rows, 2):
        apart = [
            key
            for key in rows["graded-in-order"]
            if "any" not in (rows[one][key], rows[other][key])
            and (
                rows[one][key][1] < rows[other][key][0] or rows[other][key][1] < rows[one][key][0]
                if key in RANGES
                else not several(rows[one][key]) & several(rows[other][key])
            )
        ]
        assert apart, (one, other)


def test_a_wrong_expectation_is_noticed(session: Session) -> None:
    """The control: another kernel's description does not fit."""
    grade = graded("graded-tf32", session, without=frozenset({"runs"}))
    assert {"grade", "inputs", "growth"} <= set(surprises("graded-in-order", grade))
    assert said(grade)["inputs"] == 11
