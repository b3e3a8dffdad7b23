"""Kernels × problems × parameters → cases, or skips with their reason."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from matbench import workloads
from matbench.errors import UsageError
from matbench.kernelfile import cuda_c, expressions
from matbench.model import Case, DeviceInfo, Inputs, Kernel, Launch, Problem
from matbench.workloads import Size, Workload

#: Sizes are passed to kernels as 32-bit integers, with room for a tile to be added to them.
MAX_SIZE = 2**30
MAX_CASES = 100_000


def parse_sizes(text: str, workload: Workload = workloads.MATMUL) -> list[Size]:
    """`256,1000,512x1024x768` as (M, N, K) triples; one number stands for all three."""
    sizes = [_parse_size(piece.strip(), workload) for piece in text.split(",")]
    return list(dict.fromkeys(sizes))


def _parse_size(piece: str, workload: Workload) -> Size:
    words = piece.lower().split("x")
    values = tuple(map(_parse_number, words))
    size = workload.size(tuple(value for value in values if value is not None))
    if None in values or size is None:
        raise UsageError(f"size {piece!r}: write {workload.size_help}")
    for value in size:
        flat = len(workload.dimensions) == 1
        if value < 1:
            what = "there is at least one number" if flat else "a matrix has at least one row"
            raise UsageError(f"size {piece!r}: {what}{'' if flat else ' and column'}")
        if value > MAX_SIZE:
            raise UsageError(f"size {piece!r}: at most {MAX_SIZE:,}{'' if flat else ' a side'}")
    return size


def _parse_number(text: str) -> int | None:
    """A whole number, or a power of two written as `2^28`."""
    if power := re.fullmatch(r"2\^(\d{1,2})", text):
        return 1 << int(power[1])
    return int(text) if re.fullmatch(r"-?\d{1,30}", text) else None


def problems(
    text: str, workload: Workload, inputs: Inputs | None = None, seed: int = 0
) -> list[Problem]:
    """The problems of `--sizes`; inputs are the workload's own kind unless one is given."""
    if inputs is not None and inputs not in workload.inputs:
        raise UsageError(
            f"--inputs {inputs!r}: {workload.name} is drawn from {', '.join(workload.inputs)}"
        )
    kind = inputs or workload.inputs[0]
    return [
        Problem(m, n, k, inputs=kind, seed=seed, workload=workload.name)
        for m, n, k in parse_sizes(text, workload)
    ]


def parse_values(option: str, text: str) -> tuple[int, ...]:
    """`8,16,32` as the values of a swept constant."""
    values = []
    for piece in text.split(","):
        if not re.fullmatch(r"\d{1,9}", piece.strip()) or int(piece) < 1:
            raise UsageError(f"{option} {piece.strip()!r}: a whole number above 0, as in 8,16,32")
        values.append(int(piece))
    return tuple(dict.fromkeys(values))


