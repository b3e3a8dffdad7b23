"""The words of matbench: frozen records of kernels, problems, cases and devices.

Units are in the names: `_ns` nanoseconds, `_bytes` bytes. Shapes of the matrix product are
BLAS's: op(A) is M×K, op(B) is K×N, C := alpha·op(A)·op(B) + beta·C is M×N.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

Inputs = Literal["uniform", "signed", "normal", "ramp", "digits"]
Precision = Literal["float32", "tf32", "float16", "bfloat16", "float64"]
#: How a buffer's numbers lie in memory.
Storage = Literal["float32", "int32", "float16", "bfloat16", "float64"]
WORD_BYTES: dict[Storage, int] = {
    "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "float64": 8
}  # fmt: skip
#: Types that sums are made in.
Accumulator = Literal["float16", "bfloat16", "float32", "float64"]
Layout = Literal["row-major", "column-major"]
#: Which operands lie transposed in memory, as BLAS says it: N, not; T, transposed.
Transpose = Literal["NN", "NT", "TN", "TT"]
Group = Literal["tutorial", "ladder", "blas", "baseline"]

#: Numbers with a limit. Reading a record checks it; making one does not.
Count = Annotated[int, msgspec.Meta(ge=0)]
Side = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

#: Unit roundoffs: how far rounding to nearest moves a number at most, relative to it.
UNIT_ROUNDOFF: dict[Storage, float] = {
    "float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53
}  # fmt: skip
U32 = UNIT_ROUNDOFF["float32"]


class Arithmetic(msgspec.Struct, frozen=True):
    """What a kernel multiplies with: so many products in that precision for each that counts."""

    products: Annotated[int, msgspec.Meta(ge=1, le=16)]
    precision: Precision

    @classmethod
    def parse(cls, text: str) -> Arithmetic:
        """`3 tf32` as `[model]` has it; `ValueError` for anything else."""
        number, _, precision = text.strip().partition(" ")
        if not (number.isascii() and number.isdecimal() and len(number) <= 2):
            raise ValueError(f"no number of products in {text!r:.40}")
        try:
            return msgspec.convert({"products": int(number), "precision": precision.strip()}, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None


def settings_of(params: Mapping[str, int]) -> str:
    """The values of swept constants as text: `TILE=16 THREADS=256`."""
    return " ".join(f"{name}={value}" for name, value in params.items())


class Problem(msgspec.Struct, frozen=True, order=True):
    """One size of one workload and the inputs it is computed from.

    A workload of one dimension has only N; its M and K are 1. A matrix product is multiplied by
    `alpha` and added to `beta`·C; `batch` of them, each on matrices of its own, are one problem.
    """

    M: Side
    N: Side
    K: Side
    inputs: Inputs = "uniform"
    seed: int = 0
    workload: str = "matmul"
    alpha: float = 1.0
    beta: float = 0.0
    batch: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1

    @property
    def size(self) -> str:
        """The size as `--sizes` takes it: `1000`, or `512x1024x768` as M×N×K."""
        if self.workload != "matmul":
            return str(self.N)
        if self.M == self.N == self.K:
            return str(self.M)
        return f"{self.M}x{self.N}x{self.K}"


#: What the host does with C: `sum` adds up one partial sum per block.
Finish = Literal["sum"]

#: The types that an entry's pointers may have, and how the numbers behind them lie in memory.
STORAGE: dict[str, Storage] = {
    "float": "float32", "float2": "float32", "float4": "float32",
    "int": "int32", "int2": "int32", "int4": "int32",
    "unsigned": "int32", "unsigned int": "int32", "uint2": "int32", "uint4": "int32",
    "__half": "float16", "half": "float16", "__half2": "float16", "half2": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
    "__nv_bfloat162": "bfloat16", "nv_bfloat162": "bfloat16",
    "double": "float64", "double2": "float64", "double4": "float64",
}  # fmt: skip


class LaunchRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[launch]` table of a kernel file: expressions for its geometry and its limits."""

    block: tuple[int | str, ...]
    grid: tuple[int | str, ...]
    shared_bytes: int | str = 0
    where: tuple[str, ...] = ()


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a kernel's entry as its source declares it."""

    type: str
    name: str
    pointer: bool


