"""Finds out how to call a foreign kernel: tries guesses with one launch each, then all checks.

Equal sizes, where only the launch matters, show what the kernel computes. Different sizes then show
which size is which, and others which sizes must be multiples of a tile. The resulting table is
accepted only if the kernel passes every check with it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from matbench import workloads
from matbench.bench.options import Deadlines, Options
from matbench.errors import CaseError, MatbenchError, UsageError
from matbench.features.adopt import argument_guesses, calling, hints, launch_guesses, remarks
from matbench.features.adopt.argument_guesses import ArgumentGuess, NotCallableError
from matbench.features.adopt.arithmetic import Text, replaced
from matbench.features.adopt.calling import CallGuess
from matbench.features.adopt.launch_guesses import Geometry
from matbench.features.adopt.probing import ProductForm
from matbench.features.adopt.remarks import LaunchMistake, Setting
from matbench.features.adopt.subjects import MACRO, ForeignKernel, subjects
from matbench.features.adopt.trials import BUSY, AdoptTrials
from matbench.kernelfile import sweep
from matbench.model import STORAGE, WORD_BYTES, Adoption, Kernel, Problem, Transpose
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker, WorkerPool

#: Trials are not timed and have short deadlines.
_OPTIONS = Options(timed=False, blocks=False)
_DEADLINES = Deadlines(build_s=60.0, run_s=30.0)
#: The most guesses that are checked after they passed the trials.
_MOST_GUESSES = 3
#: Values of alpha and beta, for kernels that take them, that none has built in. They are whole,
#: because those of int8 products are.
_ALPHA, _BETA = 3.0, 5.0
#: Padding of rows, for kernels that take leading dimensions; vector loads stay aligned.
_PADDING = 8
_BATCH = 3
#: A multiple of usual tiles along K, which keeps products small.
_DEEPEST = 96
#: Larger problems are left to `matbench check`, because they take long on a CPU.
_MOST_OPERATIONS = 2 * 400**3
#: How many launches are tried with a size of 1.
_MOST_OF_VECTORS = 8
#: How long a right call is looked for.
_SEARCH_S = 15.0
#: Builds take most of the time.
_MOST_BUILDS = 8
_MOST_AHEAD = 5
#: No usual tiles are larger than half of this.
_MOST_WHOLE = 1024
#: Wrong sizes are looked for among so many in a row.
_LONGEST_PERIOD = 64
#: What rounds inputs.
_ROUNDED = {
    "tf32": "(?i)tf32|wmma|mma_sync",
    "bfloat16": "(?i)bf16|bfloat16",
    "float16": "half|fp16",
}
#: Keys of a table that trials show, whatever is given.
_OBSERVED = ("layout", "transpose", "beta")
#: Keys of a table without which its kernel may not be right.
_ASSUMED = ("precision", "accumulator", "deterministic", "reads", "batch")
#: A condition that may hold for one index too many.
_LOOSE = r"\bif\s*\([^;{}]*(?:<=|[^->]>[^>=])"
#: What waits for all threads of a block.
_BARRIER = r"__sync|barrier|\bsync\("


class Adopted(NamedTuple):
    """The result: a table and a description in words, or without a table, the closest call.
    `warnings` are possible mistakes in an adopted kernel, `mistakes` those of the file's launches,
    and `settings` what its result does not depend on."""

    name: str
    table: dict[str, Any] | None
    words: str
    warnings: tuple[str, ...] = ()
    mistakes: tuple[LaunchMistake, ...] = ()
    settings: tuple[Setting, ...] = ()


def adopt(subject: ForeignKernel, worker: Worker) -> Adopted:
    """Find out how to call a kernel."""
    name = subject.function.name
    titled = f"`{name}`"
    worker.start()
    try:
        search = _Search(AdoptTrials(subject, worker))
    except MatbenchError as error:
        return Adopted(name, None, f"{titled} cannot be read: {error}")
    try:
        worker.open()
    except CaseError as error:
        raise MatbenchError(error.reason) from None  # not the kernel's fault
    try:
        adopted = search.adopted()
    except NotCallableError as error:
        return Adopted(name, None, f"{titled} {error}")
    doubts = [f"a launch did not complete, at {where}" for where in search.trials.unfinished[:1]]
    return adopted._replace(warnings=(*adopted.warnings, *doubts))


def pool() -> WorkerPool:
    """Workers for trials, which are not timed."""
    # Its products are small: BLAS's threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return WorkerPool(_OPTIONS, _DEADLINES, builders=3)


def adoption(text: str, path: Path, given: Mapping[str, Any], worker: Worker) -> Adoption:
    """How the first kernel in a text that can be called is called, or the `entry` of the `given`
    keys of front matter, the rest of which its table has, too.

    The path resolves its `#include` lines. `UsageError` if no call of any of them is right.
    """
    said = []
    pins = {key: value for key, value in given.items() if key not in ("entry", *_OBSERVED)}
    pins["launch"] = {key: text for key, text in given.get("launch", {}).items() if key != "where"}
    for subject in subjects(text, path, given.get("entry"), pins):
        adopted = adopt(subject, worker)
        if (table := adopted.table) is not None:
            own = [key for key in _ASSUMED if key in table and key not in given]
            assumed = tuple(f"{key} = {json.dumps(table[key])}" for key in own)
            where = tuple(table["launch"].get("where", ()))
            told = map(str, (*adopted.warnings, *adopted.mistakes, *adopted.settings))
            return Adoption(table, assumed, where, tuple(told))
        said.append(adopted.words)
    raise UsageError("; ".join(said))


def _checked(kernel: Kernel, worker: Worker, most: float) -> Iterator[Outcome]:
    """Run all checks at the awkward sizes that the kernel accepts, of at most so many operations if
    there are such, until one fails. What could not be measured is tried once more."""
    able = [case for _, case in sweep.probed(kernel, {}, worker.device, None) if not case.skip]
    works = [workloads.workload_of(case.problem).operations(case.problem) for case in able]
    most = max(most, min(works, default=0))
    probed = [case for case, work in zip(able, works, strict=True) if work <= most]
    for variant in worker.options.builds:  # at the same time
        worker.builders.start(worker.device, probed[:1], (variant,))
    for case in probed:
        outcome = worker.measure(case)
        if outcome.status == "failed":
            outcome = worker.measure(case)
        yield outcome
        if outcome.status != "measured":
            return


def _factors(call: ArgumentGuess) -> tuple[float, float]:
    """Values of alpha and beta for a trial."""
    return _ALPHA if "alpha" in call.args else 1.0, _BETA if "beta" in call.args else 0.0


class _Search:
    """The steps for one kernel."""

    def __init__(self, trials: AdoptTrials) -> None:
        self.trials = trials
        self.function = trials.subject.function
        subject = trials.subject
        self.given = subject.given
        self.hints = hints.find_hints(
            subject.source, subject.function, subject.headers, subject.beside
        )
        self.end_s = math.inf

    def adopted(self) -> Adopted:
        """The first guess that passes all checks; otherwise what is wrong with the likeliest."""
        first = None
        self.end_s = time.monotonic() + _SEARCH_S
        for guess in itertools.islice(self.guesses(), _MOST_GUESSES):
            self.build_ahead(guess)
            guess = self.generalized(guess)
            if self.trials.overran and self.hints.mentions(_LOOSE):
                words = "writes one row or column past C; is `<=` meant to be `<`?"
                return Adopted(self.function.name, None, f"`{self.function.name}` {words}")
            adopted = self.judged(guess)
            if adopted.table is not None:
                return adopted
            first = first or adopted
        return first or Adopted(self.function.name, None, self.failure())

    def guesses(self) -> Iterator[CallGuess]:
        """The guesses that are right at whole tiles, the likeliest first."""
        calls = self.calls()
        block = self.given.get("launch", {}).get("block")
        launches = launch_guesses.geometries(self.function, self.hints, block)
        pointers: dict[tuple[str, ...], list[ArgumentGuess]] = {}
        later: list[CallGuess] = []  # the author's launch may be one of square products only
        is_found = False
        for call in calls:
            order = tuple("" if text in ("M", "N", "K") else text for text in call.args)
            pointers.setdefault(order, []).append(call)
        for alike in pointers.values():
            for geometry in launches:
                if time.monotonic() > self.end_s:
                    break
                guess = self.found(CallGuess(geometry, alike[0]), alike)
                is_found = is_found or guess is not None
                is_narrow = guess is not None and guess.is_square and not guess.call.is_square
                if guess is not None and is_narrow and geometry.given is not None:
                    later.append(guess)
                elif guess is not None:
                    yield guess
        yield from later
        if not is_found:
            self.trials.renew()
            for alike in pointers.values():
                yield from self.of_vectors(alike, launches[:_MOST_OF_VECTORS])

    def calls(self) -> list[ArgumentGuess]:
        """The call that is given, or all that may be right."""
        args, many = self.given.get("args"), len(self.function.parameters)
        if args is None:
            return argument_guesses.calls(self.function, self.hints)
        if len(args) != many:
            raise UsageError(f"args: {len(args)} given; `{self.function.name}` takes {many}")
        return [ArgumentGuess(tuple(args))]

    def of_vectors(
        self, calls: list[ArgumentGuess], launches: list[Geometry]
    ) -> Iterator[CallGuess]:
        """The guesses that are right where one size is 1, untransposed ones first, for a kernel
        that takes at most two sizes."""
        if len([text for text in calls[0].args if text in ("M", "N", "K")]) > 2:
            return
        exchanged = {"A": "B", "B": "A", "lda": "ldb", "ldb": "lda"}
        found: list[CallGuess] = []
        for geometry, one, names in itertools.product(launches, "NMK", ({}, exchanged)):
            if time.monotonic() > self.end_s:
                break
            sized = [call.renamed({one: "KM"[one == "K"], **names}) for call in calls]
            guess = CallGuess(geometry, sized[0], one=one)
            n = calling.whole(geometry, self.hints, least=64)
            seen = self.square(guess, guess.sized(n, n, n))
            right = seen and self.sized(seen, [call.renamed(names) for call in calls])
            found += [right] if right else []
        yield from sorted(found, key=lambda guess: guess.transpose != "NN")

    def found(self, guess: CallGuess, calls: list[ArgumentGuess]) -> CallGuess | None:
        """The guess with what it computes, at different sizes if it can."""
        n = calling.whole(guess.geometry, self.hints, least=64)
        if guess.call.is_sized and n <= _MOST_WHOLE and not self.hints.extents:
            contract = self.trials.kernel(guess).contract
            item, of_c = WORD_BYTES[contract.storage], WORD_BYTES[contract.result]
            for call in guess.call.in_bytes(self.function, self.hints, item, of_c):
                seen = self.square(guess._replace(call=call), Problem(n, n, n))
                if seen is not None and (sized := self.sized(seen, calls)) is not None:
                    return sized
        for size in self.fixed_sizes(guess):
            # Only equal sizes show which operand is transposed.
            letters = get_args(Transpose) if len({*size}) > 1 else ("NN",)
            for is_swapped, transpose in itertools.product((False, True), letters):
                tried = guess._replace(is_swapped=is_swapped, transpose=transpose)
                seen = self.square(tried, Problem(*size))
                if seen is not None:
                    return self.freed(seen._replace(fixed="MNK"), calls)
        return None

    def fixed_sizes(self, guess: CallGuess) -> list[tuple[int, int, int]]:
        """The sizes that the kernel may have in its text, or in its template's arguments."""
        pairs = zip(self.function.template, guess.geometry.template, strict=False)
        built = {p.name: int(text) for p, text in pairs if text.isdigit()}
        constants = {**self.hints.constants, **guess.geometry.params, **built}
        known = self.hints._replace(constants=constants)
        return argument_guesses.fixed_sizes(self.function, known, guess.call)

    def freed(self, guess: CallGuess, calls: list[ArgumentGuess]) -> CallGuess:
        """The guess of a fixed size with any M, if arrays fix only the lengths of their rows."""
        taller = guess.sized(3 * guess.problem.M, guess.problem.N, guess.problem.K)
        for call in (guess.call.sized_as(other) for other in calls if self.hints.extents):
            free = guess._replace(call=call, fixed="NK", problem=taller)
            if "M" in call.args and self.trials.is_right(free, taller):
                return free
        return guess

    def square(self, guess: CallGuess, problem: Problem) -> CallGuess | None:
        """Find out what it computes, mostly if all sizes are equal."""
        alpha, beta = _factors(guess.call)
        problem = msgspec.structs.replace(problem, alpha=alpha, beta=beta)
        result = self.trials.probe(guess, problem)
        if result is None or result.product is None or result.spoiled:
            return None
        product = result.product
        if (product.alpha, product.beta) == (_BETA, _ALPHA) == (beta, alpha):
            guess = guess._replace(call=guess.call.renamed({"alpha": "beta", "beta": "alpha"}))
            product = msgspec.structs.replace(product, alpha=_ALPHA, beta=_BETA)
        if beta == 0 and product.beta == 1:
            beta = product.beta
            guess = guess._replace(beta=beta)
        if (product.alpha, product.beta) != (alpha, beta):
            words = f"computes {calling.scaled('A·B', product.alpha, product.beta)}"
            is_negative = product.alpha == -alpha
            self.trials.note(guess, 0.9, f"{words}{'; is a sign wrong?' if is_negative else ''}")
            return None
        guess = self.read(guess, product)
        return guess._replace(problem=msgspec.structs.replace(problem, beta=beta))

    def read(self, guess: CallGuess, product: ProductForm) -> CallGuess:
        """Describe a product of matrices as stored by names, transposes and layout.

        If several descriptions fit, the parameters' names decide; if they do not say which input is
        which, the left one is A.
        """
        left, right = (side.endswith("'") for side in (product.left, product.right))
        letters: tuple[Transpose, ...] = ("NN", "NT", "TN", "TT")
        if product.left[0] == "A":
            return guess._replace(transpose=letters[2 * left + right])
        if "args" not in self.given and not argument_guesses.names_inputs(self.function):
            names = {"A": "B", "lda": "ldb", "stride_a": "stride_b"}
            names |= {b: a for a, b in names.items()}
            return guess._replace(
                call=guess.call.renamed(names), transpose=letters[2 * left + right]
            )
        return guess._replace(layout="column-major", transpose=letters[2 * right + left])

    def sized(self, seen: CallGuess, calls: list[ArgumentGuess]) -> CallGuess | None:
        """The guess at different sizes, or only at square ones."""
        unit = calling.whole(seen.geometry, self.hints)
        batch = _BATCH if seen.geometry.batched else 1
        seen = seen._replace(problem=msgspec.structs.replace(seen.problem, batch=batch))
        if not seen.call.is_square:
            depth = max(step for step in calling.steps(unit) if step <= _DEEPEST)
            problem = seen.sized(3 * unit, 2 * unit, 5 * depth)
            paddings = (_PADDING, 0) if any("ld" in text for text in seen.call.args) else (0,)
            alike = dict.fromkeys([seen.call, *(seen.call.sized_as(call) for call in calls)])
            for padding in paddings:
                for call in alike:
                    for is_swapped in (seen.is_swapped, not seen.is_swapped):
                        guess = seen._replace(call=call, is_swapped=is_swapped, padding=padding)
                        if self.trials.is_right(guess, problem):
                            return guess._replace(problem=problem)
        problem = seen.sized(3 * unit, 3 * unit, 3 * unit)
        if self.trials.is_right(seen, problem):
            return seen._replace(problem=problem, is_square=True)
        return None

    def judged(self, guess: CallGuess) -> Adopted:
        """The kernel called that way, with a claim if it needs one; or the first check it fails."""
        name, failed, plain = self.function.name, "", self.table(guess)
        macros = (p.name for p in self.function.template if p.kind == MACRO)
        chosen = {macro: guess.geometry.params[macro] for macro in macros}
        # Sums that blocks add to C in any order may agree by luck.
        is_lucky = plain.get("beta", 0) != 0 and self.hints.mentions("atomicAdd")
        for claim in (*([] if is_lucky else [{}]), *self.claims(guess)):
            table = {**claim, **plain}
            words = ", ".join(
                (calling.words(guess), *(f"{k} = {v}" for k, v in (chosen | claim).items()))
            )
            words = f"`{name}` {words}"
            try:
                kernel = self.trials.subject.load(table)
            except UsageError as error:
                return Adopted(name, None, f"{words}; but its table is not valid: {error}")
            most = math.inf if guess.fixed else _MOST_OPERATIONS
            outcomes = list(_checked(kernel, self.trials.worker, most))
            wrong = next((outcome for outcome in outcomes if outcome.status != "measured"), None)
            if wrong is None and outcomes:
                many = len({outcome.case.problem.size for outcome in outcomes})
                sizes = f"all {many} sizes" if many > 1 else "the only size"
                return Adopted(
                    name,
                    table,
                    f"{words}, correct at {sizes} tried",
                    (*calling.warnings(guess), *self.doubts(guess)),
                    tuple(remarks.mistakes(self.trials, guess, self.hints)),
                    tuple(remarks.settings(self.trials, guess, self.hints)),
                )
            where = "" if wrong is None else f" at {wrong.case.problem.size}: {wrong.reason}"
            failed = failed or f"{words}; but it fails a check{where}"
            if wrong is not None and wrong.status != "wrong":
                place = wrong.case.problem.size
                self.trials.unfinished.append(f"{place}: {wrong.reason}; {BUSY}")
                break  # no reason for a claim
        return Adopted(name, None, failed)

    def table(self, guess: CallGuess) -> dict[str, Any]:
        """The table of a guess, which may read C."""
        more: dict[str, Any] = {"where": guess.where}
        if guess.geometry.batched:
            more["batch"] = [4]
        if "beta" in guess.call.args:
            unread = msgspec.structs.replace(guess.problem, beta=0.0)
            result = self.trials.probe(guess, unread, poisoned=True)
            if result is None or result.share < 1:
                more["reads"] = ["C"]
        return self.trials.table_of(guess._replace(padding=0), **more)

    def claims(self, guess: CallGuess) -> Iterator[dict[str, Any]]:
        """Claims that a kernel may need in order to pass; only tried if it fails without."""
        kinds = {STORAGE.get(p.type) for p in self.trials.kernel(guess).parameters if p.pointer}
        if narrow := kinds & {"float16", "bfloat16"}:
            yield {"accumulator": narrow.pop()}
        for precision, words in _ROUNDED.items() if kinds == {"float32"} else ():
            if self.hints.mentions(words):
                yield {"precision": precision}
        if self.hints.mentions("atomicAdd"):
            yield {"deterministic": False}

    def steps(self, guess: CallGuess) -> dict[str, int]:
        """The number that each size must be a multiple of; M stands for all in square products."""
        self.trials.missed.clear()
        groups = [guess.axes] if guess.is_square else [*guess.axes]
        return {axes[0]: self.step(guess, axes) for axes in groups if axes[0] not in guess.fixed}

    def step(self, guess: CallGuess, axes: str) -> int:
        """The number that these sizes must be a multiple of: the greatest common divisor of those
        that are right.

        From coarse to fine, since a size that does not fit may crash or hang, mostly where lines
        are read by vectors; elsewhere, one more than a multiple may show all.
        """
        self.trials.renew()
        base: int = getattr(guess.problem, axes[0])
        step, wrong = base, list[int]()
        first = [] if calling.is_wide(self.hints) else [base + 1]
        for size in (*first, *(base + divisor for divisor in reversed(calling.steps(base)))):
            finer = math.gcd(step, size)
            if finer < step and not any(other % finer == 0 for other in wrong):
                problem = msgspec.structs.replace(guess.problem, **dict.fromkeys(axes, size))
                if self.trials.is_right(guess, problem):
                    step = finer
                else:
                    wrong.append(size)
        return step

    def build_ahead(self, guess: CallGuess) -> None:
        """Start compiling with other values of the first constants, while sizes are tried."""
        worker, params = self.trials.worker, guess.geometry.params
        for name, value in [*params.items()][:_MOST_AHEAD] if not guess.fixed else ():
            varied = guess._replace(geometry=guess.geometry.with_value(name, 2 * value))
            kernel = self.trials.kernel(varied)
            with contextlib.suppress(UsageError):
                case = sweep.case(kernel, guess.problem, varied.geometry.params, worker.device)
                worker.builders.start(worker.device, [case], ("plain",))

    def generalized(self, guess: CallGuess) -> CallGuess:
        """The guess with the multiples that trials show to be needed, in terms of the swept
        constants for which a second value was right; the others are fixed."""
        steps = self.steps(guess)
        names: dict[str, str] = {}  # of axes: the constant that their sizes must be multiples of
        self.trials.renew()
        for name, value in guess.geometry.params.items():
            free = [axis for axis in steps if steps[axis] == value > 1 and axis not in names]
            tied = list(dict.fromkeys([(), *((axis,) for axis in free), tuple(free)]))
            others = {2 * value: tied} | ({value // 2: tied[::-1]} if value % 2 == 0 else {})
            alike = ((other, one) for other in others for one in self.alike(guess, name))
            for other, one, axes in ((*pair, axes) for pair in alike for axes in others[pair[0]]):
                if self.trials.failures or len(self.trials.built) >= _MOST_BUILDS:
                    break
                varied = one._replace(geometry=one.geometry.with_value(name, other))
                sizes = calling.odd(guess, steps | dict.fromkeys(axes, other))
                if self.trials.is_right(varied, sizes):
                    names |= dict.fromkeys(axes, name)
                    known = (*guess.geometry.varied, name)
                    guess = one._replace(geometry=one.geometry._replace(varied=known))
                    break
        for name in {*guess.geometry.params} - {*guess.geometry.varied}:
            guess = guess._replace(geometry=guess.geometry.fixed(name))
        multiples = {axis: names.get(axis, step) for axis, step in steps.items() if step > 1}
        return guess._replace(multiples=multiples)

    def alike(self, guess: CallGuess, name: str) -> Iterator[CallGuess]:
        """The guess, then others that differ only where this constant has another value."""
        yield guess
        own = guess.geometry

        def sides(geometry: Geometry, *names: str) -> list[Text]:
            """The launch at a large size, with other values of these constants."""
            values: dict[str, Text] = dict.fromkeys(("M", "N", "K"), _MOST_WHOLE)
            values |= geometry.params | {name: 2 * geometry.params[name] for name in names}
            return [replaced(side, values) for side in (*geometry.block, *geometry.grid)]

        seen = [sides(own, name)]
        for geometry in launch_guesses.geometries(self.function, self.hints):
            is_like = geometry._replace(block=own.block, grid=own.grid, varied=own.varied) == own
            known = ((), *((other,) for other in own.varied))
            is_same = all(sides(geometry, *names) == sides(own, *names) for names in known)
            if is_like and is_same and sides(geometry, name) not in seen:
                seen.append(sides(geometry, name))
                yield guess._replace(geometry=geometry._replace(varied=own.varied))

    def doubts(self, guess: CallGuess) -> Iterator[str]:
        """What a kernel does wrong that is right only for multiples of a number."""
        missed = self.trials.missed[:]
        if not calling.is_doubtful(guess, self.hints) or not missed:
            return
        right = f"right only for multiples of {calling.multiples(guess)}"
        if any(is_beyond for _, is_beyond in missed):
            yield f"{right}; is a bounds check missing?"
            return
        if len(guess.multiples) == 1:
            right = self.period(guess, *guess.multiples) or right
        problem, _ = missed[0]
        worker, params = self.trials.worker, guess.geometry.params
        case = sweep.case(self.trials.kernel(guess), problem, params, worker.device)
        reason = worker.measure(case).reason
        yield f"{right}; at {problem.size}: {reason}" if reason else right

    def period(self, guess: CallGuess, axis: str) -> str:
        """Which sizes along an axis are right, if not just the multiples of a number."""
        axes = guess.axes if guess.is_square else axis
        base: int = getattr(guess.problem, axis)
        many = math.gcd(calling.whole(guess.geometry, self.hints), _LONGEST_PERIOD)
        self.trials.renew()
        right = []
        for size in range(base, base + many):
            sides = dict.fromkeys(axes, size)
            problem = msgspec.structs.replace(guess.problem, **sides)
            right.append(self.trials.is_right(guess, problem))
        period = next(p for p in calling.steps(many) if right == right[:p] * (many // p))
        wrong = [size for size in range(period) if not right[size]]
        is_run = wrong == [*range(1, len(wrong) + 1)] and len(wrong) + 1 < period
        if not is_run or self.trials.is_exhausted:
            return ""
        last = f" to {wrong[-1]}" if len(wrong) > 1 else ""
        where = f"wrong where {axis} % {period} is 1{last}"
        if len(wrong) != period // 2:
            return where
        return f"right for an even number of tiles of {period // 2} ({axis}): {where}"

    # -- if nothing is right ---------------------------------------------------------------

    def failure(self) -> str:
        """Why no call is right, as far as trials show."""
        nearness, words, guess = self.trials.nearest
        name, first = f"`{self.function.name}`", self.first()
        is_told = first.geometry.given is not None or not first.geometry.params
        if is_told and (limit := self.trials.limit(first, first.problem)):
            return f"{name}, with {calling.threads(first)} threads: {limit}"
        refused = next(iter(self.trials.refused.values()), "")
        if refused and guess is None:
            return f"{name} cannot be built here: {refused.splitlines()[0]}"
        unread = "" if self.hints.launches else "; no launch of this kernel was found in the file"
        barriers = len(re.findall(_BARRIER, self.hints.body))
        is_racy = nearness < 0.5 and barriers < 2 and self.hints.mentions("__shared__")
        racy = "; is a `__syncthreads()` missing?" if is_racy else ""
        if guess is not None and words and nearness < 0.1 and self.trials.faults > self.trials.ran:
            return f"{name}, with {calling.threads(guess)} threads: {words}{unread}"
        late = f" in {_SEARCH_S:g} s" if time.monotonic() > self.end_s else ""
        tried = f"none of the calls of {name} that were tried{late}"
        is_near = guess is not None and nearness >= 0.1
        shown = guess if guess is not None and is_near else first
        wrong = f": {words}" if is_near and words else self.checked(shown)
        if not wrong:
            computes = f"{tried} computes a product of A and B{racy or unread}"
            return f"{computes}; write a table with its args, block and grid"
        called = calling.described(self.trials.table_of(shown))
        likely = "closest" if is_near else "the likeliest"
        return f"{tried} is right; {likely}, with {called}{wrong}{racy or unread * (not is_near)}"

    def first(self) -> CallGuess:
        """The likeliest guess."""
        geometry = launch_guesses.geometries(self.function, self.hints)[0]
        return CallGuess(geometry, argument_guesses.calls(self.function, self.hints)[0])

    def checked(self, guess: CallGuess) -> str:
        """The result of checking a call at whole tiles, or else at others, if it is wrong."""
        n = calling.whole(guess.geometry, self.hints, least=64)
        sizes = [(n, n, n), (61, 61, 61) if guess.call.is_square else (67, 43, 59)]
        if not guess.call.is_sized:
            sizes = self.fixed_sizes(guess)
        alpha, beta = _factors(guess.call)
        kernel, worker = self.trials.kernel(guess), self.trials.worker
        for size in sizes:
            problem = Problem(*size, alpha=alpha, beta=beta)
            case = sweep.case(kernel, problem, guess.geometry.params, worker.device)
            outcome = worker.measure(case)
            if outcome.status == "wrong":
                return f", at {problem.size}: {outcome.reason}"
        return ""
