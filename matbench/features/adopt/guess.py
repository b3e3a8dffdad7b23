"""A way to call a foreign kernel, what it computes then, and what came of it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from matbench.errors import listed
from matbench.features.adopt.arithmetic import Text, replaced
from matbench.kernelfile import expressions, signature
from matbench.kernelfile.signature import Entry, Signature
from matbench.model import Layout, Problem, Transpose
from matbench.show.table import grouped

#: Stands for the side of the block, passed as the width of a tile chosen at run time.
BLOCK_SIDE = "block_side"
_OF_VECTORS = {
    "M": "a vector times a matrix",
    "N": "a matrix times a vector",
    "K": "outer products",
}


class NotCallableError(Exception):
    """The parameters are not those of a matrix product; the message says why."""


class Adopted(NamedTuple):
    """The result: a table and a description in words, or without a table, the `closest` call's, and
    whether the device `is_lacking` what the kernel needs.
    `warnings` are possible mistakes in the kernel or in the file's launches, and `notes` what its
    result does not depend on. The table is that of another `file`, which includes the kernel's, if
    one is named."""

    name: str
    table: dict[str, Any] | None
    words: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    file: str = ""
    closest: dict[str, Any] | None = None
    is_lacking: bool = False


class Guess(NamedTuple):
    """A way to build, launch and call a kernel, and what it computes then.

    `template` are the template arguments as the entry spells them, and `params` the values of the
    names among them. If the author's launch is followed, it is in terms of the kernel's parameters,
    and `given` are its constant arguments. `args` has an argument for each parameter. Other values
    of the `varied` were right, too.

    `beta` is built into the kernel, if it does not take it. `problem` is one that it computed
    correctly. `is_square`: it is only right if M = N = K; `fixed`: only at these sizes of
    `problem`; `one` is the size that must be 1. `multiples`: the number, or the constant, that each
    size must be a multiple of.
    """

    template: tuple[str, ...]
    params: dict[str, int]
    block: tuple[Text, ...]
    grid: tuple[Text, ...]
    shared_bytes: Text = 0
    given: Mapping[str, Text] | None = None
    args: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
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
    def is_sized(self) -> bool:
        """Whether the kernel is passed any size."""
        return any(re.search(r"\b(?:[MNK]|ld[abc])\b", text) for text in self.args)

    @property
    def axes(self) -> str:
        """The sizes that may differ from 1."""
        return "MNK".replace(self.one, "")

    @property
    def covered(self) -> list[str]:
        """What sizes are divided by: a block covers that much."""
        if self.given is None and self.grid[1:2] in ((), (1,)):
            return []  # guessed blocks that follow each other fit any size
        divisors = []
        for node in (node for side in self.grid for node in ast.walk(ast.parse(str(side)))):
            match node:
                case ast.Call(args=[_, over]) | ast.BinOp(op=ast.FloorDiv(), right=over):
                    divisors.append(ast.unparse(over))
        return divisors

    @property
    def steps(self) -> dict[int, list[str]]:
        """The sizes that must be multiples of a number, by the number."""
        steps = {axis: expressions.whole(n, self.params) for axis, n in self.multiples.items()}
        return grouped(steps, steps.__getitem__)

    @property
    def factors(self) -> tuple[float, float]:
        """Values of alpha and beta for a trial: of those that it takes, such that none has built
        in, and whole ones, because those of int8 products are."""
        return 3.0 if "alpha" in self.args else 1.0, 5.0 if "beta" in self.args else 0.0

    def launched_as(self, other: Guess) -> Guess:
        """With the build and the launch of another one."""
        return Guess._make((*other[:6], *self[6:]))

    def with_value(self, name: str, value: int) -> Guess:
        return self._replace(params={**self.params, name: value})

    def settled(self) -> Guess:
        """With constants that are not varied replaced by their values, except by the build."""
        fixed = {name: n for name, n in self.params.items() if name not in self.varied}
        template, block, grid, [shared] = (
            tuple(replaced(text, fixed) for text in texts)
            for texts in (self.template, self.block, self.grid, [self.shared_bytes])
        )
        given = self.given and {n: replaced(text, fixed) for n, text in self.given.items()}
        left = fixed.keys() & {*self.template}
        params = {name: value for name, value in self.params.items() if name not in left}
        own = Guess(tuple(map(str, template)), params, block, grid, shared, given)
        return self.launched_as(own)

    def sized(self, **sides: int) -> Problem:
        """A problem with other sizes: square if it is only right for those, 1 for what must be."""
        if self.is_square:
            sides = dict.fromkeys(self.axes, sides[self.axes[0]])
        return msgspec.structs.replace(self.problem, **sides | ({self.one: 1} if self.one else {}))

    def table(self, function: Signature, **more: Any) -> dict[str, Any]:
        """The front matter that says all this; `more` are other keys."""
        args = renamed(self.args, {BLOCK_SIDE: str(self.block[0])})
        passed = dict(zip((p.name for p in function.parameters), args, strict=True))
        sizes: dict[str, Text] = {}
        if self.given is not None:  # its launch is in terms of the kernel's parameters
            sizes = {p.name: passed[p.name] for p in function.parameters if not p.pointer}
            passed |= {n: str(replaced(text, sizes)) for n, text in self.given.items()}
        swapped = {"M": "N", "N": "M"} if self.is_swapped else {}  # with x along the rows of C
        launch: dict[str, Any] = {
            "block": [replaced(side, sizes) for side in self.block],
            "grid": [replaced(replaced(side, sizes), swapped) for side in self.grid],
        }
        if self.shared_bytes:
            launch["shared_bytes"] = replaced(self.shared_bytes, sizes)
        launch |= more.pop("launch", {})
        if where := more.pop("where", ()):
            launch["where"] = list(dict.fromkeys((*launch.get("where", ()), *where)))
        names = ("layout", "transpose", "padding", "beta")
        plain = self._field_defaults
        said = {n: getattr(self, n) for n in names if getattr(self, n) != plain[n]}
        entry = signature.as_text(Entry(function.name, self.template))
        table = {"entry": entry, "args": [*passed.values()], **said, **more}
        sweep = {n: [value] for n, value in self.params.items() if value > 0}
        sweep |= more.get("sweep", {})
        # A constant that is swept is above 0.
        let = {n: value for n, value in self.params.items() if value < 1} | more.get("let", {})
        varied = {name: n for name, n in self.params.items() if name in self.varied}
        tune = {name: sorted([n, *others(n)]) for name, n in varied.items()} | more.get("tune", {})
        tables = {"sweep": sweep, "tune": tune, "let": let, "launch": launch}
        return table | {name: held for name, held in tables.items() if held}

    @property
    def where(self) -> list[str]:
        """The conditions on sizes, for a table."""
        said = [f"{self.one} == 1"] if self.one else []
        said += map(" == ".join, itertools.pairwise(self.axes)) if self.is_square else []
        said += [f"{axis} == {getattr(self.problem, axis)}" for axis in self.fixed]
        return said + [f"{axis} % {step} == 0" for axis, step in self.multiples.items()]

    @property
    def threads(self) -> str:
        """The sides of a block: `16×16`."""
        return "×".join(str(expressions.whole(side, self.params)) for side in self.block)

    @property
    def words(self) -> str:
        """What a call computes, at which sizes, and with which blocks."""
        left, right = ("ᵀ" if letter == "T" else "" for letter in self.transpose)
        alpha, beta = ("alpha·" * ("alpha" in self.args), " + beta·C" * ("beta" in self.args))
        parts = [f"computes {scaled(f'{alpha}A{left}·B{right}{beta}', 1.0, self.beta)}"]
        if self.one:
            parts.append(f"{self.one} = 1 only ({_OF_VECTORS[self.one]})")
        parts += ["column-major"] if self.layout == "column-major" else []
        parts += ["in batches"] if "batch" in self.grid else []
        if self.fixed:
            sides = (f"{axis} = {getattr(self.problem, axis)}" for axis in self.fixed)
            at = f"at {self.problem.size}" if self.fixed == "MNK" else listed(sides, "and")
            parts.append(f"{at} only")
        elif self.is_square:
            parts += ["square sizes only", *(f"multiples of {step}" for step in self.steps)]
        elif self.steps:
            texts = [f"{listed(axes, 'and')} of {step}" for step, axes in self.steps.items()]
            parts.append(f"{', '.join(texts).replace(' of', ' multiples of', 1)} only")
        blocks = f"blocks of {self.threads}" if len(self.block) == 1 else f"{self.threads} blocks"
        return ", ".join([*parts, blocks])


def others(value: int) -> list[int]:
    """Other values of a constant that are tried."""
    return [2 * value, *([value // 2] if value % 2 == 0 else [])]


def renamed(args: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Arguments with some of their names replaced."""
    return tuple(signature.with_values(text, names) for text in args)


def takes_one_size(args: Iterable[str]) -> bool:
    """Whether arguments have at most one size."""
    text = ", ".join(args)
    return len({*re.findall(r"\b[MNK]\b", text)}) < 2 and "ld" not in text


def scaled(product: str, alpha: float, beta: float) -> str:
    """`2·A·B - C`."""
    factors = {1.0: "", -1.0: "-"}
    first = f"{factors.get(alpha, f'{alpha:g}·')}{product}"
    second = f"{factors.get(abs(beta), f'{abs(beta):g}·')}C"
    return first if beta == 0 else f"{first} {'-' if beta < 0 else '+'} {second}"
