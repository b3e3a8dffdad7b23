"""Finds the fastest values of a kernel's constants on a device, and keeps them for later runs.

Each candidate is checked, then timed with a few samples, and left as soon as two show it slow.
The fastest quarter goes on to the next round with three times as many (successive halving: Jamieson
and Talwalkar, AISTATS 2016), until some are left. Those are measured like any case of a run, and
take turns to decide between them: chance picks the best of many quick looks too often.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import filelock
import msgspec

from matbench.analysis import statistics
from matbench.errors import UsageError
from matbench.kernelfile import cuda_c, sweep
from matbench.measure.worker import Builders, Worker
from matbench.model import Accuracy, Case, DeviceInfo, Kernel, Outcome, Problem
from matbench.records import results
from matbench.show.report import TuningRow

#: More combinations than this are not all looked through for legal ones: some are drawn.
MOST_COMBINATIONS = 20_000
#: What each round keeps: a quarter, with three times the samples of the round before.
_KEPT = 4
_MORE_SAMPLES = 3
_FIRST_SAMPLES = 3
_FINALISTS = 4
#: A first look ends when samples take so many times as long as the best median so far.
_HOPELESS = 2.0
_MOST_BUDGET = 999_999


class Budget(NamedTuple):
    """What the first looks may take: so many candidates, or so many seconds; None: no bound."""

    candidates: int | None = None
    seconds: float | None = None


def parse_budget(text: str | None) -> Budget:
    """`200` candidates, or `90s`, `10m`, `1h` of time."""
    if text is None:
        return Budget()
    found = re.fullmatch(r"0*(\d{1,30})([smh]?)", text.strip())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"--budget {text!r:.60}: write 200 (candidates), or 90s, 10m, 1h")
    number = int(found[1])
    if number > _MOST_BUDGET:
        raise UsageError(f"--budget {text!r}: {_MOST_BUDGET:,}{found[2]} at most")
    if not found[2]:
        return Budget(candidates=number)
    return Budget(seconds=number * {"s": 1.0, "m": 60.0, "h": 3600.0}[found[2]])


# -- what there is to try ------------------------------------------------------------------------


class Refused(NamedTuple):
    """Combinations that one condition refuses: how many, and what is said of one of them."""

    many: int
    example: str


class Space(NamedTuple):
    """The candidates of a kernel on one problem: what a bare run takes first, the others drawn.

    `combinations` counts all there are, `drawn` those that were looked through for legal ones;
    `refused` has a condition for each that was not, and `merged` counts those that are the same
    launch as one of the candidates.
    """

    defaults: list[Case]
    others: list[Case]
    refused: dict[str, Refused]
    combinations: int
    drawn: int
    merged: int = 0

    @property
    def cases(self) -> list[Case]:
        return [*self.defaults, *self.others]

    def described(self) -> str:
        """How many candidates there are, of how many combinations, in words."""
        others = sum(refused.many for refused in self.refused.values())
        told = f"{len(self.cases):,} candidates; {others:,} of {self.drawn:,} combinations refused"
        if self.merged:
            told += f", {self.merged:,} the same launch as another"
        if self.drawn < self.combinations:
            told += f", drawn from {self.combinations:,}"
        return told


def space(
    kernel: Kernel,
    problem: Problem,
    device: DeviceInfo,
    overrides: Mapping[str, tuple[int, ...]],
    seed: int,
) -> Space:
    """Every combination of `[sweep]` and `[tune]` that the device and `where` allow.

    Overrides take the place of a constant's own values, for the defaults too. The order is drawn
    with `seed`, so that a budget that ends early leaves a fair sample.
    """
    own = kernel.sweep | kernel.tune
    values = own | {name: given for name, given in overrides.items() if name in own}
    count = math.prod(map(len, values.values()))
    order = random.Random(seed).sample(range(count), min(count, MOST_COMBINATIONS))  # noqa: S311
    defaults: dict[object, Case] = {}
    others: dict[object, Case] = {}
    refused: dict[str, Refused] = {}
    merged = 0
    told = _words(kernel)
    for params in sweep.parameter_sets(kernel, _default_values(kernel, values, overrides)):
        case = sweep.case(kernel, problem, params, device)
        if case.skip is None:
            defaults.setdefault(_told_apart(case, told), case)
    known = [case.params for case in defaults.values()]
    for index in order:
        params = _combination(values, index)
        if params in known:
            continue
        case = sweep.case(kernel, problem, params, device)
        key = _told_apart(case, told)
        if case.skip is not None:
            kind = case.skip.rpartition(" (")[0] or re.sub(r"\d[\d,]*", "#", case.skip)
            refused[kind] = Refused(refused.get(kind, Refused(0, ""))[0] + 1, case.skip)
        elif key in defaults or key in others:
            merged += 1
        else:
            others[key] = case
    return Space([*defaults.values()], [*others.values()], refused, count, len(order), merged)


def _default_values(
    kernel: Kernel,
    values: Mapping[str, tuple[int, ...]],
    overrides: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
    """What a bare run takes of the values given: its own, or the first where none of them is."""
    found = {}
    for name in overrides.keys() & values.keys():
        own = tuple(value for value in values[name] if value in kernel.sweep.get(name, ()))
        found[name] = own or values[name][:1]
    return found


def _words(kernel: Kernel) -> frozenset[str]:
    """Every word of the source and of what is passed to it."""
    code = "\n".join((cuda_c.without_comments(kernel.source), *kernel.args))
    return frozenset(re.findall(r"\w+", code))


def _told_apart(case: Case, words: frozenset[str]) -> object:
    """Equal for cases that run the same code in the same launch.

    A constant that the source does not name changes nothing but the launch.
    """
    return case.launch, frozenset(pair for pair in case.params.items() if pair[0] in words)


def _combination(values: dict[str, tuple[int, ...]], index: int) -> dict[str, int]:
    """The combination of that number, counting as `sweep.combinations` does."""
    chosen: dict[str, int] = {}
    for name, choices in reversed(values.items()):
        index, which = divmod(index, len(choices))
        chosen[name] = choices[which]
    return {name: chosen[name] for name in values}


# -- the search ----------------------------------------------------------------------------------


def rounds(candidates: int) -> list[tuple[int, int]]:
    """How many candidates each round has, the first looks included, and samples of each."""
    found = [(candidates, _FIRST_SAMPLES)]
    while found[-1][0] > _FINALISTS:
        count, samples = found[-1]
        found.append((max(_FINALISTS, -(-count // _KEPT)), _MORE_SAMPLES * samples))
    return found


class Standing(NamedTuple):
    """A candidate, the last round it was in, and what came of it there."""

    case: Case
    round: int
    outcome: Outcome


class Search:
    """One kernel on one problem. What is known so far outlives an interruption."""

    def __init__(self, space: Space, budget: Budget) -> None:
        self.space = space
        self.budget = budget
        self.standings: list[Standing] = []
        self.winner: Standing | None = None
        #: Who took turns with the fastest default at last, and what came of it.
        self.compared: Standing | None = None
        self.comparison: statistics.Comparison | None = None
        self.complete = False

    @property
    def steps(self) -> int:
        """How many looks and measurements it takes at most."""
        planned = rounds(len(self.space.cases[: self.budget.candidates]))
        return sum(count for count, _ in planned) + planned[-1][0] + 1

    def ranking(self) -> list[Standing]:
        """All that were right and timed, the fastest of the last round first."""
        measured = [s for s in self.standings if s.outcome.median_ns is not None]
        return sorted(measured, key=lambda s: (-s.round, s.outcome.median_ns))

    def run(self, worker: Worker, builders: Builders, advance: Callable[[str], None]) -> None:
        """Look at all, go on with fewer and fewer, and let the last ones take turns."""
        cases = self.space.cases[: self.budget.candidates]
        builders.start(worker.device, cases, ("plain",))
        started, best_ns = time.monotonic(), math.inf
        for case in cases:
            late = time.monotonic() - started > (self.budget.seconds or math.inf)
            if late and len(self.standings) >= len(self.space.defaults):
                break
            advance(self._told(case))
            first = case in self.space.defaults  # what all are held against must not be cut short
            limit_ns = math.inf if first else _HOPELESS * best_ns
            outcome = worker.look(case, _FIRST_SAMPLES, limit_ns, check=True)
            self.standings.append(Standing(case, 0, outcome))
            best_ns = min(best_ns, outcome.median_ns or math.inf)
        planned = rounds(len(self.ranking()))
        for number, (count, samples) in enumerate(planned[1:], start=1):
            for standing in self.ranking()[:count]:
                advance(self._told(standing.case))
                outcome = worker.look(standing.case, samples, math.inf, check=False)
                self._replace(standing, outcome, number)
        self._finals(worker, builders, advance, len(planned))
        self.complete = True

    def _replace(self, standing: Standing, outcome: Outcome, number: int) -> None:
        if outcome.max_rel_err is None:  # not checked again
            names = msgspec.structs.fields(Accuracy)
            known = {field.name: getattr(standing.outcome, field.name) for field in names}
            outcome = msgspec.structs.replace(outcome, **known)
        index = self.standings.index(standing)
        self.standings[index] = Standing(standing.case, number, outcome)

    def _told(self, case: Case) -> str:
        best = next(iter(self.ranking()), None)
        return case.label + (f"; best so far {best.case.label}" if best else "")

    def default(self) -> Standing | None:
        """The fastest of what a bare run takes."""
        return next((s for s in self.ranking() if s.case in self.space.defaults), None)

    def _finals(
        self, worker: Worker, builders: Builders, advance: Callable[[str], None], last: int
    ) -> None:
        """Measure the finalists and the default as a run does, then let the best take turns."""
        finalists = self.ranking()[:_FINALISTS]
        default = self.default()
        if default is not None and default not in finalists:
            finalists.append(default)
        builds = worker.options.builds
        builders.start(worker.device, [standing.case for standing in finalists], builds)
        for standing in finalists:
            advance(f"{standing.case.label}: measured and checked in full")
            self._replace(standing, worker.run(standing.case), last)
        while self.winner is None:
            ranked = [standing for standing in self.ranking() if standing.round == last]
            if not ranked:
                return
            self._decide(worker, ranked)

    def _decide(self, worker: Worker, ranked: list[Standing]) -> None:
        """The best against its runner-up, and then against the default, which it must beat.

        Whoever turns out to be wrong meanwhile is out, and there is no winner yet.
        """
        best, default = ranked[0], self.default()
        for rival in ranked[1:2]:
            if rival != default:
                comparison = self._turns(worker, rival, best)
                if comparison is None:
                    return
                best = rival if comparison.verdict == "SLOWER" else best
        if default is not None and default != best:
            self.compared, self.comparison = best, self._turns(worker, default, best)
            if self.comparison is None:
                return
            best = best if self.comparison.verdict == "FASTER" else default
        self.winner = best

    def _turns(
        self, worker: Worker, first: Standing, second: Standing
    ) -> statistics.Comparison | None:
        duel = worker.compare(first.case, second.case, statistics.ComparisonPlan(), 0)
        if duel.comparison is None:
            for standing, outcome in ((first, duel.baseline), (second, duel.candidate)):
                if outcome.median_ns is None and outcome.status != "measured":
                    self._replace(standing, outcome, standing.round)
        return duel.comparison

    def leader(self) -> Standing | None:
        """The winner; before there is one, the best so far."""
        return self.winner or next(iter(self.ranking()), None)

    def is_fruitless(self) -> bool:
        """Whether there was something to try, and none of it was right."""
        return bool(self.space.cases) and self.leader() is None

    def broken(self) -> list[Standing]:
        """Candidates that were wrong, or failed."""
        return [s for s in self.standings if s.outcome.status in ("wrong", "failed")]


def rows(searches: Iterable[Search]) -> list[TuningRow]:
    """Each search's candidates, the winner first, and how long they take against the default."""
    found = []
    for search in searches:
        leader, default = search.leader(), search.default()
        for standing in sorted(search.ranking(), key=lambda standing: standing != leader):
            outcome, turns, of_medians = standing.outcome, None, None
            if standing == search.compared:
                turns = search.comparison
            if default and outcome.median_ns and default.outcome.median_ns:
                of_medians = outcome.median_ns / default.outcome.median_ns
            places = [
                *(["winner" if search.complete else "best so far"] if standing == leader else []),
                *(["default"] if standing.case in search.space.defaults else []),
            ]
            found.append(
                TuningRow(
                    outcome=outcome,
                    ratio=turns.ratio if turns else None,
                    ratio_interval=turns.interval if turns else None,
                    median_ratio=of_medians,
                    round=standing.round,
                    place=", ".join(places),
                    searched=f"{len(search.standings):,} looked at of {search.space.described()}",
                )
            )
    return found


