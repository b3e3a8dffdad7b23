"""The search space: every legal combination once, defaults first, then random order."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import tunable
from support.golden import paged
from support.records import timing
from support.tables import environment, outcome, shown

from matbench.features.tune import search_space
from matbench.features.tune import view as tuning
from matbench.features.tune.record import SearchSpace, TuningRecord
from matbench.features.tune.search_space import Space
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, Kernel, Problem
from matbench.records.comparison import Comparison
from matbench.records.outcome import Claims
from matbench.show.formats import text

SIZE = Problem(48, 48, 48)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    path = tmp_path / "tunable.cu"
    path.write_text(tunable.KERNEL, encoding="utf-8")
    return catalogue.load(path)


def builtin(name: str) -> Kernel:
    return next(kernel for kernel in catalogue.builtin() if kernel.name == name)


def space(kernel: Kernel, device: DeviceInfo, seed: int = 0, **given: tuple[int, ...]) -> Space:
    return search_space.space(kernel, SIZE, device, given, seed)


def with_work(text: str) -> str:
    """TURNS reaches the source as WORK alone; the launch is the same."""
    text = text.replace("TURNS", "WORK").replace("// WORK", "// TURNS")
    return text.replace("// [launch]", '// [let]\n// WORK = "2 * TURNS"\n// [launch]')


def told(found: Space) -> str:
    defaults, others = (
        ", ".join(" ".join(f"{name}={n}" for name, n in case.params.items()) for case in cases)
        for cases in (found.defaults, found.others)
    )
    refused = "".join(f"refused: {len(s)} × {s[0]}\n" for s in found.refused)
    assert found.cases == [*found.defaults, *found.others]
    assert all(case.skip is None for case in found.cases)
    record = msgspec.json.encode(found.record).decode()
    return f"defaults: {defaults}\nothers: {others}\n{refused}{record}"


def test_spaces(kernel: Kernel, tmp_path: Path, device: DeviceInfo, file_regression: Any) -> None:
    """Of few dot products, at most 32 blocks are used, so BLOCKS makes no difference unless the
    source names it."""

    def dots(source: str, N: int = 1000) -> Space:
        of = msgspec.structs.replace(dot_tree, source=dot_tree.source + source)
        return search_space.space(of, Problem(1, N, 1, workload="dot"), device, {}, 0)

    dot_tree, path = builtin("dot-tree"), tmp_path / "worked.cu"
    path.write_text(with_work(tunable.KERNEL), encoding="utf-8")
    found = {
        "every legal combination, the default first": space(kernel, device),
        "given values": space(kernel, device, TURNS=(5, 6), KIND=(1,), OTHER=(1,)),
        "other names in the source count as well": space(catalogue.load(path), device),
        "one launch is one candidate": dots(""),
        "a comment makes no difference": dots("\n// BLOCKS\n"),
        "the source names it": dots("\nconstant int b = BLOCKS;\n"),
        "many dot products": dots("", 10**7),
    }
    file_regression.check(paged({name: told(one) for name, one in found.items()}))


def test_the_order_is_the_seeds(device: DeviceInfo) -> None:
    kernel = builtin("thread-tile-2d")
    orders = [[c.params for c in space(kernel, device, seed).others] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(map(str, orders[0])) == sorted(map(str, orders[2]))
    every = [case.params for case in space(kernel, device).cases]
    legal = [
        params
        for params in sweep.combinations(kernel.sweep | kernel.tune)
        if sweep.case(kernel, SIZE, params, device).skip is None
    ]
    assert sorted(map(str, every)) == sorted(map(str, legal))


@pytest.fixture
def few_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_space, "MOST_COMBINATIONS", 4_000)


@pytest.mark.usefixtures("few_drawn")
def test_a_large_space_is_drawn_from(kernel: Kernel, device: DeviceInfo) -> None:
    large = {name: tuple(range(1, 1000)) for name in ("TURNS", "KIND")}
    found = search_space.space(msgspec.structs.replace(kernel, tune=large), SIZE, device, {}, 3)
    record = found.record
    assert (record.combinations, record.drawn) == (999**2, search_space.MOST_COMBINATIONS)
    assert len({str(case.params) for case in found.cases}) == len(found.cases) > 3_800
    # A fair sample: all values, about equally often.
    for name, middle in (("TURNS", 500), ("KIND", 500)):
        below = sum(case.params[name] < middle for case in found.others)
        assert 0.4 < below / len(found.others) < 0.6


@pytest.mark.usefixtures("few_drawn")
def test_constants_vary_however_many_there_are(kernel: Kernel, device: DeviceInfo) -> None:
    many = kernel.tune | {f"X{number}": (1, 2) for number in range(70)}
    found = search_space.space(msgspec.structs.replace(kernel, tune=many), SIZE, device, {}, 3, 50)
    assert msgspec.json.encode(found.record)
    assert all({case.params[name] for case in found.others} == {1, 2} for name in ("X0", "X69"))


@pytest.mark.usefixtures("few_drawn")
@pytest.mark.parametrize(("table", "most"), [("sweep", None), ("sweep", 3), ("tune", 3)])
def test_a_huge_space(table: str, most: int | None, tmp_path: Path, device: DeviceInfo) -> None:
    path = tmp_path / "tunable.cu"
    path.write_text(tunable.huge(table), encoding="utf-8")
    started = time.process_time()
    found = search_space.space(catalogue.load(path), SIZE, device, {}, 0, most)
    assert time.process_time() - started < 20
    assert found.record.combinations == 10**8
    assert len(found.defaults) == (search_space.MOST_DEFAULTS if table == "sweep" else 1)
    assert len({str(case.params) for case in found.cases}) == len(found.cases)
    if most is None:
        assert found.record.drawn == search_space.MOST_COMBINATIONS
        assert len(found.cases) > 3_800
    else:
        assert len(found.cases) == max(most, len(found.defaults))


def test_a_budget_of_candidates_draws_no_more(device: DeviceInfo) -> None:
    kernel = builtin("thread-tile-2d")
    whole = space(kernel, device)
    few = search_space.space(kernel, SIZE, device, {}, 0, 3)
    assert few.cases == whole.cases[:3]
    assert few.record.drawn < whole.record.drawn


# How a search is shown


SPACE = SearchSpace(combinations=30_000, drawn=20_000, candidates=15, refused=3, merged=2)


def candidate(tile: int, ms: float, **changes: Any) -> TuningRecord:
    fields: dict[str, Any] = {
        "outcome": outcome("tiled", ms, params={"TILE": tile}),
        "round": 1,
        "tried": 14,
        "space": SPACE,
        "median_ratio": ms / 4,
    }
    return TuningRecord(**(fields | changes))


TURNS = Comparison(0.5, (0.49, 0.51), "FASTER", 1, (24, 24), "")
SEARCH = [
    candidate(32, 2, is_best=True, comparison=TURNS),
    *(candidate(n, 2 + n / 10) for n in range(1, 13)),
    candidate(16, 4, is_default=True, median_ratio=1.0),
]


def finalist(tile: int, ms: float, **changes: Any) -> TuningRecord:
    samples = tuple(ms * 1e6 * (1 + share) for share in (-0.003, 0.002, 0.001, -0.002, 0.002))
    cold = timing(samples_ns=samples, rounds=(1,) * 5)
    return candidate(
        tile, ms, outcome=outcome("tiled", params={"TILE": tile}, cold=cold), **changes
    )


def pages() -> dict[str, list[TuningRecord]]:
    whole = msgspec.structs.replace(SPACE, combinations=SPACE.drawn)
    claims = Claims(error_constant=8.0, deterministic=False)
    return {
        "the winner comes first, and the default is shown": SEARCH,
        "all combinations": [candidate(32, 2, space=whole)],
        "finalists that cannot be told apart": [
            finalist(32, 2.0, is_best=True), finalist(16, 2.002, is_default=True),
            finalist(8, 2.1), candidate(4, 2.0),
        ],
        "claims": [candidate(32, 2, outcome=outcome("split", 2, claims=claims))],
        "interrupted": [candidate(32, 2, is_best=True, complete=False)],
        "nothing": [],
    }  # fmt: skip


def test_pages(file_regression: FileRegressionFixture) -> None:
    reports = {name: tuning.report(found, [environment()]) for name, found in pages().items()}
    texts = {name: shown(report) for name, report in reports.items()}
    of_programs = text(next(iter(reports.values())), "csv")
    file_regression.check(paged(texts | {"for programs": of_programs}), encoding="utf-8")
