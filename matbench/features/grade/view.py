"""The numerical profile of each kernel, and a table that compares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import msgspec

from matbench.features.grade import record, summation_tree
from matbench.features.grade.summation_tree import Tree
from matbench.model import settings_of
from matbench.records.environment import Environment
from matbench.show import table
from matbench.show.table import Column, Group, Report, Row, Section, numeric, under
from matbench.show.units import UNKNOWN, count, is_known, number, share, superscript

PAGE = "arithmetic"
#: The types whose significands have so many bits.
_WIDTHS = {8: "bfloat16", 11: "float16", 14: "float22", 24: "float32", 53: "float64"}
_WORDS: dict[str, dict[str, str]] = msgspec.toml.decode(
    Path(__file__).with_name("words.toml").read_bytes()
)
_FOOTER = "evidence from the probes counted here, not proof; what each line means: docs/grade.md"


def report(grades: Sequence[record.Grade], environments: Sequence[Environment]) -> Report:
    """A profile of each kernel and, if there are several, a table of all."""
    shown, about = list(grades), list(environments)
    graded = [grade for grade in shown if grade.reason is None]
    missing = []
    for why, alike in table.grouped(shown, lambda grade: grade.reason).items():
        if why is not None:
            names = dict.fromkeys(grade.case.kernel for grade in alike)
            missing.append(f"not graded: {', '.join(names)}: {why}")
    compared = [_comparison(graded, about)] if len(graded) > 1 else []
    return Report(
        sections=(*map(_profile, graded), *compared),
        footer="\n".join([*missing, *([_FOOTER] if graded else [])]),
        columns=_COLUMNS,
        rows=lambda: shown,
        records=lambda: [*about, *shown],
    )


def name_of(grade: record.Grade) -> str:
    """The kernel and its parameters."""
    return f"{grade.case.kernel} {settings_of(grade.case.params)}".strip()


# -- profiles --------------------------------------------------------------------------------------


def _profile(grade: record.Grade) -> Section:
    """What is said about each property, and how many probes it rests on."""
    properties: tuple[tuple[str, record.Statement | None, Callable[[Any], str]], ...] = (
        ("errors", grade.bounds, partial(_errors, grade)),
        ("growth with K", grade.growth, _growth),
        ("algorithm", grade.algorithm, _by_verdict),
        ("exponents", grade.range, _by_verdict),
        ("special values", grade.specials, _specials),
        ("subnormals", grade.specials, subnormals),
        ("order of sums", grade.order, _order),
        ("arithmetic", grade.sums, _arithmetic),
        ("repeated runs", grade.runs, _by_verdict),
        ("rows", grade.batches, _by_verdict),
        ("constants", grade.constants, _by_verdict),
        *((f"{ulps.inputs} inputs", ulps, _ulps) for ulps in grade.ulps),
    )
    rows = tuple(
        Row((title, _said(made, text), count(made.probes) if made.probes else UNKNOWN))
        for title, made, text in properties
        if made is not None
    )
    columns = (Column("property"), Column("finding"), Column("probes", right=True))
    title = f"{name_of(grade)}: grade {grade.letter}, {grade.duration_s:.1f} s"
    return Section((title,), columns, "", (Group("", rows),))


def _said(statement: record.Statement | None, text: Callable[[Any], str]) -> str:
    """The text about a statement, or why there is none."""
    if statement is None:
        return "unclear"
    varies = isinstance(statement, record.Order) and statement.verdict == "varies"
    if statement.reason is None or varies:
        return text(statement)
    if isinstance(statement, record.Constants):
        return statement.reason
    read = _read(statement) if isinstance(statement, record.Sums) else ""
    return "; ".join(filter(None, (read, f"unclear: {statement.reason}")))


def _by_verdict(statement: Any) -> str:
    """The sentence for a statement's verdict, with the statement's figures."""

    def shown(value: Any) -> Any:
        if isinstance(value, tuple):
            return ", ".join(count(one) if isinstance(one, int) else one for one in value)
        return number(value) if isinstance(value, float | None) else value

    sentence = _WORDS[type(statement).__name__.lower()].get(statement.verdict, "unclear")
    figures = msgspec.structs.asdict(statement)
    return sentence.format(**{name: shown(value) for name, value in figures.items()})


def _errors(grade: record.Grade, bounds: record.Bounds) -> str:
    """The bound that holds and, for lower grades than A, for how many bits that would."""
    growing = grade.growth
    u = f"u = 2{superscript(round(log2(grade.u)))}"
    if bounds.verdict == "A" and growing is not None and growing.errors:
        most, K = number(growing.errors[-1]), count(growing.sizes[-1])
        return f"up to {most}·u of |A|·|B|, element by element, at K = {K} ({u})"
    declared = grade.case.claims.precision
    text = f"{_by_verdict(bounds)} ({u}); grade A for {bounds.bits} bits"
    is_told = bounds.verdict == "D" and declared != "float32"
    return f"{text}; it declares {declared}" if is_told else text


def _growth(growth: record.Growth) -> str:
    if growth.slope is None or growth.interval is None:
        return "unclear"
    low, high = growth.interval
    span = f"K = {count(growth.sizes[0])} to {count(growth.sizes[-1])}"
    power = f"as K to the power {growth.slope:.2f} ({low:.2f} to {high:.2f})"
    return f"{growth.verdict}: {power}, {span}".replace("-", "−")


def _specials(specials: record.Specials) -> str:
    if not specials.differ:
        return "NaN, infinities and overflow as in IEEE arithmetic"
    kinds = table.grouped(specials.differ, lambda case: specials.differ[case])
    return "; ".join(f"{got} for {', '.join(cases)}" for got, cases in kinds.items())


def subnormals(specials: record.Specials) -> str:
    parts = [f"inputs {specials.subnormal_inputs or 'not tried'}"]
    if specials.subnormal_results is not None:
        parts.append(f"results {specials.subnormal_results}")
    return ", ".join(parts)


def order(grade: record.Grade) -> str:
    return _said(grade.order, _order)


def _order(ordering: record.Order) -> str:
    if ordering.verdict == "exact":
        return "cannot be seen: sums lose nothing"
    if ordering.verdict == "varies":
        return "varies: runs differ"
    if ordering.levels:
        return f"{words(ordering.levels)} (K = {ordering.terms})"
    return f"irregular: {len(ordering.steps)} additions (K = {ordering.steps_terms})"


def _arithmetic(sums: record.Sums) -> str:
    if sums.accumulator_bits is None:
        return _read(sums) or "unclear"
    kind = _WIDTHS.get(sums.accumulator_bits)
    width = f"sums of {sums.accumulator_bits} bits" + (f" ({kind})" if kind else "")
    rounding = _WORDS["rounding"].get(sums.rounding)
    products = _WORDS["products"].get(sums.products)
    return ", ".join(filter(None, (width, rounding, products, _read(sums))))


def _read(sums: record.Sums) -> str:
    return f"inputs read with {sums.input_bits} bits" if sums.input_bits is not None else ""


def _ulps(ulps: record.Ulps) -> str:
    if ulps.largest is None:
        return "unclear"
    return (
        f"{number(ulps.largest)} ulp at most, {number(ulps.mean)} on average, "
        f"{share(ulps.correctly_rounded)} correctly rounded"
    )


def words(levels: Sequence[record.Level]) -> str:
    """A regular order: `4 chunks of 8 terms, each in order; then pairwise`."""
    text, size = (_how(levels[0]) if levels else ""), 1
    for index, (inner, outer) in enumerate(pairwise(levels)):
        size *= inner.terms
        each = f"({text})" if index else text
        text = f"{_groups(outer.terms, size, inner.block)}, each {each}; then {_how(outer)}"
    return text


def _groups(many: int, size: int, block: int | None) -> str:
    """So many groups of `size` terms, dealt out by `block` terms."""
    if block == size:
        return f"{many} chunks of {size} terms"
    if block == 1:
        return f"{many} sums of every {_ordinal(many)} term"
    return f"{many} sums of {block} terms in every {(block or 0) * many}"


def _how(level: record.Level) -> str:
    if level.how == "at once":
        return f"all {level.terms} in one step"
    if level.at_a_time > 1:
        back = ", from the last" if level.how == "in reverse" else ""
        return f"{level.at_a_time} terms at a time onto the running sum{back}"
    return _WORDS["how"][level.how]


def _ordinal(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return str(number) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")


# -- the table -------------------------------------------------------------------------------------


def _comparison(grades: Sequence[record.Grade], environments: Sequence[Environment]) -> Section:
    several = Counter(grade.case.kernel for grade in grades)
    names = [name_of(g) if several[g.case.kernel] > 1 else g.case.kernel for g in grades]
    made = Row.each(_COLUMNS, grades, lambda g: Row(reason=order(g).partition(" (K = ")[0]))
    rows = [replace(r, cells=(n, *r.cells[1:])) for n, r in zip(names, made, strict=True)]
    devices = [device for environment in environments for device in environment.devices]
    heading = (
        "Kernels compared",
        *dict.fromkeys(f"{of.label} · driver {of.driver} · {of.toolkit}" for of in devices),
        "bits: for which grade A holds · ulp: largest error on uniform inputs · sums: bits of the "
        "accumulator",
    )
    return table.section(heading, _COLUMNS, "order of sums", (Group("", tuple(rows)),))


_COLUMNS = (
    Column("kernel", "kernel", "case.kernel"),
    *under("case", "params backend device"),
    Column("grade", "letter"),
    *under("", "seed duration_s reason"),
    numeric("bits", "bits", "bounds.bits", count),
    *under("growth", "growth=verdict"),
    numeric("slope", "slope", "growth.slope", drop=2,
            form=lambda slope: f"{slope:.2f}" if is_known(slope) else UNKNOWN),
    *under("growth.interval", "slope_low=0 slope_high=1"),
    numeric("ulp", form=partial(number, digits=2), drop=3,
            value=lambda g: next((u.largest for u in g.ulps if u.inputs == "uniform"), None)),
    *under("algorithm", "algorithm=verdict"),
    *under("range", "binades binades_tried=tried"),
    Column("exponents", value="range.verdict", drop=6, place=1),
    Column("specials", "specials", "specials.verdict", drop=5, place=1),
    *under("specials", "subnormal_inputs subnormal_results"),
    *under("order", "order=verdict"),
    numeric("sums", "accumulator_bits", "sums.accumulator_bits", count, drop=1),
    *under("sums", "rounding products input_bits"),
    Column("runs", "runs", "runs.verdict", drop=7, place=1),
    Column("rows", "batches", "batches.verdict", drop=4, place=1),
    *under("constants", "constants=verdict"),
)  # fmt: skip


# -- trees -----------------------------------------------------------------------------------------


def tree(grade: record.Grade) -> list[str]:
    """The order of few terms as an indented tree. `+` is one addition onto the running sum, `&`
    joins terms of one step."""
    ordering = grade.order
    if ordering is None or not ordering.steps:
        return []
    return list(_branch(summation_tree.from_steps(ordering.steps_terms, ordering.steps), 0))


def _branch(node: Tree, depth: int) -> Iterator[str]:
    indent = "  " * depth
    steps = summation_tree.chain_of(node)
    if isinstance(node, int):
        yield f"{indent}{node}"
    elif steps is not None:
        yield indent + _chain(steps)
    else:
        operands = _running(node)
        yield f"{indent}sum of" + (", in order" if len(operands) > len(node) else "")
        for operand in operands:
            yield from _branch(operand, depth + 1)


def _running(node: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The sums that are added to a running sum one by one, if they have equally many terms."""
    sums, sizes = node, [len(summation_tree.terms_of(operand)) for operand in node]
    while not isinstance(sums[0], int) and len(sums[0]) == 2 and sizes[0] != sizes[1]:
        sums = (*sums[0], *sums[1:])
        sizes[:1] = [len(summation_tree.terms_of(operand)) for operand in sums[:2]]
    return sums if len({*sizes}) == 1 else node


def _chain(steps: Sequence[Sequence[int]]) -> str:
    """Steps of a running sum: `0 + 1 + … + 31`, or `0 & 1 & 2 & 3 + 4 & 5 & 6 & 7`."""
    first, *others = steps
    if len(first) == 2:  # two terms are one addition, in either order
        backwards = bool(others) and others[0][0] < first[0]
        steps = [*([term] for term in sorted(first, reverse=backwards)), *others]
    texts = [" & ".join(map(str, step)) for step in steps]
    if len(texts) > 4 and len({(len(b), b[0] - a[0]) for a, b in pairwise(steps)}) == 1:
        texts = [*texts[:2], "…", texts[-1]]
    return " + ".join(texts)
