"""What a page says first: one sentence, the fastest kernel of each size, device and commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from matbench.analysis import ranking
from matbench.analysis.ranking import DeviceRanking, ProblemRanking, Ranked
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.show import outcomes, units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label
from matbench.show.table import Column, Group, Section, section

#: The columns of the table of the fastest kernels.
_WINNER = ("size", "kernel", "parameters", "time", "rate", "% of cuBLAS", "max rel err")


class Summary(NamedTuple):
    """`winners` is the table of the fastest kernel of each size, and `devices` has the lines about
    each device."""

    sentence: str
    warning: str
    counts: str
    winners: Section | None
    devices: list[tuple[str, ...]]
    dates: str
    commands: list[str]


def make_summary(results: Sequence[Outcome], environments: Sequence[Environment]) -> Summary:
    """The summary of records; its sentence is about the largest square size of the first device."""
    devices = [device for environment in environments for device in environment.devices]
    tables = ranking.tables(results, devices)
    about = (device_lines(t.outcomes, environments, baselines=t.baselines) for t in tables)
    statuses = Counter(outcome.status for outcome in results)
    counts = ", ".join(f"{statuses[s]} {s}" for s in ranking.STATUSES if statuses[s])
    bad = [f"{statuses[s]} {s}" for s in ("wrong", "failed") if statuses[s]]
    ranked = [(problem, row) for table in tables[:1] for problem, row in _fastest(table)]
    return Summary(
        sentence=_sentence(ranked) if ranked else "No case was measured.",
        warning=f"{' and '.join(bad)}, of {len(results):,} cases" if bad else "",
        counts=counts or "no cases",
        winners=_winners(ranked) if len(ranked) > 1 else None,
        devices=list(dict.fromkeys(map(tuple, about))),
        dates=_dates(environments),
        commands=list(dict.fromkeys(map(_command, environments))),
    )


def _fastest(table: DeviceRanking) -> Iterable[tuple[ProblemRanking, Ranked]]:
    """The fastest kernel of each problem; what ranks apart only where there is nothing else."""
    for problem in table.problems:
        timed = [row for row in problem.rows if row.rivals]
        if timed:
            yield problem, min(timed, key=_place)


def _place(row: Ranked) -> tuple[bool, bool, bool, float]:
    is_baseline = row.outcome.case.group == "baseline"
    return is_baseline, row.is_double, bool(row.claims), row.outcome.median_ns or 0.0


def _sentence(ranked: Sequence[tuple[ProblemRanking, Ranked]]) -> str:
    square = [(p, row) for p, row in ranked if p.problem.size.isdecimal()]
    problem, row = (square or list(ranked))[-1]
    rivals = {r.outcome.case.kernel for r in _rivals(problem, row)}
    names = _leading(problem, row)
    size = size_label(problem.problem)
    where = f"at n = {size}" if problem.problem.size.isdecimal() else f"at size {size}"
    figures = [_rate(row)(row.work_per_s)]
    if row.of_cublas is not None and row.outcome.case.group != "baseline":
        figures.append(f"{row.of_cublas:.2f} × cuBLAS")
    if row.outcome.max_rel_err is not None:
        figures.append(f"error {units.error(row.outcome.max_rel_err)}")
    of = f"of {len(rivals)} kernels {where}"
    if len(names) > 1:
        said = f"{', '.join(names[:-1])} and {names[-1]} are the fastest {of}, not told apart"
    elif len(rivals) > 1:
        said = f"{names[0]} is the fastest {of}"
    else:
        said = f"{names[0]} was measured {where}"
    return f"{said}: {', '.join(filter(None, figures))}."


def _rivals(problem: ProblemRanking, row: Ranked) -> list[Ranked]:
    """The rows of a problem that rank with this one."""
    return [r for r in problem.rows if r.rivals and _place(r)[:3] == _place(row)[:3]]


def _leading(problem: ProblemRanking, row: Ranked) -> list[str]:
    """The fastest kernel, and those that may be as fast."""
    named = [r.outcome.case.kernel for r in _rivals(problem, row) if r.leads or r is row]
    return list(dict.fromkeys(named))


def _rate(row: Ranked) -> units.Formatter:
    return units.rates([row.work_per_s], "B/s" if row.gbytes_per_s is not None else "FLOP/s")


def _winners(ranked: Sequence[tuple[ProblemRanking, Ranked]]) -> Section:
    rows = []
    for problem, row in ranked:
        [plain] = outcomes.rows([row], _rate(row))
        size, (_, *cells) = size_label(problem.problem), plain.cells
        names = ", ".join(_leading(problem, row))
        rows.append(replace(plain, cells=(size, names, *cells), mark=""))
    heading = ["The fastest kernel of each size"]
    every = section(heading, [Column("size"), *outcomes.COLUMNS], "", [Group("", tuple(rows))])
    return every.with_columns(_WINNER)


def _dates(environments: Iterable[Environment]) -> str:
    """When the first run was made, and the last."""
    times = sorted(e.time[:16].replace("T", " ") for e in environments)
    return " to ".join(dict.fromkeys([*times[:1], *times[-1:]])) + " UTC" if times else "unknown"


def _command(environment: Environment) -> str:
    words = environment.argv
    whole = ("matbench", *words) if words[:1] != ("matbench",) else words
    return shlex.join(whole)
