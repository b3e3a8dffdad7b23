"""What a workload is: its buffers and their sizes, its inputs and its work."""

from __future__ import annotations

from typing import ClassVar, Literal

from matbench.model import EIGHT_BITS, Inputs, Problem, Storage, WorkloadName

#: M, N, K as in BLAS; a workload of one dimension calls it N, and its M and K are 1.
Size = tuple[int, int, int]


class Workload:
    """The matrix product, unless a subclass says otherwise."""

    name: ClassVar[WorkloadName] = "matmul"
    title: ClassVar[str] = "matrix product C = A·B"
    dimensions: ClassVar[tuple[str, ...]] = ("M", "N", "K")
    #: The buffers that are read; C is written.
    reads: ClassVar[tuple[str, ...]] = ("A", "B")
    #: The element type of C.
    element: ClassVar[Literal["float32", "int32"]] = "float32"
    #: The possible kinds of inputs; the first is the default.
    inputs: ClassVar[tuple[Inputs, ...]] = ("uniform", "signed", "normal")
    #: The kinds of inputs for awkward shapes.
    probed_inputs: ClassVar[tuple[Inputs, ...]] = ("uniform", "signed")
    default_sizes: ClassVar[str] = "256,1000"
    smoke_sizes: ClassVar[str] = "1,17,33,65x31x129"
    #: A shape with partial tiles and blocks, at which races show.
    awkward: ClassVar[Size] = (65, 31, 129)
    #: How to write a size, for error messages.
    size_help: ClassVar[str] = "1000 or MxNxK, as in 512x1024x768, or a range, as in 256..8k"
    #: Whether C is a single number, for which blocks may leave partial sums to the host.
    is_reduction: ClassVar[bool] = False
    #: The unit of speed.
    rate: ClassVar[Literal["FLOP/s", "B/s"]] = "FLOP/s"
    #: Conditions that every size must meet, as in a kernel's `where`.
    where: ClassVar[tuple[str, ...]] = ()
    #: The denominator of relative errors.
    relative_to: ClassVar[str] = "|R|"

    @property
    def buffers(self) -> tuple[str, ...]:
        return (*self.reads, "C")

    @property
    def arguments(self) -> tuple[str, ...]:
        """An entry's arguments unless its file gives `args`."""
        return (*self.buffers, *self.dimensions)

    def storages(self, buffer: str, operands: Storage) -> tuple[Storage, ...]:
        """The element types that a buffer may have, where operands have that type."""
        floats: tuple[Storage, ...] = ("float32", "float16", "bfloat16", "float64")
        if buffer != "C":
            return (*floats, "int32", *EIGHT_BITS)
        results: dict[Storage, tuple[Storage, ...]] = {
            "int32": ("int32",), "int8": (*floats, "int32")
        }  # fmt: skip
        return results.get(operands, floats)

    def size(self, numbers: tuple[int, ...]) -> Size | None:
        """The size for one number, or for one per dimension; None for any other count."""
        if len(numbers) == 1:
            numbers *= len(self.dimensions)
        if len(numbers) != len(self.dimensions):
            return None
        given = dict(zip(self.dimensions, numbers, strict=True))
        return given.get("M", 1), given.get("N", 1), given.get("K", 1)

    def shape(self, buffer: str, problem: Problem) -> tuple[int, int]:
        """The rows and columns of a buffer; for C, those of the final result."""
        M, N, K = problem.M, problem.N, problem.K
        return {"A": (M, K), "B": (K, N), "C": (M, N)}[buffer]

    def words(self, buffer: str, problem: Problem) -> int:
        rows, columns = self.shape(buffer, problem)
        return rows * columns

    def operations(self, problem: Problem) -> int:
        """The number of arithmetic operations: a multiplication and an addition per term."""
        return 2 * problem.M * problem.N * problem.K * problem.batch

    def work(self, problem: Problem) -> int:
        """The work that speed is based on: operations, or bytes if there are few operations."""
        return self.operations(problem) if self.rate == "FLOP/s" else self.least_bytes(problem)

    def terms(self, problem: Problem) -> int:
        """The number of products summed in each element of C, which bounds its rounding error."""
        return problem.K

    def least_bytes(self, problem: Problem, loaded: int = 4, stored: int = 4) -> int:
        """The least possible global traffic, with elements of so many bytes: each input read once,
        the result written once."""
        read = sum(self.words(buffer, problem) for buffer in self.reads)
        written = self.words("C", problem) * (2 if problem.beta else 1)
        return (loaded * read + stored * written) * problem.batch

    def host_bytes(self, problem: Problem) -> int:
        """Host memory needed while the inputs and references of all trials are computed."""
        M, N, K = problem.M, problem.N, problem.K
        return 16 * (M * K + K * N) + 48 * M * N


class VectorWorkload(Workload):
    """N numbers in an array."""

    dimensions: ClassVar[tuple[str, ...]] = ("N",)
    reads: ClassVar[tuple[str, ...]] = ("A",)

    def storages(self, buffer: str, operands: Storage) -> tuple[Storage, ...]:
        """Floating-point inputs may also have 16 bits."""
        if buffer == "C" or self.element == "int32":
            return (self.element,)
        return (self.element, "float16", "bfloat16")

    smoke_sizes = "1,33,257,4099"
    awkward = (1, 4099, 1)
    size_help = "a number such as 1000, 4M or 2^28, or a range, as in 1k..1M"
    rate = "B/s"

    def shape(self, buffer: str, problem: Problem) -> tuple[int, int]:
        return (1, 1) if buffer == "C" and self.is_reduction else (1, problem.N)

    def terms(self, problem: Problem) -> int:
        return problem.N

    def host_bytes(self, problem: Problem) -> int:
        return 4 * 7 * len(self.reads) * problem.N