class Reading(msgspec.Struct, frozen=True):
    """How a kernel reads its inputs, which decides what it is checked with.

    Inputs are rounded to `precision` and lie in memory as `storage`; `exponents` is the range of
    binary exponents that it handles. `exact`: results that need no rounding must match to the last
    bit. Sums are made in `sums_in`, and C lies in memory as `result`. Where it `reads_C`, C holds
    numbers when the kernel starts.
    """

    precision: Precision = "float32"
    storage: Storage = "float32"
    exponents: tuple[int, int] = (-126, 127)
    exact: bool = True
    sums_in: Storage = "float32"
    result: Storage = "float32"
    reads_C: bool = False


class Place(msgspec.Struct, frozen=True):
    """Where a matrix lies: element (i, j) at i·`row_step` + j·`column_step`, in elements.

    Memory has `lines` of `width` elements, rows or columns, which begin `pitch` elements apart.
    """

    row_step: int
    column_step: int
    lines: int
    width: int
    pitch: int


class Placing(msgspec.Struct, frozen=True):
    """How the matrices of a product lie in a kernel's memory.

    Their leading dimensions exceed what they hold by `padding` elements.
    """

    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: int = 0

    def place(self, buffer: str, rows: int, columns: int) -> Place:
        """Where op(A), op(B) or C of this shape lies."""
        transposed = buffer != "C" and self.transpose["AB".index(buffer)] == "T"
        by_rows = (self.layout == "row-major") != transposed
        lines, width = (rows, columns) if by_rows else (columns, rows)
        pitch = width + self.padding
        steps = (pitch, 1) if by_rows else (1, pitch)
        return Place(*steps, lines, width, pitch)


class FrontMatter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a kernel file's front matter, and what each is by default.

    `entry` and `args` depend on the name and the workload where a file leaves them out. `previous`
    names the kernel that this one changes: it decides where it is listed, and nothing else.
    """

    name: str
    launch: LaunchRules
    summary: str = ""
    workload: str = "matmul"
    group: Group = "tutorial"
    previous: str | None = None
    entry: str = ""
    args: tuple[str, ...] = ("A", "B", "C", "M", "N", "K")
    sweep: dict[str, tuple[int, ...]] = {}
    tune: dict[str, tuple[int, ...]] = {}
    requires: tuple[str, ...] = ()
    precision: Precision = "float32"
    error_constant: float = 0.0
    exponents: tuple[int, int] | None = None
    finish: Finish | None = None
    deterministic: bool = True
    model: dict[str, str] = {}
    std: str | None = None
    include_dirs: tuple[str, ...] = ()
    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: int = 0
    alpha: float | tuple[float, ...] = 1.0
    beta: float | tuple[float, ...] = 0.0
    batch: int | tuple[int, ...] = 1
    reads: tuple[Literal["C"], ...] = ()
    accumulator: Accumulator | None = None


class Included(msgspec.Struct, frozen=True):
    """A file that a kernel file includes: the name it is included by, where it is, its hash."""

    name: str
    path: str
    sha256: str


class Kernel(FrontMatter, frozen=True):
    """One kernel file: its front matter, its source and the parameters of its entry.

    `path` is what messages call the file, and `file` where it is; empty if it is in none. `sha256`
    covers all that it `includes`, too. `is_extern_c`: its entry has its name in the machine code,
    not a C++ one. `library` names the library that computes in place of a
    source: `numpy` or `cublas`.
    """

    source: str = ""
    path: str = ""
    file: str = ""
    sha256: str = ""
    includes: tuple[Included, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    is_extern_c: bool = True
    library: str | None = None

    @property
    def on_host(self) -> bool:
        """Whether this baseline runs on the CPU whatever the sweep's device is."""
        return "host" in self.requires

    @property
    def arithmetic(self) -> Arithmetic | None:
        """What it multiplies with, where its `[model]` says so."""
        text = self.model.get("arithmetic")
        return Arithmetic.parse(text) if text is not None else None

    @property
    def truncates(self) -> bool:
        """Whether tensor cores may compute its sums; they truncate instead of rounding."""
        return self.precision not in ("float32", "float64")

    @property
    def reading(self) -> Reading:
        """How it reads its inputs; the types of its entry's pointers give the storage."""
        narrow = (-14, 15) if self.precision == "float16" else (-126, 127)
        result = self._storage("C")
        return Reading(
            self.precision,
            self._storage("A"),
            self.exponents or narrow,
            exact=self.error_constant == 0,
            sums_in=self.accumulator or ("float64" if result == "float64" else "float32"),
            result=result,
            reads_C="C" in self.reads,
        )

    def _storage(self, buffer: str) -> Storage:
        """How what the entry's pointer to a buffer points to lies in memory."""
        for text, parameter in zip(self.args, self.parameters, strict=False):
            if parameter.pointer and text == buffer and parameter.type in STORAGE:
                return STORAGE[parameter.type]
        return "float32"

    @property
    def placing(self) -> Placing:
        return Placing(self.layout, self.transpose, self.padding)

    def values(self, problem: Problem) -> dict[str, int | float]:
        """What the problem and the layout give the names of the kernel's expressions."""
        if problem.workload != "matmul":
            return {"N": problem.N}
        M, N, K = problem.M, problem.N, problem.K
        found: dict[str, int | float] = {"M": M, "N": N, "K": K}
        for buffer, shape in (("A", (M, K)), ("B", (K, N)), ("C", (M, N))):
            place = self.placing.place(buffer, *shape)
            found[f"ld{buffer.lower()}"] = place.pitch
            found[f"stride_{buffer.lower()}"] = place.pitch * place.lines
        return found | {"alpha": problem.alpha, "beta": problem.beta, "batch": problem.batch}


