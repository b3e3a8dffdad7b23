"""Kernels × problems × parameters → cases, some of which cannot run."""

from __future__ import annotations

import itertools
import math
import pickle
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from matbench import cache, workloads
from matbench.errors import MatbenchError, UsageError, listed
from matbench.kernelfile import expressions, opencl_c, signature, sizes
from matbench.kernelfile.device_part import NeedsCudaError
from matbench.kernelfile.front_matter import DEVICE_LIMITS
from matbench.kernelfile.host_file import HANDLES, NULL
from matbench.model import Box, Case, DeviceInfo, Kernel, Launch, Problem, Skip, settings_of

N = TypeVar("N", int, float)

#: The values of swept constants, or those that take their place.
Space = Mapping[str, tuple[int, ...]]

MAX_CASES = 100_000
#: What no NVIDIA GPU exceeds. Kernels are for these, also where they run through OpenCL.
GPU_LIMITS = {name: most for name, most in DEVICE_LIMITS.items() if name.startswith("max_")}
GPU_LIMITS["max_shared_bytes_per_block"] = 227 << 10
#: The scaling of a product, and the number of products.
SCALINGS = ("alpha", "beta", "batch")
#: So that sums of products of int8, times alpha, plus beta times the old C, are in int32's range.
_INT32_CONDITIONS = (
    "max(alpha, -alpha) * K <= 2**17", "max(beta, -beta) <= 2**17",
    "alpha % 1 == 0", "beta % 1 == 0",
)  # fmt: skip
#: A condition that leaves one value for a size.
_FIXED = re.compile(r"([MNK]) == (\d+)")


def parameter_sets(kernel: Kernel, overrides: Space) -> Iterator[dict[str, int]]:
    """Every combination of the kernel's swept constants, with `overrides` in place of its own.

    A constant that only `[tune]` names keeps the source's default unless it is overridden.
    `UsageError` if there are too many combinations.
    """
    space = _space(kernel, overrides)
    count = math.prod(map(len, space.values()))
    if count > MAX_CASES:
        most = f"more than {MAX_CASES:,}; --set fewer values"
        raise UsageError(f"{kernel.name}: {count:,} combinations, {most}")
    return combinations(space)


def _space(kernel: Kernel, overrides: Space) -> dict[str, tuple[int, ...]]:
    axes = kernel.sweep | kernel.tune
    return kernel.sweep | {name: values for name, values in overrides.items() if name in axes}


def combinations(space: Mapping[str, Sequence[N]]) -> Iterator[dict[str, N]]:
    """Every choice of one value for each name; an empty space has one empty choice."""
    for choice in itertools.product(*map(dict.fromkeys, space.values())):
        yield dict(zip(space, choice, strict=True))


def allowed(
    kernel: Kernel, size: workloads.Size, params: dict[str, int], device: DeviceInfo
) -> workloads.Size | None:
    """An allowed size near one that `where` excludes; None if the size itself is allowed, or none
    is found. Candidates have the sides that `where` fixes, equal ones, or multiples of a constant
    or a power of two."""

    conditions = (*workloads.workload_of(kernel).where, *kernel.launch.where)

    def is_allowed(size: workloads.Size) -> bool:
        M, N, K = size
        problem = Problem(M, N, K, workload=kernel.workload)
        try:
            values = _values(kernel, problem, params, device)
            return _unmet(conditions, values) is None
        except expressions.ExpressionError:
            return True  # the case reports the error

    if is_allowed(size):
        return None
    equal = (_FIXED.fullmatch(condition.strip()) for condition in kernel.launch.where)
    fixed = {match[1]: int(match[2]) for match in equal if match is not None}
    steps = sorted({1, 2, 4, 8, 16, 32, 64, 128, *params.values()})
    for sides in (size, (max(size),) * 3):
        for step in steps:
            whole = (expressions.ceil_div(side, step) * step for side in sides)
            m, n, k = (fixed.get(*pair) for pair in zip("MNK", whole, strict=True))
            if is_allowed((m, n, k)):
                return m, n, k
    return None


