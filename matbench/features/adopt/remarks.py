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
from matbench.features.adopt.trials import AdoptTrials

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


def settings(trials: AdoptTrials, guess: CallGuess, known: Hints) -> Iterator[Setting]:
    """The parameters that are no sizes by name, and take any value."""
    for at, parameter in enumerate(trials.subject.function.parameters):
        name, args, given = parameter.name, [*guess.call.args], guess.geometry.given
        value = known.settings.get(name)
        if value is not None and str((given or {}).get(name, args[at])) == str(value):
            args[at] = str(2 * value + 1)
            geometry = guess.geometry._replace(given=given and {**given, name: args[at]})
            other = guess._replace(call=guess.call._replace(args=tuple(args)), geometry=geometry)
            if trials.is_right(other, guess.problem):
                yield Setting(name, value)


def mistakes(trials: AdoptTrials, guess: CallGuess, known: Hints) -> Iterator[LaunchMistake]:
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


def _mistake(
    trials: AdoptTrials, guess: CallGuess, known: Hints, launch: HostLaunch
) -> tuple[Any, ...]:
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
    called = {p.name: t for p, t in zip(function.parameters, guess.call.args, strict=True)}
    meant = {n: t for n, t in called.items() if t in ("M", "N", "K") and n in launch.passed}
    words = [launch.passed[name] for name in meant]
    problems = [guess.problem, calling.beyond(guess)]
    if len({*words}) < len(words):  # of squares
        problems = [guess.sized(*[getattr(one, guess.axes[0])] * 3) for one in problems]
    is_for_all = not any(isinstance(side, int) and side > 1 for side in geometry.grid)
    wrong = [one for one in problems if is_for_all and trials.is_wrong(own, one)]
    if not wrong:
        of_a = next(launch.passed[name] for name, text in called.items() if text == "A")
        # With A and B exchanged as well, it is a product of column-major matrices.
        is_known = sorted(map(str, map(size_of, words))) == sorted(meant.values())
        is_own = [*map(size_of, words)] in ([*meant.values()], [*map(size_of, meant)])
        if not is_known or is_own or argument_guesses.is_like(of_a, "B"):
            return ()
        return "sizes", *(f"({', '.join(names)})" for names in (words, meant))
    if not trials.is_wrong(own._replace(is_swapped=True), wrong[0]):
        return ("exchanged",)
    if "//" in str(geometry.grid) and problems[0] not in wrong:
        return ("rounded",)
    return "other", *(", ".join(map(str, right[key])) for key in ("block", "grid"))
