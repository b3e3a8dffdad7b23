"""What a page says first of each view: one sentence, the fastest kernels of each size, device and
commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from matbench import workloads
from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.errors import listed
from matbench.features.charts.cases import RankedView
from matbench.model import Problem
from matbench.records.environment import Environment
from matbench.show import outcomes, units
from matbench.show.outcomes import device_lines, size_label
from matbench.show.table import Group, Row, Section, section

#: The most kernels that a sentence names.
_MOST_NAMES = 4
#: A problem, its rows that have a time, and the fastest of them.
_Fastest = tuple[Problem, list[Ranked], Ranked]
#: The columns of the table of the fastest kernels.
_WINNER = ("size", "kernel", "parameters", "time", "rate", "% of cuBLAS", "max rel err")


class Summary(NamedTuple):
    """`winners` is the table of the fastest kernels of each size, and `device` has the lines about
    the device."""

    sentence: str
    warning: str = ""
    counts: str = "no cases"
    winners: Section | None = None
    device: Sequence[str] = ()
    dates: str = "unknown"
    commands: Sequence[str] = ()


def make_summaries(
    views: Sequence[RankedView], environments: Sequence[Environment]
) -> list[Summary]:
    """What to say of each view; of records without a case, that there is none."""
    kernels: dict[str, int] = {}
    for view in views:
        kernels[view.workload] = max(kernels.get(view.workload, 0), view.most_kernels)
    if not views:
        return [_about("No case was measured.", environments)]
    broken = sum(outcome.is_broken for view in views for outcome in view.outcomes)
    return [_summary(view, kernels[view.workload], broken, environments) for view in views]


def _summary(
    view: RankedView, kernels: int, broken: int, environments: Sequence[Environment]
) -> Summary:
    """`kernels`: as many as some view of the workload has; `broken` cases are in all views."""
    results, device = view.outcomes, view.outcomes[0].case.device
    own = [e for e in environments if device in {info.name for info in e.devices}] or environments
    statuses = Counter(outcome.status for outcome in results)
    bad = [f"{statuses[s]} {s}" for s in ("wrong", "failed") if statuses[s]]
    many = f"{len(results):,} case{'s' if len(results) > 1 else ''}"
    warnings = [f"{' and '.join(bad)}, of {many}"] if bad else []
    if elsewhere := broken - statuses["wrong"] - statuses["failed"]:
        warnings.append(f"{elsewhere} wrong or failed in other views")
    problems = ((p, [row for row in rows if row.rivals]) for p, rows in view.problems.items())
    # What ranks apart is the fastest only where there is nothing else.
    ranked = [(problem, timed, min(timed, key=_place)) for problem, timed in problems if timed]
    columns = [replace(c, drop=0) for t in _WINNER for c in outcomes.COLUMNS if c.title == t]
    rows = []
    for _, timed, row in ranked:
        [plain] = Row.each(outcomes.in_unit("rate", _rate(row), columns), [row], outcomes.row_of)
        size, _, *cells = plain.cells
        rows.append(replace(plain, cells=(size, ", ".join(_leading(timed, row)), *cells), mark=""))
    title, group = "The fastest kernels of each size", Group("", tuple(rows))
    return _about(_sentence(view, ranked, kernels), own)._replace(
        warning="; ".join(warnings),
        counts=", ".join(f"{statuses[s]} {s}" for s in ranking.STATUSES if statuses[s]),
        winners=section([title], columns, "", [group]) if len(ranked) > 1 else None,
        device=device_lines(results, own, baselines=view.baselines),
    )


def _about(sentence: str, environments: Sequence[Environment]) -> Summary:
    argvs = [e.argv if e.argv[:1] == ("matbench",) else ("matbench", *e.argv) for e in environments]
    times = sorted(e.time[:16].replace("T", " ") for e in environments)
    ends = " to ".join(dict.fromkeys([*times[:1], *times[-1:]]))  # of the first run, and the last
    dates = f"{ends} UTC" if ends else "unknown"
    return Summary(sentence, dates=dates, commands=list(dict.fromkeys(map(shlex.join, argvs))))


def _place(row: Ranked) -> tuple[bool, bool, bool, float]:
    is_baseline = row.outcome.case.group == "baseline"
    return is_baseline, row.is_double, bool(row.claims), row.outcome.median_ns or 0.0


def _sentence(view: RankedView, ranked: Sequence[_Fastest], kernels: int) -> str:
    """About the largest square size that is no fragment.

    A fragment is a view or a size with fewer than half of the kernels that another one has.
    """
    if not ranked:
        right = [o.case.label for o in view.outcomes if o.status == "measured"]
        others = f" and {len(right) - 1} more" if len(right) > 1 else ""
        return f"{right[0]}{others}: right, not timed." if right else "No case was measured."
    if 2 * view.most_kernels < kernels:
        return f"A fragment: {view.most_kernels} kernels, where another view has {kernels}."
    whole = [found for found in ranked if 2 * view.kernels(found[0]) >= view.most_kernels]
    square = [found for found in whole if found[0].size.isdecimal()]
    problem, timed, row = (square or whole)[-1]
    rivals = {r.outcome.case.kernel for r in _rivals(timed, row)}
    names = _leading(timed, row)
    size = size_label(problem)
    where = f"at n = {size}" if problem.size.isdecimal() else f"at size {size}"
    figures = [_rate(row)(row.work_per_s)]
    if row.of_cublas is not None and row.outcome.case.group != "baseline":
        figures.append(f"{row.of_cublas:.2f} × cuBLAS")
    if row.outcome.max_rel_err is not None:
        figures.append(f"error {units.error(row.outcome.max_rel_err)}")
    of = f"of {len(rivals)} kernels {where}"
    if len(names) > 1:
        more = len(names) - _MOST_NAMES
        shown = [*names[: _MOST_NAMES - 1], f"{more + 1} others"] if more > 0 else names
        said = f"{listed(shown, 'and')}, which cannot be told apart, are the fastest {of}"
    elif len(rivals) > 1:
        said = f"{names[0]} is the fastest {of}"
    else:
        said = f"{names[0]} was measured {where}"
    return f"{said}: {', '.join(filter(None, figures))}."


def _rivals(timed: Sequence[Ranked], row: Ranked) -> list[Ranked]:
    """The rows of a problem that rank with this one."""
    return [r for r in timed if _place(r)[:3] == _place(row)[:3]]


def _leading(timed: Sequence[Ranked], row: Ranked) -> list[str]:
    """The fastest kernel, and those that may be as fast."""
    named = [r.outcome.case.kernel for r in _rivals(timed, row) if r.leads or r is row]
    return list(dict.fromkeys(named))


def _rate(row: Ranked) -> units.Formatter:
    return units.rates([row.work_per_s], workloads.workload_of(row.outcome.case.problem).rate)
