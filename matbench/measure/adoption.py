"""Works out how a foreign kernel is called: guesses, tried one launch each, then all the checks.

First on equal sizes, where only the launch matters, what the kernel computes is seen; then sizes
that differ tell which is which; then sizes off by one which of them must be multiples of a tile.
The table that follows from it is kept only if the kernel passes every check with it.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench import workloads
from matbench.errors import BuildError, CaseError, MatbenchError, UsageError
from matbench.kernelfile import entry as entries
from matbench.kernelfile import expressions, geometries, guessing, hints, includes, signature, sweep
from matbench.kernelfile.geometries import Geometry
from matbench.kernelfile.guessing import Call, NotCallableError
from matbench.kernelfile.signature import Function
from matbench.measure.options import Deadlines, Options
from matbench.measure.sighting import Product, Sighting
from matbench.measure.worker import Worker
from matbench.model import STORAGE, Kernel, Layout, Problem, Transpose
from matbench.records.outcome import Outcome

#: How trials are run: no times, and little patience.
OPTIONS = Options(timed=False, blocks=False)
DEADLINES = Deadlines(build_s=60.0, run_s=30.0)
#: How long one launch may take, how long guesses are tried, and how many crashes and hangs are
#: borne.
_LAUNCH_S = 3.0
_SEARCH_S = 40.0
_MOST_FAILURES = 8
_MOST_LATE = 3
#: So many ways that pass the trials are put to the checks.
_MOST_WAYS = 3
#: Factors that no kernel has of its own, where it takes them.
_ALPHA, _BETA = 1.5, 0.25
#: How much of C must be right for a call to be called near.
_LEAST_SHARE = 0.05
#: Elements between rows, where a kernel takes leading dimensions; vectors stay aligned.
_PADDING = 8
_BATCH = 3
#: Larger problems are left to `matbench check`: a CPU takes long for them.
_MOST_OPERATIONS = 2 * 400**3

Told = Callable[[str], None]
Load = Callable[[dict[str, Any]], Kernel]


class Subject(NamedTuple):
    """A kernel to adopt: one `__global__` function of a file."""

    path: Path
    source: str
    function: Function


class Adopted(NamedTuple):
    """What came of it: a table, and what it does in words; without one, what comes nearest."""

    name: str
    table: dict[str, Any] | None
    words: str


class _Way(NamedTuple):
    """A way to call a kernel, and what it then computes.

    `alpha` and `beta` are factors of its own, where it takes none. `problem` is one that it was
    seen to be right at, which `is_square` if it must be.
    """

    geometry: Geometry
    call: Call
    is_swapped: bool = False
    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: int = 0
    alpha: float = 1.0
    beta: float = 0.0
    is_square: bool = False
    problem: Problem = Problem(1, 1, 1)

    @property
    def params(self) -> dict[str, int]:
        return {name: values[0] for name, values in self.geometry.sweep.items()}

    def sized(self, M: int, N: int, K: int) -> Problem:
        """A problem of that size with the factors and the batch of this one."""
        return msgspec.structs.replace(self.problem, M=M, N=N, K=K)


def adopt(subject: Subject, worker: Worker, load: Load, told: Told) -> Adopted:
    """Find out how a kernel is called. `load` makes a kernel of the file with a table.

    `told` is called with what is tried next.
    """
    name = subject.function.name
    search = _Search(subject, worker, told)
    failed = None
    try:
        for way in itertools.islice(search.ways(), _MOST_WAYS):
            plain = search.table(way)
            for claim in ({}, *search.claims(way)):
                table = {**claim, **plain}
                words = ", ".join((_words(way, table), *(f"{k} = {v}" for k, v in claim.items())))
                try:
                    kernel = load(table)
                except UsageError as error:
                    return Adopted(name, None, f"{words}; but no table can say so: {error}")
                outcomes = list(_checked(kernel, worker, told))
                wrong = next((each for each in outcomes if each.status != "measured"), None)
                if wrong is None and outcomes:
                    many = len({outcome.case.problem.size for outcome in outcomes})
                    right = f"correct at {many} of {many} sizes that it accepts"
                    return Adopted(name, table, f"{words}, {right}")
                where = "" if wrong is None else f" at {wrong.case.problem.size}: {wrong.reason}"
                failed = failed or f"{words}; but it fails a check{where}"
    except NotCallableError as error:
        return Adopted(name, None, str(error))
    return Adopted(name, None, failed or f"{search.failure()}{search.nearest_checked(load)}")


def _checked(kernel: Kernel, worker: Worker, told: Told) -> Iterator[Outcome]:
    """All checks at the awkward sizes that the kernel accepts, until one of them fails."""
    probed = [
        case
        for _, case in sweep.probed(kernel, {}, worker.device, None)
        if not case.skip and workloads.of(case.problem).operations(case.problem) <= _MOST_OPERATIONS
    ]
    for index, case in enumerate(probed):
        told(f"check {index + 1} of {len(probed)}: {case.label}, {case.problem.inputs}")
        outcome = worker.measure(case).outcome
        yield outcome
        if outcome.status != "measured":
            return


class _Search:
    """The trials of one kernel."""

    def __init__(self, subject: Subject, worker: Worker, told: Told) -> None:
        self.subject = subject
        self.function = subject.function
        self.worker = worker
        self.told = told
        self.hints = hints.of(subject.source, subject.function)
        self.included = includes.of(subject.source, subject.path)
        self.until = time.monotonic() + _SEARCH_S
        self.ran = self.failures = self.late = 0
        self.refused: dict[tuple[str, ...], str] = {}
        #: How near the nearest launch came, and what was wrong with it.
        self.nearest: tuple[float, str] = 0.0, ""
        #: The share of C that was right in the best of the others, and the way of it.
        self.partly: tuple[float, _Way | None] = _LEAST_SHARE, None

    # -- one trial -------------------------------------------------------------------------

    def table_of(self, way: _Way, **more: Any) -> dict[str, Any]:
        """What a table says of a way to call the kernel."""
        plain = {"layout": "row-major", "transpose": "NN", "padding": 0, "alpha": 1.0, "beta": 0.0}
        own = {key: getattr(way, key) for key in plain if getattr(way, key) != plain[key]}
        return geometries.table(
            self.function, way.geometry, way.call, swapped=way.is_swapped, **own, **more
        )

    def kernel(self, way: _Way) -> Kernel:
        """The kernel called that way, not checked as the table of a file is."""
        table = self.table_of(way)
        entry = entries.parsed(table["entry"])
        assert entry is not None
        aliases = signature.aliases(self.subject.source)
        parameters = tuple(entries.parameters(self.function, entry, aliases))
        signature.checked(parameters, self.function.line)
        identity = repr((self.subject.source, table["entry"])).encode()
        made = {
            **table,
            "name": "adopted",
            "source": self.subject.source,
            "path": str(self.subject.path),
            "file": str(self.subject.path.absolute()),
            "sha256": includes.identity(identity, self.included),
            "is_extern_c": self.function.is_extern_c,
        }
        kernel = msgspec.convert(made, Kernel)
        return msgspec.structs.replace(kernel, includes=self.included, parameters=parameters)

    def sight(self, way: _Way, problem: Problem, *, poisoned: bool = False) -> Sighting | None:
        """What one launch shows; None where it could not run, or where nothing more is tried."""
        build = (*way.geometry.template, *map(str, way.params.values()))
        exhausted = self.failures >= _MOST_FAILURES or self.late >= _MOST_LATE
        if exhausted or time.monotonic() > self.until or build in self.refused:
            return None
        try:
            case = sweep.case(self.kernel(way), problem, way.params, self.worker.device)
            if case.skip is not None:
                self.note(0.005, case.skip)
                return None
            found = self.worker.sight(case, _LAUNCH_S, poisoned=poisoned)
        except BuildError as error:
            self.refused[build] = error.reason
            return None
        except CaseError as error:
            if error.reason.startswith("opening the device") and not self.ran:
                raise MatbenchError(error.reason) from None  # no fault of the kernel's
            self.failures += 1
            self.late += "took longer" in error.reason
            self.note(0.01, error.reason.partition(" (see --")[0])
            return None
        except MatbenchError as error:
            raise NotCallableError(str(error)) from None
        self.ran += 1
        if found.product and found.spoiled:
            self.note(0.5, f"writes to {found.spoiled[0]}")
        elif not found.product and found.share > self.partly[0]:
            self.partly = found.share, way
        return found

    def is_right(self, way: _Way, problem: Problem) -> bool:
        """Whether a launch computes the problem, and spoils nothing."""
        found = self.sight(way, problem)
        return found is not None and found.share == 1 and not found.spoiled

    def note(self, nearness: float, words: str) -> None:
        """What a launch did that was not right; the nearest is told in the end."""
        if nearness > self.nearest[0]:
            self.nearest = nearness, words

    # -- the steps -------------------------------------------------------------------------

    def ways(self) -> Iterator[_Way]:
        """The ways that do right at whole tiles, likeliest first."""
        calls = guessing.calls(self.function, self.hints)
        launches = geometries.geometries(self.function, self.hints)
        pointers: dict[tuple[str, ...], list[Call]] = {}
        for call in calls:
            order = tuple(text for text in call.args if text in ("A", "B", "C"))
            pointers.setdefault(order, []).append(call)
        for alike in pointers.values():
            for index, geometry in enumerate(launches):
                self.told(f"launch {index + 1} of {len(launches)}")
                seen = self.square(_Way(geometry, alike[0]))
                found = self.sized(seen, alike) if seen is not None else None
                if found is not None:
                    yield found

    def square(self, way: _Way) -> _Way | None:
        """What it computes where all sizes are the same."""
        n = _whole(way.geometry, self.hints, least=64)
        takes_alpha, takes_beta = ("alpha" in way.call.args), ("beta" in way.call.args)
        alpha, beta = (_ALPHA if takes_alpha else 1.0), (_BETA if takes_beta else 0.0)
        found = self.sight(way, Problem(n, n, n, alpha=alpha, beta=beta))
        if found is None or found.product is None or found.spoiled:
            return None
        product = found.product
        if (product.alpha, product.beta) == (_BETA, _ALPHA) and takes_alpha and takes_beta:
            way = way._replace(call=way.call.renamed({"alpha": "beta", "beta": "alpha"}))
            product = msgspec.structs.replace(product, alpha=_ALPHA, beta=_BETA)
        if not takes_alpha and abs(product.alpha) == 1:
            alpha = product.alpha
            way = way._replace(alpha=alpha)
        if not takes_beta and product.beta == 1:
            beta = product.beta
            way = way._replace(beta=beta)
        if (product.alpha, product.beta) != (alpha, beta):
            self.note(0.9, f"computes {_scaled('A·B', product.alpha, product.beta)}")
            return None
        way = self.read(way, product)
        along = self.hints.rows_along
        is_swapped = along == "x" if along is not None else way.layout == "column-major"
        return way._replace(is_swapped=is_swapped, problem=Problem(n, n, n, alpha=alpha, beta=beta))

    def read(self, way: _Way, product: Product) -> _Way:
        """Which letters, transposes and layout describe a product of matrices as they lie.

        Names decide where both would do: where they do not say which input is which, the one on
        the left is A.
        """
        left, right = (side.endswith("'") for side in (product.left, product.right))
        letters: tuple[Transpose, ...] = ("NN", "NT", "TN", "TT")
        if product.left[0] == "A":
            return way._replace(transpose=letters[2 * left + right])
        if not guessing.names_inputs(self.function):
            names = {"A": "B", "lda": "ldb", "stride_a": "stride_b"}
            names |= {b: a for a, b in names.items()}
            return way._replace(call=way.call.renamed(names), transpose=letters[2 * left + right])
        return way._replace(layout="column-major", transpose=letters[2 * right + left])

    def sized(self, seen: _Way, calls: list[Call]) -> _Way | None:
        """The way at sizes that differ, or at squares alone."""
        unit = _whole(seen.geometry, self.hints)
        batch = _BATCH if seen.geometry.batched else 1
        seen = seen._replace(problem=msgspec.structs.replace(seen.problem, batch=batch))
        if not seen.call.is_square:
            problem = seen.sized(3 * unit, 2 * unit, 5 * min(unit, 64))
            paddings = (_PADDING, 0) if any("ld" in text for text in seen.call.args) else (0,)
            alike = dict.fromkeys([seen.call, *(seen.call.sized_as(call) for call in calls)])
            for padding in paddings:
                for call in alike:
                    for is_swapped in (seen.is_swapped, not seen.is_swapped):
                        self.told("which size is which")
                        way = seen._replace(call=call, is_swapped=is_swapped, padding=padding)
                        if self.is_right(way, problem):
                            return way._replace(problem=problem)
        problem = seen.sized(3 * unit, 3 * unit, 3 * unit)
        if self.is_right(seen, problem):
            return seen._replace(problem=problem, is_square=True)
        return None

    def table(self, way: _Way) -> dict[str, Any]:
        """The table of a way, with the conditions that trials show it to need."""
        more: dict[str, Any] = {"where": self.conditions(way)}
        if way.geometry.batched:
            more["batch"] = [4]
        if "beta" in way.call.args:
            unread = msgspec.structs.replace(way.problem, beta=0.0)
            found = self.sight(way, unread, poisoned=True)
            if found is None or found.share < 1:
                more["reads"] = ["C"]
        return self.table_of(way._replace(padding=0), **more)

    def claims(self, way: _Way) -> Iterator[dict[str, Any]]:
        """What a kernel may need to claim of itself to pass: only tried where it fails without."""
        kinds = {STORAGE.get(p.type) for p in self.kernel(way).parameters if p.pointer}
        if narrow := kinds & {"float16", "bfloat16"}:
            yield {"accumulator": narrow.pop()}
        if kinds == {"float32"} and self.hints.mentions("(?i)tf32|wmma|mma_sync"):
            yield {"precision": "tf32"}
        if self.hints.mentions("atomicAdd"):
            yield {"deterministic": False}

    def conditions(self, way: _Way) -> list[str]:
        """Which sizes must be multiples of what, and whether all must be the same."""
        found = ["M == N", "N == K"] if way.is_square else []
        for axes in (("M", "N", "K"),) if way.is_square else (("M",), ("N",), ("K",)):
            base = getattr(way.problem, axes[0])
            for step in _steps(base):
                self.told(f"{axes[0]} at multiples of {step}")
                sides = dict.fromkeys(axes, base + step)
                if self.is_right(way, msgspec.structs.replace(way.problem, **sides)):
                    found += [f"{axes[0]} % {step} == 0"] if step > 1 else []
                    break
            else:
                found.append(f"{axes[0]} % {base} == 0")
        return found

    # -- if nothing is right ---------------------------------------------------------------

    def failure(self) -> str:
        """Why no call is right, as far as trials tell."""
        nearness, words = self.nearest
        if not self.ran and "CUDA" in words:
            return f"cannot be built here: {words}"
        if self.refused and not self.ran:
            return f"cannot be built here: {next(iter(self.refused.values())).splitlines()[0]}"
        if words and (nearness > 0.1 or not self.ran):
            return f"is not right however it is called; nearest: {words}"
        if self.partly[1] is not None:
            return "is not right however it is called"
        return "computes no product of A and B, however it is called"

    def nearest_checked(self, load: Load) -> str:
        """What the checks say of the call that came nearest."""
        way = self.partly[1]
        if way is None or self.nearest[0] > 0.1:
            return ""
        try:
            kernel = load(self.table_of(way))
        except UsageError:
            return ""
        for M, N, K in ((61, 61, 61),) if way.call.is_square else ((67, 43, 59),):
            case = sweep.case(kernel, Problem(M, N, K), way.params, self.worker.device)
            outcome = self.worker.measure(case).outcome
            if outcome.status == "wrong":
                return f"; nearest, at {case.problem.size}: {outcome.reason}"
        return ""


def _whole(geometry: Geometry, known: hints.Hints, *, least: int = 1) -> int:
    """A size that is a multiple of every tile that a kernel may have; with `least`, at least that,
    and so large that it spans two of them."""
    params = {name: values[0] for name, values in geometry.sweep.items()}
    covered: list[int] = []
    for side in geometry.covered if geometry.line is None else ():
        with contextlib.suppress(expressions.ExpressionError):
            covered.append(expressions.whole(side, params))
    named = [n for name, n in known.constants.items() if known.mentions(rf"\b{name}\b")]
    unit = 32
    for sides, most in ((covered, 256), ([*params.values(), *named], 128)):
        for side in sides:
            together = math.lcm(unit, side)
            unit = together if together <= most else unit
    least = max(least, 2 * max(covered, default=1)) if least > 1 else 1
    return unit * max(1, -(-least // unit))


def _steps(base: int) -> list[int]:
    """Powers of two that divide a size, and what its small odd factors leave of it."""
    powers = [1 << bits for bits in range(base.bit_length()) if base % (1 << bits) == 0]
    return sorted({*powers, *(base // odd for odd in (3, 5) if base % odd == 0)})


# -- in words --------------------------------------------------------------------------------------


def _words(way: _Way, table: dict[str, Any]) -> str:
    """What a call computes, at which sizes, in which blocks."""
    left, right = ("ᵀ" if letter == "T" else "" for letter in way.transpose)
    product = f"A{left}·B{right}"
    if "alpha" in way.call.args:
        product = f"alpha·{product}"
    if "beta" in way.call.args:
        product = f"{product} + beta·C"
    parts = [f"computes {_scaled(product, way.alpha, way.beta)}"]
    if way.layout == "column-major":
        parts.append("column-major")
    if way.geometry.batched:
        parts.append("in batches")
    if way.is_square:
        parts.append("square sizes only")
    steps = [c.removesuffix(" == 0") for c in table["launch"].get("where", []) if "%" in c]
    if steps:
        parts.append(f"whole tiles only ({', '.join(steps)} = 0)")
    sides = [str(expressions.whole(side, way.params)) for side in way.geometry.block]
    parts.append(f"{'×'.join(sides)} blocks" if len(sides) > 1 else f"blocks of {sides[0]}")
    return ", ".join(parts)


def _scaled(product: str, alpha: float, beta: float) -> str:
    """`2·A·B + C`."""
    sign = {1.0: "", -1.0: "-"}
    first = f"{sign.get(alpha, f'{alpha:g}·')}{product}"
    return first if beta == 0 else f"{first} + {sign.get(beta, f'{beta:g}·')}C"
