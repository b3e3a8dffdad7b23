"""Guesses a kernel's arguments from its signature and its text, likeliest first.

Names tell most of it; the memory layout of the operands shows only when the kernel runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from matbench.features.adopt.arithmetic import replaced
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.names import implied, size_of
from matbench.kernelfile.signature import Signature
from matbench.model import Parameter

#: Common names of each matrix, without prefixes such as `d_`.
_NAMES = {
    "A": "a m md x q lhs left in1 input1 first src1 mata matrixa ma input in src inp amat",
    "B": "b n nd y w k rhs right in2 input2 second src2 matb matrixb mb weight weights other bmat",
    "C": "c p pd o z r out output result res dst dest matc matrixc mc product prod ans ret y cmat",
}
_PREFIX = re.compile(
    r"^(?:d|dev|device|g|gpu|h|in|p|ptr|mat|matrix|s)_(?=\w)|_(?:d|dev|device|ptr|elements?|data|values?)$"
)
#: A pitch of whichever matrix, and what a kernel does with one in bytes.
_PITCH = re.compile(r"pitch|stride|step|bytes|ld", re.IGNORECASE)
_OF_BYTES = r"char|byte|int8_t|ptr_t|sizeof|/ *[248]\b|>> *[123]\b"
_REALS = {"float", "double", "half", "__half", "__nv_bfloat16", "nv_bfloat16"}


#: No larger products are tried on the host.
_MOST_FIXED = 2048
#: Stands for the side of the block, passed as the width of a tile chosen at run time.
BLOCK_SIDE = "block_side"


class ArgumentGuess(NamedTuple):
    """The argument for each parameter."""

    args: tuple[str, ...]

    @property
    def is_square(self) -> bool:
        """Whether the kernel is passed only one size."""
        sizes = {name for text in self.args for name in re.findall(r"\b[MNK]\b", text)}
        return len(sizes) < 2 and not any("ld" in text for text in self.args)

    @property
    def is_sized(self) -> bool:
        """Whether the kernel is passed any size."""
        return any(re.search(r"\b(?:[MNK]|ld[abc])\b", text) for text in self.args)

    def renamed(self, names: Mapping[str, str]) -> ArgumentGuess:
        """The call with some names in its arguments replaced."""
        words = re.compile(r"[A-Za-z_]\w*")
        return ArgumentGuess(
            tuple(words.sub(lambda w: names.get(w[0], w[0]), text) for text in self.args)
        )

    def sized_as(self, other: ArgumentGuess) -> ArgumentGuess:
        """This call with the sizes of another one."""
        pairs = zip(self.args, other.args, strict=True)
        is_size = ("M", "N", "K").__contains__
        return ArgumentGuess(
            tuple(re.sub(r"\b[MNK]\b", b, a) if is_size(b) else a for a, b in pairs)
        )

    def in_bytes(
        self, function: Signature, hints: Hints, item_bytes: int, c_bytes: int
    ) -> list[ArgumentGuess]:
        """The call, and if the kernel may take pitches in bytes, also with all or some so."""
        places = [
            i
            for i, (p, text) in enumerate(zip(function.parameters, self.args, strict=True))
            if not p.pointer and _PITCH.search(p.name) and re.fullmatch("ld[abc]|[MNK]", text)
        ]
        if not hints.mentions(_OF_BYTES):
            return [self]
        calls = []
        for count in (0, *range(len(places), 0, -1)):
            for chosen in itertools.combinations(places, count):
                args = [*self.args]
                for i in chosen:
                    args[i] = f"{c_bytes if args[i] == 'ldc' else item_bytes} * {args[i]}"
                calls.append(ArgumentGuess(tuple(args)))
        return list(dict.fromkeys(calls))


class NotCallableError(Exception):
    """The parameters are not those of a matrix product; the message says why."""


def calls(function: Signature, hints: Hints) -> list[ArgumentGuess]:
    """The ways to pass buffers and sizes, likeliest first. All sizes are tried with one choice of
    pointers before the next choice; numbers that are no sizes by name are settings at first."""
    names = [p.name for p in function.parameters if p.pointer]
    types = {p.name for p in function.template if p.kind in ("typename", "class")}
    arguments: dict[tuple[str, ...], None] = {}
    for known in (hints, hints._replace(settings={})):
        for buffers in pointers(names, known):
            for values in numbers(function.parameters, known, types):
                named = {**buffers, **values}
                arguments.setdefault(tuple(named[p.name] for p in function.parameters))
    return [ArgumentGuess(args) for args in arguments]


def fixed_sizes(
    function: Signature, hints: Hints, call: ArgumentGuess
) -> list[tuple[int, int, int]]:
    """M, N and K that a kernel may have in its text: of its arrays, by name, or one constant for
    all; for a kernel that takes sizes too, only the first two. `NotCallableError` if all are too
    large."""
    passed = dict(zip((p.name for p in function.parameters), call.args, strict=True))
    of_arrays = _of_arrays(passed, hints)
    named = {size_of(name): value for name, value in hints.constants.items()}
    alike = hints.constants.values() if not call.is_sized else filter(None, map(named.get, "MNK"))
    sides = sorted({value for value in alike if value >= 16}, reverse=True)
    by_name = [(named["M"], named["N"], named["K"])] if {"M", "N", "K"} <= named.keys() else []
    sizes = list(dict.fromkeys([*of_arrays, *by_name, *((side, side, side) for side in sides)]))
    if sizes and (of_arrays or not call.is_sized) and (side := max(sizes[0])) > _MOST_FIXED:
        raise NotCallableError(
            f"is for {side:,} alone, but only sizes to {_MOST_FIXED:,} are tried"
        )
    return [size for size in sizes if max(size) <= _MOST_FIXED]


def _of_arrays(passed: Mapping[str, str], hints: Hints) -> list[tuple[int, int, int]]:
    """M, N and K of a kernel whose matrices are arrays; a missing extent is like others."""
    sides: dict[str, list[int | None]] = {letter: [None, None] for letter in "ABC"}
    for name, texts in hints.extents.items():
        known = [replaced(text, hints.constants) for text in texts[-2:]]
        sides[passed[name]] = [None, *(n if isinstance(n, int) else None for n in known)][-2:]
    (rows, inner), (depth, columns), (m, n) = map(sides.__getitem__, "ABC")
    m, n = m or rows, n or columns
    k = rows if inner == m != rows else inner or depth  # A may be transposed
    given = m or n or k, n or m or k, k or n or m
    return [given] if None not in given else []  # type: ignore[list-item]


def names_inputs(function: Signature) -> bool:
    """Whether names tell which input is A and which is B."""
    names = [p.name for p in function.parameters if p.pointer]
    return any(is_like(n, "A") for n in names) and any(is_like(n, "B") for n in names)


# -- roles of the parameters -----------------------------------------------------------------------


def _bare(name: str) -> str:
    """A pointer's name without prefixes such as `d_` and suffixes such as `_dev`."""
    bare = name
    while (shorter := _PREFIX.sub("", bare)) != bare and shorter:
        bare = shorter
    return bare.lower().strip("_")