class Launch(msgspec.Struct, frozen=True):
    """The geometry of one launch, in threads, blocks and bytes."""

    grid: tuple[Count, Count, Count]
    block: tuple[Count, Count, Count]
    shared_bytes: Count = 0

    @property
    def threads_per_block(self) -> int:
        x, y, z = self.block
        return x * y * z

    @property
    def blocks(self) -> int:
        x, y, z = self.grid
        return x * y * z


class DeviceInfo(msgspec.Struct, frozen=True):
    """A device as its backend describes it.

    `limits` are the whole numbers that front matter may name; `properties` are for people to read;
    `missing` says for each library that cannot be used on it what it lacks.
    """

    backend: str
    index: int
    name: str
    kind: Literal["gpu", "cpu"]
    driver: str
    toolkit: str
    limits: dict[str, int]
    properties: dict[str, str | int | None] = {}
    compute_capability: tuple[int, int] | None = None
    missing: dict[str, str] = {}

    @property
    def label(self) -> str:
        return f"{self.backend}:{self.index} {self.name}"


class Case(msgspec.Struct, frozen=True):
    """One kernel on one problem with one set of parameters.

    `skip` is the reason why it will not run; `is_mistaken`: the kernel file itself is wrong.
    `notes` say where its parameters come from.
    """

    kernel: Kernel
    problem: Problem
    params: dict[str, int]
    launch: Launch | None
    skip: str | None = None
    is_mistaken: bool = False
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.kernel.name} {settings_of(self.params)}".strip() + f" at {self.problem.size}"


class Conditions(msgspec.Struct, frozen=True):
    """What a device, or its host, was like at one moment; None where it is not told.

    `throttled` names what held a GPU's clocks down; `load` is a CPU host's load average over one
    minute and `governor` its frequency governor.
    """

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] = ()
    load: float | None = None
    governor: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """What the compiler gave a kernel, or which library computed; None where it is not told."""

    registers: Count | None = None
    static_shared_bytes: Count | None = None
    local_bytes: Count | None = None
    spilled_bytes: Count | None = None
    max_threads_per_block: Count | None = None
    library: str | None = None
