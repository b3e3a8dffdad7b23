"""Finds out what the parameters of a function in Python are, by calling it in every way."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from matbench.cli.console import say
from matbench.cli.outputs import write_file
from matbench.errors import UsageError
from matbench.features.adopt.suggestions import as_toml
from matbench.kernelfile import catalogue, python_file, sweep
from matbench.measure.options import Deadlines, Options
from matbench.measure.worker import WorkerPool
from matbench.model import Kernel, Precision, Problem, Transpose
from matbench.records.outcome import Outcome
from matbench.show.reasons import outcome_reason

if TYPE_CHECKING:
    from matbench.cli.options import DeviceOptions

#: Three different sides, so that the shapes tell the matrices apart; then other shapes.
_SIZES = ((67, 43, 59), (128, 128, 128), (1, 70, 33), (130, 1, 64))
#: What a function may round its inputs to without a word.
_PRECISIONS: tuple[Precision, ...] = ("float32", "tf32")


def adopt(path: str, device: DeviceOptions, *, into: bool) -> bool:
    """Find out how the function that `path` names is called, and show or write its table; false if
    no call is right."""
    kernel = catalogue.load(Path(path))
    line, table = python_file.place_of(kernel)
    if table:
        raise UsageError(f"{kernel.path}: a table above it says how it is called; edit that")
    info = device.choose(kernel)
    matrices = [p.name for p in kernel.parameters[:3] if p.name != python_file.RETURNED]
    closest: Outcome | None = None
    with WorkerPool(Options(timed=False).on(info.kind), Deadlines(run_s=20)) as pool:
        for way in _ways(len(matrices)):
            tried = catalogue.load(Path(path), given=way)
            outcomes = [
                pool.worker(info, tried).measure(sweep.case(tried, Problem(*size), {}, info))
                for size in _SIZES
            ]
            wrong = [outcome for outcome in outcomes if outcome.status != "measured"]
            if not wrong:
                _say(tried, way, line, into=into)
                return True
            closest = wrong[0] if closest is None or wrong[0].status == "wrong" else closest
    assert closest is not None
    say(f"no call of `{kernel.entry}` is right; closest: {outcome_reason(closest)}")
    return False


def _ways(count: int) -> Iterator[dict[str, Any]]:
    """Tables without the usual values; the likely ones first."""
    usual = ("A", "B", "C")[:count]
    orders = itertools.permutations(usual)
    for precision, order, transpose in itertools.product(_PRECISIONS, orders, get_args(Transpose)):
        way = {"args": list(order), "transpose": transpose, "precision": precision}
        default = {"args": list(usual), "transpose": "NN", "precision": "float32"}
        yield {key: value for key, value in way.items() if value != default[key]}


def _say(kernel: Kernel, way: dict[str, Any], line: int, *, into: bool) -> None:
    """Say how a function is called, and show the table that says so, or write it above it."""
    A, B = (f"{name}{'ᵀ' * (kernel.transpose[i] == 'T')}" for i, name in enumerate("AB"))
    names = {role: p.name for role, p in zip(kernel.args, kernel.parameters, strict=False)}
    given = ", ".join(f"{role} is `{names[role]}`" for role in "ABC" if names[role] != "return")
    say(f"`{kernel.entry}` computes {A}·{B}, where {given}; right at all {len(_SIZES)} sizes tried")
    if kernel.precision != "float32":
        say(f"warning: only as exact as {kernel.precision} inputs; ask its library for float32?")
    table = ["/// matbench", *as_toml(way).splitlines(), "///"]
    text = "".join(f"# {words}\n" for words in table)
    if way and into:
        lines = kernel.source.splitlines(keepends=True)
        above = "".join([*lines[: line - 1], text, *lines[line - 1 :]])
        write_file(Path(kernel.file), above.encode())
        say(f"wrote the table into {kernel.file}")
    elif way:
        say("put this table above the function, or use --into:")
        say(text.rstrip())
    say(f"next: matbench run {shlex.quote(kernel.path)}")
