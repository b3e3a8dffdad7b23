"""The candidates of tuning: legal combinations of a kernel's constants, in random order."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from matbench.features.tune.record import SearchSpace
from matbench.kernelfile import expressions, sweep, syntax
from matbench.model import Case, DeviceInfo, Kernel, Problem, Skip

#: Of more combinations than this, only a random sample is examined.
MOST_COMBINATIONS = 20_000
#: The most defaults: comparing candidates with more would take too long.
MOST_DEFAULTS = 16

Values = Mapping[str, tuple[int, ...]]


class Refused(NamedTuple):
    """Combinations excluded by one condition or limit: how many, and one of them."""

    many: int
    example: Skip


class Space(NamedTuple):
    """The candidates of a kernel on one problem: first the defaults, then the others at random.

    `combinations` counts all, `drawn` those that were examined. `refused` groups illegal ones by
    condition, and `merged` counts those that are the same launch as a candidate.
    """

    defaults: list[Case]
    others: list[Case]
    refused: list[Refused]
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
            refused=sum(refused.many for refused in self.refused),
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

    Overrides replace a constant's own values, for the defaults too, of which there are at most
    `MOST_DEFAULTS`. The order is random, with `seed`, so that a limited budget covers a fair
    sample. Drawing stops at `most` candidates.
    """
    constants = kernel.sweep | kernel.tune
    values = constants | {name: given for name, given in overrides.items() if name in constants}
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
    known = {frozenset(case.params.items()) for case in defaults}
    refused: dict[tuple[str, str], Refused] = {}
    merged = drawn = 0
    for params in _drawn(values, seed):
        if most is not None and len(candidates) >= most:
            break
        drawn += 1
        if frozenset(params.items()) in known:
            continue
        case = sweep.case(kernel, problem, params, device)
        if case.skip is not None:
            kind = case.skip.kind, case.skip.needs
            before = refused.get(kind, Refused(0, case.skip))
            refused[kind] = Refused(before.many + 1, case.skip)
        elif candidates.setdefault(_identity(case, words), case) is not case:
            merged += 1
    return Space(
        defaults=defaults,
        others=list(candidates.values())[len(defaults) :],
        refused=list(refused.values()),
        combinations=math.prod(map(len, values.values())),
        drawn=drawn,
        merged=merged,
    )


def _drawn(values: Values, seed: int) -> Iterator[dict[str, int]]:
    """Combinations in random order, without a list of all."""
    count = math.prod(map(len, values.values()))
    lot = random.Random(seed)  # noqa: S311
    if count <= sys.maxsize:
        indices = iter(lot.sample(range(count), min(count, MOST_COMBINATIONS)))
    else:  # too many for a range, and for one to be drawn twice
        indices = (lot.randrange(count) for _ in range(MOST_COMBINATIONS))
    for index in indices:
        chosen: dict[str, int] = {}
        for name, choices in values.items():
            index, which = divmod(index, len(choices))
            chosen[name] = choices[which]
        yield chosen


def _default_values(
    kernel: Kernel, values: Values, overrides: Values
) -> dict[str, tuple[int, ...]]:
    """The default values among those given, or the first of those given if none is a default."""
    defaults = {}
    for name in overrides.keys() & values.keys():
        kept = tuple(value for value in values[name] if value in kernel.sweep.get(name, ()))
        defaults[name] = kept or values[name][:1]
    return defaults


def _words(kernel: Kernel) -> frozenset[str]:
    """Every word of the source and of the arguments."""
    code = "\n".join((syntax.without_comments(kernel.source), kernel.entry, *kernel.args))
    return frozenset(re.findall(r"\w+", code))


def _identity(case: Case, words: frozenset[str]) -> object:
    """Equal for cases that run the same code in the same launch.

    A constant that the source does not name affects only the launch.
    """
    constants = expressions.constants(case.kernel.let, case.params)
    return case.launch, frozenset(pair for pair in constants.items() if pair[0] in words)
