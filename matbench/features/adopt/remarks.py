"""What is said of a kernel besides its table: why no call is right, or else mistakes in it and in
the file's own launches, and arguments that its result does not depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from matbench.errors import LackingError
from matbench.features.adopt import arguments, launches
from matbench.features.adopt.guess import Adopted, Guess, takes_one_size
from matbench.features.adopt.hints import HostLaunch
from matbench.features.adopt.names import size_of
from matbench.features.adopt.trials import AdoptTrials
from matbench.model import Problem
from matbench.show.table import grouped

#: A comparison in a condition, not in a loop.
_BOUNDS_CHECK = r"\bif\s*\([^;{}]*<|<[^;{}]*\?"
#: What waits for all threads of a block.
_BARRIER = r"__sync|barrier|\bsync\("
PRINTS = r"\bprintf\s*\("
#: The most elements of one vector load: a kernel may require multiples of up to this.
_MOST_LANES = 8


def failure(trials: AdoptTrials) -> Adopted:
    """Why no call is right, as far as trials show."""
    function, known = trials.function, trials.hints
    because = partial(Adopted, function.name, None)
    nearness, words, guess = trials.nearest
    name = f"`{function.name}`"
    first = launches.launches(function, known)[0]
    first = first._replace(args=arguments.calls(function, known)[0])
    is_told = first.given is not None or not first.params
    if is_told and (limit := trials.limit(first, first.problem)):
        return because(f"{name}, with {first.threads} threads: {limit}")
    refused = next(iter(trials.refused.values()), None)
    if refused is not None and guess is None:
        reason, _, _ = refused.reason.partition("\n")
        is_lacking = isinstance(refused, LackingError)
        return because(f"{name} cannot be built here: {reason}", is_lacking=is_lacking)
    unread = "" if known.launches else "; no launch of this kernel was found in the file"
    barriers = len(re.findall(_BARRIER, known.body))
    is_racy = nearness < 0.5 and barriers < 2 and known.mentions("__shared__")
    racy = "; is a `__syncthreads()` missing?" if is_racy else ""
    if guess is not None and words and nearness < 0.1 and trials.faults > trials.ran:
        return because(f"{name}, with {guess.threads} threads: {words}{unread}")
    late = f" in {trials.search_s:g} s" if trials.is_late else ""
    tried = f"none of the calls of {name} that were tried{late}"
    is_near = guess is not None and nearness >= 0.1
    shown = guess if guess is not None and is_near else first
    why = words if is_near else ""
    wrong = f": {why}" if why else _checked(trials, shown)
    if not wrong:
        computes = f"{tried} computes a product of A and B{racy or unread}"
        return because(f"{computes}; write a table with its args, block and grid")
    table = trials.table_of(shown)
    said = table | table["launch"]
    called = ", ".join(f"{k} {','.join(map(str, said[k]))}" for k in ("args", "block", "grid"))
    likely = "closest" if is_near else "the likeliest"
    more = racy if why else unread * (not is_near)  # the reason of a check says what is missing
    return because(f"{tried} is right; {likely}, with {called}{wrong}{more}", closest=table)


def _checked(trials: AdoptTrials, guess: Guess) -> str:
    """The result of checking a call at whole tiles, or else at others, if it is wrong."""
    n = launches.whole(guess, trials.hints, least=64)
    sizes = [(n, n, n), (61, 61, 61) if takes_one_size(guess.args) else (67, 43, 59)]
    if not guess.is_sized:
        kind = trials.worker.device.kind
        sizes = arguments.fixed_sizes(trials.function, trials.hints, guess, kind)
    alpha, beta = guess.factors
    for size in sizes:
        problem = Problem(*size, alpha=alpha, beta=beta)
        outcome = trials.worker.measure(trials.case(guess, problem))
        if outcome.status == "wrong":
            return f", at {problem.size}: {outcome.reason}"
    return ""


def warnings(trials: AdoptTrials, guess: Guess) -> Iterator[str]:
    """Possible mistakes in a right kernel, and in the launches of the file and of files near it,
    where another way is right."""
    if guess.is_square and {"M", "N", "K"} <= {*guess.args}:
        yield "takes M, N and K, but is right only if M == N == K; is a leading dimension wrong?"
    if trials.hints.mentions(PRINTS):
        yield "prints on the device, which takes most of its time; remove `printf`"
    yield from _restriction(trials, guess)
    names = [p.name for p in trials.function.parameters if p.pointer]
    launched = trials.hints.launches
    # Not those that are passed parts of matrices.
    whole = [one for one in launched if not any("+" in one.passed.get(name, "+") for name in names)]
    for (file, line), readings in grouped(whole, lambda one: (one.file, one.line)).items():
        found = [_mistake(trials, guess, launch) for launch in readings]
        if all(found):
            yield f"{file or trials.subject.path}:{line}: the launch {found[0]}"


def notes(trials: AdoptTrials, guess: Guess) -> Iterator[str]:
    """The parameters that are no sizes by name, and take any value."""
    given = guess.given or {}
    for at, parameter in enumerate(trials.function.parameters):
        name, args = parameter.name, [*guess.args]
        value = trials.hints.settings.get(name)
        if value is not None and str(given.get(name, args[at])) == str(value):
            args[at] = str(2 * value + 1)
            others = None if guess.given is None else {**given, name: args[at]}
            if trials.is_right(guess._replace(args=tuple(args), given=others), guess.problem):
                yield f"the result does not depend on {name}, which is {value}"


def _restriction(trials: AdoptTrials, guess: Guess) -> Iterator[str]:
    """What a kernel does wrong that is right only for multiples of a number, if it may be meant for
    all sizes."""
    steps, missed, known = guess.steps, trials.missed[:], trials.hints
    is_of_lanes = max(steps, default=0) <= _MOST_LANES or not known.mentions(_BOUNDS_CHECK)
    if not steps or not missed or (known.is_wide and is_of_lanes):
        return
    sizes = " and ".join(f"{step} ({', '.join(axes)})" for step, axes in steps.items())
    right = f"right only for multiples of {sizes}"
    if any(is_beyond for _, is_beyond in missed):
        yield f"{right}; is a bounds check missing?"
        return
    problem, _ = missed[0]
    reason = trials.worker.measure(trials.case(guess, problem)).reason
    yield f"{right}; at {problem.size}: {reason}" if reason else right


def _mistake(trials: AdoptTrials, guess: Guess, launch: HostLaunch) -> str:
    """What a launch does wrong; nothing if it is right, or that is not known."""
    function, right = trials.function, trials.table_of(guess)["launch"]
    followed = launches.followed(function, launch, trials.hints)
    if followed is None or trials.build(followed) not in trials.built:  # or another instance
        return ""
    own = guess.launched_as(followed)._replace(is_swapped=False)
    if reason := trials.limit(own, guess.problem):
        return reason
    if trials.hints.shared is not None and launch.shared == 0:
        return f"asks for no dynamic shared memory; the kernel needs {right['shared_bytes']} bytes"
    called = {p.name: t for p, t in zip(function.parameters, guess.args, strict=True)}
    meant = {n: t for n, t in called.items() if t in ("M", "N", "K") and n in launch.passed}
    words = [launch.passed[name] for name in meant]
    problems = [guess.problem]
    if not guess.fixed:  # and one step further along each axis
        steps = {axis: step for step, axes in guess.steps.items() for axis in axes}
        beyond = {axis: getattr(guess.problem, axis) + steps.get(axis, 1) for axis in "MNK"}
        problems.append(guess.sized(**beyond))
    if len({*words}) < len(words):  # of squares
        sides = (getattr(one, guess.axes[0]) for one in problems)
        problems = [guess.sized(M=side, N=side, K=side) for side in sides]
    is_for_all = not any(isinstance(side, int) and side > 1 for side in own.grid)
    wrong = [one for one in problems if is_for_all and trials.is_wrong(own, one)]
    if not wrong:
        of_a = next(launch.passed[name] for name, text in called.items() if text == "A")
        # With A and B exchanged as well, it is a product of column-major matrices.
        is_known = sorted(map(str, map(size_of, words))) == sorted(meant.values())
        is_own = [*map(size_of, words)] in ([*meant.values()], [*map(size_of, meant)])
        if not is_known or is_own or arguments.is_like(of_a, "B"):
            return ""
        return f"passes ({', '.join(words)}) for ({', '.join(meant)}); are sizes exchanged?"
    if not trials.is_wrong(own._replace(is_swapped=True), wrong[0]):
        return "exchanges M and N in its grid: right only where M = N"
    if "//" in str(own.grid) and problems[0] not in wrong:
        return "rounds its grid down: right only for whole tiles"
    block, grid = (", ".join(map(str, right[key])) for key in ("block", "grid"))
    return f"is wrong; right are block {block} and grid {grid}"
