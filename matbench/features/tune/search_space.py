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


class Space(NamedTuple):
    """The candidates of a kernel on one problem: first the defaults, then the others at random.

    `refused` has why illegal combinations are, by condition or limit.
    """

    defaults: list[Case]
    others: list[Case]
    refused: list[list[Skip]]
    record: SearchSpace

    @property
    def cases(self) -> list[Case]:
        return [*self.defaults, *self.others]


def space(
    kernel: Kernel, problem: Problem, device: DeviceInfo, overrides: Values, seed: int,
    most: int | None = None,
) -> Space:  # fmt: skip
    """Every combination of `[sweep]` and `[tune]` that the device and `where` allow.

    Overrides replace a constant's own values, for the defaults too, of which there are at most
    `MOST_DEFAULTS`. The order is random, with `seed`, so that a limited budget covers a fair
    sample. Drawing stops at `most` candidates.
    """
    constants = kernel.sweep | kernel.tune
    given = {name: overrides[name] for name in constants if name in overrides}
    values = constants | given
    # The defaults among the values given, or the first of those given if none is a default.
    kept = {
        name: tuple(value for value in chosen if value in kernel.sweep.get(name, ())) or chosen[:1]
        for name, chosen in given.items()
    }
    code = "\n".join((syntax.without_comments(kernel.source), kernel.entry, *kernel.args))
    words = frozenset(re.findall(r"\w+", code))
    candidates: dict[object, Case] = {}
    for params in islice(sweep.combinations(kernel.sweep | kept), MOST_COMBINATIONS):
        case = sweep.case(kernel, problem, params, device)
        if case.skip is None:
            candidates.setdefault(_identity(case, words), case)
        if len(candidates) == MOST_DEFAULTS:
            break
    defaults = list(candidates.values())
    known = {frozenset(case.params.items()) for case in defaults}
    refused: dict[tuple[str, str], list[Skip]] = {}
    merged = drawn = 0
    for params in _drawn(values, seed):
        if most is not None and len(candidates) >= most:
            break
        drawn += 1
        if frozenset(params.items()) in known:
            continue
        case = sweep.case(kernel, problem, params, device)
        if case.skip is not None:
            refused.setdefault((case.skip.kind, case.skip.needs), []).append(case.skip)
        elif candidates.setdefault(_identity(case, words), case) is not case:
            merged += 1
    record = SearchSpace(
        combinations=math.prod(map(len, values.values())),
        drawn=drawn,
        candidates=len(candidates),
        refused=sum(map(len, refused.values())),
        merged=merged,
    )
    others = list(candidates.values())[len(defaults) :]
    return Space(defaults, others, list(refused.values()), record)


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


def _identity(case: Case, words: frozenset[str]) -> object:
    """Equal for cases that run the same code in the same launch.

    A constant that the source does not name affects only the launch.
    """
    constants = expressions.constants(case.kernel.let, case.params)
    return case.launch, frozenset(pair for pair in constants.items() if pair[0] in words)
