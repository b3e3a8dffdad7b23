"""What is said of an adopted kernel besides its table: mistakes of the file's own launches, and
arguments that its result does not depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from matbench.features.adopt import argument_guesses, calling, launch_guesses
from matbench.features.adopt.calling import CallGuess
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.launches import HostLaunch
from matbench.features.adopt.names import size_of
from matbench.features.adopt.trials import Trials

_WORDS = {
    "exchanged": "exchanges M and N in its grid: right only where M = N",
    "rounded": "rounds its grid down: right only for whole tiles",
    "sizes": "passes {} for {}; are sizes exchanged?",
    "shared": "asks for no dynamic shared memory; the kernel needs {} bytes",
    "limit": "{}",
    "other": "is wrong; right are block {} and grid {}",
}


class LaunchMistake(NamedTuple):
    """What the launch at a line of a file does wrong, and what shows it, in parts."""

    kind: Literal["exchanged", "rounded", "sizes", "shared", "limit", "other"]
    file: str
    line: int
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: the launch {_WORDS[self.kind].format(*self.parts)}"


class Setting(NamedTuple):
    """A parameter that the result does not depend on, and what it is passed."""

    parameter: str
    value: int

    def __str__(self) -> str:
        return f"the result does not depend on {self.parameter}, which is {self.value}"


def settings(trials: Trials, guess: CallGuess, known: Hints) -> Iterator[Setting]:
    """The parameters that are no sizes by name, and take any value."""
    function, given = trials.subject.function, guess.geometry.given or {}
    for at, parameter in enumerate(function.parameters):
        value = known.settings.get(parameter.name)
        if value is None or str(value) != str(given.get(parameter.name, guess.call.args[at])):
            continue
        args = [*guess.call.args]
        args[at] = str(2 * value + 1)
        left = {name: text for name, text in given.items() if name != parameter.name}
        geometry = guess.geometry._replace(given=left if guess.geometry.given is not None else None)
        other = guess._replace(call=guess.call._replace(args=tuple(args)), geometry=geometry)
        if trials.is_right(other, guess.problem):
            yield Setting(parameter.name, value)


def mistakes(trials: Trials, guess: CallGuess, known: Hints) -> Iterator[LaunchMistake]:
    """What the launches of the file, and of files near it, do wrong where another way is right."""
    pointers = [p.name for p in trials.subject.function.parameters if p.pointer]
    places: dict[tuple[str, int], list[HostLaunch]] = {}
    for launch in known.launches:
        if not any("+" in launch.passed.get(name, "+") for name in pointers):  # not of parts
            places.setdefault((launch.file, launch.line), []).append(launch)
    for (file, line), readings in places.items():
        found = [_mistake(trials, guess, known, launch) for launch in readings]
        if all(found):
            kind, *parts = found[0]
            yield LaunchMistake(kind, file or str(trials.subject.path), line, tuple(parts))


def _mistake(trials: Trials, guess: CallGuess, known: Hints, launch: HostLaunch) -> tuple[Any, ...]:
    """The kind of a mistake and what shows it; nothing if there is none, or it is not known."""
    function, right = trials.subject.function, trials.table_of(guess)["launch"]
    geometry = launch_guesses.followed(function, launch, known)
    if geometry is None:
        return ()
    own = guess._replace(geometry=geometry, is_swapped=False)
    if reason := trials.limit(own, guess.problem):
        return "limit", reason
    if known.shared is not None and launch.shared == 0:
        return "shared", right["shared_bytes"]
    if any(isinstance(side, int) and side > 1 for side in geometry.grid):
        return ()  # it is for certain sizes
    words, meant = _sizes(trials, guess, launch)
    is_square = len({*words}) < len(words)
    for problem in (guess.problem, calling.beyond(guess)):
        if is_square:
            problem = guess.sized(*[getattr(problem, guess.axes[0])] * 3)
        if trials.is_wrong(own, problem):
            if not trials.is_wrong(own._replace(is_swapped=True), problem):
                return ("exchanged",)
            if "//" in str(geometry.grid) and problem != guess.problem:
                return ("rounded",)
            return "other", *(", ".join(map(str, right[key])) for key in ("block", "grid"))
    if not is_square and _are_exchanged(trials, guess, launch):
        return "sizes", *(f"({', '.join(names)})" for names in (words, meant))
    return ()


def _sizes(
    trials: Trials, guess: CallGuess, launch: HostLaunch
) -> tuple[list[str], dict[str, str]]:
    """What a launch passes as sizes, and which size each parameter is."""
    called = zip(trials.subject.function.parameters, guess.call.args, strict=True)
    meant = {p.name: text for p, text in called if text in ("M", "N", "K")}
    return [launch.passed.get(name, name) for name in meant], meant


def _are_exchanged(trials: Trials, guess: CallGuess, launch: HostLaunch) -> bool:
    """Whether a launch passes sizes by names of others, and does not exchange A and B as well, as
    for column-major matrices."""
    words, meant = _sizes(trials, guess, launch)
    host, named, roles = [*map(size_of, words)], [*map(size_of, meant)], [*meant.values()]
    if sorted(map(str, host)) != sorted(roles) or host in (named, roles):
        return False
    called = zip(trials.subject.function.parameters, guess.call.args, strict=True)
    inputs = (launch.passed[p.name] for p, text in called if text == "A")
    return not any(argument_guesses.is_like(text, "B") for text in inputs)
