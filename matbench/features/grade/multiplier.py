"""Multiplies chosen matrices with a kernel: one launch, and C as float64.

Matrices are given and returned in the usual sense, op(A) times op(B); the kernel's own layout and
types are hidden. If the kernel does not accept a size, zeros are added up to one that it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from matbench import workloads
from matbench.backends.protocol import Backend, Program
from matbench.bench import kernel_arguments
from matbench.bench.device_kernels import UNWORKED
from matbench.bench.kernel_arguments import Float64, Memory
from matbench.errors import CaseError, UsageError
from matbench.features.grade import accuracy
from matbench.kernelfile import sizes, sweep
from matbench.model import INTEGERS, SCALE_OF, WORKSPACE, Case, DeviceInfo, Kernel, Problem
from matbench.show.reasons import skip_reason
from matbench.workloads import rounding
from matbench.workloads.doubled import product
from matbench.workloads.rounding import decoded, encoded


def problem_of(kernel: Kernel, M: int, N: int, K: int) -> Problem:
    """C = A·B as this kernel can compute it; `UsageError` if it cannot.

    Any beta will do, because C is zero before a launch.
    """
    if kernel.workload != workloads.DEFAULT:
        raise UsageError(
            f"{kernel.name} computes the {workloads.workload_of(kernel).title.split(' ·')[0]}; "
            "only matrix products can be graded"
        )
    if kernel.contract.storage in INTEGERS:
        raise UsageError(
            f"{kernel.name} multiplies whole numbers, without rounding errors to grade; "
            f"`matbench check {kernel.name}` requires exact sums"
        )
    problem = Problem(M, N, K)
    for name in sweep.SCALINGS:
        known = sizes.numbers(getattr(kernel, name))
        wanted = getattr(problem, name)
        passed = not kernel.kind.is_launched or name in kernel.args
        if wanted not in known and not passed:
            if name == "alpha":
                raise UsageError(f"{kernel.name} needs alpha = {known[0]:g}; it must be 1 to grade")
            problem = msgspec.structs.replace(problem, **{name: min(known)})
    return problem


@dataclass(eq=False)
class Multiplier:
    """One kernel with one set of parameters on an open device; `multiply` launches it.

    `build` gives the program for a case. `seed` is that of all random numbers.
    """

    backend: Backend
    build: Callable[[Case], Program]
    kernel: Kernel
    params: dict[str, int]
    seed: int = 0

    def __post_init__(self) -> None:
        self.info: DeviceInfo = self.backend.info
        contract = self.kernel.contract
        self.storage, self.result = contract.storage, contract.result
        self.sums_in, self.exponents = contract.sums_in, contract.exponents

    def case(self, M: int, N: int, K: int) -> Case:
        """The case of this size, or of the next that the kernel accepts; `CaseError` if none."""
        asked = M, N, K
        size = sweep.allowed(self.kernel, asked, self.params, self.info) or asked
        if any(side < least for side, least in zip(size, asked, strict=True)):
            size = asked  # terms would be lost
        case = sweep.case(self.kernel, problem_of(self.kernel, *size), self.params, self.info)
        if case.skip is not None:
            raise CaseError(skip_reason(case.skip))
        return case

    def stored(self, values: Float64) -> Float64:
        """Numbers that A and B can hold: each rounded to nearest."""
        return decoded(encoded(values, self.storage), self.storage)

    def multiply(self, A: Float64, B: Float64) -> Float64:
        """C = A·B by one launch; `CaseError` if it fails."""
        (M, K), N = A.shape, B.shape[1]
        case = self.case(M, N, K)
        kernel, problem = case.kernel, case.problem
        assert case.launch is not None
        matrices = {name: kernel_arguments.matrix(kernel, problem, name) for name in "ABC"}
        numbers = {"A": A, "B": B, "C": np.zeros((0, 0))}
        sent = {}
        for name, matrix in matrices.items():
            lines, whole = matrix.turned(numbers[name]), np.zeros(matrix.shape)
            whole[:, : lines.shape[0], : lines.shape[1]] = lines
            sent[name] = encoded(whole, matrix.storage)
        with Memory(self.backend) as memory:
            buffers = {name: memory.upload(array, is_given=True) for name, array in sent.items()}
            if WORKSPACE in kernel.args:
                words = max(1, -(-case.launch.workspace_bytes // 4))
                buffers[WORKSPACE] = memory.upload(np.full(words, UNWORKED, np.uint32))
            for name in SCALE_OF.values() if kernel.scales is not None else ():
                shape = kernel_arguments.matrix(kernel, problem, name).shape
                buffers[name] = memory.upload(np.ones(shape, np.float32))
            kernel_arguments.launch(self.backend, self.build(case), case, buffers)
            after = memory.download(buffers["C"], like=sent["C"])
        result = matrices["C"]
        return result.turned(decoded(after[0, :, : result.place.width], result.storage))[:M, :N]

    # -- inputs and errors -----------------------------------------------------------------

    def random(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def uniform(self, random: np.random.Generator, rows: int, columns: int) -> Float64:
        """Numbers in [0, 1) that the kernel's inputs can hold."""
        return self.stored(random.random((rows, columns)))

    def signed(self, random: np.random.Generator, rows: int, columns: int) -> Float64:
        """Numbers in [−1, 1) that the kernel's inputs can hold."""
        return self.stored(2 * random.random((rows, columns)) - 1)

    def near_one(self, random: np.random.Generator, rows: int, columns: int) -> Float64:
        """Numbers in [½, 1], whose products and scaled values keep all bits."""
        return self.stored((1 + random.random((rows, columns))) / 2)

    def errors(
        self, A: Float64, B: Float64, rows: Float64 | float = 1.0, inner: Float64 | float = 1.0,
        columns: Float64 | float = 1.0,
    ) -> accuracy.Errors:  # fmt: skip
        """Errors of the product of rows·A·inner and B·columns/inner, with powers of two as factors;
        the reference would lose bits if it were computed from scaled numbers."""
        left, right = A * rows * inner, B * columns / np.reshape(inner, (-1, 1))
        C, R = self.multiply(left, right), product(A, B) * rows * columns
        return accuracy.errors(C, R, left, right, self.result)

    @property
    def widest(self) -> int:
        """The widest spread of powers of two that A and B can have, in binades."""
        low, high = self.exponents
        _, least, most = rounding.FORMATS[self.storage]
        reach = min(high, most, -low, -least)
        return max(0, 2 * (reach - (8 if reach > 20 else 4)))
