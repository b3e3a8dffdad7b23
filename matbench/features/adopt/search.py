"""Finds out how to call a foreign kernel: tries guesses with one launch each, then all checks.

Equal sizes, where only the launch matters, show what the kernel computes. Different sizes then show
which size is which, and others which sizes must be multiples of a tile. The resulting table is
accepted only if the kernel passes every check with it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from matbench import workloads
from matbench.bench.options import Deadlines, Options
from matbench.errors import MatbenchError, NotAdoptedError, UsageError
from matbench.features.adopt import arguments, remarks
from matbench.features.adopt.arguments import Args, sized_as
from matbench.features.adopt.arithmetic import Text, replaced
from matbench.features.adopt.guess import (
    Adopted,
    Guess,
    NotCallableError,
    others,
    renamed,
    scaled,
    takes_one_size,
)
from matbench.features.adopt.launches import launches, whole
from matbench.features.adopt.subjects import MACRO, ForeignKernel, subjects
from matbench.features.adopt.trials import BUSY, AdoptTrials
from matbench.features.probes import cases
from matbench.model import STORAGE, WORD_BYTES, Adoption, Kernel, Problem, Transpose
from matbench.records.outcome import Outcome
from matbench.show.table import grouped
from matbench.worker.worker import Worker, WorkerPool

#: The most guesses that are checked after they passed the trials.
_MOST_GUESSES = 3
#: Padding of rows, for kernels that take leading dimensions; vector loads stay aligned.
_PADDING = 8
_BATCH = 3
#: A multiple of usual tiles along K, which keeps products small.
_DEEPEST = 96
#: Larger problems are left to `matbench check`, because they take long on a CPU.
_MOST_OPERATIONS = 2 * 400**3
#: Of a kernel that prints, which takes longer than all else.
_MOST_PRINTED = 50_000
#: How many launches are tried with a size of 1.
_MOST_OF_VECTORS = 8
#: Builds take most of the time.
_MOST_BUILDS = 8
#: After so many constants without another value that is right, the rest are taken as they are.
_MOST_ALONE = 2
#: No usual tiles are larger than half of this.
_MOST_WHOLE = 1024
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
_EXCHANGED = {"A": "B", "lda": "ldb", "stride_a": "stride_b"}
_EXCHANGED |= {b: a for a, b in _EXCHANGED.items()}
_TRANSPOSES: tuple[Transpose, ...] = get_args(Transpose)  # NN, NT, TN, TT


def pool() -> WorkerPool:
    """Workers for trials, which are not timed and have short deadlines."""
    # Its products are small: BLAS's threads would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = Options(timed=False, blocks=False)
    deadlines = Deadlines(build_s=60.0, run_s=30.0, gives_up=False)
    return WorkerPool(options, deadlines, builders=max(3, min(8, (os.cpu_count() or 1) // 2)))


def adoption(text: str, path: Path, given: Mapping[str, Any], worker: Worker) -> Adoption:
    """How the first kernel in a text that can be called is called, or the `entry` of the `given`
    keys of front matter, the rest of which its table has, too.

    The path resolves its `#include` lines. `UsageError` if no call of any of them is right.
    """
    refused = []
    pins = {key: value for key, value in given.items() if key not in ("entry", *_OBSERVED)}
    pins["launch"] = {key: text for key, text in given.get("launch", {}).items() if key != "where"}
    for subject in subjects(text, path, given.get("entry"), pins, {}):
        adopted = adopt(subject, worker)
        if (table := adopted.table) is not None:
            own = [key for key in _ASSUMED if key in table and key not in given]
            assumed = tuple(f"{key} = {json.dumps(table[key])}" for key in own)
            where = tuple(table["launch"].get("where", ()))
            return Adoption(table, assumed, where, (*adopted.warnings, *adopted.notes))
        refused.append(adopted)
    raise NotAdoptedError(
        "; ".join(adopted.words for adopted in refused),
        next((adopted.closest for adopted in refused if adopted.closest), None),
        is_lacking=any(adopted.is_lacking for adopted in refused),
    )


def adopt(subject: ForeignKernel, worker: Worker) -> Adopted:
    """Find out how to call a kernel."""
    name = subject.function.name
    try:
        trials = AdoptTrials(subject, worker)
    except MatbenchError as error:
        return Adopted(name, None, f"`{name}` cannot be read: {error}")
    try:
        adopted = _adopted(trials)
    except NotCallableError as error:
        return Adopted(name, None, f"`{name}` {error}")
    doubts = [f"a launch did not complete, at {where}" for where in trials.unfinished[:1]]
    return adopted._replace(warnings=(*adopted.warnings, *doubts))


def _adopted(trials: AdoptTrials) -> Adopted:
    """The first guess that passes all checks; otherwise what is wrong with the likeliest."""
    name, first = trials.function.name, None
    for guess in itertools.islice(_guesses(trials), _MOST_GUESSES):
        # Compile while sizes are tried: with other values of the first constants, then for checks.
        for constant, value in [*guess.params.items()][:_MOST_ALONE] if not guess.fixed else ():
            for other in others(value):
                trials.build_ahead(guess.with_value(constant, other), ["plain"])
        trials.build_ahead(guess.settled(), trials.worker.options.builds)
        guess = _generalized(trials, guess)
        if trials.overran and trials.hints.mentions(_LOOSE):
            words = "writes one row or column past C; is `<=` meant to be `<`?"
            return Adopted(name, None, f"`{name}` {words}")
        adopted = _judged(trials, guess)
        if adopted.table is not None:
            return adopted
        first = first or adopted
    return first or remarks.failure(trials)


# -- a call that is right at whole tiles -----------------------------------------------------------


def _guesses(trials: AdoptTrials) -> Iterator[Guess]:
    """The guesses that are right at whole tiles, the likeliest first."""
    function, known, args = trials.function, trials.hints, trials.given.get("args")
    if args is not None and len(args) != len(function.parameters):
        many = len(function.parameters)
        raise UsageError(f"args: {len(args)} given; `{function.name}` takes {many}")
    calls = arguments.calls(function, known) if args is None else [tuple(args)]
    alike = grouped(calls, lambda call: renamed(call, dict.fromkeys("MNK", ""))).values()
    constants = trials.subject.constants
    ways = launches(function, known, trials.given.get("launch", {}).get("block", ()))
    chosen = [{name: constants.get(name, n) for name, n in way.params.items()} for way in ways]
    ways = [way._replace(params=params) for way, params in zip(ways, chosen, strict=True)]
    trials.open(ways[0]._replace(args=calls[0]))
    later: list[Guess] = []  # the author's launch may be one of square products only
    is_found = False
    pairs = itertools.takewhile(lambda _: not trials.is_late, itertools.product(alike, ways))
    for guess in filter(None, (_found(trials, way, calls) for calls, way in pairs)):
        is_found = True
        if guess.given is not None and guess.is_square and not takes_one_size(guess.args):
            later.append(guess)
        else:
            yield guess
    yield from later
    if not is_found:
        trials.renew()
        for calls in alike:
            yield from _of_vectors(trials, calls, ways[:_MOST_OF_VECTORS])


def _found(trials: AdoptTrials, way: Guess, calls: list[Args]) -> Guess | None:
    """The launch with the first of calls and what it computes, at different sizes if it can."""
    function, known, guess = trials.function, trials.hints, way._replace(args=calls[0])
    n = whole(guess, known, least=64)
    if guess.is_sized and n <= _MOST_WHOLE and not known.extents:
        contract = trials.kernel(guess).contract
        item, of_c = WORD_BYTES[contract.storage], WORD_BYTES[contract.result]
        for args in arguments.in_bytes(guess.args, function, known, item, of_c):
            seen = _seen(trials, guess._replace(args=args), Problem(n, n, n))
            if seen is not None and (sized := _sized(trials, seen, calls)) is not None:
                return sized
    for size in arguments.fixed_sizes(function, known, guess, trials.worker.device.kind):
        # Only equal sizes show which operand is transposed.
        letters = _TRANSPOSES if len({*size}) > 1 else ("NN",)
        for is_swapped, transpose in itertools.product((False, True), letters):
            tried = guess._replace(is_swapped=is_swapped, transpose=transpose)
            seen = _seen(trials, tried, Problem(*size))
            if seen is None:
                continue
            taller = seen.sized(M=3 * seen.problem.M)
            for args in calls if known.extents else ():  # arrays may fix only their rows' lengths
                free = seen._replace(args=sized_as(seen.args, args), fixed="NK", problem=taller)
                if "M" in free.args and trials.is_right(free, taller):
                    return free
            return seen._replace(fixed="MNK")
    return None


def _of_vectors(trials: AdoptTrials, calls: list[Args], ways: list[Guess]) -> Iterator[Guess]:
    """The guesses that are right where one size is 1, untransposed ones first, for a kernel that
    takes at most two sizes."""
    if len([text for text in calls[0] if text in ("M", "N", "K")]) > 2:
        return
    found: list[Guess] = []
    for way, one, names in itertools.product(ways, "NMK", ({}, _EXCHANGED)):
        if trials.is_late:
            break
        args = renamed(calls[0], {one: "KM"[one == "K"], **names})
        n = whole(way, trials.hints, least=64)
        guess = way._replace(args=args, one=one)
        seen = _seen(trials, guess, guess.sized(M=n, N=n, K=n))
        right = seen and _sized(trials, seen, [renamed(call, names) for call in calls])
        found += [right] if right else []
    yield from sorted(found, key=lambda guess: guess.transpose != "NN")


def _seen(trials: AdoptTrials, guess: Guess, problem: Problem) -> Guess | None:
    """The guess with what it computes, as mostly equal sizes show it."""
    alpha, beta = guess.factors
    problem = msgspec.structs.replace(problem, alpha=alpha, beta=beta)
    result = trials.probe(guess, problem)
    if result is None or result.product is None or result.spoiled:
        return None
    product = result.product
    factors = product.alpha, product.beta
    if "alpha" in guess.args and factors == (beta, alpha):
        guess = guess._replace(args=renamed(guess.args, {"alpha": "beta", "beta": "alpha"}))
        factors = alpha, beta
    if beta == 0 and product.beta == 1:
        beta = 1.0
        guess = guess._replace(beta=beta)
    if factors != (alpha, beta):
        sign = "; is a sign wrong?" if product.alpha == -alpha else ""
        trials.note(guess, 0.9, f"computes {scaled('A·B', *factors)}{sign}")
        return None
    guess = guess._replace(problem=msgspec.structs.replace(problem, beta=beta))
    # Of matrices as stored to names, transposes and layout. If several descriptions fit, the
    # parameters' names decide; if they do not say which input is which, the left one is A.
    left, right = (side.endswith("'") for side in (product.left, product.right))
    pointers = [p.name for p in trials.function.parameters if p.pointer]
    is_named = all(any(arguments.is_like(name, letter) for name in pointers) for letter in "AB")
    is_exchanged = product.left[0] == "B"
    if is_exchanged and ("args" in trials.given or is_named):
        return guess._replace(layout="column-major", transpose=_TRANSPOSES[2 * right + left])
    args = renamed(guess.args, _EXCHANGED) if is_exchanged else guess.args
    return guess._replace(args=args, transpose=_TRANSPOSES[2 * left + right])


def _sized(trials: AdoptTrials, seen: Guess, calls: list[Args]) -> Guess | None:
    """The guess at different sizes, or only at square ones."""
    unit = whole(seen, trials.hints)
    batch = _BATCH if "batch" in seen.grid else 1
    seen = seen._replace(problem=msgspec.structs.replace(seen.problem, batch=batch))
    if not takes_one_size(seen.args):
        depth = max(step for step in range(1, _DEEPEST + 1) if unit % step == 0)
        deep = 1 if trials.hints.mentions(remarks.PRINTS) else 5  # each step of K takes long then
        problem = seen.sized(M=3 * unit, N=2 * unit, K=deep * depth)
        paddings = (_PADDING, 0) if any("ld" in text for text in seen.args) else (0,)
        alike = dict.fromkeys([seen.args, *(sized_as(seen.args, call) for call in calls)])
        swaps = (seen.is_swapped, not seen.is_swapped)
        for padding, args, is_swapped in itertools.product(paddings, alike, swaps):
            guess = seen._replace(args=args, is_swapped=is_swapped, padding=padding)
            if trials.is_right(guess, problem):
                return guess._replace(problem=problem)
    problem = seen.sized(M=3 * unit, N=3 * unit, K=3 * unit)
    if trials.is_right(seen, problem):
        return seen._replace(problem=problem, is_square=True)
    return None


# -- all sizes, and other constants ----------------------------------------------------------------


def _generalized(trials: AdoptTrials, guess: Guess) -> Guess:
    """The guess with the multiples that trials show to be needed, in terms of the swept constants
    for which a second value was right; the others are fixed."""
    trials.missed.clear()
    axes = guess.axes[0] if guess.is_square else guess.axes
    steps = {axis: _step(trials, guess, axis) for axis in axes if axis not in guess.fixed}
    names: dict[str, str] = {}  # of axes: the constant that their sizes must be multiples of
    trials.renew()
    alone = 0
    for name, value in guess.params.items():
        if name in trials.subject.constants or value < 1:
            continue
        if alone == _MOST_ALONE:
            break
        free = [axis for axis in steps if steps[axis] == value > 1 and axis not in names]
        tied = list(dict.fromkeys([(), *((axis,) for axis in free), tuple(free)]))
        bounds = dict(zip(others(value), (tied, tied[::-1]), strict=False))
        alike = ((other, one) for other in bounds for one in _alike(trials, guess, name))
        for other, one, bound in ((*pair, bound) for pair in alike for bound in bounds[pair[0]]):
            if trials.failures or len(trials.built) >= _MOST_BUILDS:
                break
            # With each size an odd multiple of its step, so that larger tiles do not fit.
            wanted = steps | dict.fromkeys(bound, other)
            odd = {axis: n * (getattr(guess.problem, axis) // n | 1) for axis, n in wanted.items()}
            if trials.is_right(one.with_value(name, other), guess.sized(**odd)):
                names |= dict.fromkeys(bound, name)
                guess = one._replace(varied=(*guess.varied, name))
                break
        alone = 0 if name in guess.varied else alone + 1
    multiples = {axis: names.get(axis, step) for axis, step in steps.items() if step > 1}
    return guess.settled()._replace(multiples=multiples)


def _step(trials: AdoptTrials, guess: Guess, axis: str) -> int:
    """The number that sizes along an axis, or all of a square product, must be a multiple of: the
    greatest common divisor of those that are right.

    From coarse to fine, since a size that does not fit may crash or hang, mostly where lines are
    read by vectors; elsewhere, one more than a multiple may show all.
    """
    trials.renew()
    base: int = getattr(guess.problem, axis)
    step, wrong = base, list[int]()
    first = [] if trials.hints.is_wide else [base + 1]
    for size in (*first, *(base + finer for finer in range(base, 0, -1) if base % finer == 0)):
        finer = math.gcd(step, size)
        if finer < step and not any(other % finer == 0 for other in wrong):
            if trials.is_right(guess, guess.sized(**{axis: size})):
                step = finer
            else:
                wrong.append(size)
    return step


def _alike(trials: AdoptTrials, guess: Guess, name: str) -> Iterator[Guess]:
    """The guess, then others that differ only where this constant has another value."""

    def sides(launch: Guess, *names: str) -> list[Text]:
        """The launch at a large size, with other values of these constants."""
        values: dict[str, Text] = dict.fromkeys(("M", "N", "K"), _MOST_WHOLE)
        values |= launch.params | {name: 2 * launch.params[name] for name in names}
        return [replaced(side, values) for side in (*launch.block, *launch.grid)]

    yield guess
    seen = [sides(guess, name)]
    for launch in launches(trials.function, trials.hints):
        other = guess.launched_as(launch)
        is_like = other._replace(block=guess.block, grid=guess.grid) == guess
        known = ((), *((other,) for other in guess.varied))
        is_same = all(sides(launch, *names) == sides(guess, *names) for names in known)
        if is_like and is_same and sides(launch, name) not in seen:
            seen.append(sides(launch, name))
            yield other


# -- all checks ------------------------------------------------------------------------------------


def _judged(trials: AdoptTrials, guess: Guess) -> Adopted:
    """The kernel called that way, with a claim if it needs one; or the first check it fails."""
    name, failed = trials.function.name, ""
    more: dict[str, Any] = {"where": guess.where}
    if "batch" in guess.grid:
        more["batch"] = [4]
    if "beta" in guess.args:
        unread = msgspec.structs.replace(guess.problem, beta=0.0)
        result = trials.probe(guess, unread, poisoned=True)
        if result is None or result.share < 1:
            more["reads"] = ["C"]
    plain = trials.table_of(guess._replace(padding=0), **more)
    macros = (p.name for p in trials.function.template if p.kind == MACRO)
    chosen = {macro: guess.params[macro] for macro in macros}
    # Sums that blocks add to C in any order may agree by luck.
    is_lucky = plain.get("beta", 0) != 0 and trials.hints.mentions("atomicAdd")
    for claim in (*([] if is_lucky else [{}]), *_claims(trials, guess)):
        table = {**claim, **plain}
        said = (f"{key} = {value}" for key, value in (chosen | claim).items())
        words = f"`{name}` {', '.join((guess.words, *said))}"
        try:
            kernel = trials.load(table)
        except UsageError as error:
            return Adopted(name, None, f"{words}; but its table is not valid: {error}")
        most = math.inf if guess.fixed else _MOST_OPERATIONS
        most = _MOST_PRINTED if trials.hints.mentions(remarks.PRINTS) else most
        outcomes = list(_checked(kernel, trials.worker, most))
        wrong = next((outcome for outcome in outcomes if outcome.status != "measured"), None)
        if wrong is None and outcomes:
            many = len({outcome.case.problem.size for outcome in outcomes})
            sizes = f"all {many} sizes" if many > 1 else "the only size"
            warnings = tuple(remarks.warnings(trials, guess))
            notes = tuple(remarks.notes(trials, guess))
            return Adopted(name, table, f"{words}, correct at {sizes} tried", warnings, notes)
        where = "" if wrong is None else f" at {wrong.case.problem.size}: {wrong.reason}"
        failed = failed or f"{words}; but it fails a check{where}"
        if wrong is not None and wrong.status != "wrong":
            trials.unfinished.append(f"{wrong.case.problem.size}: {wrong.reason}; {BUSY}")
            break  # no reason for a claim
    return Adopted(name, None, failed, closest=plain)


def _claims(trials: AdoptTrials, guess: Guess) -> Iterator[dict[str, Any]]:
    """Claims that a kernel may need in order to pass; only tried if it fails without."""
    kinds = {STORAGE.get(p.type) for p in trials.kernel(guess).parameters if p.pointer}
    if narrow := kinds & {"float16", "bfloat16"}:
        yield {"accumulator": narrow.pop()}
    for precision, words in _ROUNDED.items() if kinds == {"float32"} else ():
        if trials.hints.mentions(words):
            yield {"precision": precision}
    if trials.hints.mentions("atomicAdd"):
        yield {"deterministic": False}


def _checked(kernel: Kernel, worker: Worker, most: float) -> Iterator[Outcome]:
    """Run all checks at the awkward sizes that the kernel accepts, of at most so many operations if
    there are such, until one fails. What could not be measured is tried once more."""
    able = [case for _, case in cases.probed(kernel, {}, worker.device, None) if not case.skip]
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
