"""Guesses how to build and launch a kernel, likeliest first, from its signature and its text.

For a square product, these choices alone decide whether the result is right.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from matbench.features.adopt.arithmetic import Term, Text, combined, replaced, term_of
from matbench.features.adopt.guess import Guess
from matbench.features.adopt.hints import Hints, HostLaunch
from matbench.features.adopt.names import USUAL
from matbench.features.adopt.scope import ITEM_BYTES
from matbench.features.adopt.subjects import MACRO
from matbench.kernelfile import sweep
from matbench.kernelfile.signature import Signature, TemplateParameter

#: Names of constants that are a thread's tile.
_OF_THREAD = re.compile(
    r"T[MNXY]|R[MN]|(?:THREAD(?!S)|REG|ELEM|COARSE|WPT|COARSENING|PER_THREAD)\w*|\w+PER_THREAD"
    r"|TILE_SIZE_[XYMN]|FACTOR",
    re.IGNORECASE,
)
_ROUNDED_DOWN = re.compile(r"(\w+(?: \* \w+)*) // (\w+|\([^()]*\))")
_MOST_THREADS = sweep.GPU_LIMITS["max_threads_per_block"]
#: How many are tried; a build more costs more than that.
_MOST = 48

Sides = tuple[Text, ...]


def launches(function: Signature, hints: Hints, pinned: Sequence[Text] = ()) -> list[Guess]:
    """The ways to build and launch, likeliest first: those of the author, then guesses, with the
    `pinned` block if there is one.

    A less likely template counts more than a less likely block, and that more than the rest.
    """
    choices = [launch.template for launch in hints.launches if launch.template]
    built = [_template(function.template, choice, hints) for choice in (*choices, ())]
    ranked = [
        (3 * i + 2 * j + k + n, Guess(arguments, params, block, grid, shared))
        for i, (arguments, params) in enumerate({repr(one): one for one in built}.values())
        for j, block in enumerate([tuple(pinned)] if pinned else _blocks(hints, params))
        for k, grid in enumerate(_grids(hints, block))
        for n, shared in enumerate(_shared(hints, block))
    ]
    own = (followed(function, launch, hints) for launch in hints.launches)
    likeliest = [
        *(one for launch in own if launch is not None for one in _corrected(launch, hints)),
        *(_launchable(guess) for _, guess in sorted(ranked, key=lambda pair: pair[0])),
    ]
    return list({repr(guess): guess for guess in likeliest}.values())[:_MOST]


def followed(function: Signature, launch: HostLaunch, hints: Hints) -> Guess | None:
    """The author's launch; None if its grid depends on what the kernel is not passed."""
    plane, block = _known(launch.grid[:2]), _known(launch.block)
    has_sizes = any(not p.pointer and p.name not in launch.given for p in function.parameters)
    is_sized = any(isinstance(side, str) for side in plane)
    if not plane or not block or (has_sizes and not is_sized):
        return None
    depth = launch.grid[2:]
    is_batch = "z" in hints.blocks and any(n is None or str(n).isidentifier() for n in depth)
    rest = ["batch"] if is_batch else [1 if side is None else side for side in depth]
    grid = (*plane, *[1] * (2 - len(plane) if rest else 0), *rest)
    built = _template(function.template, launch.template, hints)
    return Guess(*built, block, grid, launch.shared or 0, launch.given)


