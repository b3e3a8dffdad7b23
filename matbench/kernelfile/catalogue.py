"""Finds kernel files and reads what they say about themselves; needs no device.

A kernel file opens with TOML in a fenced comment, the way PEP 723 puts metadata into a script:

    // /// matbench
    // name = "mine"
    // …
    // ///
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import keyword
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, get_args

import msgspec

from matbench import workloads
from matbench.errors import UsageError
from matbench.kernelfile import cuda_c, expressions
from matbench.model import (
    STORAGE,
    Finish,
    Group,
    Kernel,
    LaunchRules,
    Parameter,
    Precision,
    Storage,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_FILE_BYTES = 1_000_000
#: Limits of a device that front matter may name, with the values of a small one to try them on.
DEVICE_LIMITS = {
    "max_threads_per_block": 1024,
    "max_block_x": 1024,
    "max_block_y": 1024,
    "max_block_z": 64,
    "max_grid_x": 2**31 - 1,
    "max_grid_y": 65535,
    "max_grid_z": 65535,
    "max_shared_bytes_per_block": 49152,
    "max_static_shared_bytes": 49152,
    "warp_size": 32,
    "multiprocessors": 16,
}
_FENCE = re.compile(
    r"^// /// matbench[ \t]*\n(?P<body>(?://[^\n]*\n)*?)// ///[ \t]*$", re.MULTILINE
)
_OPEN = re.compile(r"^// /// matbench[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REQUIREMENT = re.compile(r"cuda|host|sm_\d{2,3}[af]?")
#: How each is spelled in a source.
_WRITTEN: dict[Storage, str] = {
    "float32": "float",
    "int32": "int or unsigned",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
}

NUMPY = Kernel(
    name="numpy",
    summary="NumPy's float32 product, by the BLAS library that it was built with",
    group="baseline",
    launch=LaunchRules(block=(1,), grid=(1,)),
    requires=("host",),
    library="numpy",
    sha256=hashlib.sha256(b"numpy.matmul").hexdigest(),
)


def _cublas(name: str, inputs: str, summary: str, precision: Precision = "float32") -> Kernel:
    buffers = [Parameter(inputs, matrix, pointer=True) for matrix in ("A", "B")]
    sizes = [Parameter("int", size, pointer=False) for size in ("M", "N", "K")]
    return Kernel(
        name=name,
        summary=summary,
        group="baseline",
        launch=LaunchRules(block=(1,), grid=(1,)),  # its own; not told
        requires=("cuda",),
        precision=precision,
        library="cublas",
        sha256=hashlib.sha256(f"cublasGemmEx {name}".encode()).hexdigest(),
        parameters=(*buffers, Parameter("float", "C", pointer=True), *sizes),
    )


CUBLAS_DOT = Kernel(
    name="cublas-dot",
    summary="cuBLAS's float32 dot product",
    workload="dot",
    group="baseline",
    args=("A", "B", "C", "N"),
    launch=LaunchRules(block=(1,), grid=(1,)),  # its own; not told
    requires=("cuda",),
    library="cublas",
    sha256=hashlib.sha256(b"cublasSdot").hexdigest(),
    parameters=(
        *(Parameter("float", buffer, pointer=True) for buffer in ("A", "B", "C")),
        Parameter("int", "N", pointer=False),
    ),
)
LIBRARIES = (
    NUMPY,
    CUBLAS_DOT,
    _cublas("cublas", "float", "cuBLAS's float32 product, its inputs not rounded to TF32"),
    _cublas("cublas-tf32", "float", "cuBLAS's product of inputs rounded to TF32", "tf32"),
    _cublas("cublas-bf16", "__nv_bfloat16", "cuBLAS's product of bfloat16 inputs", "bfloat16"),
)


class _FrontMatter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    summary: str
    launch: LaunchRules
    workload: str = workloads.DEFAULT
    group: Group = "tutorial"
    entry: str | None = None
    args: tuple[str, ...] | None = None
    sweep: dict[str, tuple[int, ...]] = {}
    tune: dict[str, tuple[int, ...]] = {}
    requires: tuple[str, ...] = ()
    precision: Precision = "float32"
    error_constant: float = 0.0
    exponents: tuple[int, int] | None = None
    finish: Finish | None = None
    deterministic: bool = True
    model: dict[str, str] = {}


#: What keys with few values can be.
_CHOICES: dict[str, tuple[str, ...]] = {
    "group": get_args(Group),
    "precision": get_args(Precision),
    "finish": get_args(Finish),
}


def _fits(table: str, value: object) -> bool:
    """Whether a value may stand in a table whose keys are free."""
    try:
        msgspec.convert(value, str if table == "model" else tuple[int, ...])
    except msgspec.ValidationError:
        return False
    return True


def kernels_folder() -> Path:
    """Where the kernels that come with matbench lie: in the wheel, or beside the package."""
    inside = Path(__file__).parents[1] / "kernels"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "kernels"


def check_name(name: str) -> None:
    """`UsageError` for a name that no kernel can have."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"name {name!r:.60}: use lower-case letters, digits, `-`, `_`, `.`")