# -- what is kept --------------------------------------------------------------------------------


#: Raised when a field of `Tuned` is renamed or changes its meaning.
SCHEMA = 1


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that won for one kernel source on one device and problem.

    `ratio` is its time over that of the default, by turns; None when it is the default. `tried`
    counts the candidates that were looked at, of `combinations` in all. A search that was
    interrupted is not `complete`. An empty string is not known.
    """

    schema: int = SCHEMA
    kernel: str
    sha256: str
    backend: str
    device: str
    driver: str = ""
    toolkit: str = ""
    problem: Problem
    params: dict[str, int]
    median_ns: float | None = None
    ratio: float | None = None
    tried: int = 0
    combinations: int = 0
    complete: bool = True
    time: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        return (self.sha256, self.kernel, self.backend, self.device, _plain(self.problem))


def _decoded(line: bytes) -> Tuned | None:
    try:
        found = msgspec.json.decode(line, type=Tuned)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.schema == SCHEMA and _volume(found.problem) > 0 else None


def _plain(problem: Problem) -> Problem:
    """The problem without what its inputs are: they are not told apart."""
    return msgspec.structs.replace(problem, inputs="uniform", seed=0)


def _volume(problem: Problem) -> int:
    return problem.M * problem.N * problem.K


def tuned(search: Search, device: DeviceInfo) -> Tuned | None:
    """What a search found, as it is kept; None when nothing was right."""
    leader = search.leader()
    if leader is None or leader.outcome.median_ns is None:
        return None
    case = leader.case
    is_default = case in search.space.defaults
    return Tuned(
        kernel=case.kernel.name,
        sha256=case.kernel.sha256,
        backend=device.backend,
        device=device.name,
        driver=device.driver,
        toolkit=device.toolkit,
        problem=_plain(case.problem),
        params=case.params,
        median_ns=leader.outcome.median_ns,
        ratio=search.comparison.ratio if search.comparison and not is_default else None,
        tried=len(search.standings),
        combinations=search.space.combinations,
        complete=search.complete,
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


class Store:
    """Winners as JSON Lines in the user's state folder, one line a kernel, device and problem."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or results.state_folder() / "tuned.jsonl"

    def winners(self) -> list[Tuned]:
        """All that can be read, the latest of each last."""
        found = {known.key: known for _, known in self._lines() if known is not None}
        return list(found.values())

    def require(self) -> None:
        """`UsageError` when nothing could be kept here, before anything is measured for it."""
        with self._locked():
            self._replace(self.path.read_bytes() if self.path.exists() else b"")

    def keep(self, winner: Tuned) -> bool:
        """Put it in the place of an older one; not where it is unfinished and that one is not.

        Lines that this version cannot read stay as they are: another one wrote them.
        """
        with self._locked():
            lines = self._lines()
            if not winner.complete and any(
                known is not None and known.key == winner.key and known.complete
                for _, known in lines
            ):
                return False
            kept = [line for line, known in lines if known is None or known.key != winner.key]
            self._replace(b"".join(line + b"\n" for line in (*kept, msgspec.json.encode(winner))))
        return True

    def _lines(self) -> list[tuple[bytes, Tuned | None]]:
        """Each line as it is, with what it says; None where this version cannot read it."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be read: {error.strerror}") from None
        return [(line, _decoded(line)) for line in data.split(b"\n") if line.strip()]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with filelock.FileLock(f"{self.path}.lock", timeout=10):
                yield
        except filelock.Timeout:
            raise UsageError(f"{self.path}: another matbench holds it; try again") from None
        except OSError as error:
            said = f"{self.path}: a winner cannot be kept: {error.strerror or error}"
            raise UsageError(f"{said}; set MATBENCH_STATE_DIR to another folder") from None

    def _replace(self, data: bytes) -> None:
        part = self.path.with_suffix(".part")
        try:
            part.write_bytes(data)
            part.replace(self.path)
        except OSError:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def nearest(self, kernel: Kernel, device: DeviceInfo, problem: Problem) -> list[Tuned]:
        """Winners for this source on this device: of the same size, else of the nearest volumes."""

        def distance(winner: Tuned) -> tuple[bool, float]:
            apart = math.log(_volume(winner.problem) / _volume(problem))
            return winner.problem != _plain(problem), abs(apart)

        fitting = [
            winner
            for winner in self.winners()
            if (winner.sha256, winner.backend, winner.device)
            == (kernel.sha256, device.backend, device.name)
        ]
        return sorted(fitting, key=distance)


def tuned_cases(kernel: Kernel, problem: Problem, device: DeviceInfo, store: Store) -> list[Case]:
    """The kernel with what tuning found, where that is legal; an empty list when nothing fits.

    A note says where that was found otherwise than for this size, to the end, with this driver.
    """
    for winner in store.nearest(kernel, device, problem):
        case = sweep.case(kernel, problem, winner.params, device)
        if case.skip is not None:
            continue
        said = []
        if winner.problem != _plain(problem):
            said.append(f"parameters tuned at {winner.problem.size}")
        if not winner.complete:
            said.append("parameters from a tuning that was interrupted")
        if winner.driver not in ("", device.driver):
            said.append(f"parameters tuned with driver {winner.driver}, this is {device.driver}")
        return [msgspec.structs.replace(case, notes=tuple(said))]
    return []
