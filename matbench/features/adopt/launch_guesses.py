"""Guesses how to build and launch a kernel, likeliest first, from its signature and its text.

For a square product, these choices alone decide whether the result is right.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from matbench.features.adopt import hints as reading
from matbench.features.adopt.argument_guesses import BLOCK_SIDE, Call
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.launches import ITEM_BYTES, HostLaunch
from matbench.kernelfile import entry as entries
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.expressions import ExpressionError, names_in, whole
from matbench.kernelfile.signature import Function, TemplateParameter

Text = int | str
#: Template arguments, and the values of those that are names.
_Built = tuple[tuple[str, ...], dict[str, int]]

#: Names of constants that are a thread's tile, a number of threads, or a size along N.
_OF_THREAD = re.compile(
    r"T[MNXY]|R[MN]|(?:THREAD|REG|ELEM)\w*|WPT\w*|COARSE\w*|COARSENING\w*|PER_THREAD\w*|\w+PER_THREAD"
    r"|THREAD_SIZE_[XYMN]|FACTOR",
    re.IGNORECASE,
)
_COUNTS_THREADS = re.compile(
    r"\w*(?:N|NUM|NUMBER)_?THREADS\w*|THREADS(?:_PER_BLOCK)?|NT|BLOCK_?DIM", re.IGNORECASE
)
_ALONG_N = re.compile(r"(?:.*[^A-Z])?T?W?B?[NX]$|.*(?:COLS?|COLUMNS)$", re.IGNORECASE)

#: Values of template parameters by name: a pattern, then its value in each profile, in the order in
#: which profiles are tried.
_PROFILES: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"\w*(?:N|NUM)_?THREADS\w*|THREADS\w*|NT", (256, 128, 64, 128)),
    (r"W(?:ARP)?_?(?:SUB)?N?ITER|\w*ITER\w*", (1, 4, 2, 2)),
    (r"W(?:ARP)?_?(?:TILE|SIZE)?_?[MN]", (32, 64, 32, 32)),
    (r"(?:T|R|THREAD|REG)_?(?:TILE|SIZE)?_?[MNXY]|WPT\w*|COARSE\w*|\w*PER_THREAD\w*", (8, 8, 4, 4)),
    (r"(?:B|BLOCK|TILE|CTA|BS|TB|T|W)?_?(?:SIZE|DIM|TILE|WIDTH)?_?K\w*", (8, 16, 8, 16)),
    (r"(?:B|BLOCK|TILE|CTA|BS|TB)_?(?:SIZE|DIM|TILE|WIDTH|ITEMS)?_?[MNXY]", (64, 128, 128, 64)),
    (r"\w*(?:VEC|LANES|UNROLL|PAD|STAGES)\w*", (4, 4, 2, 2)),
    (r".*", (16, 32, 8, 64)),
)
_FLAT = (256, 128, 64, 512, 1024, 32)
_SQUARE = ((16, 16), (32, 32), (8, 8), (32, 8), (32, 4), (8, 32))


#: How many are tried; a build more costs more than that.
_MOST = 99


class Geometry(NamedTuple):
    """One way to build and launch a kernel.

    `template` are the template arguments as the entry spells them, and `params` the values of the
    names among them. `covered` is how much one block covers along each grid axis in use. `line` is
    an expression in M and N for a one-dimensional grid. If the author's launch is followed,
    `blocks` are its grid and `given` its constant arguments, in terms of the kernel's parameters.
    """

    template: tuple[str, ...]
    params: dict[str, int]
    block: tuple[Text, ...]
    covered: tuple[Text, ...]
    line: str | None = None
    batched: bool = False
    shared_bytes: Text = 0
    blocks: tuple[Text, ...] = ()
    given: Mapping[str, Text] = MappingProxyType({})

    def grid(self, *, swapped: bool) -> tuple[Text, ...]:
        """The blocks along each axis; `swapped`: x runs along the rows of C."""
        if self.blocks:
            return self.blocks
        if self.line is not None:
            plane: list[Text] = [self.line]
        else:
            sizes = ("M", "N") if swapped else ("N", "M")
            plane = [
                _ceil_div(size, tile) for size, tile in zip(sizes, self.covered, strict=False)
            ] or [1]
        if self.batched:
            plane = [*plane, *[1] * (2 - len(plane)), "batch"]
        return tuple(plane)

    def with_value(self, name: str, value: int) -> Geometry:
        """With another value of a swept constant."""
        return self._replace(params={**self.params, name: value})

    def fixed(self, name: str) -> Geometry:
        """With a swept constant replaced by its value wherever it is used."""
        value = self.params[name]

        def text(expression: Text) -> Text:
            replaced = re.sub(rf"\b{name}\b", str(value), str(expression))
            try:
                return whole(replaced, {})
            except ExpressionError:
                return replaced

        return self._replace(
            template=tuple(
                str(value) if argument == name else argument for argument in self.template
            ),
            params={other: held for other, held in self.params.items() if other != name},
            block=tuple(map(text, self.block)),
            covered=tuple(map(text, self.covered)),
            line=None if self.line is None else str(text(self.line)),
            shared_bytes=text(self.shared_bytes),
            blocks=tuple(map(text, self.blocks)),
            given={other: text(value) for other, value in self.given.items()},
        )


def geometries(function: Function, hints: Hints) -> list[Geometry]:
    """The ways to build and launch, likeliest first: those of the author, then guesses."""
    ranked: dict[str, tuple[int, Geometry]] = {}
    for launch in hints.launches:
        geometry = _followed(function, launch, hints)
        if geometry is not None:
            ranked.setdefault(repr(geometry), (-1, geometry))
    for rank, geometry in _ranked(function, hints):
        ranked.setdefault(repr(geometry), (rank, geometry))
    likeliest = sorted(ranked.values(), key=lambda pair: pair[0])[:_MOST]
    return [geometry for _, geometry in likeliest]


def _followed(function: Function, launch: HostLaunch, hints: Hints) -> Geometry | None:
    """The author's launch; None if its grid depends on what the kernel is not passed."""
    arguments, params = _template(function.template, launch.template, hints)
    plane, block = _known(launch.grid[:2]), _known(launch.block)
    depth = [1 if side is None else side for side in launch.grid[2:]]
    has_sizes = any(not p.pointer and p.name not in launch.given for p in function.parameters)
    axes = "".join(a for a, n in zip("xy", plane or (), strict=False) if isinstance(n, int))
    if not plane or not block or (has_sizes and set(axes) & set(hints.blocks)):
        return None
    batched = "z" in hints.blocks and (launch.grid[2:] == (None,) or isinstance(depth[0], str))
    rest = ["batch"] if batched else depth
    blocks = (*plane, *[1] * (2 - len(plane) if rest else 0), *rest)
    covered, shared = tuple(_divisors(blocks)), launch.shared or 0
    return Geometry(arguments, params, block, covered, None, batched, shared, blocks, launch.given)