def parse_settings(
    settings: Iterable[str], tiles: str | None, kernels: Sequence[Kernel]
) -> dict[str, tuple[int, ...]]:
    """`--set NAME=1,2` and `--tiles 8,16` as overrides; a name that no kernel has is refused."""
    overrides: dict[str, tuple[int, ...]] = {}
    if tiles is not None:
        overrides["TILE"] = parse_values("--tiles", tiles)
    known = {name for kernel in kernels for name in (*kernel.sweep, *kernel.tune)}
    for setting in settings:
        name, separator, values = setting.partition("=")
        name = name.strip()
        if not separator:
            raise UsageError(f"--set {setting!r}: write NAME=VALUE, as in THREADS=128,256")
        if name not in known:
            near = difflib.get_close_matches(name.upper(), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
            hint = hint if known else "they sweep nothing"
            raise UsageError(f"--set {name!r}: no chosen kernel sweeps it; {hint}")
        if name in overrides:
            twice = "--tiles and --set both name" if name == "TILE" and tiles else "given twice:"
            raise UsageError(f"--set {setting!r}: {twice} {name}; list its values once")
        overrides[name] = parse_values(f"--set {name}", values)
    return overrides


def parameter_sets(
    kernel: Kernel, overrides: Mapping[str, tuple[int, ...]]
) -> Iterator[dict[str, int]]:
    """Every combination of the kernel's swept constants, overrides taking the place of its own.

    A constant that only `[tune]` names stays at the source's default unless it is overridden.
    """
    yield from combinations(_space(kernel, overrides))


def _space(kernel: Kernel, overrides: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    own = kernel.sweep | kernel.tune
    return kernel.sweep | {name: values for name, values in overrides.items() if name in own}


def combinations(space: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """Every choice of one value for each name; an empty space has one, the empty choice."""
    for choice in itertools.product(*space.values()):
        yield dict(zip(space, choice, strict=True))


def probed(
    kernel: Kernel,
    overrides: Mapping[str, tuple[int, ...]],
    device: DeviceInfo,
    memory_bytes: int | None,
) -> list[tuple[str, Case]]:
    """Cases to probe, each with what it is for; those of one problem together.

    With `memory_bytes` of the host given, also the largest C that fits it well.
    """
    found: list[tuple[str, Case]] = []
    workload = workloads.get(kernel.workload)
    for params in parameter_sets(kernel, overrides):
        for (m, n, k), purpose in workload.probes(params).items():
            for kind in workload.probed_inputs:
                problem = Problem(m, n, k, inputs=kind, workload=workload.name)
                found.append((purpose, case(kernel, problem, params, device)))
    found.sort(key=lambda probe: probe[1].problem)
    for (m, n, k), purpose in workload.large().items():
        problem = Problem(m, n, k, inputs=workload.probed_inputs[0], workload=workload.name)
        if 2 * workload.host_bytes(problem) < (memory_bytes or 0):
            for params in parameter_sets(kernel, overrides):
                found.append((purpose, case(kernel, problem, params, device)))
            break
    return found


def cases(
    kernels: Iterable[Kernel],
    problems: Iterable[Problem],
    overrides: Mapping[str, tuple[int, ...]],
    device: DeviceInfo,
) -> list[Case]:
    """All cases on one device, problem by problem and there by how kernels read their inputs, so
    that those are made and uploaded once.

    A kernel takes the problems of its own workload.
    """
    kernels = list(kernels)
    readings = list(dict.fromkeys(kernel.reading for kernel in kernels))
    kernels.sort(key=lambda kernel: readings.index(kernel.reading))
    pairs = [
        (kernel, problem)
        for problem in problems
        for kernel in kernels
        if kernel.workload == problem.workload
    ]
    count = sum(math.prod(map(len, _space(kernel, overrides).values())) for kernel, _ in pairs)
    if count > MAX_CASES:
        raise UsageError(f"{count:,} cases: more than {MAX_CASES:,}; sweep less at a time")
    return [
        case(kernel, problem, params, device)
        for kernel, problem in pairs
        for params in parameter_sets(kernel, overrides)
    ]


def case(kernel: Kernel, problem: Problem, params: dict[str, int], device: DeviceInfo) -> Case:
    """One case with its launch worked out, or with the reason why the device cannot run it.

    Geometry that no device could launch is a mistake of the kernel's file.
    """
    values = {**device.limits, **params, **workloads.of(problem).values(problem)}
    try:
        reason = _unmet_requirement(kernel, device) or _unmet_condition(kernel, values)
        if reason:
            return Case(kernel, problem, params, None, reason)
        launch = _launch(kernel, values)
    except expressions.ExpressionError as error:
        reason = f"front matter: {error}"
        return Case(kernel, problem, params, None, reason, is_mistaken=True)
    try:
        _check_arguments(kernel, values)
    except expressions.ExpressionError as error:
        return Case(kernel, problem, params, None, f"front matter: {error}")
    return Case(kernel, problem, params, launch, _beyond_limits(launch, device.limits))


def _unmet_requirement(kernel: Kernel, device: DeviceInfo) -> str | None:
    for requirement in kernel.requires:
        if requirement == "cuda" and device.backend != "cuda":
            return f"needs CUDA; this is {device.backend}"
        if requirement.startswith("sm_"):
            have = device.compute_capability
            if have is None:
                return f"needs {requirement}; this is {device.backend}"
            number = requirement[3:].rstrip("af")
            wanted = int(number[:-1]), int(number[-1])
            exact = requirement.endswith("a")
            family = requirement.endswith("f")
            if have < wanted or (exact and have != wanted) or (family and have[0] != wanted[0]):
                return f"needs {requirement}; this device is sm_{have[0]}{have[1]}"
    return device.missing.get(kernel.library or "")


def _unmet_condition(kernel: Kernel, values: Mapping[str, int]) -> str | None:
    for condition in kernel.launch.where:
        if not expressions.evaluate(condition, values):
            used = expressions.names_in(condition, values)
            given = ", ".join(f"{name} = {values[name]}" for name in used)
            return f"needs {condition} ({given})" if given else f"needs {condition}"
    return None


def _check_arguments(kernel: Kernel, values: Mapping[str, int]) -> None:
    for text, parameter in zip(kernel.args, kernel.parameters, strict=False):
        described = cuda_c.tensor_map(text)
        if described is not None:
            box = [expressions.whole(side, values) for side in described[1:]]
            if not all(1 <= side <= 256 for side in box):
                raise expressions.ExpressionError(f"{text}: a box has 1 to 256 rows and columns")
        elif not parameter.pointer:
            value = expressions.evaluate(text, values)
            if not cuda_c.holds(parameter.type, value):
                what = f"{text} = {value}" if text != str(value) else text
                raise expressions.ExpressionError(
                    f"{what:.80} does not fit {parameter.name}, which is {parameter.type}"
                )


def _launch(kernel: Kernel, values: Mapping[str, int]) -> Launch:
    """The geometry that front matter gives; an error names the key and its expression."""

    def number(key: str, text: int | str, least: int) -> int:
        try:
            found = expressions.whole(text, values)
        except expressions.ExpressionError as error:
            raise expressions.ExpressionError(f"launch.{key} {str(text)!r:.60}: {error}") from None
        if found < least:
            raise expressions.ExpressionError(
                f"launch.{key} {str(text)!r:.60} is {found}; at least {least} is needed"
            )
        return found

    def three(key: str, axes: tuple[int | str, ...]) -> tuple[int, int, int]:
        x, y, z = [*(number(key, axis, 1) for axis in axes), 1, 1][:3]
        return x, y, z

    rules = kernel.launch
    return Launch(
        grid=three("grid", rules.grid),
        block=three("block", rules.block),
        shared_bytes=number("shared_bytes", rules.shared_bytes, 0),
    )


def _beyond_limits(launch: Launch, limits: Mapping[str, int]) -> str | None:
    """The first limit of the device that a launch passes, whatever its front matter says."""
    asked = {
        "max_threads_per_block": ("threads a block", launch.threads_per_block),
        "max_shared_bytes_per_block": ("bytes of shared memory a block", launch.shared_bytes),
        **{
            f"max_block_{a}": (f"threads in {a}", n)
            for a, n in zip("xyz", launch.block, strict=True)
        },
        **{f"max_grid_{a}": (f"blocks in {a}", n) for a, n in zip("xyz", launch.grid, strict=True)},
    }
    for limit, (what, number) in asked.items():
        if number > limits[limit]:
            return f"needs {number:,} {what}; this device allows {limits[limit]:,}"
    return None