def cases(
    kernels: Sequence[Kernel], problems: Sequence[Problem], overrides: Space, device: DeviceInfo
) -> list[Case]:
    """All cases on one device; each kernel takes the problems of its own workload.

    They are ordered by problem, and then by how kernels read their inputs, so that inputs are
    generated and uploaded once.
    """
    readings = list(dict.fromkeys(kernel.contract for kernel in kernels))
    kernels = sorted(kernels, key=lambda kernel: readings.index(kernel.contract))
    wanted = [(kernel, _computed(kernel, problems)) for kernel in kernels]
    pairs = [(kernel, problem) for problem in problems for kernel, own in wanted if problem in own]
    count = sum(math.prod(map(len, _space(kernel, overrides).values())) for kernel, _ in pairs)
    if count > MAX_CASES:
        raise UsageError(f"{count:,} cases, more than {MAX_CASES:,}; run fewer at a time")
    return [
        case(kernel, problem, params, device)
        for kernel, problem in pairs
        for params in combinations(_space(kernel, overrides))
    ]


def quick(
    kernels: Sequence[Kernel], problems: Sequence[Problem], overrides: Space, device: DeviceInfo
) -> list[Case]:
    """The cases of a quick check; where `where` excludes their size, at an allowed one near it."""
    moved: dict[tuple[str, str, Problem], Case] = {}
    for one in cases(kernels, problems, overrides, device):
        kernel, problem, params = one.kernel, one.problem, one.params
        size = None
        if one.skip is not None and one.skip.kind == "condition":
            size = allowed(kernel, (problem.M, problem.N, problem.K), params, device)
        if size is not None:
            problem = msgspec.structs.replace(problem, **dict(zip("MNK", size, strict=True)))
            one = case(kernel, problem, params, device)
        moved.setdefault((kernel.name, settings_of(params), problem), one)
    return [*moved.values()]


def _computed(kernel: Kernel, problems: Sequence[Problem]) -> set[Problem]:
    """The problems that a kernel is run on: those that it can compute, and all problems of a size
    of which it can compute none; these are skipped."""
    given = {problem for problem in problems if problem.workload == kernel.workload}
    computed = {problem for problem in given if not_computed(kernel, problem) is None}
    sizes = {problem.size for problem in computed}
    return {problem for problem in given if problem in computed or problem.size not in sizes}


def scalings(kernel: Kernel, asked: Mapping[str, tuple[float, ...]]) -> Iterator[dict[str, Any]]:
    """Every alpha, beta and batch that a kernel is run with: those `asked` for, or declared."""
    names = SCALINGS if kernel.workload == workloads.DEFAULT else ()
    declared = {name: asked.get(name, sizes.numbers(getattr(kernel, name))) for name in names}
    return combinations(declared)


def not_computed(kernel: Kernel, problem: Problem) -> Skip | None:
    """What keeps a kernel from a product with this alpha, beta and batch; None if it computes it.
    It can if its front matter lists them or passes them on."""
    for name in SCALINGS if problem.workload == workloads.DEFAULT else ():
        value, known = getattr(problem, name), sizes.numbers(getattr(kernel, name))
        texts = (*kernel.args, *map(str, kernel.launch.grid))
        passed = any(re.search(rf"\b{name}\b", text) for text in texts)
        if value not in known and not passed:
            wanted = listed(f"{number:.9g}" for number in known)
            return Skip("condition", f"{name} = {wanted}", {name: value})
    if kernel.contract.result == "int32" and problem.workload == workloads.DEFAULT:
        return _unmet(_INT32_CONDITIONS, kernel.values(problem))
    return None


def case(kernel: Kernel, problem: Problem, params: dict[str, int], device: DeviceInfo) -> Case:
    """One case with its launch, or with what keeps the device from running it. Geometry that no
    device can launch is a mistake in the kernel file."""
    made = _case(kernel, problem, params, device)
    takes_size = any(re.search(r"\b[MNK]\b", text) for text in kernel.args)
    is_reordered = device.kind == "cpu" and kernel.kind.has_source and takes_size
    if made.skip is not None or not is_reordered:
        return made
    workload, scaling = workloads.workload_of(kernel), next(scalings(kernel, {}))
    scaling |= {"batch": min(3, scaling.get("batch", 1))}
    size = allowed(kernel, workload.awkward, params, device) or workload.awkward
    small = Problem(*size, inputs=workload.probed_inputs[0], workload=workload.name, **scaling)
    return msgspec.structs.replace(made, awkward=_case(kernel, small, params, device))