def _known(texts: Iterable[Text | None]) -> tuple[Text, ...]:
    """The texts; none if one is not known."""
    known = [text for text in texts if text is not None]
    return tuple(known) if len(known) == len([*texts]) else ()


def _divisors(blocks: Iterable[Text]) -> Iterator[Text]:
    """What sizes are divided by: a block covers that much."""
    for node in itertools.chain(*(ast.walk(ast.parse(str(text))) for text in blocks)):
        if isinstance(node, ast.Call) and len(node.args) == 2:
            yield ast.unparse(node.args[1])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield ast.unparse(node.right)


def _ranked(function: Function, hints: Hints) -> Iterator[tuple[int, Geometry]]:
    """Every combination of candidates; the lower its rank, the likelier it is.

    A less likely template counts more than a less likely block, and that more than the rest.
    """
    batched = "z" in hints.blocks
    for template_rank, (arguments, params) in enumerate(_templates(function.template, hints)):
        kept = frozenset(params)
        for block_rank, block in enumerate(_blocks(function, hints, kept)):
            rest = itertools.product(
                enumerate(_covered(hints, block, kept)), enumerate(_shared(hints, block, kept))
            )
            for (covered_rank, (covered, line)), (shared_rank, shared) in rest:
                geometry = Geometry(arguments, params, block, covered, line, batched, shared)
                rank = 3 * template_rank + 2 * block_rank + covered_rank + shared_rank
                yield rank, geometry


