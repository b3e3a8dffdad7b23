"""Finds out what the parameters of a function on the host are, by calling it in every way."""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from matbench.bench.options import Deadlines, Options
from matbench.cli.console import say
from matbench.errors import UsageError
from matbench.features.adopt import argument_guesses, calling
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.search import Adopted
from matbench.features.adopt.suggestions import as_toml
from matbench.kernelfile import catalogue, front_matter, python_file, signature, sweep
from matbench.kernelfile import entry as entries
from matbench.kernelfile.front_matter import ON_HOST
from matbench.kernelfile.host_file import HANDLES, HostReader
from matbench.kernelfile.signature import Signature
from matbench.model import DeviceInfo, Kernel, Layout, Parameter, Precision, Problem, Transpose
from matbench.records.outcome import Outcome
from matbench.show.reasons import outcome_reason
from matbench.worker.worker import WorkerPool

if TYPE_CHECKING:
    from matbench.cli.options import DeviceOptions

#: The longest time for all calls, in seconds.
_LIMIT_S = 20.0
#: Three different sides, so that the shapes tell the matrices apart; then other shapes.
_SIZES = ((67, 43, 59), (128, 128, 128), (1, 70, 33), (130, 1, 64))
#: What a function may round its inputs to without a word.
_PRECISIONS: tuple[Precision, ...] = ("float32", "tf32")


def adopt(path: str, device: DeviceOptions) -> bool:
    """Find out how the function that `path` names is called, and show its table; false if no call
    is right."""
    kernel = catalogue.load(Path(path))
    if python_file.place_of(kernel)[1]:
        raise UsageError(f"{kernel.path}: a table above it says how it is called; edit that")
    info = device.choose(kernel)
    matrices = [p.name for p in kernel.parameters[:3] if p.name != python_file.RETURNED]
    ways = ((way, catalogue.load(Path(path), given=way)) for way in _ways(len(matrices)))
    right, closest = _first_right(ways, info)
    if right is not None:
        _say(*right)
    else:
        say(f"no call of `{kernel.entry}` is right; closest: {closest}")
    return right is not None


def on_host(path: Path, bare: str, entry: str, given: dict[str, Any], info: DeviceInfo) -> Adopted:
    """Find out how a function on the host of a file is called; `entry` may have template
    arguments."""
    titled = f"`{entry}` on the host"
    wanted = entries.parsed(entry)
    function = entries.find(signature.host_functions(bare), wanted) if wanted else None
    if wanted is None or function is None:
        names = ", ".join(function.name for function in candidates(bare))
        raise UsageError(f"--entry {ON_HOST + entry!r}: not in {path}; it has: {names:.200}")
    fixed = {**given, "entry": f"{ON_HOST}{entry}"}
    fixed |= {"requires": ["host"]} if info.kind == "cpu" else {}

    def ways() -> Iterator[tuple[dict[str, Any], Kernel]]:
        calls = argument_guesses.calls(_as_kernel(function), Hints())
        for transpose, layout, beta, call in itertools.product(
            get_args(Transpose), get_args(Layout), (0.0, 1.0), calls
        ):
            if beta and "beta" in call.args:
                continue
            way = {**fixed, "args": list(call.args)}
            way |= {} if transpose == "NN" else {"transpose": transpose}
            way |= {} if layout == "row-major" else {"layout": layout}
            way |= {"beta": beta} if beta else {}
            way |= {"launch": {"where": ["M == N", "N == K"]}} if call.is_square else {}
            way |= given
            source = bare.encode()
            yield way, front_matter.parse(source, str(path), path, None, way, HostReader)

    try:
        right, closest = _first_right(ways(), info)
    except argument_guesses.NotCallableError as error:
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
    return msgspec.structs.replace(
        function,
        parameters=tuple(
            Parameter("float", parameter.name, False) if _is_factor(parameter) else parameter
            for parameter in function.parameters
            if parameter.type not in HANDLES
        ),
    )


def _is_factor(parameter: Parameter) -> bool:
    return parameter.pointer and any(name in parameter.name.lower() for name in ("alpha", "beta"))


def _first_right(
    ways: Iterable[tuple[dict[str, Any], Kernel]], info: DeviceInfo
) -> tuple[tuple[dict[str, Any], Kernel] | None, str]:
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
            closest = wrong if closest is None or wrong.status == "wrong" else closest
            if wrong.check == "staggered":  # the call is right, but not the function
                break
            if time.monotonic() > end_s:
                return None, f"{outcome_reason(closest)} (not all calls were tried)"
    assert closest is not None
    return None, str(outcome_reason(closest))


def _ways(count: int) -> Iterator[dict[str, Any]]:
    """Tables without the usual values; the likely ones first."""
    usual = ("A", "B", "C")[:count]
    more: tuple[dict[str, Any], ...] = ({}, {"beta": 1.0})
    if count == 2:  # what it returns has a type of its own, and its sums may not have that
        double = {"result": "float64"}
        more = ({}, double, double | {"accumulator": "float32"})
    for precision, extra, order, transpose in itertools.product(
        _PRECISIONS, more, [*itertools.permutations(usual)], get_args(Transpose)
    ):
        way = {"args": list(order), "transpose": transpose, "precision": precision}
        default = {"args": list(usual), "transpose": "NN", "precision": "float32"}
        yield {key: value for key, value in way.items() if value != default[key]} | extra


def _product(kernel: Kernel) -> str:
    A, B = (f"{name}{'ᵀ' * (kernel.transpose[i] == 'T')}" for i, name in enumerate("AB"))
    return calling.scaled(f"{A}·{B}", 1.0, _beta(kernel))


def _beta(kernel: Kernel) -> float:
    """The first of its table."""
    return kernel.beta if isinstance(kernel.beta, float) else kernel.beta[0]


def _say(way: dict[str, Any], kernel: Kernel) -> None:
    """Say how a function is called, and show the table that says so."""
    names = {role: p.name for role, p in zip(kernel.args, kernel.parameters, strict=False)}
    given = ", ".join(f"{role} is `{names[role]}`" for role in "ABC" if names[role] != "return")
    where = f"where {given}; right at all {len(_SIZES)} sizes tried"
    result = f" in {kernel.result}" if kernel.result else ""
    say(f"`{kernel.entry}` computes {_product(kernel)}{result}, {where}")
    if kernel.precision != "float32":
        say(f"warning: only as exact as {kernel.precision} inputs; ask its library for float32?")
    if kernel.accumulator is not None:
        say(f"warning: only as exact as sums in {kernel.accumulator}")
    if way:
        say("put this table above the function:")
        say("\n".join(f"# {line}" for line in ("/// matbench", *as_toml(way).splitlines(), "///")))
    say(f"next: matbench run {shlex.quote(kernel.path)}")