def _case(kernel: Kernel, problem: Problem, params: dict[str, int], device: DeviceInfo) -> Case:
    notes = kernel.adoption.notes if kernel.adoption is not None else ()
    if (skip := kernel.never) is not None:
        return Case(kernel, problem, params, None, skip, notes)
    values: dict[str, int | float] = {}
    try:
        values = _values(kernel, problem, params, device)
        skip = (
            _unmet_requirement(kernel, device)
            or not_computed(kernel, problem)
            or _unmet((*workloads.workload_of(kernel).where, *kernel.launch.where), values)
        )
        launch = _launch(kernel, values) if skip is None else None
    except expressions.ExpressionError as error:
        skip, launch = Skip("mistake", str(error)), None
    if launch is None:
        return Case(kernel, problem, params, None, skip, notes)
    try:
        arguments = _arguments(kernel, values)
    except expressions.ExpressionError as error:
        return Case(kernel, problem, params, None, Skip("argument", str(error)), notes)
    return Case(kernel, problem, params, launch, _beyond_limits(launch, device), notes, arguments)


def _values(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], device: DeviceInfo
) -> dict[str, int | float]:
    constants = expressions.constants(kernel.let, params)
    return {**_limits(device), **constants, **kernel.values(problem)}


def _limits(device: DeviceInfo) -> dict[str, int]:
    """The device's limits; through OpenCL at most those of NVIDIA's GPUs."""
    most = GPU_LIMITS if device.backend == "opencl" else {}
    return {name: min(held, most.get(name, held)) for name, held in device.limits.items()}


def _unmet_requirement(kernel: Kernel, device: DeviceInfo) -> Skip | None:
    have = device.compute_capability or (0, 0)
    found = "sm_{}{}".format(*have) if device.compute_capability else device.backend
    for requirement in kernel.requires:
        is_met = requirement != "cuda" or device.backend == "cuda"
        if requirement.startswith("sm_"):
            wanted = divmod(int(requirement[3:].rstrip("af")), 10)
            same = {"a": have == wanted, "f": have[0] == wanted[0]}.get(requirement[-1], True)
            is_met = have >= wanted and same
        if not is_met:
            return Skip("requirement", requirement, {"device": found})
    narrow = {kernel.contract.storage, kernel.contract.result} & {"float16", "bfloat16"}
    if device.backend == "opencl" and kernel.kind.is_apart and narrow:
        return Skip("requirement", "cuda", {"device": device.backend})
    is_translated = device.backend == "opencl" and kernel.source and kernel.kind.has_source
    missing = obstacle(kernel) if is_translated else None
    return Skip("unavailable", missing) if missing else None


def obstacle(kernel: Kernel) -> str | None:
    """What in a kernel only CUDA has, in one line; other errors show in the build."""
    return _obstacle(pickle.dumps(kernel)) or None


@lru_cache(maxsize=64)
def _obstacle(pickled: bytes) -> str:
    """It takes longer to find than most cases to measure, so it is kept, unless the kernel includes
    files, which may have changed since they were hashed."""
    kernel: Kernel = pickle.loads(pickled)  # noqa: S301 (of this process)

    def found() -> bytes:
        try:
            opencl_c.unit(kernel, {})
        except NeedsCudaError as error:
            return str(error).encode("utf-8", "surrogatepass")
        except MatbenchError:
            pass
        return b""

    told = found() if kernel.includes else cache.kept(f"obstacle {kernel!r}", found)
    return str(told, "utf-8", "surrogatepass")


def _unmet(conditions: Iterable[str], values: Mapping[str, int | float]) -> Skip | None:
    """The first of some conditions that these values do not meet."""
    for condition in conditions:
        if not expressions.evaluate(condition, values):
            used = expressions.names_in(condition, values)
            return Skip("condition", condition, {name: values[name] for name in used})
    return None


