"""Finds out what the parameters of a function on the host are, by calling it in every way."""

from __future__ import annotations

import itertools
import math
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from matbench.bench.options import Deadlines, Options
from matbench.cli.console import say
from matbench.cli.options import DeviceOptions
from matbench.errors import CaseError, LackingError, UsageError
from matbench.features.adopt import arguments, probing
from matbench.features.adopt.guess import Adopted, NotCallableError, scaled, takes_one_size
from matbench.features.adopt.hints import Hints
from matbench.features.adopt.subjects import as_kernel, build_keys, candidates, macros
from matbench.kernelfile import catalogue, front_matter, includes, python_file, signature, sweep
from matbench.kernelfile.front_matter import ON_HOST
from matbench.kernelfile.host_file import HANDLES, NULL, HostReader
from matbench.model import Case, DeviceInfo, Kernel, Layout, Problem, Transpose
from matbench.records.outcome import ErrorCells, Outcome
from matbench.show.reasons import outcome_reason
from matbench.show.table import grouped
from matbench.worker.worker import WorkerPool

#: A table, and the kernel with it.
_Way = tuple[dict[str, Any], Kernel]
_Sizes = Sequence[tuple[int, int, int]]

#: How long one call may take, and all from the first one's end, in seconds. A function in Python
#: may be compiled for each call.
_IN_PYTHON = 20.0, 20.0
_ON_HOST = 5.0, 15.0

#: Sizes at which a call must be right, the last one if it is right for squares alone: three
#: different sides, so that the shapes tell the matrices apart; then other shapes.
_ANY = ((67, 43, 59), (128, 128, 128), (1, 70, 33), (130, 1, 64), (128, 128, 128))
#: What tiles fit into, on a GPU also several of them side by side.
_TILES = {
    "cpu": [((192, 128, 320), (128, 192, 64), (128, 128, 128))],
    "gpu": [
        ((768, 512, 1280), (512, 768, 256), (512, 512, 512)),
        ((4096, 2048, 256), (2048, 4096, 512), (2048, 2048, 2048)),
    ],
}
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

    def ways() -> Iterator[list[_Way]]:
        # Inputs may be rounded to TF32 without a word.
        for precision, extra, order, transpose in itertools.product(
            ("float32", "tf32"), more, itertools.permutations(usual), get_args(Transpose)
        ):
            args = {} if [*order] == usual else {"args": [*order]}
            way = args | _said(transpose=transpose, precision=precision) | extra
            yield [(way, catalogue.load(Path(path), given=way))]

    right, wrong = _first_right(ways(), info, [_ANY], *_IN_PYTHON)
    if right is None:
        say(f"`{kernel.entry}`: {wrong}")
        return False
    way, kernel = right
    names = {role: p.name for role, p in zip(kernel.args, kernel.parameters, strict=False)}
    given = ", ".join(f"{role} is `{names[role]}`" for role in "ABC" if names[role] != "return")
    result = f" in {kernel.result}" if kernel.result else ""
    tried = f"right at all {len(_ANY[:-1])} sizes tried"
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
    """Find out how a function on the host is called; `entry` may have template arguments."""
    titled = f"`{entry}` on the host"
    wanted = signature.entry_named(entry)
    given = build_keys(bare, path, given)
    included = includes.texts(includes.find_includes(bare, path, given.get("include_dirs", ())))
    functions = [one for text in (bare, *included) for one in signature.host_functions(text)]
    function = signature.find(functions, wanted) if wanted else None
    if function is None:
        names = ", ".join(candidates(bare))
        raise UsageError(f"--entry {ON_HOST + entry!r}: not in {path}; it has: {names:.200}")
    own = given.get("options", ())
    named = {one.partition("=")[0] for one in own}
    options = [*(one for one in macros(path) if one.partition("=")[0] not in named), *own]
    given |= {"options": options} if options else {}
    fixed = {**given, "entry": f"{ON_HOST}{entry}"}
    fixed |= {"requires": ["host"]} if info.kind == "cpu" else {}
    listed = [p for p in function.parameters if p.type not in HANDLES]
    taken = as_kernel(function)
    used = {parameter.name for parameter in taken.parameters}
    read = partial(front_matter.parse, bare.encode(), str(path), path, None)

    def ways() -> Iterator[list[_Way]]:
        for args in arguments.calls(taken, Hints()):
            given_in_order = iter(args)
            full = [next(given_in_order) if p.name in used else NULL for p in listed]
            square = {"launch": {"where": ["M == N", "N == K"]}} if takes_one_size(args) else {}
            betas = (0.0,) if "beta" in args else (0.0, 1.0)
            every = itertools.product(betas, get_args(Transpose), get_args(Layout))
            forms = (_said(beta=beta, transpose=t, layout=layout) for beta, t, layout in every)
            tables = [{**fixed, "args": full, **form, **square, **given} for form in forms]
            yield [(table, read(table, HostReader)) for table in tables]

    try:
        right, wrong = _first_right(ways(), info, [_ANY, *_TILES[info.kind]], *_ON_HOST)
    except NotCallableError as error:
        return Adopted(entry, None, f"{titled} {error}")
    if right is None:
        return Adopted(entry, None, f"{titled}: {wrong}")
    way, kernel = right
    called = ", ".join(way["args"])
    words = f"computes {_product(kernel)} when called with {called}; right at all sizes tried"
    where = " and ".join(way.get("launch", {}).get("where", ()))
    return Adopted(entry, way, f"{titled} {words}{where and f', with {where}'}")


def _said(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value != _PLAIN[key]}