def default_entry(name: str) -> str:
    """The function that a kernel of this name calls when it names none."""
    return re.sub(r"\W", "_", name)


def load(path: Path, shown_as: str | None = None) -> Kernel:
    """Read one kernel file; a `UsageError` names the file and the line that is wrong."""
    shown = shown_as or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from None
    return parse(data, shown)


def parse(data: bytes, shown: str) -> Kernel:
    """The kernel of a file that was read already."""
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: larger than {MAX_FILE_BYTES:,} bytes; is it a kernel file?")
    try:
        source = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{shown}: not UTF-8 text; is it a kernel file?") from None
    return _Reader(shown, source).kernel(hashlib.sha256(data).hexdigest())


class _Reader:
    """Reads one file's front matter and says where it is wrong."""

    def __init__(self, shown: str, source: str) -> None:
        self.shown = shown
        self.source = source
        fence = _FENCE.search(source)
        if fence is None:
            opened = _OPEN.search(source)
            if opened is None:
                self.fail("no front matter; open the file with `// /// matbench` … `// ///`", 1)
            line = source.count("\n", 0, opened.start()) + 1
            self.fail("front matter is not closed; end it with a line `// ///`", line)
        self.first_line = source.count("\n", 0, fence.start("body")) + 1
        lines = fence["body"].splitlines()
        self.toml = [line[3:] if line.startswith("// ") else line[2:] for line in lines]

    def fail(self, reason: str, line: int) -> NoReturn:
        raise UsageError(f"{self.shown}:{line}: {reason}")

    def line_of(self, *keys: str) -> int:
        """The line that sets the last of `keys`, inside its table where there is one."""
        found, table = 0, ""
        for number, text in enumerate(self.toml):
            header = re.match(r"\s*\[\s*([\w.-]+)\s*\]", text)
            if header:
                table = header[1]
                if keys == (table,):
                    found = number
            name = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", text)
            if name and name[1] == keys[-1] and (len(keys) == 1 or table == keys[0]):
                found = number
                break
        return self.first_line + found

    def kernel(self, sha256: str) -> Kernel:
        front = self.front_matter()
        named_by = self.line_of("name" if front.entry is None else "entry")
        try:
            check_name(front.name)
        except UsageError as error:
            self.fail(str(error), self.line_of("name"))
        entry = default_entry(front.name) if front.entry is None else front.entry
        if not _IDENTIFIER.fullmatch(entry):
            self.fail(f"entry {entry!r:.60}: not the name of a function", named_by)
        try:
            workload = workloads.get(front.workload)
        except UsageError as error:
            self.fail(str(error), self.line_of("workload"))
        try:
            parameters = cuda_c.parameters(self.source, entry)
        except cuda_c.SourceError as error:
            self.fail(str(error), error.line or named_by)
        kernel = Kernel(
            name=front.name,
            summary=front.summary,
            launch=front.launch,
            workload=front.workload,
            group=front.group,
            entry=entry,
            args=front.args or (*workload.buffers, *workload.dimensions),
            sweep=front.sweep,
            tune=front.tune,
            requires=front.requires,
            precision=front.precision,
            error_constant=front.error_constant,
            exponents=front.exponents,
            finish=front.finish,
            deterministic=front.deterministic,
            model=front.model,
            source=self.source,
            path=self.shown,
            sha256=sha256,
            parameters=parameters,
        )
        self.check(kernel)
        return kernel

    def front_matter(self) -> _FrontMatter:
        try:
            table = tomllib.loads("\n".join(self.toml))
        except (ValueError, RecursionError) as error:
            where = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = self.first_line + (int(where[1]) - 1 if where else 0)
            reason = str(error).split(" (at ")[0]
            if isinstance(error, RecursionError):
                reason = "nested too deeply"
            self.fail(f"not TOML: {reason}", line)
        try:
            return msgspec.convert(table, _FrontMatter)
        except msgspec.ValidationError as error:
            self.fail(*self.explain(str(error), table))

    def explain(self, message: str, front: dict[str, Any]) -> tuple[str, int]:
        """msgspec's message in the words of front matter, with its line."""
        where = re.search(r" - at `(?:key in )?\$\.?([^`]*)`", message)
        path = re.findall(r"[A-Za-z_][\w-]*", where[1])[:2] if where else []
        if where and "[...]" in where[1]:  # a table of any keys: msgspec does not say which
            path += [key for key, value in front[path[0]].items() if not _fits(path[0], value)][:1]
        reason = message.split(" - at ")[0]
        unknown = re.search(r"unknown field `(.*?)`", reason)
        missing = re.search(r"missing required field `(.*?)`", reason)
        if unknown:
            known = _FrontMatter.__struct_fields__ if not path else LaunchRules.__struct_fields__
            near = difflib.get_close_matches(unknown[1], known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(known)}"
            return f"unknown key `{unknown[1]}`{hint}", self.line_of(*path, unknown[1])
        if missing:
            return f"`{'.'.join([*path, missing[1]])}` is missing", self.line_of(*path or [""])
        name = ".".join(path)
        if reason.startswith("Invalid enum") and name in _CHOICES:
            reason = f"{reason.split()[-1]} is none of {', '.join(_CHOICES[name])}"
        return f"`{name}`: {reason}" if name else reason, self.line_of(*path or [""])

    def check(self, kernel: Kernel) -> None:
        """What types cannot say: names, values, and every expression tried once."""
        if not kernel.summary.isprintable() or not kernel.summary.strip():
            self.fail("summary: one line of text", self.line_of("summary"))
        if not 0 <= kernel.error_constant < 1e6:
            self.fail("error_constant: a number from 0 on", self.line_of("error_constant"))
        for requirement in kernel.requires:
            if not _REQUIREMENT.fullmatch(requirement):
                self.fail(
                    f"requires {requirement!r}: known are cuda, host, sm_80, sm_90a, …",
                    self.line_of("requires"),
                )
        for table, values in (("sweep", kernel.sweep), ("tune", kernel.tune)):
            for name, numbers in values.items():
                self.check_parameter(table, name, numbers)
        if (
            kernel.exponents is not None
            and not -126 <= kernel.exponents[0] < kernel.exponents[1] < 128
        ):
            self.fail(
                "exponents: the lowest and the highest, as in [-14, 15]", self.line_of("exponents")
            )
        self.check_expressions(kernel)
        self.check_storage(kernel)

    def check_storage(self, kernel: Kernel) -> None:
        """Pointers are to what the workload's buffers hold; a kernel declares inputs of 16 bits."""
        workload = workloads.get(kernel.workload)
        for index, (text, parameter) in enumerate(zip(kernel.args, kernel.parameters, strict=True)):
            if not parameter.pointer:
                continue
            storage = STORAGE.get(parameter.type)
            allowed = workload.storages(text)
            if storage not in allowed:
                *others, last = (_WRITTEN[each] for each in allowed)
                known = f"{', '.join(others)} or {last}" if others else last
                self.fail(
                    f"{parameter.name} points to `{parameter.type}`: "
                    f"{text} of {workload.name} is {known}",
                    cuda_c.line_of(self.source, kernel.entry, index),
                )
            if storage in ("float16", "bfloat16") and storage != kernel.precision:
                self.fail(
                    f"{parameter.name} is {parameter.type}: say precision = {storage!r}",
                    self.line_of("precision"),
                )

    def check_parameter(self, table: str, name: str, numbers: tuple[int, ...]) -> None:
        reserved = {"M", "N", "K", "A", "B", "C", *DEVICE_LIMITS, *expressions.FUNCTIONS}
        if not _IDENTIFIER.fullmatch(name) or name in reserved or keyword.iskeyword(name):
            reason = f"[{table}] {name}: not a name for a swept constant"
            self.fail(reason, self.line_of(table, name))
        if not numbers or any(not 0 < number < 2**31 for number in numbers):
            reason = f"[{table}] {name}: a list of whole numbers above 0"
            self.fail(reason, self.line_of(table, name))

    def check_expressions(self, kernel: Kernel) -> None:
        workload = workloads.get(kernel.workload)
        values: dict[str, int | float] = {
            **dict.fromkeys(workload.dimensions, 2**31 - 1),
            **DEVICE_LIMITS,
        }
        swept = kernel.tune | kernel.sweep
        values |= {name: numbers[0] for name, numbers in swept.items()}
        rules = kernel.launch
        for key, axes in (("block", rules.block), ("grid", rules.grid)):
            if not 1 <= len(axes) <= 3:
                self.fail(f"launch.{key}: one to three numbers", self.line_of("launch", key))
            for axis in axes:
                self.attempt(axis, values, "launch", key)
        self.attempt(rules.shared_bytes, values, "launch", "shared_bytes")
        for condition in rules.where:
            self.attempt(condition, values, "launch", "where", whole=False)
        for key, text in kernel.model.items():
            self.attempt(text, values, "model", key, whole=False)
        if len(kernel.args) != len(kernel.parameters):
            self.fail(
                f"args has {len(kernel.args)} entries, {kernel.entry} has "
                f"{len(kernel.parameters)} parameters",
                self.line_of("args"),
            )
        for text, parameter in zip(kernel.args, kernel.parameters, strict=True):
            if parameter.type == cuda_c.TENSOR_MAP and not parameter.pointer:
                self.check_tensor_map(text, parameter.name, workload.buffers, values)
                continue
            if parameter.pointer != (text in workload.buffers):
                known = f"{', '.join(workload.reads)} or C"
                kind = f"a buffer ({known})" if parameter.pointer else "a number"
                self.fail(
                    f"args: {parameter.name} takes {kind}, not {text!r}", self.line_of("args")
                )
            if not parameter.pointer:
                self.attempt(text, values, "args", whole=False)
        for buffer in workload.buffers:
            if buffer not in kernel.args:
                self.fail(f"args: {buffer} is not among them", self.line_of("args"))

    def check_tensor_map(
        self, text: str, name: str, known: tuple[str, ...], values: Mapping[str, int | float]
    ) -> None:
        described = cuda_c.tensor_map(text)
        if described is None or described[0] not in known:
            example = f"`tensor_map({known[0]}, rows, columns)`"
            self.fail(f"args: {name} takes {example}, not {text!r}", self.line_of("args"))
        for side in described[1:]:
            self.attempt(side, values, "args")

    def attempt(
        self, text: int | str, values: Mapping[str, int | float], *keys: str, whole: bool = True
    ) -> None:
        try:
            if whole:
                expressions.whole(text, values)
            elif isinstance(text, str):
                expressions.evaluate(text, values)
        except expressions.ExpressionError as error:
            self.fail(f"{'.'.join(keys)} {str(text)[:60]!r}: {error}", self.line_of(*keys))


