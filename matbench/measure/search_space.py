"""What tuning can try: the legal combinations of a kernel's constants, in an order drawn by lot."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from matbench.kernelfile import sweep, syntax
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.tuning import SearchSpace

#: More combinations than this are not all looked through for legal ones: some are drawn.
MOST_COMBINATIONS = 20_000
#: A bare run of more is too long to be what candidates are held against.
MOST_DEFAULTS = 16

Values = Mapping[str, tuple[int, ...]]


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

    def record(self) -> SearchSpace:
        return SearchSpace(
            combinations=self.combinations,
            drawn=self.drawn,
            candidates=len(self.cases),
            refused=sum(refused.many for refused in self.refused.values()),
            merged=self.merged,
        )


def space(
    kernel: Kernel,
    problem: Problem,
    device: DeviceInfo,
    overrides: Values,
    seed: int,
    most: int | None = None,
) -> Space:
    """Every combination of `[sweep]` and `[tune]` that the device and `where` allow.

    Overrides take the place of a constant's own values, for the defaults too, of which there are
    `MOST_DEFAULTS` at most. The order is drawn with `seed`, so that a budget that ends early leaves
    a fair sample. No more are drawn once there are `most` candidates.
    """
    own = kernel.sweep | kernel.tune
    values = own | {name: given for name, given in overrides.items() if name in own}
    candidates: dict[object, Case] = {}
    words = _words(kernel)
    swept = kernel.sweep | _default_values(kernel, values, overrides)
    for params in islice(sweep.combinations(swept), MOST_COMBINATIONS):
        case = sweep.case(kernel, problem, params, device)
        if case.skip is None:
            candidates.setdefault(_identity(case, words), case)
        if len(candidates) == MOST_DEFAULTS:
            break
    defaults = list(candidates.values())
    known = {_key(case.params) for case in defaults}
    refused: dict[str, Refused] = {}
    merged = drawn = 0
    for params in _drawn(values, seed):
        if most is not None and len(candidates) >= most:
            break
        drawn += 1
        if _key(params) in known:
            continue
        case = sweep.case(kernel, problem, params, device)
        if case.skip is not None:
            kind = case.skip.rpartition(" (")[0] or re.sub(r"\d[\d,]*", "#", case.skip)
            refused[kind] = Refused(refused.get(kind, Refused(0, ""))[0] + 1, case.skip)
        elif candidates.setdefault(_identity(case, words), case) is not case:
            merged += 1
    return Space(
        defaults=defaults,
        others=list(candidates.values())[len(defaults) :],
        refused=refused,
        combinations=math.prod(map(len, values.values())),
        drawn=drawn,
        merged=merged,
    )


def _drawn(values: Values, seed: int) -> Iterator[dict[str, int]]:
    """Combinations in an order drawn by lot, without making a list of them all."""
    for index in _order(math.prod(map(len, values.values())), seed):
        chosen: dict[str, int] = {}
        for name, choices in reversed(list(values.items())):
            index, which = divmod(index, len(choices))
            chosen[name] = choices[which]
        yield {name: chosen[name] for name in values}


def _order(count: int, seed: int) -> Iterator[int]:
    """Numbers below `count` in an order drawn by lot, each once."""
    lot = random.Random(seed)  # noqa: S311
    seen: set[int] = set()
    while len(seen) < min(count, MOST_COMBINATIONS):
        index = lot.randrange(count)
        if index not in seen:
            seen.add(index)
            yield index


def _key(params: Mapping[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(params.items())


def _default_values(
    kernel: Kernel, values: Values, overrides: Values
) -> dict[str, tuple[int, ...]]:
    """What a bare run takes of the values given: its own, or the first where none of them is."""
    found = {}
    for name in overrides.keys() & values.keys():
        own = tuple(value for value in values[name] if value in kernel.sweep.get(name, ()))
        found[name] = own or values[name][:1]
    return found


def _words(kernel: Kernel) -> frozenset[str]:
    """Every word of the source and of what is passed to it."""
    code = "\n".join((syntax.without_comments(kernel.source), kernel.entry, *kernel.args))
    return frozenset(re.findall(r"\w+", code))


def _identity(case: Case, words: frozenset[str]) -> object:
    """Equal for cases that run the same code in the same launch.

    A constant that the source does not name changes nothing but the launch.
    """
    return case.launch, frozenset(pair for pair in case.params.items() if pair[0] in words)
