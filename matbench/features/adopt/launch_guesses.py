"""Guesses how to build and launch a kernel, likeliest first, from its signature and its text.

For a square product, these choices alone decide whether the result is right.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from matbench.features.adopt.arithmetic import Term, Text, combined, number, replaced, term_of
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.launches import HostLaunch
from matbench.features.adopt.scope import ITEM_BYTES
from matbench.features.adopt.subjects import MACRO
from matbench.kernelfile import sweep
from matbench.kernelfile.signature import Signature, TemplateParameter

#: Template arguments, and the values of those that are names.
_Built = tuple[tuple[str, ...], dict[str, int]]

#: Names of constants that are a thread's tile.
_OF_THREAD = re.compile(
    r"T[MNXY]|R[MN]|(?:THREAD(?!S)|REG|ELEM|COARSE|WPT|COARSENING|PER_THREAD)\w*|\w+PER_THREAD"
    r"|TILE_SIZE_[XYMN]|FACTOR",
    re.IGNORECASE,
)
#: Usual values of template parameters by name.
_USUAL = (
    (r"\w*(?:N|NUM)_?THREADS\w*|THREADS\w*|NT", 256),
    (r"BLOCK_(?:SIZE|DIM)_[XYZ]", 16),
    (r"TILE_SIZE_[XY]", 2),
    (r"W(?:ARP)?_?(?:SUB)?N?ITER|\w*ITER\w*", 1),
    (r"W(?:ARP)?_?(?:TILE|SIZE)?_?[MN]", 32),
    (r"(?:T|R|THREAD|REG)_?(?:TILE|SIZE)?_?[MNXY]|WPT\w*|COARSE\w*|\w*PER_THREAD\w*", 8),
    (r"(?:B|BLOCK|TILE|CTA|BS|TB|T|W)?_?(?:SIZE|DIM|TILE|WIDTH)?_?K\w*", 8),
    (r"(?:B|BLOCK|TILE|CTA|BS|TB)_?(?:SIZE|DIM|TILE|WIDTH|ITEMS)?_?[MNXY]", 64),
    (r"\w*(?:VEC|LANES|UNROLL|PAD|STAGES)\w*", 4),
    (r".*", 16),
)
_ROUNDED_DOWN = re.compile(r"(\w+(?: \* \w+)*) // (\w+|\([^()]*\))")
_MOST_THREADS = sweep.GPU_LIMITS["max_threads_per_block"]
#: How many are tried; a build more costs more than that.
_MOST = 48


class Geometry(NamedTuple):
    """One way to build and launch a kernel.

    `template` are the template arguments as the entry spells them, and `params` the values of the
    names among them. If the author's launch is followed, it is in terms of the kernel's parameters,
    and `given` are its constant arguments. Other values of the `varied` were right, too.
    """

    template: tuple[str, ...]
    params: dict[str, int]
    block: tuple[Text, ...]
    grid: tuple[Text, ...]
    shared_bytes: Text = 0
    given: Mapping[str, Text] | None = None
    varied: tuple[str, ...] = ()

    @property
    def batched(self) -> bool:
        """Whether each product of a batch has blocks of its own."""
        return "batch" in self.grid

    @property
    def covered(self) -> list[str]:
        """What sizes are divided by: a block covers that much."""
        if self.given is None and self.grid[1:2] in ((), (1,)):
            return []  # guessed blocks that follow each other fit any size
        divisions = [
            node.args if isinstance(node, ast.Call) else [node.left, node.right]
            for side in self.grid
            for node in ast.walk(ast.parse(str(side)))
            if isinstance(node, ast.Call)
            or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv))
        ]
        return [ast.unparse(parts[1]) for parts in divisions if len(parts) == 2]

    def with_value(self, name: str, value: int) -> Geometry:
        """With another value of a swept constant."""
        return self._replace(params={**self.params, name: value})

    def fixed(self, name: str) -> Geometry:
        """With a swept constant replaced by its value wherever it is used, except by the build."""

        def texts(expressions: Iterable[Text]) -> tuple[Text, ...]:
            return tuple(replaced(text, {name: self.params[name]}) for text in expressions)

        given = self.given
        return self._replace(
            template=tuple(map(str, texts(self.template))),
            params={n: v for n, v in self.params.items() if n != name or n not in self.template},
            block=texts(self.block),
            grid=texts(self.grid),
            shared_bytes=texts([self.shared_bytes])[0],
            given=given and dict(zip(given, texts(given.values()), strict=True)),
        )


def geometries(
    function: Signature, hints: Hints, pinned: Iterable[Text] | None = None
) -> list[Geometry]:
    """The ways to build and launch, likeliest first: those of the author, then guesses, with the
    `pinned` block if there is one.

    A less likely template counts more than a less likely block, and that more than the rest.
    """
    ranked = [
        (3 * i + 2 * j + k + n, Geometry(arguments, params, block, grid, shared))
        for i, (arguments, params) in enumerate(_templates(function.template, hints))
        for j, block in enumerate([tuple(pinned)] if pinned else _blocks(hints, params))
        for k, grid in enumerate(_grids(hints, block))
        for n, shared in enumerate(_shared(hints, block))
    ]
    guesses = [_launchable(geometry) for _, geometry in sorted(ranked, key=lambda pair: pair[0])]
    own = [followed(function, launch, hints) for launch in hints.launches]
    corrected = (_corrected(geometry, hints) for geometry in own if geometry is not None)
    likeliest = [*itertools.chain(*corrected), *guesses]
    return list({repr(geometry): geometry for geometry in likeliest}.values())[:_MOST]


def _launchable(geometry: Geometry) -> Geometry:
    """With 16 for constants that are sides of a block, if that has too many threads."""
    sides = [replaced(side, geometry.params) for side in geometry.block]
    if math.prod(side for side in sides if isinstance(side, int)) <= _MOST_THREADS:
        return geometry
    fitting = {name: 16 if name in geometry.block else n for name, n in geometry.params.items()}
    return geometry._replace(params=fitting)


def _corrected(geometry: Geometry, hints: Hints) -> Iterator[Geometry]:
    """The author's launch, with a grid that is not rounded down, and with dynamic shared memory if
    the kernel has any."""
    rounded = (_ROUNDED_DOWN.fullmatch(str(side)) for side in geometry.grid)
    grid = zip(rounded, geometry.grid, strict=True)
    sides = tuple(_ceil_div(down[1], down[2]) if down else side for down, side in grid)
    own = [geometry.shared_bytes] if geometry.shared_bytes else _shared(hints, geometry.block)
    yield from (geometry._replace(grid=sides, shared_bytes=shared) for shared in own)


def followed(function: Signature, launch: HostLaunch, hints: Hints) -> Geometry | None:
    """The author's launch; None if its grid depends on what the kernel is not passed."""
    arguments, params = _template(function.template, launch.template, hints)
    plane, block = _known(launch.grid[:2]), _known(launch.block)
    depth = [1 if side is None else side for side in launch.grid[2:]]
    has_sizes = any(not p.pointer and p.name not in launch.given for p in function.parameters)
    is_sized = any(isinstance(side, str) for side in plane)
    if not plane or not block or (has_sizes and not is_sized):
        return None
    is_batch = launch.grid[2:] == (None,) or str([*depth, 1][0]).isidentifier()
    rest = ["batch"] if "z" in hints.blocks and is_batch else depth
    grid = (*plane, *[1] * (2 - len(plane) if rest else 0), *rest)
    return Geometry(arguments, params, block, grid, launch.shared or 0, launch.given)


