"""The search: who continues, who wins, and the budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import tunable
from support.optional import present

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.bench.options import FIRST, Deadlines, Options, Round
from matbench.bench.outcomes import compared, not_measured
from matbench.errors import UsageError
from matbench.features.tune import looking, search_space
from matbench.features.tune import search as tuning
from matbench.features.tune.search import Budget, TuningSearch
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Accuracy, CaseRecord, Outcome, Timing
from matbench.worker.worker import WorkerPool

SIZE = Problem(48, 48, 48)
TURNS = tuple(range(1, 41))
OPTIONS = Options(blocks=False)
NO_BUDGET = Budget()


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    path = tmp_path / "tunable.cu"
    path.write_text(tunable.KERNEL, encoding="utf-8")
    return catalogue.load(path)


def test_budgets() -> None:
    assert tuning.parse_budget(None) == (None, None)
    assert tuning.parse_budget("200") == (200, None)
    assert [tuning.parse_budget(text).seconds for text in ("90s", "10m", "1h")] == [90, 600, 3600]
    for text in ("", "0", "0s", "-1", "1d", "1.5m", "many", "9" * 40):
        with pytest.raises(UsageError, match="give a count such as 200"):
            tuning.parse_budget(text)
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


def searched(
    kernel: Kernel, worker: Clockwork, budget: Budget = NO_BUDGET, **given: tuple[int, ...]
) -> TuningSearch:
    """A search over TURNS, of which 8 is the default."""
    values = {"TURNS": TURNS, "KIND": (1,)} | given
    search = TuningSearch(search_space.space(kernel, SIZE, worker.device, values, 0), budget)
    search.run(worker, worker, lambda label: None)  # type: ignore[arg-type]
    return search


def test_few_go_on_and_the_fastest_wins(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    search = searched(kernel, worker)
    assert search.complete
    assert present(search.winner).case.params["TURNS"] == 1
    first, second, third = worker.looks[:40], worker.looks[40:50], worker.looks[50:]
    assert {turns for turns, *_ in first} == set(TURNS)
    assert {(samples, check) for _, samples, _, check in first} == {(3, True)}
    assert second == [(turns, 9, math.inf, False) for turns in range(1, 11)]
    assert third == [(turns, 27, math.inf, False) for turns in range(1, 5)]
    assert worker.measured == [1, 2, 3, 4, 8]  # and the default
    assert worker.compared == [(2, 1), (8, 1)]
    assert {s.case.params["TURNS"]: s.round for s in search.ranking()} == {
        turns: 3 if turns in (1, 2, 3, 4, 8) else 1 if turns <= 10 else 0 for turns in TURNS
    }
    assert len(search.standings) == 40
    assert search.steps == 40 + 10 + 4 + 4 + 1


def test_a_hopeless_look_ends_but_for_the_default(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    searched(kernel, worker)
    best = math.inf
    for turns, _, limit_ns, _ in worker.looks[:40]:
        assert limit_ns == (math.inf if turns == 8 else 2 * best)
        best = min(best, 1e6 * turns)


def test_every_candidate_keeps_how_exact_it_was(kernel: Kernel, device: DeviceInfo) -> None:
    search = searched(kernel, Clockwork(device))
    for standing in search.standings:
        last = standing.case.params["TURNS"] in (1, 2, 3, 4, 8)
        assert standing.outcome.max_rel_err == (0.25 if last else 0.5)


def test_the_default_stays_unless_surely_beaten(kernel: Kernel, device: DeviceInfo) -> None:
    search = searched(kernel, Clockwork(device, T7=7.96), TURNS=(7, 8))
    assert present(search.comparison).verdict == "SAME"
    assert present(search.winner).case.params["TURNS"] == 8
    [winner, other] = search.records()
    assert (winner.outcome.case.params["TURNS"], winner.is_best, winner.is_default) == (
        8, True, True,
    )  # fmt: skip
    assert (winner.comparison, winner.median_ratio) == (None, 1)
    assert other.comparison == search.comparison
    assert other.median_ratio == pytest.approx(7.96 / 8)


def test_what_is_wrong_in_turns_is_out(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    worker.wrong = {1}
    search = searched(kernel, worker)
    assert present(search.winner).case.params["TURNS"] == 2
    assert worker.compared == [(2, 1), (3, 2), (8, 2)]
    [broken] = [each for each in search.standings if each.outcome.is_broken]
    assert (broken.case.params["TURNS"], broken.outcome.reason) == (1, "a race")
    assert broken not in search.ranking()
    best = search.records()[0]
    assert (best.outcome.case.params["TURNS"], best.tried) == (2, 40)
    assert best.comparison == search.comparison
    assert present(best.comparison).ratio == pytest.approx(2 / 8)


def test_without_a_default_the_fastest_wins(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    worker.wrong = {8}
    search = searched(kernel, worker, TURNS=(8, 9))
    assert present(search.winner).case.params["TURNS"] == 9
    assert search.comparison is None
    assert {record.median_ratio for record in search.records()} == {None}


def test_nothing_to_try_and_nothing_right(kernel: Kernel, device: DeviceInfo) -> None:
    nothing = searched(kernel, Clockwork(device), KIND=(3,))
    assert (nothing.complete, nothing.leader(), nothing.candidates) == (True, None, [])
    worker = Clockwork(device)
    worker.look = lambda case, *_, **__: not_measured(case, device, "failed", "no")  # type: ignore
    fruitless = searched(kernel, worker)
    assert (len(fruitless.candidates), fruitless.leader(), fruitless.ranking()) == (40, None, [])
    assert worker.measured == []


def test_a_budget_of_candidates(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    search = searched(kernel, worker, Budget(candidates=3))
    assert len(search.standings) == 3
    assert worker.looks[0][0] == 8


def test_a_budget_of_time_takes_the_defaults_at_least(kernel: Kernel, device: DeviceInfo) -> None:
    worker = Clockwork(device)
    search = searched(kernel, worker, Budget(seconds=1e-9))
    assert [turns for turns, *_ in worker.looks] == [8]
    assert search.complete
    assert search.winner is not None
    assert search.comparison is None


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