def table(
    function: Function, geometry: Geometry, call: Call, *, swapped: bool, **more: Any
) -> dict[str, Any]:
    """The front matter of a guess; `more` are keys that were found by trial."""
    args = call.renamed({BLOCK_SIDE: str(geometry.block[0])}).args
    passed = {p.name: text for p, text in zip(function.parameters, args, strict=True)}
    sizes = {p.name: passed[p.name] for p in function.parameters if not p.pointer}

    def known(text: Text) -> Text:
        """With arguments in place of the parameters that an author's launch is in terms of."""
        is_own = isinstance(text, int) or not geometry.blocks
        return text if is_own else entries.with_types(str(text), sizes)

    if geometry.blocks:
        given = {name: str(known(text)) for name, text in geometry.given.items()}
        args = tuple((passed | given).values())
    launch: dict[str, Any] = {
        "block": [*map(known, geometry.block)],
        "grid": [*map(known, geometry.grid(swapped=swapped))],
    }
    if geometry.shared_bytes:
        launch["shared_bytes"] = known(geometry.shared_bytes)
    if where := more.pop("where", ()):
        launch["where"] = list(where)
    sweep = {name: [value] for name, value in geometry.params.items()}
    entry = entries.as_text(Entry(function.name, geometry.template))
    front_matter = {"entry": entry, "args": list(args), **more}
    return front_matter | ({"sweep": sweep} if sweep else {}) | {"launch": launch}


# -- candidates ------------------------------------------------------------------------------------


def _templates(template: tuple[TemplateParameter, ...], hints: Hints) -> list[_Built]:
    """Template arguments, the values of those that are names, and types: from a launch in the file,
    then the defaults, then the usual values of constants with such names."""
    if not template:
        return [((), {})]
    choices: list[list[Text | None]] = []
    choices += [[*launch.template] for launch in hints.launches if launch.template]
    if any(parameter.default is not None for parameter in template):
        choices.append([None] * len(template))
    choices += [[profile] * len(template) for profile in (-1, -2, -3, -4)]
    distinct: dict[str, _Built] = {}
    for choice in choices:
        built = _template(template, choice, hints)
        distinct.setdefault(repr(built), built)
    return list(distinct.values())


def _template(
    template: tuple[TemplateParameter, ...], choice: Sequence[Text | None], hints: Hints
) -> _Built:
    arguments: list[str] = []
    params: dict[str, int] = {}
    for parameter, given in itertools.zip_longest(template, choice[: len(template)]):
        wanted = given
        if wanted is None and parameter.default is not None:
            known = reading.symbolic(parameter.default, {**hints.constants, **params}, frozenset())
            wanted = parameter.default if known is None else known
        if parameter.kind in ("typename", "class"):
            arguments.append(wanted if isinstance(wanted, str) else "float")
        elif parameter.kind == "bool":
            arguments.append(wanted if isinstance(wanted, str) else "false")
        else:
            number = wanted if isinstance(wanted, int) and wanted > 0 else None
            if number is None:
                profile = -wanted - 1 if isinstance(wanted, int) else 0
                number = usual(parameter.name, profile)
            params[parameter.name] = number
            arguments.append(parameter.name)
    return tuple(arguments), params


def usual(name: str, profile: int) -> int:
    """The value of a template parameter in one of the profiles, by its name."""
    return next(
        v[profile] for pattern, v in _PROFILES if re.fullmatch(pattern, name, re.IGNORECASE)
    )


def _blocks(function: Function, hints: Hints, kept: frozenset[str]) -> list[tuple[Text, ...]]:
    """The sides of a block: from a launch in the file, tiles, launch bounds, then usual ones."""

    def known(text: str) -> Text | None:
        return reading.symbolic(text, hints.constants, kept)

    def known_of(texts: Iterable[str]) -> list[Text]:
        return [side for side in map(known, texts) if side is not None]

    tiles = {axis: known(texts[0]) for axis, texts in hints.tiles.items() if texts}
    x, y = tiles.get("x"), tiles.get("y")
    names = [n for n in (*sorted(kept), *hints.constants) if hints.mentions(rf"\b{n}\b")]
    counts = [n for n in names if _COUNTS_THREADS.fullmatch(n)]
    shares = [n for n in names if _OF_THREAD.fullmatch(n) and n not in counts]
    blocks: list[tuple[Text | None, ...]] = [
        launch.block if _is_of(kept, launch.block) else (None,) for launch in hints.launches
    ]
    if not hints.threads:
        blocks.append((1,))
    elif hints.threads == "x":
        bounds = [function.launch_bounds] if function.launch_bounds else []
        blocks += [(count,) for count in known_of([*bounds, *counts])]
        blocks += _in_line(x, y, known_of(shares))
    else:
        across = known_of(n for n in shares if _ALONG_N.fullmatch(n))
        down = known_of(n for n in shares if not _ALONG_N.fullmatch(n))
        blocks += _in_plane(x, y, across, down, known_of(names))
    usable = (block for block in blocks if all(side is not None and side != 0 for side in block))
    return list(dict.fromkeys(usable))  # type: ignore[arg-type]


_Sides = Iterator[tuple[Text | None, ...]]


