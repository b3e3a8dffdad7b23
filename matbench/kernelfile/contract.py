"""What a kernel is asked to compute, and in which words one does something else."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from matbench import workloads
from matbench.errors import UsageError, listed
from matbench.kernelfile import expressions, signature
from matbench.kernelfile.front_matter import DEVICE_LIMITS
from matbench.kernelfile.sizes import numbers
from matbench.model import Factors, Kernel, Layout, Problem, Skip, Transpose

#: Sides at which conditions are compared: odd ones, powers of two, and multiples of usual tiles.
_SIDES = (1, 2, 3, 5, 7, 8, 12, 17, 48, 64, 96, 1000, 1024)
_MULTIPLE = re.compile(r"\s*([MNK])\s*%\s*(\w+)\s*==\s*0\s*")
_AXIS = re.compile(r"\b[MNK]\b")
_NUMBER = re.compile(r"\b[0-9]{1,6}\b")


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A product of matrices: C = A·B, row-major and of any size, unless its fields say otherwise.
    They have the names and the values of front matter. `where` are conditions that sizes meet."""

    transpose: Transpose = "NN"
    layout: Layout = "row-major"
    beta: Factors = 0.0
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for condition in self.where:
            try:
                expressions.evaluate(condition, {"M": 1, "N": 1, "K": 1})
            except expressions.ExpressionError as error:
                raise ValueError(f"where {condition!r:.60}: {error}") from None

    @classmethod
    def of(cls, given: Contract | Mapping[str, Any]) -> Contract:
        """The contract that a program or a command line gives; `UsageError` if it is none."""
        try:
            table = msgspec.to_builtins(given)
            if isinstance(table, dict) and isinstance(conditions := table.get("where"), str):
                table = {**table, "where": signature.pieces(conditions)}
            return msgspec.convert(table, cls)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            reason, _, where = str(error).partition(" - at `$.")
            raise UsageError(f"contract: {f'`{where}: ' if where else ''}{reason}") from None

    def pinned(self, table: Mapping[str, Any]) -> Contract:
        """The contract that also has what (valid) keys of front matter say."""
        keys = {**table.get("launch", {}), **table}
        pins = {key: keys[key] for key in self.__struct_fields__ if key in keys}
        return Contract.of(msgspec.structs.asdict(self) | pins)

    @property
    def words(self) -> str:
        return _product(self.transpose, self.beta) + _in_order(self.layout)

    def judged(self, kernel: Kernel) -> Kernel:
        """The kernel; its cases are wrong if it does something else."""
        if not (breach := self.breach(kernel)):
            return kernel
        return msgspec.structs.replace(kernel, never=Skip("breach", breach))

    def breach(self, kernel: Kernel) -> str:
        """What a kernel does instead of this, by its table; empty if it does this."""
        if kernel.workload != workloads.DEFAULT:
            return f"computes {kernel.workload}; asked for {self.words}"
        takes_beta = any(re.search(r"\bbeta\b", text) for text in kernel.args)
        adds = takes_beta or {*numbers(self.beta)} <= {*numbers(kernel.beta)}
        if (kernel.transpose, kernel.layout, adds) != (self.transpose, self.layout, True):
            layout = f", {self.layout}" if kernel.layout != self.layout else ""
            asked = self.words.removesuffix(layout) + layout
            computed = _product(kernel.transpose, kernel.beta) + _in_order(kernel.layout)
            flipped = "".join("NT"[letter == "N"] for letter in kernel.transpose)
            if layout and flipped != "TT":  # only some matrices have another layout: as transposed
                computed = _product(flipped, kernel.beta, "Cᵀ") + _in_order(self.layout)
            return f"computes {computed}; asked for {asked}"
        if unmet := self._unmet(kernel):
            asked = f"sizes where {' and '.join(self.where)}" if self.where else "any size"
            return f"right only {_sizes(unmet, kernel)}; asked for {asked}"
        return ""

    def _unmet(self, kernel: Kernel) -> list[str]:
        """The conditions of a kernel that sizes asked for need not meet.

        That a size which it is not passed has one value, or equals another, is no mistake.
        """
        where, passed = kernel.launch.where, {*_AXIS.findall(" ".join(kernel.args))}
        equal = [text for text in where if "==" in text and "%" not in text]
        given = [*self.where, *(text for text in equal if not {*_AXIS.findall(text)} <= passed)]
        constants = {**DEVICE_LIMITS, **expressions.constants(kernel.let, _values(kernel))}
        named = {int(number) for text in (*where, *given) for number in _NUMBER.findall(text)}
        sides = sorted({*_SIDES, *named, *(3 * number for number in named)} - {0})

        def meets(problem: Problem, condition: str) -> bool:
            values = constants | kernel.values(problem)
            with contextlib.suppress(expressions.ExpressionError):
                return bool(expressions.evaluate(condition, values))
            return False

        every = (Problem(M, N, K) for M, N, K in itertools.product(sides, repeat=3))
        asked = [one for one in every if all(meets(one, text) for text in given)]
        return [text for text in where if not (asked and all(meets(one, text) for one in asked))]


def _values(kernel: Kernel) -> dict[str, int]:
    return {name: values[0] for name, values in kernel.sweep.items()}


def _sizes(conditions: Sequence[str], kernel: Kernel) -> str:
    """The sizes that meet conditions: `for multiples of 16 (M, N)`, `where M == N`."""
    values, axes = _values(kernel), dict[str, list[str]]()
    matches = [_MULTIPLE.fullmatch(condition) for condition in conditions]
    for match in filter(None, matches):
        axes.setdefault(str(values.get(match[2], match[2])), []).append(match[1])
    steps = [f"{step} ({', '.join(names)})" for step, names in axes.items()]
    others = [text for text, match in zip(conditions, matches, strict=True) if match is None]
    words = [f"for multiples of {listed(steps, 'and')}"] if steps else []
    return " ".join([*words, *([f"where {listed(others, 'and')}"] if others else [])])


def _product(transpose: str, beta: Factors, C: str = "C") -> str:
    """`C = A·Bᵀ + C`."""
    A, B = (f"{name}{'ᵀ' * (letter == 'T')}" for name, letter in zip("AB", transpose, strict=True))
    factors = {number: "" if number == 1 else f"{number:g}·" for number in numbers(beta) if number}
    added = f" + {listed(f'{text}{C}' for text in factors.values())}" if factors else ""
    return f"{C} = {A}·{B}{added}"


def _in_order(layout: Layout) -> str:
    return "" if layout == "row-major" else f", {layout}"
