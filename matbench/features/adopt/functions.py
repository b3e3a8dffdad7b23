"""Finds out what the parameters of a function on the host are, by calling it in every way."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from matbench.bench.options import Deadlines, Options
from matbench.cli.console import say
from matbench.cli.options import DeviceOptions
from matbench.errors import UsageError
from matbench.features.adopt import arguments
from matbench.features.adopt.guess import Adopted, NotCallableError, scaled, takes_one_size
from matbench.features.adopt.hints import Hints
from matbench.kernelfile import catalogue, front_matter, python_file, signature, sweep
from matbench.kernelfile.front_matter import ON_HOST
from matbench.kernelfile.host_file import HANDLES, HostReader
from matbench.kernelfile.signature import Signature
from matbench.model import DeviceInfo, Kernel, Layout, Parameter, Precision, Problem, Transpose
from matbench.records.outcome import Outcome
from matbench.show.reasons import outcome_reason
from matbench.worker.worker import WorkerPool

#: A table, and the kernel with it.
_Way = tuple[dict[str, Any], Kernel]

#: The longest time for all calls, in seconds.
_LIMIT_S = 20.0
#: Three different sides, so that the shapes tell the matrices apart; then other shapes.
_SIZES = ((67, 43, 59), (128, 128, 128), (1, 70, 33), (130, 1, 64))
#: What a function may round its inputs to without a word.
_PRECISIONS: tuple[Precision, ...] = ("float32", "tf32")
#: What a table need not say.
_PLAIN = {"transpose": "NN", "layout": "row-major", "beta": 0.0, "precision": "float32"}


def adopt(path: str, device: DeviceOptions) -> bool:
    """Find out how the Python function that `path` names is called, and show its table; false if no
    call is right."""
    import tomlkit

    kernel = catalogue.load(Path(path))
    if python_file.place_of(kernel)[1]:
        raise UsageError(f"{kernel.path}: a table above it says how it is called; edit that")
    info = device.choose(kernel)
    usual = [role for role, p in zip("ABC", kernel.parameters, strict=False)
             if p.name != python_file.RETURNED]  # fmt: skip
    more: tuple[dict[str, Any], ...] = ({}, {"beta": 1.0})
    if len(usual) == 2:  # what it returns has a type of its own, and its sums may not have that
        more = {}, {"result": "float64"}, {"result": "float64", "accumulator": "float32"}

    def ways() -> Iterator[_Way]:
        for precision, extra, order, transpose in itertools.product(
            _PRECISIONS, more, itertools.permutations(usual), get_args(Transpose)
        ):
            args = {} if [*order] == usual else {"args": [*order]}
            way = args | _said(transpose=transpose, precision=precision) | extra
            yield way, catalogue.load(Path(path), given=way)

    right, closest = _first_right(ways(), info)
    if right is None:
        say(f"no call of `{kernel.entry}` is right; closest: {closest}")
        return False
    way, kernel = right
    names = {role: p.name for role, p in zip(kernel.args, kernel.parameters, strict=False)}
    given = ", ".join(f"{role} is `{names[role]}`" for role in "ABC" if names[role] != "return")
    result = f" in {kernel.result}" if kernel.result else ""
    tried = f"right at all {len(_SIZES)} sizes tried"
    say(f"`{kernel.entry}` computes {_product(kernel)}{result}, where {given}; {tried}")
    if kernel.precision != "float32":
        say(f"warning: only as exact as {kernel.precision} inputs; ask its library for float32?")
    if kernel.accumulator is not None:
        say(f"warning: only as exact as sums in {kernel.accumulator}")
    if way:
        say("put this table above the function:")
        table = ("/// matbench", *tomlkit.dumps(way).splitlines(), "///")
        say("\n".join(f"# {line}" for line in table))
    say(f"next: matbench run {shlex.quote(kernel.path)}")
    return True


def on_host(path: Path, bare: str, entry: str, given: dict[str, Any], info: DeviceInfo) -> Adopted:
    """Find out how a function on the host of a file is called; `entry` may have template
    arguments."""
    titled = f"`{entry}` on the host"
    wanted = signature.entry_named(entry)
    function = signature.find(signature.host_functions(bare), wanted) if wanted else None
    if function is None:
        names = ", ".join(function.name for function in candidates(bare))
        raise UsageError(f"--entry {ON_HOST + entry!r}: not in {path}; it has: {names:.200}")
    fixed = {**given, "entry": f"{ON_HOST}{entry}"}
    fixed |= {"requires": ["host"]} if info.kind == "cpu" else {}

    def ways() -> Iterator[_Way]:
        for transpose, layout, beta, args in itertools.product(
            get_args(Transpose),
            get_args(Layout),
            (0.0, 1.0),
            arguments.calls(_as_kernel(function), Hints()),
        ):
            if beta and "beta" in args:
                continue
            way = {**fixed, "args": [*args], **_said(transpose=transpose, layout=layout, beta=beta)}
            way |= {"launch": {"where": ["M == N", "N == K"]}} if takes_one_size(args) else {}
            way |= given
            yield way, front_matter.parse(bare.encode(), str(path), path, None, way, HostReader)

    try:
        right, closest = _first_right(ways(), info)
    except NotCallableError as error:
        return Adopted(entry, None, f"{titled} {error}")
    if right is None:
        return Adopted(entry, None, f"{titled}: no call is right; closest: {closest}")
    way, kernel = right
    called = ", ".join(way["args"])
    words = f"computes {_product(kernel)} when called with {called}; right at all sizes tried"
    return Adopted(entry, way, f"{titled} {words}")


def candidates(source: str) -> list[Signature]:
    """The functions on the host of a source that may compute a product of matrices."""
    return [
        function
        for function in signature.host_functions(source)
        if sum(parameter.pointer for parameter in _as_kernel(function).parameters) == 3
    ]


def _as_kernel(function: Signature) -> Signature:
    """The parameters as a kernel would have them: without handles and addresses of numbers."""
    taken = [p for p in function.parameters if p.type not in HANDLES]
    for i, parameter in enumerate(taken):
        if any(name in parameter.name.lower() for name in ("alpha", "beta")) and parameter.pointer:
            taken[i] = Parameter("float", parameter.name, False)
    return msgspec.structs.replace(function, parameters=tuple(taken))


def _said(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value != _PLAIN[key]}


def _first_right(ways: Iterable[_Way], info: DeviceInfo) -> tuple[_Way | None, str]:
    """The first table with which a function is right at all sizes; the reason of the closest."""
    closest: Outcome | None = None
    end_s = time.monotonic() + _LIMIT_S
    with WorkerPool(Options(timed=False).on(info.kind), Deadlines(run_s=_LIMIT_S)) as pool:
        for way, kernel in ways:
            problems = [Problem(*size, beta=_beta(kernel)) for size in _SIZES]
            if "beta" in kernel.args:
                problems.append(Problem(*_SIZES[0], alpha=2.0, beta=0.5))
            params = {name: values[0] for name, values in kernel.sweep.items()}
            cases = [sweep.case(kernel, problem, params, info) for problem in problems]
            # If all are skipped, that is the reason.
            able = [case for case in cases if case.skip is None] or cases[:1]
            outcomes = (pool.worker(info, kernel).measure(case) for case in able)
            wrong = next((outcome for outcome in outcomes if outcome.status != "measured"), None)
            if wrong is None:
                return (way, kernel), ""
            closest = wrong if closest is None or wrong.check is not None else closest
            if wrong.check == "staggered":  # the call is right, but not the function
                break
            if time.monotonic() > end_s:
                return None, f"{outcome_reason(closest)} (not all calls were tried)"
    assert closest is not None
    return None, str(outcome_reason(closest))


def _product(kernel: Kernel) -> str:
    A, B = (f"{name}{'ᵀ' * (kernel.transpose[i] == 'T')}" for i, name in enumerate("AB"))
    return scaled(f"{A}·{B}", 1.0, _beta(kernel))


def _beta(kernel: Kernel) -> float:
    return kernel.beta if isinstance(kernel.beta, float) else kernel.beta[0]
