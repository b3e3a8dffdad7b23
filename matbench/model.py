"""matbench's data types: frozen records of kernels, problems, cases and devices.

Names end in their units: `_ns` nanoseconds, `_bytes` bytes. Shapes are as in BLAS: op(A) is M×K,
op(B) is K×N, C := alpha·op(A)·op(B) + beta·C is M×N.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

Inputs = Literal["uniform", "signed", "normal", "ramp", "digits"]
#: What a kernel computes; see `workloads`.
WorkloadName = Literal["matmul", "dot", "reverse", "cubes"]
Precision = Literal[
    "float32", "tf32", "float16", "bfloat16", "float64", "e4m3", "e5m2", "int8", "int32"
]  # fmt: skip
#: Element types of buffers. e4m3 and e5m2 are those of the Open Compute Project's 8-bit floating
#: point specification (OFP8, 2023), named after the bits of exponent and fraction.
Storage = Literal[
    "float32", "int32", "float16", "bfloat16", "float64", "e4m3", "e5m2", "int8"
]  # fmt: skip
WORD_BYTES: dict[Storage, int] = {
    "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "float64": 8,
    "e4m3": 1, "e5m2": 1, "int8": 1,
}  # fmt: skip
#: Types that sums are computed in. float22 has 8 bits of exponent and 13 of fraction, as Hopper's
#: tensor cores keep of sums of 8-bit products.
Accumulator = Literal["float16", "bfloat16", "float22", "float32", "float64", "int32"]
#: What has a factor of its own: each matrix; each row of A and column of B; each 1×128 block of A
#: and 128×128 block of B.
Scales = Literal["matrix", "rows", "blocks"]
Layout = Literal["row-major", "column-major"]
#: Whether A and B are stored transposed, in BLAS letters: N no, T yes.
Transpose = Literal["NN", "NT", "TN", "TT"]
#: Where a kernel is listed; `blas` is in records of earlier versions.
Group = Literal["tutorial", "ladder", "gallery", "blas", "baseline"]

#: Numbers with limits, which are checked when a record is read but not when it is created.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Side = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

#: The most products of a batch: each is verified by its own launches.
MOST_PRODUCTS = 65536
#: What front matter may say: C++ standards, requirements, the axes of a launch, swept values, …
Standard = Literal["c++11", "c++14", "c++17", "c++20"]
Requirement = Annotated[str, msgspec.Meta(pattern="^(cuda|host|sm_[0-9]{2,3}[af]?)$")]
Axes = Annotated[tuple[int | str, ...], msgspec.Meta(min_length=1, max_length=3)]
Values = Annotated[
    tuple[Annotated[int, msgspec.Meta(ge=1, lt=2**31)], ...], msgspec.Meta(min_length=1)
]
Factors = float | Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
Batch = Annotated[int, msgspec.Meta(ge=1, le=MOST_PRODUCTS)]
Batches = Batch | Annotated[tuple[Batch, ...], msgspec.Meta(min_length=1)]
Exponent = Annotated[int, msgspec.Meta(ge=-126, le=127)]
#: From 128 on, the float32 bound would accept long sums of inputs rounded to float16.
ErrorConstant = Annotated[float, msgspec.Meta(ge=0, le=64)]

#: Unit roundoffs: the largest relative error of rounding to nearest.
UNIT_ROUNDOFF: dict[Storage | Accumulator, float] = {
    "float16": 2.0**-11, "bfloat16": 2.0**-8, "float22": 2.0**-14, "float32": 2.0**-24,
    "float64": 2.0**-53, "int32": 0.0,
}  # fmt: skip
U32 = UNIT_ROUNDOFF["float32"]


class Arithmetic(msgspec.Struct, frozen=True):
    """How a kernel multiplies: the number and precision of its products per useful product."""

    products: Annotated[int, msgspec.Meta(ge=1, le=16)]
    precision: Precision

    @classmethod
    def parse(cls, text: str) -> Arithmetic:
        """Parse `3 tf32` as in front matter; `ValueError` for anything else."""
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

    A one-dimensional workload has only N; its M and K are 1. A matrix product is multiplied by
    `alpha` and added to `beta`·C; one problem has `batch` products, each on its own matrices.
    """

    M: Side
    N: Side
    K: Side
    inputs: Inputs = "uniform"
    seed: int = 0
    workload: WorkloadName = "matmul"
    alpha: float = 1.0
    beta: float = 0.0
    batch: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1

    @property
    def size(self) -> str:
        """The size in the syntax of `--sizes`: `1000`, or `512x1024x768` for M×N×K."""
        if self.workload != "matmul":
            return str(self.N)
        if self.M == self.N == self.K:
            return str(self.M)
        return f"{self.M}x{self.N}x{self.K}"