def pointers(
    order: Sequence[str], hints: Hints, inputs: Sequence[str] = ("A", "B")
) -> Iterator[dict[str, str]]:
    """Which pointers are the inputs and C, likeliest first. Here only names tell A from B; running
    the kernel shows which is the left operand."""
    if len(order) != len(inputs) + 1:
        many = "1 pointer" if len(order) == 1 else f"{len(order)} pointers"
        raise NotCallableError(f"takes {many}, not {', '.join(inputs)} and C")

    def output(name: str) -> tuple[bool, bool, int]:
        is_constant = name in hints.constant_pointers
        return is_constant, not is_like(name, "C"), -order.index(name)

    for c in sorted(order, key=output):
        if c in hints.constant_pointers and len(hints.constant_pointers) < len(order):
            continue
        read = [name for name in order if name != c]
        if is_like(read[0], "B") and is_like(read[-1], "A"):
            read.reverse()
        yield {**dict(zip(read, inputs, strict=True)), c: "C"}


def is_like(name: str, letter: str) -> bool:
    """Whether a name is a usual one of that matrix."""
    return _bare(name) in _NAMES[letter].split()


def numbers(
    parameters: Sequence[Parameter], hints: Hints, types: Iterable[str] = ()
) -> Iterator[dict[str, str]]:
    """Arguments for the number parameters, likeliest first; `types` are those of a template."""
    fixed = _named(parameters, hints, {*_REALS, *types})
    sizes = [p.name for p in parameters if not p.pointer and p.name not in fixed]
    implied = {size for text in fixed.values() for size in re.findall(r"\b[MNK]\b", text)}
    if not sizes:
        yield fixed
        return
    if len(sizes) == 1 and not implied:
        yield fixed | {sizes[0]: "N"}
    elif likely := _likely_sizes(sizes):
        yield fixed | likely
    if len(sizes) > 4:
        yield fixed | dict.fromkeys(sizes, "N")
        return
    for letters in itertools.product("MNK", repeat=len(sizes)):
        if len(set(letters)) == min(len(sizes), 3):
            yield fixed | dict(zip(sizes, letters, strict=True))


def _named(parameters: Sequence[Parameter], hints: Hints, reals: set[str]) -> dict[str, str]:
    """The arguments that types and names alone imply; those of `reals` are factors."""
    arguments: dict[str, str] = {}
    factors = ["alpha", "beta"]
    for parameter in parameters:
        name = parameter.name
        if parameter.pointer:
            continue
        if parameter.type in reals or name.lower() in ("alpha", "beta"):
            named = [factor for factor in factors if factor in name.lower()]
            arguments[name] = next(iter(named or factors), "1.0")
            factors = [factor for factor in factors if factor != arguments[name]]
        elif name in hints.sides:
            arguments[name] = BLOCK_SIDE
        elif parameter.type == "bool":
            arguments[name] = "0"
        elif text := implied(name, batched="z" in hints.blocks):
            arguments[name] = text
        elif name in hints.settings:
            arguments[name] = str(hints.settings[name])
    return arguments


def _likely_sizes(names: list[str]) -> dict[str, str] | None:
    """Sizes by parameter name, if the names tell them apart."""
    sizes = [*map(size_of, names)]
    if None not in sizes and len(set(sizes)) == len(sizes):
        return {name: str(size) for name, size in zip(names, sizes, strict=True)}
    return None