def _arguments(kernel: Kernel, values: Mapping[str, int | float]) -> tuple[str | float | Box, ...]:
    """The arguments of a case; `ExpressionError` if one does not fit into its parameter."""
    named = {*workloads.memory_of(kernel), *HANDLES.values(), NULL}
    found: list[str | float | Box] = []
    parameters = kernel.parameters[: len(kernel.args)]  # none of functions in Python
    for text, parameter in itertools.zip_longest(kernel.args, parameters):
        if (described := expressions.tensor_map(text)) is not None:
            rows, columns = (expressions.whole(side, values) for side in described[1:])
            if not (1 <= rows <= 256 and 1 <= columns <= 256):
                limit = "a box must have 1 to 256 rows and columns"
                raise expressions.ExpressionError(f"{text}: {limit}")
            found.append(Box(described[0], rows, columns))
        elif text in named:
            found.append(text)
        else:
            value = expressions.evaluate(text, values)
            kind = None if parameter is None or parameter.pointer else parameter.type
            is_rounded = kind == "float" and kernel.contract.result == "float64"
            is_rounded = is_rounded and struct.unpack("f", struct.pack("f", value))[0] != value
            if is_rounded or (kind in signature.SCALARS and not holds(kind, value)):
                what = f"{text} = {value}" if text != str(value) else text
                where = f"{parameter.name}, of type {kind}"
                raise expressions.ExpressionError(f"{what:.80} does not fit into {where}")
            found.append(value)
    return tuple(found)


def holds(kind: str, value: int | float) -> bool:
    """Whether a parameter of this type can represent the value exactly."""
    stored = signature.SCALARS[kind]
    if stored == "bool":
        return value in (0, 1)
    if stored in ("float16", "bfloat16"):
        return signature.bits_of_16(kind, value) is not None
    if (whole := re.fullmatch(r"(u?)int(\d+)", stored)) is None:
        return abs(value) < 2.0**128  # about where float32 ends
    bits = int(whole[2]) - (not whole[1])
    return value == int(value) and (0 if whole[1] else -(2**bits)) <= value < 2**bits


def _launch(kernel: Kernel, values: Mapping[str, int | float]) -> Launch:
    found: list[list[int]] = []
    for key in ("grid", "block", "shared_bytes", "workspace_bytes"):
        given, least = getattr(kernel.launch, key), 0 if key.endswith("bytes") else 1
        found.append([])
        for text in given if isinstance(given, tuple) else (given or 0,):
            asked = f"launch.{key} {str(text)!r:.60}"
            try:
                number = expressions.whole(text, values)
            except expressions.ExpressionError as error:
                raise expressions.ExpressionError(f"{asked}: {error}") from None
            if number < least:
                raise expressions.ExpressionError(f"{asked} is {number}; must be at least {least}")
            found[-1].append(number)
    (x, y, z, *_), (a, b, c, *_) = ([*numbers, 1, 1] for numbers in found[:2])
    return Launch((x, y, z), (a, b, c), found[2][0], found[3][0])


def _beyond_limits(launch: Launch, device: DeviceInfo) -> Skip | None:
    """The first limit that a launch exceeds, whatever its front matter says."""
    limits = {**_limits(device), "workspace_bytes": 2**63 - 1}
    asked = {"max_threads_per_block": launch.threads_per_block}
    asked["max_shared_bytes_per_block"] = launch.shared_bytes
    for axis, threads, blocks in zip("xyz", launch.block, launch.grid, strict=True):
        asked |= {f"max_block_{axis}": threads, f"max_grid_{axis}": blocks}
    asked["workspace_bytes"] = launch.workspace_bytes
    for limit, number in asked.items():
        if number > (allowed := limits[limit]):
            # JSON holds whole numbers of at most 64 bits.
            kept = number if number < 2**63 else float(number)
            of = {"device": "cuda"} if allowed < device.limits.get(limit, 0) else {}
            return Skip("limit", limit, {"asked": kept, "allowed": allowed, **of})
    return None