#: What the host does with C after the launch: `sum` adds up one partial sum per block.
Finish = Literal["sum"]

#: The types that an entry's pointers may have, and their element types.
STORAGE: dict[str, Storage] = {
    "float": "float32", "float2": "float32", "float4": "float32",
    "int": "int32", "int2": "int32", "int4": "int32",
    "unsigned": "int32", "unsigned int": "int32", "uint2": "int32", "uint4": "int32",
    "__half": "float16", "half": "float16", "__half2": "float16", "half2": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
    "__nv_bfloat162": "bfloat16", "nv_bfloat162": "bfloat16",
    "double": "float64", "double2": "float64", "double4": "float64",
    "__nv_fp8_e4m3": "e4m3", "__nv_fp8x2_e4m3": "e4m3", "__nv_fp8x4_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2", "__nv_fp8x2_e5m2": "e5m2", "__nv_fp8x4_e5m2": "e5m2",
    "signed char": "int8", "char": "int8", "char2": "int8", "char4": "int8",
}  # fmt: skip
#: The types of pointers to bytes that do not say what these are; `storage` does.
BYTES = ("unsigned char", "uchar2", "uchar4")
#: The storage types of one byte, and those of whole numbers, whose sums are exact modulo 2³².
EIGHT_BITS: tuple[Storage, ...] = ("e4m3", "e5m2", "int8")
INTEGERS: tuple[Storage, ...] = ("int8", "int32")
#: Those that NumPy does not have, by their names elsewhere; its arrays have their bits.
FOREIGN: dict[Storage, str] = {
    "bfloat16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


class KernelKind(NamedTuple):
    """What kernels of one kind have in common, and what messages call one.

    Whether it `has_source` in CUDA C, which can be translated, instrumented and explained; whether
    it `is_launched` by matbench itself, on its own memory; whether it `is_apart`, a function of a
    user in a process of its own; whether that `is_native`, compiled for the host; whether it
    `is_library`, matbench's own baseline, which is trusted. `race`: when one shows in its staggered
    build, which is called again for `races_s` because its threads meet by chance. `backend`: where
    it runs if it always runs on the CPU; `has_copies`: each call gets copies of its matrices, so
    that calls cannot follow each other.
    """

    called: str
    has_source: bool = False
    is_launched: bool = False
    is_apart: bool = False
    is_native: bool = False
    is_library: bool = False
    race: str = "warps do not run in lockstep"
    races_s: float = 0.0
    backend: str = "opencl"
    has_copies: bool = False


_UNOPTIMIZED = "built with -O0, so that threads share variables in memory"
#: A kernel in CUDA C; in PTX or a cubin; a function in a Python file, and in C++; matbench's own
#: functions that call cuBLAS, and NumPy.
CUDA_C = KernelKind("a kernel", has_source=True, is_launched=True)
COMPILED = KernelKind("a compiled kernel", is_launched=True)
PYTHON = KernelKind("a function in Python", is_apart=True)
HOST = KernelKind(
    "a function on the host", is_apart=True, is_native=True, race=_UNOPTIMIZED, races_s=1.0
)
CUBLAS = KernelKind("a library routine", is_library=True)
NUMPY = KernelKind("a library routine", is_library=True, backend="host", has_copies=True)

#: The argument that is a kernel's scratch memory in device memory.
WORKSPACE = "workspace"
#: The arguments that are factors of A and of B; see `Scales`.
SCALE_OF = {"A": "scale_a", "B": "scale_b"}
#: The rows, columns and terms of a block that has a factor of its own.
SCALED_BLOCK = 128


class LaunchRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[launch]` table of front matter: expressions for the geometry, and conditions.

    `workspace_bytes` is None if the kernel takes no workspace.
    """

    block: Axes
    grid: Axes
    shared_bytes: int | str = 0
    workspace_bytes: int | str | None = None
    where: tuple[str, ...] = ()


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a kernel's entry as declared in its source."""

    type: str
    name: str
    pointer: bool


class NumericContract(msgspec.Struct, frozen=True):
    """How a kernel reads its inputs, which determines how it is checked.

    Inputs are rounded to `precision` and stored as `storage`; `exponents` is the range of binary
    exponents that the kernel handles. `exact`: results that need no rounding must match to the last
    bit. Sums are computed in `sums_in`, and C is stored as `result`. `reads_C`: the kernel reads C,
    so it is filled with numbers before the launch. `scales`: what of A and B has factors.
    """

    precision: Precision = "float32"
    storage: Storage = "float32"
    exponents: tuple[int, int] = (-126, 127)
    exact: bool = True
    sums_in: Accumulator = "float32"
    result: Storage = "float32"
    reads_C: bool = False
    scales: Scales | None = None

    def unlike(self, other: NumericContract) -> str | None:
        """Why kernels with these contracts cannot share inputs and C; None if they can."""
        kinds = {"storage": "inputs", "result": "results", "scales": "scales"}
        for field, kind in kinds.items():
            mine, its = (getattr(one, field) or "none" for one in (self, other))
            if mine != its:
                return f"their {kind} differ: {mine} and {its}"
        return None


class MatrixLayout(msgspec.Struct, frozen=True):
    """A matrix in memory: element (i, j) is at i·`row_step` + j·`column_step`, in elements.

    There are `lines` (rows or columns) of `width` elements, which start `pitch` elements apart.
    """

    row_step: int
    column_step: int
    lines: int
    width: int
    pitch: int


class Placing(msgspec.Struct, frozen=True):
    """The memory layout of a product's matrices.

    Leading dimensions exceed the length of a row or column by `padding` elements.
    """

    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: int = 0

    def place(self, buffer: str, rows: int, columns: int) -> MatrixLayout:
        """The place of op(A), op(B) or C with this shape."""
        transposed = buffer != "C" and self.transpose["AB".index(buffer)] == "T"
        by_rows = (self.layout == "row-major") != transposed
        lines, width = (rows, columns) if by_rows else (columns, rows)
        pitch = width + self.padding
        steps = (pitch, 1) if by_rows else (1, pitch)
        return MatrixLayout(*steps, lines, width, pitch)


class FrontMatter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of front matter and their defaults.

    The defaults of `entry` and `args` depend on the name and the workload. `previous` names the
    kernel that this one changes: it decides where it is listed, and nothing else. `let` names
    values that follow from swept constants. `storage` of A and B is declared if pointers to bytes
    do not say it, and that and the type of the `result` if there is no source in C++. A kernel
    `promotes` sums of so many terms to float32. `sizes` are those that it is measured at unless
    others are asked for. Only functions on the host `link` libraries, and
    have compiler `options`.
    """

    name: str
    launch: LaunchRules
    summary: str = ""
    workload: WorkloadName = "matmul"
    group: Group = "tutorial"
    previous: str | None = None
    entry: str = ""
    args: tuple[str, ...] = ("A", "B", "C", "M", "N", "K")
    sweep: dict[str, Values] = {}
    tune: dict[str, Values] = {}
    let: dict[str, int | str] = {}
    requires: tuple[Requirement, ...] = ()
    precision: Precision = "float32"
    error_constant: ErrorConstant = 0.0
    arithmetic: str | None = None
    exponents: tuple[Exponent, Exponent] | None = None
    finish: Finish | None = None
    deterministic: bool = True
    model: dict[str, str] = {}
    std: Standard | None = None
    include_dirs: tuple[str, ...] = ()
    link: tuple[Annotated[str, msgspec.Meta(pattern=r"^[\w.+-]+$")], ...] = ()
    options: tuple[str, ...] = ()
    layout: Layout = "row-major"
    transpose: Transpose = "NN"
    padding: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 0
    alpha: Factors = 1.0
    beta: Factors = 0.0
    batch: Batches = 1
    reads: tuple[Literal["C"], ...] = ()
    accumulator: Accumulator | None = None
    storage: Storage | None = None
    result: Storage | None = None
    scales: Scales | None = None
    promotes: Annotated[int, msgspec.Meta(ge=1, le=2**20)] | None = None
    sizes: str = ""


#: What each key is without front matter.
USUAL = FrontMatter(name="", launch=LaunchRules((1,), (1,)))


class Included(msgspec.Struct, frozen=True):
    """A file that a kernel file includes: the name in the directive, the path, and the hash."""

    name: str
    path: str
    sha256: str


class Adoption(msgspec.Struct, frozen=True):
    """How a kernel without front matter was found to be called.

    Besides the `table`: what of it is `assumed` because the kernel is right with it, the sizes that
    it is `restricted` to, and `warnings` of possible mistakes.
    """

    table: dict[str, Any]
    assumed: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All that but the table, in words."""
        sizes = [f"adopted for {' and '.join(self.restricted)}"] if self.restricted else []
        claims = [f"adopted with {', '.join(self.assumed)}"] if self.assumed else []
        return (*sizes, *claims, *self.warnings)


class Kernel(FrontMatter, frozen=True):
    """One kernel file: its front matter, its source and the parameters of its entry.

    `path` is the file's name in messages, and `file` its location; empty if there is no file.
    `sha256` also covers all files that it `includes`. `is_extern_c`: its entry has C linkage, not a
    mangled C++ name. If it is of the `kind` `PYTHON`, its entry takes `arrays` of that module; if
    it is `COMPILED`, `code` is the content of the file.
    `never`: why none of its cases runs: the file cannot be used, and there is no source, or it does
    something else than was asked for. `adoption`: how its table was found, if it has none.
    """

    source: str = ""
    path: str = ""
    file: str = ""
    sha256: str = ""
    includes: tuple[Included, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    is_extern_c: bool = True
    kind: KernelKind = CUDA_C
    arrays: str = ""
    code: bytes = b""
    never: Skip | None = None
    adoption: Adoption | None = None

    @property
    def rung(self) -> int | None:
        """The number of a rung of the ladder; None for kernels of other folders."""
        match = re.match(r"kernels/ladder/(\d+)-", self.path)
        return int(match[1]) if match else None

    @property
    def on_host(self) -> bool:
        """Whether it always runs on the CPU, whatever the device."""
        return "host" in self.requires

    @property
    def contract(self) -> NumericContract:
        """How it reads its inputs; the pointer types of its entry determine the storage."""
        narrow = (-14, 15) if self.precision == "float16" else (-126, 127)
        result = self.storage_of("C")
        usual: dict[Storage, Accumulator] = {"float64": "float64", "int32": "int32"}
        return NumericContract(
            self.precision,
            self.storage_of("A"),
            self.exponents or narrow,
            exact=self.error_constant == 0,
            sums_in=self.accumulator or usual.get(result, "float32"),
            result=result,
            reads_C="C" in self.reads,
            scales=self.scales,
        )

    def storage_of(self, buffer: str) -> Storage:
        """The element type of a buffer, from the pointer that the entry takes."""
        for text, parameter in zip(self.args, self.parameters, strict=False):
            if parameter.pointer and text == buffer:
                storage = STORAGE.get(parameter.type)
                if self.storage is not None and buffer != "C" and storage in (None, "int32"):
                    return self.storage  # bytes, or four of them in a word
                return storage or "float32"
        return "float32"

    @property
    def placing(self) -> Placing:
        return Placing(self.layout, self.transpose, self.padding)

    def values(self, problem: Problem) -> dict[str, int | float]:
        """The values that the problem and the layout give to names in the kernel's expressions."""
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
    workspace_bytes: Count = 0

    @property
    def threads_per_block(self) -> int:
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)


class DeviceInfo(msgspec.Struct, frozen=True):
    """A device as described by its backend.

    `limits` are the numbers that front matter may name; `properties` are for display.
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

    @property
    def place(self) -> str:
        """`cuda:0`, as `--device` takes it."""
        return f"{self.backend}:{self.index}"

    @property
    def where(self) -> str:
        """Its place, and in a cluster its host: `cuda:0 on node3`."""
        host = self.properties.get("host")
        return f"{self.place} on {host}" if host else self.place

    @property
    def label(self) -> str:
        return f"{self.where} {self.name}"

    @property
    def identity(self) -> str:
        """What tells it apart from others of the same name: its UUID, or else where it is."""
        return str(self.properties.get("UUID") or self.where)


#: The values of a kernel's constants, by name.
Params = dict[str, int]
#: A kernel's name, hash and entry, and the values of its constants.
BuildKey = tuple[str, str, str, frozenset[tuple[str, int]]]


#: What a case that cannot run lacks; see `Skip`.
SkipKind = Literal[
    "condition", "limit", "requirement", "unavailable", "argument", "mistake", "refused", "breach",
    "timeouts", "pair",
]  # fmt: skip


class Skip(msgspec.Struct, frozen=True):
    """Why a case cannot run, or was not: what it `needs`, and the numbers or names `given` to it.

    - `condition`: an expression of `where`, or the factors that a kernel computes, and the values;
    - `limit`: the name of a device's limit; how much is `asked`, and how much `allowed`; the
      `device` is `cuda` if only NVIDIA GPUs have that limit;
    - `requirement`: `cuda` or an architecture; the `device` that is neither;
    - `unavailable`: what the device or the host lacks, in words of whatever noticed it;
    - `mistake`: an error in front matter, so the case fails; `argument`: one at these parameters;
    - `refused`: why its file cannot be used, so the case fails;
    - `breach`: what it does instead of what was asked for, so the case is wrong;
    - `timeouts`: at which `size` there was one before, and the `option` that sets the deadline;
    - `pair`: the other kernel of a comparison could not run.
    """

    kind: SkipKind
    needs: str = ""
    given: dict[str, int | float | str] = {}


class Box(msgspec.Struct, frozen=True):
    """The tensor map of a `matrix`, for boxes of so many rows and columns."""

    matrix: str
    rows: int
    columns: int


class Case(msgspec.Struct, frozen=True):
    """One kernel on one problem with one set of parameters; with `skip` it cannot run.

    `arguments` are the values of the kernel's `args`: numbers, tensor maps, and the names of
    buffers and handles. `awkward` is the kernel at a small awkward size, where it is launched with
    its threads in other orders; None if it takes no size, or cannot be. `notes` say where its
    parameters come from.
    """

    kernel: Kernel
    problem: Problem
    params: dict[str, int]
    launch: Launch | None
    skip: Skip | None = None
    notes: tuple[str, ...] = ()
    arguments: tuple[str | float | Box, ...] = ()
    awkward: Case | None = None

    @property
    def label(self) -> str:
        return f"{self.kernel.name} {settings_of(self.params)}".strip() + f" at {self.problem.size}"

    @property
    def can_be_sustained(self) -> bool:
        """Whether launches can follow each other on the same inputs: not if each adds to C, nor if
        its matrices are copied in between."""
        return self.problem.beta == 0 and not self.kernel.kind.has_copies

    @property
    def build_key(self) -> BuildKey:
        """Equal for cases of one kernel with the same parameters, of any problem."""
        kernel = self.kernel
        # A library that was there may load others, which lie beside it.
        code = kernel.sha256 if kernel.source else f"{kernel.sha256} {kernel.file}"
        return kernel.name, code, kernel.entry, frozenset(self.params.items())


class Conditions(msgspec.Struct, frozen=True):
    """The state of a device, or of its host, at one moment; None if unknown.

    `throttled` names what limited a GPU's clocks; `load` is a CPU host's load average over one
    minute, `others_share` the share of its processors' time that other programs took since the
    reading before, and `governor` its frequency governor.
    """

    sm_mhz: Count | None = None
    memory_mhz: Count | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] = ()
    load: float | None = None
    others_share: float | None = None
    governor: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """The resources that a kernel uses; None if unknown.

    `library` is what a function computed with, and its version; `language` what a compiler took the
    source as, if that is not CUDA C++.
    """

    registers: Count | None = None
    static_shared_bytes: Count | None = None
    local_bytes: Count | None = None
    spilled_bytes: Count | None = None
    max_threads_per_block: Count | None = None
    library: str | None = None
    language: str | None = None
