"""The search: who continues, who wins, and the budget."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import tunable
from support.golden import paged
from support.h200 import KERNELS
from support.kernels import saved
from support.optional import present
from support.records import timing
from support.tables import environment, outcome, shown

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.bench.options import FIRST, Deadlines, Options, Round
from matbench.bench.outcomes import compared, not_measured
from matbench.errors import UsageError
from matbench.features.tune import looking, search_space, view
from matbench.features.tune import search as tuning
from matbench.features.tune.record import SearchSpace, TuningRecord
from matbench.features.tune.search import Budget, TuningSearch
from matbench.features.tune.search_space import Space
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Accuracy, CaseRecord, Claims, Outcome, Timing
from matbench.show.formats import text
from matbench.worker.worker import WorkerPool

SIZE = Problem(48, 48, 48)
TURNS = tuple(range(1, 41))
OPTIONS = Options(blocks=False)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return catalogue.load(saved(tmp_path / "tunable.cu", tunable.KERNEL))


def test_budgets() -> None:
    assert tuning.parse_budget(None) == (None, None)
    assert tuning.parse_budget("200") == (200, None)
    assert [tuning.parse_budget(text).seconds for text in ("90s", "10m", "1h")] == [90, 600, 3600]
    for given in ("", "0", "0s", "-1", "1d", "1.5m", "many", "9" * 40):
        with pytest.raises(UsageError, match="give a count such as 200"):
            tuning.parse_budget(given)
    with pytest.raises(UsageError, match="'9999999999999999h': the maximum is 999,999h"):
        tuning.parse_budget("9999999999999999h")
    with pytest.raises(UsageError, match="the maximum is 999,999"):
        tuning.parse_budget("1000000")


@pytest.mark.parametrize("count", [0, 1, 4, 5, 17, 300, 20_000])
def test_rounds_have_fewer_candidates_and_more_samples(count: int) -> None:
    found = tuning.rounds(count)
    assert found[0] == (count, 3)
    assert found[-1][0] <= 4
    for (more, fewer_samples), (fewer, more_samples) in itertools.pairwise(found):
        assert fewer == max(4, math.ceil(more / 4))
        assert more_samples == 3 * fewer_samples


# -- a worker with known times --------------------------------------------------------------------


class Clockwork:
    """Takes TURNS ms for a case, or its entry in `times`; remembers the requests."""

    def __init__(self, device: DeviceInfo, **times: float) -> None:
        self.device = device
        self.run_s = 60.0
        self.options = OPTIONS.on("cpu")
        self.times = times
        self.wrong: set[int] = set()  #: TURNS that are wrong in turns
        self.looks: list[tuple[int, int, float, bool]] = []
        self.measured: list[int] = []
        self.compared: list[tuple[int, int]] = []

    def _outcome(self, case: Case, samples: int, accuracy: Accuracy | None) -> Outcome:
        turns = case.params["TURNS"]
        median_ns = 1e6 * self.times.get(f"T{turns}", turns)
        timing = Timing(samples_ns=(median_ns,) * samples, median_ns=median_ns, seed="0")
        record = CaseRecord.from_case(case, self.device)
        return Outcome(case=record, status="measured", accuracy=accuracy, hot=timing)

    def run(self, task: object, *given: Any, **_: Any) -> Outcome | ComparisonRecord:
        return self.look(*given) if task is looking.look_here else self.compare(*given)

    def unfit(self, _: Case) -> None: ...

    def explained(self, _: Case, outcome: Outcome) -> Outcome:
        return outcome

    def look(self, case: Case, samples: int, limit_ns: float, check: bool) -> Outcome:
        self.looks.append((case.params["TURNS"], samples, limit_ns, check))
        return self._outcome(case, samples, Accuracy(0.5, 0.5, 0.5) if check else None)

    def measure(self, case: Case, which: Round = FIRST) -> Outcome:
        self.measured.append(case.params["TURNS"])
        return self._outcome(case, 30, Accuracy(0.25, 0.25, 0.25))

    def compare(
        self, first: Case, second: Case, plan: ComparisonPlan, seed: int
    ) -> ComparisonRecord:
        turns = first.params["TURNS"], second.params["TURNS"]
        self.compared.append(turns)
        self.longest_s = plan.maximum_time_ns / 1e9
        cases = (first, second)
        sides = [
            not_measured(case, self.device, "wrong", "a race")
            if case.params["TURNS"] in self.wrong
            else self._outcome(case, 20, None)
            for case in cases
        ]
        if self.wrong.intersection(turns):
            return compared(*sides)
        first_ns, second_ns = (list(side.samples_ns) for side in sides)
        return compared(*sides, comparison=compare_samples(first_ns, second_ns))

    def start(self, *_: object) -> None:
        """As builders do."""


class Asked(NamedTuple):
    """A search over TURNS, of which 8 is the default."""

    turns: tuple[int, ...] = TURNS
    kind: int = 1
    budget: Budget = Budget()
    #: Milliseconds that differ from TURNS, and TURNS that are wrong in turns.
    times: dict[str, float] = {}  # noqa: RUF012 - never changed
    wrong: tuple[int, ...] = ()
    fails: bool = False


SEARCHES = {
    "few go on, and the fastest wins": Asked(),
    "the default stays unless it is surely beaten": Asked((7, 8), times={"T7": 7.96}),
    "what is wrong in turns is out": Asked(wrong=(1,)),
    "without a default the fastest wins": Asked((8, 9), wrong=(8,)),
    "nothing to try": Asked(kind=3),
    "nothing is right": Asked((7, 8), fails=True),
    "a budget of 3 candidates": Asked(budget=Budget(candidates=3)),
    "a budget of no time takes the default at least": Asked(budget=Budget(seconds=1e-9)),
}


def turns_of(case: Case) -> int:
    return case.params["TURNS"]


def page(search: TuningSearch, worker: Clockwork) -> Iterator[str]:
    """What was looked at, with the limit in ms, measured and compared; and what was found."""
    for (samples, check), looks in itertools.groupby(worker.looks, lambda look: look[1::2]):
        seen = " ".join(f"{turns} ({limit / 1e6:g})" for turns, _, limit, _ in looks)
        yield f"looked at, {samples} samples{' and a check' if check else ''}: {seen}"
    yield f"measured: {' '.join(map(str, worker.measured))}"
    yield f"compared: {' '.join(f'{one}-{other}' for one, other in worker.compared)}"
    yield f"{len(search.candidates)} candidates, {search.steps} steps, complete {search.complete}"
    yield f"winner: {search.winner and turns_of(search.winner.case)}"
    ranking = [(s.round, s.outcome.max_rel_err, turns_of(s.case)) for s in search.ranking()]
    for (number, error), alike in itertools.groupby(ranking, lambda ranked: ranked[:2]):
        yield f"in round {number}, error {error}: {' '.join(str(turns) for *_, turns in alike)}"
    for standing in search.standings:
        if standing.outcome.is_broken:
            yield f"broken: {turns_of(standing.case)}, {standing.outcome.reason}"
    records = []
    for record in search.records():
        marks = [name for name in ("is_best", "is_default") if getattr(record, name)]
        marks += [record.comparison.verdict] if record.comparison else []
        turns = record.outcome.case.params["TURNS"]
        records.append(" ".join([f"{turns} × {record.median_ratio}", *marks]))
        assert record.tried == len(search.standings)
    yield f"records: {', '.join(records)}"


def test_pages(kernel: Kernel, device: DeviceInfo, file_regression: Any) -> None:
    pages = {}
    for name, asked in SEARCHES.items():
        worker = Clockwork(device, **asked.times)
        worker.wrong = {*asked.wrong}
        if asked.fails:
            worker.look = lambda case, *_, **__: not_measured(case, device, "failed", "no")  # type: ignore
        values = {"TURNS": asked.turns, "KIND": (asked.kind,)}
        search = TuningSearch(search_space.space(kernel, SIZE, device, values, 0), asked.budget)
        search.run(worker, worker, lambda label: None)  # type: ignore[arg-type]
        pages[name] = "\n".join(page(search, worker))
    file_regression.check(paged(pages), encoding="utf-8")


@pytest.mark.parametrize(
    ("seconds", "looks", "longest_s"), [(40, 21, 4.75), (90, 40, 10), (8, 5, 1)]
)
def test_a_budget_of_time_is_for_all(
    kernel: Kernel, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch,
    seconds: int, looks: int, longest_s: float,
) -> None:  # fmt: skip
    """How many first looks of a second each it allows, and how long a comparison may take then."""
    worker = Clockwork(device)

    def clock() -> float:
        return sum(check for *_, check in worker.looks)

    monkeypatch.setattr(time, "monotonic", clock)
    values = {"TURNS": TURNS, "KIND": (1,)}
    spaces = search_space.space(kernel, SIZE, device, values, 0)
    TuningSearch(spaces, Budget(seconds=seconds)).run(worker, worker, lambda label: None)  # type: ignore[arg-type]
    assert (clock(), worker.longest_s) == (looks, longest_s)


def test_what_is_known_outlives_an_interruption(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    look: Callable[..., Outcome] = worker.look

    def stopped(*arguments: Any, **more: Any) -> Outcome:
        if len(worker.looks) == 3:
            raise KeyboardInterrupt
        return look(*arguments, **more)

    worker.look = stopped  # type: ignore[method-assign]
    values = {"TURNS": TURNS, "KIND": (1,)}
    search = TuningSearch(search_space.space(kernel, SIZE, device, values, 0), Budget())
    with pytest.raises(KeyboardInterrupt):
        search.run(worker, worker, lambda label: None)  # type: ignore[arg-type]
    assert not search.complete
    records = search.records()
    assert [record.complete for record in records] == [False] * 3
    assert [record.is_best for record in records] == [True, False, False]
    fastest = min(turns for turns, *_ in worker.looks)
    assert present(search.leader()).case.params["TURNS"] == fastest


@pytest.mark.parametrize(
    ("times", "taken"), [((900, 5, 5, 5), 4), ((5, 900, 5, 5), 4), ((900, 901, 5, 5), 2)]
)
def test_a_first_look_ends_if_every_sample_is_slow(times: tuple[float, ...], taken: int) -> None:
    told = iter((5.0, *times))  # the first one warms up
    assert len(looking.sample_briefly(lambda: next(told), 4, limit_ns=100)) == taken


# -- on a device ----------------------------------------------------------------------------------


def test_a_slow_candidate_is_left_early(kernel: Kernel, device: DeviceInfo) -> None:
    with WorkerPool(OPTIONS, Deadlines()) as pool:
        worker = pool.worker(device)

        def look(turns: int, kind: int, *arguments: Any, check: bool = True) -> Outcome:
            case = sweep.case(kernel, SIZE, {"TURNS": turns, "KIND": kind}, device)
            return looking.look(worker, case, *arguments, check=check)

        slow = look(64, 1, 50, 1.0)
        assert (slow.status, len(slow.samples_ns)) == ("measured", 2)
        assert slow.max_rel_err is not None
        patient = look(64, 1, 5, math.inf, check=False)
        assert (patient.status, len(patient.samples_ns)) == ("measured", 5)
        assert patient.accuracy is None
        assert present(patient.timing).notes == ("a quick look: only 5 samples",)
        wrong = look(1, 2, 5, math.inf)
        assert (wrong.status, wrong.samples_ns, wrong.median_ns) == ("wrong", (), None)
        assert look(1, 4, 5, math.inf).status == "failed"


# The search space: every legal combination once, defaults first, then random order


def space(kernel: Kernel, device: DeviceInfo, seed: int = 0, **given: tuple[int, ...]) -> Space:
    return search_space.space(kernel, SIZE, device, given, seed)


def with_work(text: str) -> str:
    """TURNS reaches the source as WORK alone; the launch is the same."""
    text = text.replace("TURNS", "WORK").replace("// WORK", "// TURNS")
    return text.replace("// [launch]", '// [let]\n// WORK = "2 * TURNS"\n// [launch]')


def told_of(found: Space) -> str:
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

    dot_tree, path = KERNELS.get("dot-tree"), tmp_path / "worked.cu"
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
    file_regression.check(paged({name: told_of(one) for name, one in found.items()}))


def test_the_order_is_the_seeds(device: DeviceInfo) -> None:
    kernel = KERNELS.get("thread-tile-2d")
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
    path = saved(tmp_path / "tunable.cu", tunable.huge(table))
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
    kernel = KERNELS.get("thread-tile-2d")
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


IN_TURNS = Comparison(0.5, (0.49, 0.51), "FASTER", 1, (24, 24), "")
SEARCH = [
    candidate(32, 2, is_best=True, comparison=IN_TURNS),
    *(candidate(n, 2 + n / 10) for n in range(1, 13)),
    candidate(16, 4, is_default=True, median_ratio=1.0),
]


def finalist(tile: int, ms: float, **changes: Any) -> TuningRecord:
    samples = tuple(ms * 1e6 * (1 + share) for share in (-0.003, 0.002, 0.001, -0.002, 0.002))
    cold = timing(samples_ns=samples, rounds=(1,) * 5)
    return candidate(
        tile, ms, outcome=outcome("tiled", params={"TILE": tile}, cold=cold), **changes
    )


def reports() -> dict[str, list[TuningRecord]]:
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


def test_reports(file_regression: FileRegressionFixture) -> None:
    made = {name: view.report(found, [environment()]) for name, found in reports().items()}
    texts = {name: shown(report) for name, report in made.items()}
    of_programs = text(next(iter(made.values())), "csv")
    file_regression.check(paged(texts | {"for programs": of_programs}), encoding="utf-8")