def _first_right(
    ways: Iterator[Sequence[_Way]], info: DeviceInfo, tried: Sequence[_Sizes], call_s: float,
    search_s: float,
) -> tuple[_Way | None, str]:  # fmt: skip
    """The first table with which a function is right; otherwise why none is.

    `ways` yields those with the same `args` together. They are `tried` at the last sizes, which
    have the most conditions: at others a function of whole tiles may never end. The right one gets
    the conditions that hold at the first sizes from which on it is right.
    """
    # A case of each table, together if all arguments are the same: leading dimensions differ with
    # the layout.
    cased = ([(_cases(way[1], tried[-1], info)[0], way) for way in tables] for tables in ways)
    left: Iterator[list[tuple[Case, _Way]]] = itertools.chain.from_iterable(
        grouped(one, lambda pair: pair[0].arguments).values() for one in cased
    )
    wrong: list[Outcome] = []
    options, deadlines = Options(timed=False).on(info.kind), Deadlines(run_s=call_s)
    with WorkerPool(options, deadlines) as pool:
        pool.builders.start_own(info)

        def is_right(kernel: Kernel, sizes: _Sizes) -> bool:
            worker, cases = pool.worker(info, kernel), _cases(kernel, sizes, info)
            try:
                if sizes is not tried[-1]:  # where a call may never end
                    worker.run(probing.probed, cases[0], case=cases[0], deadline_s=2.0)
            except CaseError:
                return False
            outcomes = map(worker.measure, cases)
            failed = next((one for one in outcomes if one.status != "measured"), None)
            wrong.extend([] if failed is None else [failed])
            return failed is None

        try:
            for way, kernel in _likeliest(left, info, search_s, pool, wrong):
                if right := [*itertools.takewhile(partial(is_right, kernel), reversed(tried))]:
                    launch = way.get("launch", {})
                    steps = zip("MNK", map(math.gcd, *right[-1]), strict=True)
                    multiples = [f"{axis} % {step} == 0" for axis, step in steps if step > 1]
                    where = [*launch.get("where", ()), *multiples]
                    more = {"launch": launch | {"where": where}} if where else {}
                    return (way | more, kernel), ""
                failed = wrong[-1]
                first = _cases(kernel, tried[-1], info)[0].problem.size
                size = failed.case.problem.size
                if size != first:
                    so = ", so it may keep something" if kernel.kind.is_native else ""
                    words = f"{_product(kernel)} at {first}, but not at {size} after that{so}"
                    return None, f"{words}: {outcome_reason(failed)}"
                if failed.check == "staggered":  # right, unlike the function
                    left = iter(())
                    break
        except LackingError as error:
            return None, f"cannot be called here: {error.reason}"
    if not wrong:
        return None, "has no parameters to pass matrices to"
    late = " (not all calls were tried)" if next(left, None) is not None else ""
    closest = outcome_reason(min(wrong, key=_wrong_share))
    return None, f"no call is right; closest: {closest}{late}"


def _likeliest(
    ways: Iterable[Sequence[tuple[Case, _Way]]], info: DeviceInfo, search_s: float,
    pool: WorkerPool, wrong: list[Outcome],
) -> Iterator[_Way]:  # fmt: skip
    """The tables that one call shows to be right; if there are none, the closest. A call that fails
    is `wrong`. `LackingError`: there can be none."""
    end_s, most, nearest = math.inf, -math.inf, list[_Way]()
    for alike in ways:
        cases = tuple(case for case, _ in alike)
        case, worker = cases[0], pool.worker(info, cases[0].kernel)
        pool.builders.start(info, [case], ("plain",))
        unfit = worker.unfit(case)
        if unfit is not None and (case.skip is None or case.skip.kind == "requirement"):
            raise LackingError(str(outcome_reason(unfit)).splitlines()[0])  # in whichever way
        shares: Sequence[float] = (1.0,)
        spoils = False  # if so, its arguments are others, and what is right is chance
        try:
            if case.kernel.kind.is_native and unfit is None:
                result = worker.run(probing.probed, case, False, cases, case=case)
                shares, spoils = result.alike, bool(result.spoiled)
        except CaseError as error:
            wrong.append(worker.explained(case, worker.failed(case, error)))
            shares = ()
        for share, (_, way) in zip(shares, alike, strict=False):
            nearness = share - spoils if share < 1 else share
            most, nearest = max((most, nearest), (nearness, [way]), key=lambda pair: pair[0])
            if share == 1:
                yield way
        end_s = min(end_s, time.monotonic() + search_s)
        if time.monotonic() > end_s:
            break
    yield from nearest if most < 1 else ()


def _wrong_share(outcome: Outcome) -> float:
    """How much of C is wrong: more than all of it if that is not known, or if nothing ran."""
    cells = outcome.error_map
    if isinstance(cells, ErrorCells):
        return cells.wrong_elements / math.prod(cells.shape)
    return 2.0 if outcome.check is not None else 3.0


def _cases(kernel: Kernel, sizes: _Sizes, info: DeviceInfo) -> list[Case]:
    """The cases that a call must compute, without those that are skipped, or a square one."""
    problems = [Problem(*size, beta=_beta(kernel)) for size in sizes]
    if "beta" in kernel.args:
        problems.insert(-1, Problem(*sizes[0], alpha=2.0, beta=0.5))
    params = {name: values[0] for name, values in kernel.sweep.items()}
    *cases, square = (sweep.case(kernel, problem, params, info) for problem in problems)
    return [case for case in cases if case.skip is None] or [square]


def _product(kernel: Kernel) -> str:
    A, B = (f"{name}{'ᵀ' * (kernel.transpose[i] == 'T')}" for i, name in enumerate("AB"))
    return scaled(f"{A}·{B}", 1.0, _beta(kernel))


def _beta(kernel: Kernel) -> float:
    return kernel.beta if isinstance(kernel.beta, float) else kernel.beta[0]
