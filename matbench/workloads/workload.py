"""What a workload is: its buffers and their sizes, its work, and the shapes that find mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from matbench.model import EIGHT_BITS, Inputs, Problem, Storage, WorkloadName

#: M, N, K as in BLAS; a workload of one dimension calls it N, and its M and K are 1.
Size = tuple[int, int, int]
#: M, N, K and the number of products.
Large = tuple[int, int, int, int]


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

    def probes(self, params: Mapping[str, int]) -> dict[Size, str]:
        """Shapes that find mistakes hidden by square multiples of the tile, with their purpose."""
        t = max(params.get("TILE", 16), 2)
        return {
            (1, 1, 1): "a single element",
            (t - 1, t - 1, t - 1): "one less than a tile",
            (t, t, t): "exactly a tile",
            (t + 1, t + 1, t + 1): "one more than a tile",
            (2 * t + 1, 3 * t - 1, t): "partial tiles in M and N",
            (2 * t, t, 2 * t + 1): "partial tile in K",
            (31, 37, 41): "primes",
            (127, 61, 89): "larger primes",
            (5 * t + 3, 2, 7): "tall",
            (2, 5 * t + 3, 7): "wide",
            (t + 1, t + 2, 1): "K = 1",
            (3, 2, 40 * t + 1): "large K",
            (1, 1, 1000): "a dot product",
            (257, 1, 33): "a single column",
            (1, 257, 33): "a single row",
        }

    def large(self) -> list[dict[Large, str]]:
        """For C, A and B, and for batches of each, shapes at which 32-bit indices overflow, the
        largest first. All other sides are short, so that a product is soon done."""
        amounts = "more than 2³¹ elements", "more than 2³² bytes", "more than 2³¹ bytes"
        shapes: dict[str, list[Large]] = {
            "C": [(46342, 46341, 1, 1), (32769, 32769, 1, 1), (23171, 23171, 1, 1)],
            "A": [(rows, 4, 8200, 1) for rows in (262148, 131076, 65540)],
            "B": [(4, columns, 8200, 1) for columns in (262148, 131076, 65540)],
            "C of a batch": [(4096, 4096, 1, batch) for batch in (129, 65, 33)],
            "A of a batch": [(4096, 4, 4096, batch) for batch in (129, 65, 33)],
            "B of a batch": [(4, 4096, 4096, batch) for batch in (129, 65, 33)],
        }
        return [
            {shape: f"{what} in {where}" for shape, what in zip(sizes, amounts, strict=True)}
            for where, sizes in shapes.items()
        ]

    def device_bytes(self, problem: Problem) -> int:
        """Device memory that trials need, at most: three sets of inputs, and five results, of which
        two are in float64."""
        inputs = sum(self.words(name, problem) for name in self.reads)
        return (12 * inputs + 28 * self.words("C", problem)) * problem.batch


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
        return (1, 1) if buffer == "C" else (1, problem.N)

    def terms(self, problem: Problem) -> int:
        return problem.N

    def host_bytes(self, problem: Problem) -> int:
        return 4 * 7 * len(self.reads) * problem.N

    def probes(self, params: Mapping[str, int]) -> dict[Size, str]:
        t = max(params.get("THREADS", 256), 2)
        sizes = {
            1: "a single element",
            2: "two elements",
            31: "less than a warp",
            t - 1: "one less than a block",
            t: "exactly a block",
            t + 1: "one more than a block",
            4 * t + 3: "several blocks and a partial one",
            1009: "a prime",
            65537: "many blocks",
            1_000_003: "more than one pass of any grid",
        }
        return {(1, size, 1): purpose for size, purpose in sizes.items()}

    def large(self) -> list[dict[Large, str]]:
        return [{(1, 2**30, 1, 1): "2³² bytes", (1, 2**29 + 1, 1, 1): "more than 2³¹ bytes"}]
