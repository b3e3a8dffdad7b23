"""Finds out how to call a foreign kernel: tries guesses with one launch each, then all checks.

Equal sizes, where only the launch matters, show what the kernel computes. Different sizes then show
which size is which, and others which sizes must be multiples of a tile. The resulting table is
accepted only if the kernel passes every check with it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from matbench import workloads
from matbench.errors import BuildError, CaseError, MatbenchError, OutOfMemoryError, UsageError
from matbench.features.adopt import argument_guesses, calling, hints, launch_guesses, probing
from matbench.features.adopt.argument_guesses import Call, NotCallableError
from matbench.features.adopt.calling import CallGuess
from matbench.features.adopt.probing import ProbeResult, Product
from matbench.kernelfile import includes, sweep
from matbench.kernelfile.signature import Function
from matbench.measure.options import Deadlines, Options
from matbench.measure.worker import LateError, Worker
from matbench.model import STORAGE, Case, Kernel, Problem, Transpose
from matbench.records.outcome import Outcome

#: Trials are not timed and have short deadlines.
OPTIONS = Options(timed=False, blocks=False)
DEADLINES = Deadlines(build_s=60.0, run_s=30.0)
#: Limits: the time of one launch, the time for trying guesses, how many of these may fail or hang,
#: and the pause before one is repeated.
_LAUNCH_S = 3.0
_SEARCH_S = 40.0
_MOST_FAILURES = 8
_MOST_LATE = 3
_PAUSE_S = 1.0
#: The most ways that are checked after they passed the trials.
_MOST_WAYS = 3
#: Values of alpha and beta, for kernels that take them, that no kernel has built in.
_ALPHA, _BETA = 1.5, 0.25
#: The share of C that must be right for a call to count as close.
_LEAST_SHARE = 0.05
#: Padding of rows, for kernels that take leading dimensions; vector loads stay aligned.
_PADDING = 8
_BATCH = 3
#: Larger problems are left to `matbench check`, because they take long on a CPU.
_MOST_OPERATIONS = 2 * 400**3

Told = Callable[[str], None]
Load = Callable[[dict[str, Any]], Kernel]


class ForeignKernel(NamedTuple):
    """A kernel to adopt: one `__global__` function of a file; `build` are the keys of its table for
    building it. `text` is the source, after the headers if these define the function."""

    text: str
    function: Function
    build: Mapping[str, Any] = {}


class Adopted(NamedTuple):
    """The result: a table and a description in words, or without a table, the closest call.
    `warnings` are possible mistakes in an adopted kernel."""

    name: str
    table: dict[str, Any] | None
    words: str
    warnings: tuple[str, ...] = ()


def adopt(subject: ForeignKernel, worker: Worker, load: Load, told: Told) -> Adopted:
    """Find out how to call a kernel. `load` makes a kernel from the file with a table.

    `told` is called with a description of each step.
    """
    name = subject.function.name
    titled = f"`{name}`"
    try:
        worker.open()
    except CaseError as error:
        raise MatbenchError(error.reason) from None  # not the kernel's fault
    try:
        search = _Search(subject, worker, load, told)
    except MatbenchError as error:
        return Adopted(name, None, f"{titled} cannot be read: {error}")
    first = None
    try:
        for way in itertools.islice(search.ways(), _MOST_WAYS):
            adopted = search.judged(search.generalized(way))
            if adopted.table is not None:
                return adopted
            first = first or adopted
    except NotCallableError as error:
        return Adopted(name, None, f"{titled} {error}")
    return first or Adopted(name, None, search.failure())


def _checked(kernel: Kernel, worker: Worker, told: Told) -> Iterator[Outcome]:
    """Run all checks at the awkward sizes that the kernel accepts, until one fails."""
    probed = [
        case
        for _, case in sweep.probed(kernel, {}, worker.device, None)
        if not case.skip
        and workloads.workload_of(case.problem).operations(case.problem) <= _MOST_OPERATIONS
    ]
    for index, case in enumerate(probed):
        told(f"check {index + 1} of {len(probed)}: {case.label}, {case.problem.inputs}")
        outcome = worker.measure(case)
        yield outcome
        if outcome.status != "measured":
            return


class _Search:
    """The trials of one kernel."""

    def __init__(self, subject: ForeignKernel, worker: Worker, load: Load, told: Told) -> None:
        self.subject = subject
        self.load = load
        self.function = subject.function
        self.worker = worker
        self.told = told
        self.hints = hints.find_hints(subject.text, subject.function)
        self.until = time.monotonic() + _SEARCH_S
        self.ran = self.failures = self.late = 0
        self.refused: dict[tuple[str, ...], str] = {}
        #: The closest launch so far: how close, what was wrong with it if that is known, its way.
        self.nearest: tuple[float, str, CallGuess | None] = 0.0, "", None

    # -- one trial -------------------------------------------------------------------------

    def table_of(self, way: CallGuess, **more: Any) -> dict[str, Any]:
        """The table for a way to call the kernel."""
        plain = {"layout": "row-major", "transpose": "NN", "padding": 0, "alpha": 1.0, "beta": 0.0}
        own = {key: getattr(way, key) for key in plain if getattr(way, key) != plain[key]}
        return launch_guesses.table(
            self.function,
            way.geometry,
            way.call,
            swapped=way.is_swapped,
            **own,
            **self.subject.build,
            **more,
        )

    def kernel(self, way: CallGuess) -> Kernel:
        """The kernel called that way; whatever the call, the same entry is built only once."""
        kernel = self.load(self.table_of(way))
        identity = repr((kernel.source, kernel.entry)).encode()
        return msgspec.structs.replace(kernel, sha256=includes.identity(identity, kernel.includes))

    def probe(
        self, way: CallGuess, problem: Problem, *, poisoned: bool = False
    ) -> ProbeResult | None:
        """The result of one launch; None if it failed, or if the search is at its limits."""
        build = (*way.geometry.template, *map(str, way.geometry.params.values()))
        exhausted = self.failures >= _MOST_FAILURES or self.late >= _MOST_LATE
        if exhausted or time.monotonic() > self.until or build in self.refused:
            return None
        try:
            case = sweep.case(self.kernel(way), problem, way.geometry.params, self.worker.device)
            if case.unmet == "requires":
                self.refused[build] = case.skip or ""
                return None
            if case.skip is not None:
                self.note(way, 0.005, case.skip)
                return None
            found = self.launched(case, poisoned=poisoned)
        except UsageError as error:
            self.note(way, 0.005, str(error))
            return None
        except BuildError as error:
            self.refused[build] = error.reason
            return None
        except CaseError as error:
            self.failures += 1
            self.late += isinstance(error, LateError)
            self.note(way, 0.01, error.reason.partition(" (see --")[0])
            return None
        except MatbenchError as error:
            raise NotCallableError(str(error)) from None
        self.ran += 1
        if found.product and found.spoiled:
            self.note(way, 0.5, f"writes to {found.spoiled[0]}")
        elif not found.product and found.share > _LEAST_SHARE:
            self.note(way, 0.1 + found.share / 10, "")
        return found

    def launched(self, case: Case, *, poisoned: bool) -> ProbeResult:
        """One launch; if it fails as no other did, and other programs may be the cause, one more
        after a pause."""
        try:
            return self.worker.ask(case, _LAUNCH_S, probing.probed, case, poisoned=poisoned)
        except (LateError, OutOfMemoryError):
            if not self.ran:
                raise
        time.sleep(_PAUSE_S)
        return self.worker.ask(case, _LAUNCH_S, probing.probed, case, poisoned=poisoned)

    def is_right(self, way: CallGuess, problem: Problem) -> bool:
        """Whether a launch computes the problem, and writes only to C."""
        found = self.probe(way, problem)
        return found is not None and found.share == 1 and not found.spoiled

    def note(self, way: CallGuess, nearness: float, words: str) -> None:
        """Keep the description of a wrong launch if it is the closest so far."""
        if nearness > self.nearest[0]:
            self.nearest = nearness, words, way

    # -- the steps -------------------------------------------------------------------------

    def ways(self) -> Iterator[CallGuess]:
        """The ways that are right at whole tiles, the likeliest first."""
        calls = argument_guesses.calls(self.function, self.hints)
        launches = launch_guesses.geometries(self.function, self.hints)
        pointers: dict[tuple[str, ...], list[Call]] = {}
        for call in calls:
            order = tuple(text for text in call.args if text in ("A", "B", "C"))
            pointers.setdefault(order, []).append(call)
        for alike in pointers.values():
            for index, geometry in enumerate(launches):
                self.told(f"launch {index + 1} of {len(launches)}")
                seen = self.square(CallGuess(geometry, alike[0]))
                found = self.sized(seen, alike) if seen is not None else None
                if found is not None:
                    yield found

    def square(self, way: CallGuess) -> CallGuess | None:
        """Find out what it computes if all sizes are equal."""
        n = calling.whole(way.geometry, self.hints, least=64)
        takes_alpha, takes_beta = ("alpha" in way.call.args), ("beta" in way.call.args)
        alpha, beta = (_ALPHA if takes_alpha else 1.0), (_BETA if takes_beta else 0.0)
        found = self.probe(way, Problem(n, n, n, alpha=alpha, beta=beta))
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
            self.note(way, 0.9, f"computes {calling.scaled('A·B', product.alpha, product.beta)}")
            return None
        way = self.read(way, product)
        along = self.hints.rows_along
        is_swapped = along == "x" if along is not None else way.layout == "column-major"
        return way._replace(is_swapped=is_swapped, problem=Problem(n, n, n, alpha=alpha, beta=beta))

    def read(self, way: CallGuess, product: Product) -> CallGuess:
        """Describe a product of matrices as stored by names, transposes and layout.

        If several descriptions fit, the parameters' names decide; if they do not say which input is
        which, the left one is A.
        """
        left, right = (side.endswith("'") for side in (product.left, product.right))
        letters: tuple[Transpose, ...] = ("NN", "NT", "TN", "TT")
        if product.left[0] == "A":
            return way._replace(transpose=letters[2 * left + right])
        if not argument_guesses.names_inputs(self.function):
            names = {"A": "B", "lda": "ldb", "stride_a": "stride_b"}
            names |= {b: a for a, b in names.items()}
            return way._replace(call=way.call.renamed(names), transpose=letters[2 * left + right])
        return way._replace(layout="column-major", transpose=letters[2 * right + left])

    def sized(self, seen: CallGuess, calls: list[Call]) -> CallGuess | None:
        """The way at different sizes, or only at square ones."""
        unit = calling.whole(seen.geometry, self.hints)
        batch = _BATCH if seen.geometry.batched else 1
        seen = seen._replace(problem=msgspec.structs.replace(seen.problem, batch=batch))
        if not seen.call.is_square:
            problem = seen.sized(3 * unit, 2 * unit, 5 * min(unit, 64))
            paddings = (_PADDING, 0) if any("ld" in text for text in seen.call.args) else (0,)
            alike = dict.fromkeys([seen.call, *(seen.call.sized_as(call) for call in calls)])
            for padding in paddings:
                for call in alike:
                    for is_swapped in (seen.is_swapped, not seen.is_swapped):
                        self.told("finding out which size is which")
                        way = seen._replace(call=call, is_swapped=is_swapped, padding=padding)
                        if self.is_right(way, problem):
                            return way._replace(problem=problem)
        problem = seen.sized(3 * unit, 3 * unit, 3 * unit)
        if self.is_right(seen, problem):
            return seen._replace(problem=problem, is_square=True)
        return None

    def judged(self, way: CallGuess) -> Adopted:
        """The kernel called that way, with a claim if it needs one; or the first check it fails."""
        name, failed, plain = self.function.name, "", self.table(way)
        for claim in ({}, *self.claims(way)):
            table = {**claim, **plain}
            words = ", ".join((calling.words(way), *(f"{k} = {v}" for k, v in claim.items())))
            words = f"`{name}` {words}"
            try:
                kernel = self.load(table)
            except UsageError as error:
                return Adopted(name, None, f"{words}; but its table is not valid: {error}")
            outcomes = list(_checked(kernel, self.worker, self.told))
            wrong = next((outcome for outcome in outcomes if outcome.status != "measured"), None)
            if wrong is None and outcomes:
                many = len({outcome.case.problem.size for outcome in outcomes})
                warnings = tuple(calling.warnings(way, self.hints))
                return Adopted(name, table, f"{words}, correct at all {many} sizes tried", warnings)
            where = "" if wrong is None else f" at {wrong.case.problem.size}: {wrong.reason}"
            failed = failed or f"{words}; but it fails a check{where}"
        return Adopted(name, None, failed)

    def table(self, way: CallGuess) -> dict[str, Any]:
        """The table of a way, which may read C."""
        more: dict[str, Any] = {"where": way.where}
        if way.geometry.batched:
            more["batch"] = [4]
        if "beta" in way.call.args:
            unread = msgspec.structs.replace(way.problem, beta=0.0)
            found = self.probe(way, unread, poisoned=True)
            if found is None or found.share < 1:
                more["reads"] = ["C"]
        return self.table_of(way._replace(padding=0), **more)

    def claims(self, way: CallGuess) -> Iterator[dict[str, Any]]:
        """Claims that a kernel may need in order to pass; only tried if it fails without."""
        kinds = {STORAGE.get(p.type) for p in self.kernel(way).parameters if p.pointer}
        if narrow := kinds & {"float16", "bfloat16"}:
            yield {"accumulator": narrow.pop()}
        if kinds == {"float32"} and self.hints.mentions("(?i)tf32|wmma|mma_sync"):
            yield {"precision": "tf32"}
        if self.hints.mentions("atomicAdd"):
            yield {"deterministic": False}

    def steps(self, way: CallGuess) -> dict[str, int]:
        """The number that each size must be a multiple of; M stands for all in square products."""
        found = {}
        for axes in (("M", "N", "K"),) if way.is_square else (("M",), ("N",), ("K",)):
            base = getattr(way.problem, axes[0])
            for step in calling.steps(base):
                self.told(f"{axes[0]} at multiples of {step}")
                sides = dict.fromkeys(axes, base + step)
                if self.is_right(way, msgspec.structs.replace(way.problem, **sides)):
                    found[axes[0]] = step
                    break
            else:
                found[axes[0]] = base
        return found

    def generalized(self, way: CallGuess) -> CallGuess:
        """The way with the multiples that trials show to be needed, in terms of the swept constants
        for which a second value was right; the others are fixed."""
        steps = self.steps(way)
        self.until = max(self.until, time.monotonic() + _SEARCH_S / 2)  # builds take long on CUDA
        names: dict[str, str] = {}  # of axes: the constant that their sizes must be multiples of
        for name, value in way.geometry.params.items():
            free = [axis for axis in steps if steps[axis] == value > 1 and axis not in names]
            tied = list(dict.fromkeys([(), *((axis,) for axis in free), tuple(free)]))
            tries = [(2 * value, axes) for axes in tied]
            tries += [(value // 2, axes) for axes in reversed(tied)] if value % 2 == 0 else []
            for other, axes in tries:
                self.told(f"{name} = {other}")
                varied = way._replace(geometry=way.geometry.with_value(name, other))
                if self.is_right(varied, calling.odd(way, steps | dict.fromkeys(axes, other))):
                    names |= dict.fromkeys(axes, name)
                    break
            else:
                way = way._replace(geometry=way.geometry.fixed(name))
        multiples = {axis: names.get(axis, step) for axis, step in steps.items() if step > 1}
        return way._replace(multiples=multiples)

    # -- if nothing is right ---------------------------------------------------------------

    def failure(self) -> str:
        """Why no call is right, as far as trials show."""
        nearness, words, way = self.nearest
        name = f"`{self.function.name}`"
        refused = next(iter(self.refused.values()), "")
        if refused and not self.ran:
            return f"{name} cannot be built here: {refused.splitlines()[0]}"
        if way is None or (self.ran and nearness < 0.1):
            return (
                f"none of the calls of {name} that were tried computes a product of A and B; "
                "write a table with its args, block and grid"
            )
        called = f"; closest, with {calling.described(self.table_of(way))}"
        closest = f"{called}: {words}" if words else self.checked(way, called)
        return f"none of the calls of {name} that were tried is right{closest}"

    def checked(self, way: CallGuess, called: str) -> str:
        """The result of checking a call that is right in a part of C."""
        M, N, K = (61, 61, 61) if way.call.is_square else (67, 43, 59)
        problem, params = Problem(M, N, K), way.geometry.params
        case = sweep.case(self.kernel(way), problem, params, self.worker.device)
        outcome = self.worker.measure(case)
        return f"{called}, at {problem.size}: {outcome.reason}" if outcome.status == "wrong" else ""
