"""A way to call a foreign kernel: the sizes to try, and a description of what it computes."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from matbench.errors import listed
from matbench.features.adopt import hints
from matbench.features.adopt.argument_guesses import BLOCK_SIDE, ArgumentGuess
from matbench.features.adopt.arithmetic import Text, replaced
from matbench.features.adopt.launch_guesses import Geometry
from matbench.kernelfile import entry as entries
from matbench.kernelfile import expressions
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import Signature
from matbench.model import Layout, Problem, Transpose

#: A comparison in a condition, not in a loop.
_BOUNDS_CHECK = r"\bif\s*\([^;{}]*<|<[^;{}]*\?"
_OF_VECTORS = {
    "M": "a vector times a matrix",
    "N": "a matrix times a vector",
    "K": "outer products",
}
#: The most elements of one vector load: a kernel may require multiples of up to this.
_MOST_LANES = 8


class CallGuess(NamedTuple):
    """A way to call a kernel, and what it computes then.

    `beta` is built into the kernel, if it does not take it. `problem` is one that it computed
    correctly. `is_square`: it is only right if M = N = K; `fixed`: only at these sizes of
    `problem`; `one` is the size that must be 1. `multiples`: the number, or the constant, that each
    size must be a multiple of.
    """

    geometry: Geometry
    call: ArgumentGuess
    is_swapped: bool = False
    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: int = 0
    beta: float = 0.0
    is_square: bool = False
    fixed: str = ""
    one: str = ""
    problem: Problem = Problem(1, 1, 1)
    multiples: Mapping[str, int | str] = MappingProxyType({})

    @property
    def where(self) -> list[str]:
        """The conditions on sizes, for a table."""
        said = [f"{self.one} == 1"] if self.one else []
        said += map(" == ".join, itertools.pairwise(self.axes)) if self.is_square else []
        said += [f"{axis} == {getattr(self.problem, axis)}" for axis in self.fixed]
        return said + [f"{axis} % {step} == 0" for axis, step in self.multiples.items()]

    @property
    def axes(self) -> str:
        """The sizes that may differ from 1."""
        return "MNK".replace(self.one, "") if self.one else "MNK"

    def table(self, function: Signature, **more: Any) -> dict[str, Any]:
        """The front matter that says all this; `more` are other keys."""
        geometry = self.geometry
        args = self.call.renamed({BLOCK_SIDE: str(geometry.block[0])}).args
        passed = dict(zip((p.name for p in function.parameters), args, strict=True))
        sizes: dict[str, Text] = {}
        if geometry.given is not None:  # its launch is in terms of the kernel's parameters
            sizes = {p.name: passed[p.name] for p in function.parameters if not p.pointer}
            passed |= {n: str(replaced(text, sizes)) for n, text in geometry.given.items()}
        swapped = {"M": "N", "N": "M"} if self.is_swapped else {}  # with x along the rows of C
        launch: dict[str, Any] = {
            "block": [replaced(side, sizes) for side in geometry.block],
            "grid": [replaced(replaced(side, sizes), swapped) for side in geometry.grid],
        }
        if geometry.shared_bytes:
            launch["shared_bytes"] = replaced(geometry.shared_bytes, sizes)
        launch |= more.pop("launch", {})
        if where := more.pop("where", ()):
            launch["where"] = list(dict.fromkeys((*launch.get("where", ()), *where)))
        tables = {
            "sweep": {name: [value] for name, value in geometry.params.items()},
            "tune": {
                name: sorted({*([value // 2] if value % 2 == 0 else []), value, 2 * value})
                for name, value in geometry.params.items()
                if name in geometry.varied
            },
        }
        plain = {"layout": "row-major", "transpose": "NN", "padding": 0, "beta": 0.0}
        said = {name: getattr(self, name) for name in plain if getattr(self, name) != plain[name]}
        entry = entries.as_text(Entry(function.name, geometry.template))
        table = {"entry": entry, "args": [*passed.values()], **said, **more}
        tables = {name: held | more.get(name, {}) for name, held in tables.items()}
        return table | {name: held for name, held in tables.items() if held} | {"launch": launch}

    def sized(self, M: int, N: int, K: int) -> Problem:
        """A problem of that size, but for what must be 1, with the factors and the batch of this
        one."""
        sides = {"M": M, "N": N, "K": K} | ({self.one: 1} if self.one else {})
        return msgspec.structs.replace(self.problem, **sides)


def whole(geometry: Geometry, known: hints.Hints, *, least: int = 1) -> int:
    """A size that is a multiple of every possible tile of the kernel; with `least`, at least that,
    and at least two tiles."""
    params = geometry.params
    covered: list[int] = []
    for text in geometry.covered:
        with contextlib.suppress(expressions.ExpressionError):
            covered.append(expressions.whole(text, params))
    named = [n for name, n in known.constants.items() if known.mentions(rf"\b{name}\b")]
    whole = (math.lcm(start, *covered) for start in (32, 8, 1))
    unit = next((together for together in whole if together <= 256), 32)
    for sides, most in ((covered, 256), ([*params.values(), *named], 128)):
        for side in sides:
            together = math.lcm(unit, side)
            unit = together if together <= most else unit
    tiles = [side for side in covered if side <= 256]
    least = max(least, 2 * max(tiles, default=1)) if least > 1 else 1
    return unit * max(1, -(-least // unit))


def steps(base: int) -> list[int]:
    """The divisors of a size."""
    return [step for step in range(1, base + 1) if base % step == 0]


def odd(guess: CallGuess, steps: dict[str, int]) -> Problem:
    """A problem with each size an odd multiple of its step, so that larger tiles do not fit."""
    base = guess.problem
    sides = {axis: step * (getattr(base, axis) // step | 1) for axis, step in steps.items()}
    if guess.is_square:
        sides = dict.fromkeys(guess.axes, sides[guess.axes[0]])
    return msgspec.structs.replace(base, **sides)


def beyond(guess: CallGuess) -> Problem:
    """A problem that is larger by one step along each axis."""
    steps = {axis: step for step, axes in _multiples(guess).items() for axis in axes}
    sides = {axis: getattr(guess.problem, axis) + steps.get(axis, 1) for axis in "MNK"}
    if guess.is_square:
        sides = dict.fromkeys("MNK", sides[guess.axes[0]])
    return guess.problem if guess.fixed else guess.sized(**sides)


# -- in words --------------------------------------------------------------------------------------


def words(guess: CallGuess) -> str:
    """What a call computes, at which sizes, and with which blocks."""
    left, right = ("ᵀ" if letter == "T" else "" for letter in guess.transpose)
    product = f"A{left}·B{right}"
    if "alpha" in guess.call.args:
        product = f"alpha·{product}"
    if "beta" in guess.call.args:
        product = f"{product} + beta·C"
    parts = [f"computes {scaled(product, 1.0, guess.beta)}"]
    if guess.one:
        parts.append(f"{guess.one} = 1 only ({_OF_VECTORS[guess.one]})")
    if guess.layout == "column-major":
        parts.append("column-major")
    if guess.geometry.batched:
        parts.append("in batches")
    multiples = _multiples(guess)
    if guess.fixed == "MNK":
        parts.append(f"at {guess.problem.size} only")
    elif guess.fixed:
        sides = [f"{axis} = {getattr(guess.problem, axis)}" for axis in guess.fixed]
        parts.append(f"{listed(sides, 'and')} only")
    elif guess.is_square:
        steps = [f"multiples of {step}" for step in multiples]
        parts.append(", ".join(["square sizes only", *steps]))
    elif multiples:
        texts = [
            f"{listed(axes, 'and')} {'' if index else 'multiples '}of {step}"
            for index, (step, axes) in enumerate(multiples.items())
        ]
        parts.append(f"{', '.join(texts)} only")
    is_line = len(guess.geometry.block) == 1
    parts.append(f"blocks of {threads(guess)}" if is_line else f"{threads(guess)} blocks")
    return ", ".join(parts)


def threads(guess: CallGuess) -> str:
    """The sides of a block: `16×16`."""
    sides = (expressions.whole(side, guess.geometry.params) for side in guess.geometry.block)
    return "×".join(map(str, sides))


def described(table: dict[str, Any]) -> str:
    """How a table calls a kernel, in the form of command-line options."""
    said = {**table, **table["launch"]}
    return ", ".join(f"{key} {','.join(map(str, said[key]))}" for key in ("args", "block", "grid"))


def warnings(guess: CallGuess) -> Iterator[str]:
    """Possible mistakes in a kernel that is right only at square sizes."""
    if guess.is_square and {"M", "N", "K"} <= set(guess.call.args):
        yield "takes M, N and K, but is right only if M == N == K; is a leading dimension wrong?"


def is_doubtful(guess: CallGuess, known: hints.Hints) -> bool:
    """Whether a kernel that is right only for multiples of a number may be meant for all sizes."""
    steps, is_checked = _multiples(guess), known.mentions(_BOUNDS_CHECK)
    return bool(steps) and (not is_wide(known) or (is_checked and max(steps) > _MOST_LANES))


def multiples(guess: CallGuess) -> str:
    """`16 (M, N) and 8 (K)`."""
    steps = _multiples(guess).items()
    return " and ".join(f"{step} ({', '.join(axes)})" for step, axes in steps)


def is_wide(known: hints.Hints) -> bool:
    """Whether a kernel reads several numbers at once."""
    return known.mentions(r"(?i)float[24]\b|double2\b|half2\b|int4\b|wmma|mma_sync")


def _multiples(guess: CallGuess) -> dict[int, list[str]]:
    """The sizes that must be multiples of a number, by the number."""
    axes: dict[int, list[str]] = {}
    for axis, step in guess.multiples.items():
        number = guess.geometry.params[step] if isinstance(step, str) else step
        axes.setdefault(number, []).append(axis)
    return axes


def scaled(product: str, alpha: float, beta: float) -> str:
    """`2·A·B + C`."""
    sign = {1.0: "", -1.0: "-"}
    first = f"{sign.get(alpha, f'{alpha:g}·')}{product}"
    return first if beta == 0 else f"{first} + {sign.get(beta, f'{beta:g}·')}C"