def _in_line(x: Text | None, y: Text | None, shares: list[Text]) -> _Sides:
    """One-dimensional blocks: for tiles of x by y, over the shares of a thread."""
    if x is not None and y is not None:
        tile = _product(x, y)
        if len(shares) >= 2:
            yield (_quotient(tile, _product(shares[0], shares[1])),)
        for share in shares:
            yield (_quotient(tile, share),)
        yield (tile,)
    for count in (x, y, *_FLAT):
        yield (count,)


def _in_plane(
    x: Text | None, y: Text | None, across: list[Text], down: list[Text], sides: list[Text]
) -> _Sides:
    """Two-dimensional blocks: for tiles of x by y, over a thread's shares across and down."""
    if x is not None and y is not None:
        if across and down:
            yield _quotient(x, across[0]), _quotient(y, down[0])
        for share in (*across, *down):
            yield _quotient(x, share), _quotient(y, share)
            yield _quotient(x, share), y
            yield x, _quotient(y, share)
        yield x, y
        yield y, x
    elif x is not None or y is not None:
        yield x or 16, y or 16
        yield x or y, y or x
    for side in sides:
        yield side, side
    yield from _SQUARE
    if x is not None and y is not None:
        yield _quotient(x, 4), y
        yield _quotient(x, 4), _quotient(y, 4)


def _covered(
    hints: Hints, block: tuple[Text, ...], kept: frozenset[str]
) -> list[tuple[tuple[Text, ...], str | None]]:
    """How much a block covers along each grid axis, or a one-dimensional grid over all of C."""
    sides: dict[str, Text] = {
        f"blockDim.{axis}": side for axis, side in zip("xyz", block, strict=False)
    }
    values: dict[str, Text] = {
        **hints.constants,
        **dict.fromkeys(("blockDim.x", "blockDim.y", "blockDim.z"), 1),
        **sides,
        **dict.fromkeys(hints.sides, block[0]),
    }

    def along(axis: str) -> list[Text]:
        widths = [reading.symbolic(text, values, kept) for text in hints.tiles.get(axis, ())]
        known = [tile for tile in widths if tile is not None]
        return known or [1, sides.get(f"blockDim.{axis}", 1)]

    axes = [axis for axis in hints.blocks if axis != "z"]
    if len(axes) == 2:
        pairs = itertools.product(along("x"), along("y"))
        return [(pair, None) for pair in dict.fromkeys(pairs)]
    if not axes:
        return [((), None)]
    [axis] = axes
    coverings: list[tuple[tuple[Text, ...], str | None]] = []
    # If the index is divided, it runs over all of C.
    sizes = ("M * N", "N", "M") if hints.mentions("[/%]") else ("M", "N", "M * N")
    coverings += [((tile,), _ceil_div(size, tile)) for tile in along(axis) for size in sizes]
    return list(dict.fromkeys(coverings))[:12]


def _shared(hints: Hints, block: tuple[Text, ...], kept: frozenset[str]) -> list[Text]:
    """Bytes of dynamic shared memory: from a launch in the file, two tiles as large as the block, a
    row of A, then plenty."""
    if hints.shared is None:
        return [0]
    item = ITEM_BYTES.get(hints.shared, 4)
    given = [
        launch.shared
        for launch in hints.launches
        if launch.shared and launch.block == block and _is_of(kept, [launch.shared])
    ]
    threads: Text = block[0] if len(block) == 1 else _product(block[0], block[1])
    usual = [_product(2 * item, threads), f"{item} * K", 16384, 49152]
    return list(dict.fromkeys(given or usual))


def _is_of(names: Collection[str], texts: Iterable[Text | None]) -> bool:
    """Whether all texts are expressions of these names."""
    try:
        for text in texts:
            names_in(str(text), names)
    except ExpressionError:
        return False
    return True


# -- arithmetic on numbers and expressions ---------------------------------------------------------


def _product(a: Text, b: Text) -> Text:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return f"{_in_product(a)} * {_in_product(b)}"


def _quotient(a: Text | None, b: Text | None) -> Text | None:
    """The quotient; None if the division leaves a remainder."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    return f"{_in_product(a)} // {_in_product(b, divisor=True)}"


def _in_product(a: Text, *, divisor: bool = False) -> str:
    simple = re.fullmatch(r"\w+" if divisor else r"[\w *]+", str(a))
    return str(a) if simple else f"({a})"


def _ceil_div(size: str, tile: Text) -> str:
    return size if tile == 1 else f"ceil_div({size}, {tile})"