def _known(texts: Iterable[Text | None]) -> tuple[Text, ...]:
    """The texts; none if one is not known."""
    known = [text for text in texts if text is not None]
    return tuple(known) if len(known) == len([*texts]) else ()


# -- candidates ------------------------------------------------------------------------------------


def _templates(template: tuple[TemplateParameter, ...], hints: Hints) -> list[_Built]:
    """Template arguments, the values of those that are names, and types: from a launch in the file,
    then the defaults, or the usual values of constants with such names."""
    launched = [launch.template for launch in hints.launches if launch.template]
    built = [_template(template, choice, hints) for choice in (*launched, ())]
    return list({repr(one): one for one in built}.values())


def _template(
    template: tuple[TemplateParameter, ...], choice: Sequence[Text | None], hints: Hints
) -> _Built:
    arguments: list[str] = []
    params: dict[str, int] = {}
    for parameter, wanted in itertools.zip_longest(template, choice[: len(template)]):
        if wanted is None and parameter.default is not None:
            wanted = replaced(parameter.default, {**hints.constants, **params})
        if parameter.kind in ("typename", "class"):
            arguments.append(wanted if isinstance(wanted, str) else "float")
        elif parameter.kind == "bool":
            arguments.append(wanted if isinstance(wanted, str) else "false")
        else:
            known = wanted if isinstance(wanted, int) and wanted > 0 else None
            params[parameter.name] = known or usual(parameter.name)
            arguments += [parameter.name] if parameter.kind != MACRO else []
            if parameter.name in ("M", "N", "K"):  # expressions have other numbers of these names
                arguments[-1] = str(params.pop(parameter.name))
    return tuple(arguments), params


def usual(name: str) -> int:
    """The usual value of a template parameter of that name."""
    return next(value for of, value in _USUAL if re.fullmatch(of, name, re.IGNORECASE))


