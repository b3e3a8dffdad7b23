"""Guesses a kernel's arguments from its signature and its text, likeliest first.

Names tell most of it; the memory layout of the operands shows only when the kernel runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from matbench.features.adopt.arithmetic import replaced
from matbench.features.adopt.guess import BLOCK_SIDE, Guess, NotCallableError
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.names import USUAL, implied, size_of
from matbench.kernelfile.signature import Signature
from matbench.model import Parameter

_PREFIX = re.compile(
    r"^(?:d|dev|device|g|gpu|h|in|p|ptr|mat|matrix|s)_(?=\w)|_(?:d|dev|device|ptr|elements?|data|values?)$"
)
#: A pitch of whichever matrix, and what a kernel does with one in bytes.
_PITCH = re.compile(r"pitch|stride|step|bytes|ld", re.IGNORECASE)
_OF_BYTES = r"char|byte|int8_t|ptr_t|sizeof|/ *[248]\b|>> *[123]\b"
_REALS = {"float", "double", "half", "__half", "__nv_bfloat16", "nv_bfloat16"}
#: The largest side of a product that is tried, on a GPU and on a CPU: the host computes it, too.
_MOST_FIXED = {"gpu": 4096, "cpu": 2048}

Args = tuple[str, ...]


def calls(function: Signature, hints: Hints) -> list[Args]:
    """The ways to pass buffers and sizes, likeliest first. All sizes are tried with one choice of
    pointers before the next choice; numbers that are no sizes by name are settings at first."""
    names = [p.name for p in function.parameters if p.pointer]
    types = [p.name for p in function.template]
    found: dict[Args, None] = {}
    for known in (hints, hints._replace(settings={})):
        for buffers in pointers(names, known.constant_pointers):
            for values in numbers(function.parameters, known, types):
                named = {**buffers, **values}
                found.setdefault(tuple(named[p.name] for p in function.parameters))
    return [*found]


def sized_as(args: Args, other: Args) -> Args:
    """Arguments with the sizes of others."""
    pairs = zip(args, other, strict=True)
    return tuple(re.sub(r"\b[MNK]\b", b, a) if b in ("M", "N", "K") else a for a, b in pairs)


def in_bytes(
    args: Args, function: Signature, hints: Hints, item_bytes: int, c_bytes: int
) -> Iterator[Args]:
    """The arguments, and if the kernel may take pitches in bytes, also with all or some so."""
    places = [
        i
        for i, (p, text) in enumerate(zip(function.parameters, args, strict=True))
        if _PITCH.search(p.name) and re.fullmatch("ld[abc]|[MNK]", text)
        if hints.mentions(_OF_BYTES)
    ]
    of_bytes = [f"{c_bytes if text == 'ldc' else item_bytes} * {text}" for text in args]
    for count in (0, *range(len(places), 0, -1)):
        for chosen in itertools.combinations(places, count):
            yield tuple(of_bytes[i] if i in chosen else text for i, text in enumerate(args))


def fixed_sizes(
    function: Signature, hints: Hints, guess: Guess, kind: Literal["gpu", "cpu"]
) -> list[tuple[int, int, int]]:
    """M, N and K that a kernel may have in its text, or in its template's arguments: of its arrays,
    by name, or one constant for all; for a kernel that takes sizes too, only the first two.
    `NotCallableError` if all are too large for that kind of device."""
    most = _MOST_FIXED[kind]
    built = zip((p.name for p in function.template), guess.template, strict=False)
    numbers = {name: int(text) for name, text in built if text.isdigit()}
    constants = {**hints.constants, **guess.params, **numbers}
    sides: dict[str, list[int | None]] = {letter: [None, None] for letter in "ABC"}
    for parameter, letter in zip(function.parameters, guess.args, strict=True):
        if texts := hints.extents.get(parameter.name):
            known = [replaced(text, constants) for text in texts[-2:]]
            sides[letter] = [None, *(n if isinstance(n, int) else None for n in known)][-2:]
    (rows, inner), (depth, columns), (m, n) = map(sides.__getitem__, "ABC")
    m, n = m or rows, n or columns
    k = rows if inner == m != rows else inner or depth  # A may be transposed
    of_arrays = m or n or k, n or m or k, k or n or m  # a missing extent is like others
    named = {size_of(name): value for name, value in constants.items()}
    alike = constants.values() if not guess.is_sized else filter(None, map(named.get, "MNK"))
    found = [of_arrays, tuple(map(named.get, "MNK"))]
    found += [(side,) * 3 for side in sorted({value for value in alike if value >= 16})[::-1]]
    sizes = [*dict.fromkeys((m, n, k) for m, n, k in found if m and n and k)]
    is_only = None not in of_arrays or not guess.is_sized
    if sizes and is_only and (side := max(sizes[0])) > most:
        where = f"on a {kind.upper()}"
        raise NotCallableError(f"is for {side:,} alone; {where}, sizes to {most:,} are tried")
    return [size for size in sizes if max(size) <= most]


# -- roles of the parameters -----------------------------------------------------------------------


def pointers(
    order: Sequence[str], constant: Collection[str] = (), inputs: Sequence[str] = ("A", "B")
) -> Iterator[dict[str, str]]:
    """Which pointers are the inputs and C, likeliest first; `constant` are those to constants. Here
    only names tell A from B; running the kernel shows which is the left operand."""
    if len(order) != len(inputs) + 1:
        many = "1 pointer" if len(order) == 1 else f"{len(order)} pointers"
        raise NotCallableError(f"takes {many}, not {', '.join(inputs)} and C")
    last_first = order[::-1]
    for c in sorted(last_first, key=lambda name: (name in constant, not is_like(name, "C"))):
        if c in constant and len(constant) < len(order):
            continue
        read = [name for name in order if name != c]
        if is_like(read[0], "B") and is_like(read[-1], "A"):
            read.reverse()
        yield {**dict(zip(read, inputs, strict=True)), c: "C"}


def is_like(name: str, letter: str) -> bool:
    """Whether a name is a usual one of that matrix, whatever its prefixes and suffixes."""
    while (shorter := _PREFIX.sub("", name)) != name:
        name = shorter
    return name.lower().strip("_") in USUAL["matrices"][letter]


def numbers(
    parameters: Sequence[Parameter], hints: Hints, types: Iterable[str] = ()
) -> Iterator[dict[str, str]]:
    """Arguments for the number parameters, likeliest first; `types` are those of a template."""
    fixed: dict[str, str] = {}  # what types and names alone imply
    factors, reals = ["alpha", "beta"], {*_REALS, *types}
    scalars = [parameter for parameter in parameters if not parameter.pointer]
    for name, kind in ((parameter.name, parameter.type) for parameter in scalars):
        if kind in reals or name.lower() in ("alpha", "beta"):
            named = [factor for factor in factors if factor in name.lower()]
            fixed[name] = next(iter(named or factors), "1.0")
            factors = [factor for factor in factors if factor != fixed[name]]
        elif name in hints.sides:
            fixed[name] = BLOCK_SIDE
        elif kind == "bool":
            fixed[name] = "0"
        elif text := implied(name, is_batched="z" in hints.blocks):
            fixed[name] = text
        elif name in hints.settings:
            fixed[name] = str(hints.settings[name])
    yield from _sizes([p.name for p in scalars if p.name not in fixed], fixed)


def _sizes(names: Sequence[str], fixed: dict[str, str]) -> Iterator[dict[str, str]]:
    """The arguments with sizes for these names, likeliest first."""
    known = [*map(size_of, names)]
    if len(names) == 1 and not re.search(r"\b[MNK]\b", " ".join(fixed.values())):
        yield fixed | {names[0]: "N"}
    elif None not in known and len({*known}) == len(known):
        yield fixed | {name: str(size) for name, size in zip(names, known, strict=True)}
    if len(names) > 4:
        yield fixed | dict.fromkeys(names, "N")
    else:
        for letters in itertools.product("MNK", repeat=len(names)):
            if len(set(letters)) == min(len(names), 3):
                yield fixed | dict(zip(names, letters, strict=True))