class Catalogue:
    """The kernels at hand, by name."""

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self.kernels: dict[str, Kernel] = {}
        for kernel in kernels:
            twin = self.kernels.get(kernel.name)
            if twin is not None and twin.path != kernel.path:
                raise UsageError(
                    f"{kernel.path}: the name {kernel.name!r} is taken by "
                    f"{twin.path or 'matbench itself'}; choose another `name`"
                )
            self.kernels[kernel.name] = kernel

    def get(self, name: str) -> Kernel:
        """The kernel of that name, or a `UsageError` with the nearest one."""
        if name not in self.kernels:
            near = difflib.get_close_matches(name, self.kernels, 1)
            hint = f"did you mean {near[0]!r}?" if near else "see `matbench list`"
            raise UsageError(f"no kernel {name!r}; {hint}")
        return self.kernels[name]

    def group(self, name: Group | str, workload: str | None = workloads.DEFAULT) -> list[Kernel]:
        """The kernels of a group (`all`: every one) and workload, in the order of their names."""
        found = [
            kernel
            for kernel in self.kernels.values()
            if name in ("all", kernel.group) and workload in (None, kernel.workload)
        ]
        return sorted(found, key=lambda kernel: kernel.name)

    def baselines(
        self, asked: Iterable[str], computed: Collection[str] = (workloads.DEFAULT,)
    ) -> list[Kernel]:
        """`--baseline`: names or patterns (`cublas*`), with commas between, of that group.

        Those of the workloads that are `computed`; another's is refused.
        """
        every = {kernel.name: kernel for kernel in self.group("baseline", None)}
        known = {name: kernel for name, kernel in every.items() if kernel.workload in computed}
        found: dict[str, Kernel] = {}
        for pattern in (piece.strip() for text in asked for piece in text.split(",")):
            names = fnmatch.filter(known, pattern)
            if not names:
                there = ", ".join(known) or f"none for {', '.join(computed)}"
                other = every.get(pattern)
                wrong = f"it computes {other.workload}" if other else "not known"
                raise UsageError(f"--baseline {pattern!r}: {wrong}; there are: {there}")
            found |= {name: known[name] for name in names}
        return list(found.values())


def load_folder(folder: Path) -> list[Kernel]:
    """Every `*.cu` of a folder."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of kernels")
    paths = sorted(folder.glob("*.cu"))
    if not paths:
        raise UsageError(f"{folder}: no *.cu file in it")
    return [load(path) for path in paths]


def builtin() -> list[Kernel]:
    """The kernels that come with matbench, shown as `kernels/NAME.cu`."""
    paths = sorted(kernels_folder().glob("*.cu"))
    return [load(path, f"kernels/{path.name}") for path in paths] + [*LIBRARIES]