def _blocks(hints: Hints, params: Mapping[str, int]) -> list[tuple[Text, ...]]:
    """The sides of a block: those of a launch whose grid is not known, then from tiles and what a
    thread computes of them, launch bounds, then usual ones."""
    launched = [_known(launch.block) for launch in hints.launches]
    launched = [b for b in launched if b and all(_is_of(side, params) for side in b)]
    if not hints.threads:
        return [*launched, (1,)]
    x, y = (_side(hints.tiles.get(axis, ()), params) for axis in "xy")
    names = {name: term_of(name) for name in sorted(params) if hints.mentions(rf"\b{name}\b")}
    names |= {name: number(value) for name, value in hints.constants.items()}
    named = [term for name, term in names.items() if _OF_THREAD.fullmatch(name)]
    blocks: Iterable[tuple[Term | None, ...]]
    if hints.threads == "x":
        counts = (hints.bounds, *_in_line(x, y, named), *map(number, (256, 1024)))
        blocks = ((count,) for count in counts)
    else:
        own = [[n for n in hints.shares.get(axis, ()) if n.number != 1] for axis in "xy"]
        across, down = ([*shares, *named] for shares in own)
        planes = itertools.product(_over(x or y, across), _over(y or x, down))
        blocks = (*planes, *((number(side), number(side)) for side in (16, 32)))
    axes = "xyz".index(hints.threads[-1]) + 1
    known = ([side.text for side in block if side is not None] for block in blocks)
    whole = [(*b, *[1] * (axes - 2)) for b in known if len(b) == min(axes, 2) and 0 not in b]
    values = [tuple(replaced(side, params) for side in block) for block in launched]
    alike = [b for b in whole if tuple(replaced(side, params) for side in b) in values]
    return list(dict.fromkeys([*alike, *launched, *whole]))


def _is_of(text: Text, params: Mapping[str, int]) -> bool:
    return isinstance(replaced(text, params), int)


def _side(tiles: Sequence[Term], params: Mapping[str, int]) -> Term | None:
    """The tile along an axis, if it does not depend on the block."""
    names = {name for tile in tiles[:1] for of in tile.products for name in of}
    return tiles[0] if tiles and names <= params.keys() else None


def _over(tile: Term | None, shares: Sequence[Term]) -> list[Term | None]:
    """A side of a block: of a tile, over each share of a thread; then a thread has one element."""
    return [_quotient(tile, share) for share in shares] + [tile] if tile is not None else []


def _in_line(x: Term | None, y: Term | None, shares: list[Term]) -> Iterator[Term | None]:
    """One-dimensional blocks: for tiles of x by y, over the shares of a thread."""
    tile = combined(x, "*", y) if x is not None and y is not None else None
    if tile is not None:
        both = combined(shares[0], "*", shares[1]) if len(shares) > 1 else None
        yield from _over(tile, [share for share in (both, *shares) if share is not None])
    yield from (x, y)


def _quotient(a: Term | None, b: Term) -> Term | None:
    """The quotient; None if the division leaves a remainder."""
    if a is None or (a.number is not None and b.number and a.number % b.number):
        return None
    return combined(a, "/", b)


def _grids(hints: Hints, block: tuple[Text, ...]) -> list[tuple[Text, ...]]:
    """The blocks along each axis: of a plane, or in a line over the rows or over all of C."""
    sides = {f"blockDim_{axis}": side for axis, side in zip("xyz", (*block, 1, 1), strict=False)}
    sides |= dict.fromkeys(hints.sides, block[0])

    def along(axis: str) -> list[Text]:
        tiles = [replaced(tile.text, sides) for tile in hints.tiles.get(axis, ())]
        return tiles or [1, sides[f"blockDim_{axis}"]]

    axes = [axis for axis in hints.blocks if axis != "z"]
    grids: list[tuple[Text, ...]]
    if len(axes) == 1:
        # If the index is divided, it runs over all of C.
        sizes = ("M * N", "N", "M") if hints.mentions("[/%]") else ("M", "N", "M * N")
        tiles = along(axes[0])[:4]
        grids = [(_ceil_div(size, tile),) for tile in tiles for size in sizes]
    else:
        planes = itertools.product(*map(along, axes))
        grids = [(*map(_ceil_div, "NM", plane),) or (1,) for plane in planes]
    if "z" in hints.blocks:
        grids = [(*grid, *[1] * (2 - len(grid)), "batch") for grid in grids]
    return list(dict.fromkeys(grids))


def _shared(hints: Hints, block: tuple[Text, ...]) -> list[Text]:
    """Bytes of dynamic shared memory: two tiles as large as the block, or a row of A."""
    if hints.shared is None:
        return [0]
    item = ITEM_BYTES.get(hints.shared, 4)
    tiles: Term | None = number(2 * item)
    for side in map(term_of, block):
        tiles = combined(tiles, "*", side) if tiles is not None else None
    first = [tiles.text] if tiles is not None else []
    launched = [launch.shared for launch in hints.launches if launch.block == block]
    given = [shared for shared in launched if shared]
    return list(dict.fromkeys(given or [*first, f"{item} * K"]))


def _ceil_div(size: str, tile: Text) -> str:
    return size if tile == 1 else f"ceil_div({size}, {tile})"