def whole(guess: Guess, hints: Hints, *, least: int = 1) -> int:
    """A size that is a multiple of every possible tile of the kernel; with `least`, at least that,
    and at least two tiles."""
    divisors = (replaced(text, guess.params) for text in guess.covered)
    covered = [side for side in divisors if isinstance(side, int) and side > 0]
    named = [n for name, n in hints.constants.items() if hints.mentions(rf"\b{name}\b")]
    wholes = (math.lcm(start, *covered) for start in (32, 8, 1))
    unit = next((together for together in wholes if together <= 256), 32)
    for sides, most in ((covered, 256), ([*guess.params.values(), *named], 128)):
        for side in sides:
            together = math.lcm(unit, side)
            unit = together if 0 < together <= most else unit
    tiles = [side for side in covered if side <= 256]
    least = max(least, 2 * max(tiles, default=1)) if least > 1 else 1
    return unit * max(1, -(-least // unit))


def usual(name: str) -> int:
    """The usual value of a template parameter of that name."""
    values: dict[str, int] = USUAL["values"]
    return next(value for of, value in values.items() if re.fullmatch(of, name, re.IGNORECASE))


def _launchable(guess: Guess) -> Guess:
    """With 16 for constants that are sides of a block, if that has too many threads."""
    sides = [replaced(side, guess.params) for side in guess.block]
    if math.prod(side for side in sides if isinstance(side, int)) <= _MOST_THREADS:
        return guess
    fitting = {name: 16 if name in guess.block else n for name, n in guess.params.items()}
    return guess._replace(params=fitting)


def _corrected(guess: Guess, hints: Hints) -> Iterator[Guess]:
    """The author's launch, with a grid that is not rounded down, and with dynamic shared memory if
    the kernel has any."""
    rounded = (_ROUNDED_DOWN.fullmatch(str(side)) for side in guess.grid)
    grid = zip(rounded, guess.grid, strict=True)
    sides = tuple(_ceil_div(down[1], down[2]) if down else side for down, side in grid)
    own = [guess.shared_bytes] if guess.shared_bytes else _shared(hints, guess.block)
    yield from (guess._replace(grid=sides, shared_bytes=shared) for shared in own)


def _known(texts: Iterable[Text | None]) -> Sides:
    """The texts; none if one is not known, or 0."""
    known = [text for text in texts if text]
    return tuple(known) if len(known) == len([*texts]) else ()


def _template(
    template: tuple[TemplateParameter, ...], choice: Sequence[Text | None], hints: Hints
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Template arguments, and the values of those that are names: those of a launch, then the
    defaults, or the usual values of constants with such names."""
    arguments: list[str] = []
    params: dict[str, int] = {}
    for parameter, wanted in itertools.zip_longest(template, choice[: len(template)]):
        if wanted is None and parameter.default is not None:
            wanted = replaced(parameter.default, {**hints.constants, **params})
        if parameter.kind in ("typename", "class", "bool"):
            plain = "false" if parameter.kind == "bool" else "float"
            arguments.append(wanted if isinstance(wanted, str) else plain)
            continue
        known = wanted if isinstance(wanted, int) else usual(parameter.name)
        # Expressions have other numbers of these names; constants that are swept are above 0.
        if parameter.name in ("M", "N", "K") or (known <= 0 and parameter.kind != MACRO):
            arguments.append(str(known))
        else:
            params[parameter.name] = known
            arguments += [parameter.name] if parameter.kind != MACRO else []
    return tuple(arguments), params


def _blocks(hints: Hints, params: Mapping[str, int]) -> list[Sides]:
    """The sides of a block: those of a launch whose grid is not known, then from tiles and what a
    thread computes of them, launch bounds, then usual ones."""

    def numbers(block: Sides) -> Sides:
        return tuple(replaced(side, params) for side in block)

    known = [_known(launch.block) for launch in hints.launches]
    launched = [b for b in known if b and all(isinstance(side, int) for side in numbers(b))]
    if not hints.threads:
        return [*launched, (1,)]
    firsts = ([*hints.tiles.get(axis, ()), None][0] for axis in "xy")
    # A tile along an axis, if it does not depend on the block.
    x, y = (t if t and {*itertools.chain(*t.products)} <= params.keys() else None for t in firsts)
    swept = {name: name for name in sorted(params) if hints.mentions(rf"\b{name}\b")}
    names: dict[str, Text] = {**swept, **hints.constants}
    named = [term_of(text) for name, text in names.items() if _OF_THREAD.fullmatch(name)]
    blocks: Iterable[tuple[Term | None, ...]]
    if hints.threads == "x":
        both = [combined(named[0], "*", named[1])] if len(named) > 1 else []
        in_line = _over(combined(x, "*", y), [*both, *named])
        blocks = ((n,) for n in (hints.bounds, *in_line, x, y, term_of(256), term_of(1024)))
    else:
        own = [[n for n in hints.shares.get(axis, ()) if n.number != 1] for axis in "xy"]
        across, down = ([*shares, *named] for shares in own)
        planes = itertools.product(_over(x or y, across), _over(y or x, down))
        blocks = (*planes, *((term_of(side), term_of(side)) for side in (16, 32)))
    axes = "xyz".index(hints.threads[-1]) + 1
    texts = ([side.text for side in block if side is not None] for block in blocks)
    guessed = [
        (*b, *[1] * (axes - 2))
        for b in texts
        if len(b) == min(axes, 2) and 0 not in b and "blockDim" not in str(b)
    ]
    values = [*map(numbers, launched)]
    alike = [block for block in guessed if numbers(block) in values]
    return list(dict.fromkeys([*alike, *launched, *guessed]))


def _over(tile: Term | None, shares: Sequence[Term | None]) -> list[Term | None]:
    """A side of a block: of a tile, over each share of a thread that leaves no remainder; then a
    thread has one element."""
    if tile is None:
        return []
    fitting = (n for n in shares if n and not (tile.number and n.number and tile.number % n.number))
    return [*(combined(tile, "/", share) for share in fitting), tile]


def _grids(hints: Hints, block: Sides) -> list[Sides]:
    """The blocks along each axis: of a plane, or in a line over the rows or over all of C."""
    sides = {f"blockDim_{axis}": side for axis, side in zip("xyz", (*block, 1, 1), strict=False)}
    sides |= dict.fromkeys(hints.sides, block[0])
    axes = [axis for axis in hints.blocks if axis != "z"]
    tiles = {axis: [replaced(t.text, sides) for t in hints.tiles.get(axis, ())] for axis in axes}
    along = [tiles[axis] or [1, sides[f"blockDim_{axis}"]] for axis in axes]
    grids: list[Sides]
    if len(axes) == 1:
        # If the index is divided, it runs over all of C.
        sizes = ("M * N", "N", "M") if hints.mentions("[/%]") else ("M", "N", "M * N")
        grids = [(_ceil_div(size, tile),) for tile in along[0][:4] for size in sizes]
    else:
        grids = [(*map(_ceil_div, "NM", plane),) or (1,) for plane in itertools.product(*along)]
    if "z" in hints.blocks:
        grids = [(*grid, *[1] * (2 - len(grid)), "batch") for grid in grids]
    return list(dict.fromkeys(grids))


def _shared(hints: Hints, block: Sides) -> list[Text]:
    """Bytes of dynamic shared memory: two tiles as large as the block, or a row of A."""
    if hints.shared is None:
        return [0]
    given = [launch.shared for launch in hints.launches if launch.block == block if launch.shared]
    item = ITEM_BYTES.get(hints.shared, 4)
    tiles: Term | None = term_of(2 * item)
    for side in block:
        tiles = combined(tiles, "*", term_of(side))
    first = [tiles.text] if tiles is not None else []
    return list(dict.fromkeys(given or [*first, f"{item} * K"]))


def _ceil_div(size: str, tile: Text) -> str:
    return size if tile == 1 else f"ceil_div({size}, {tile})"
