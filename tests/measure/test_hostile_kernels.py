"""A kernel that crashes, hangs or does not compile says why, and the next case is measured."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matbench import backends
from matbench.kernelfile import catalogue, sweep
from matbench.measure.options import Deadlines, Options
from matbench.measure.worker import Crew, Worker
from matbench.model import Problem
from matbench.records.outcome import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "hostile_kernels"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text())
GOOD = catalogue.kernels_folder() / "tiled.cu"
CHECK_ONLY = Options(timed=False)
#: The others, some of them slow, are tried before a release.
QUICK = ("hostile-scribble", "hostile-too-much-shared", "hostile-error-directive")


@pytest.fixture(scope="module", params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    on_gpu = request.param == "cuda"
    info = backends.devices("cuda")[0] if on_gpu else request.getfixturevalue("device")
    with Crew(CHECK_ONLY, Deadlines()) as crew:  # whose first run compiles the judge's programs
        assert measured(GOOD, crew.worker(info)).status == "measured"
    with Crew(CHECK_ONLY, Deadlines(build_s=12, run_s=6)) as crew:
        yield crew.worker(info)


def measured(path: Path, worker: Worker) -> Outcome:
    problem = Problem(32, 32, 32)
    case = sweep.case(catalogue.load(path), problem, {"TILE": 16}, worker.device)
    return worker.measure(case).outcome


def test_each_file_is_expected() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(EXPECTED)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in EXPECTED],
)
def test_the_reason_is_told_and_the_next_case_measured(name: str, worker: Worker) -> None:
    backend, expected = worker.device.backend, EXPECTED[name]
    if backend not in expected["backends"]:
        pytest.skip(f"harmless on {backend}")
    outcome = measured(FOLDER / f"{name}.cu", worker)
    words = expected.get("reason") or expected["reason_on"][backend]
    assert outcome.status in ("failed", "wrong")
    assert any(word.lower() in str(outcome.reason).lower() for word in words), outcome.reason
    assert measured(GOOD, worker).status == "measured"
