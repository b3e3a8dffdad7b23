"""Front matter: the table at the top of a kernel file, read and checked.

It is TOML in a fenced comment, the way PEP 723 puts metadata into a script:

    // /// matbench
    // name = "mine"
    // …
    // ///

An error names the file and the line that is wrong.
"""

from __future__ import annotations

import contextlib
import difflib
import keyword
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, get_args

import msgspec

from matbench import workloads
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import expressions, includes, signature
from matbench.model import (
    STORAGE,
    Arithmetic,
    Finish,
    FrontMatter,
    Group,
    Kernel,
    LaunchRules,
    Parameter,
    Precision,
    Problem,
    Storage,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_FILE_BYTES = 1_000_000
#: From 128 on, long sums of inputs rounded to float16 would come within the bound of float32.
MAX_ERROR_CONSTANT = 64
#: Limits of a device that front matter may name, with a small device's values to try them on.
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
#: The front matter between its two fences.
FENCE = re.compile(
    r"^(?P<open>// /// matbench[ \t]*\n)(?P<body>(?://[^\n]*\n)*?)// ///[ \t]*$", re.MULTILINE
)
#: The key of `[model]` that is no expression.
_ARITHMETIC = "arithmetic"
_OPEN = re.compile(r"^// /// matbench[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REQUIREMENT = re.compile(r"cuda|host|sm_[0-9]{2,3}[af]?")
#: What the problem and the layout of matrices give expressions.
_OF_PRODUCTS = (
    "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c", "alpha", "beta", "batch"
)  # fmt: skip
_RESERVED = {
    *("M", "N", "K", "A", "B", "C"), *_OF_PRODUCTS, *DEVICE_LIMITS, *expressions.FUNCTIONS
}  # fmt: skip
#: Keys that only a matrix product can have.
_PRODUCT_KEYS = (
    "layout", "transpose", "padding", "alpha", "beta", "batch", "reads", "accumulator"
)  # fmt: skip
#: The values of keys that have few.
_CHOICES: dict[str, tuple[str, ...]] = {
    "group": get_args(Group),
    "precision": get_args(Precision),
    "finish": get_args(Finish),
}
#: What the tables whose keys are free hold.
_TABLES: dict[str, Any] = {"sweep": tuple[int, ...], "tune": tuple[int, ...], "model": str}
#: How a source spells what a buffer holds.
_WRITTEN: dict[Storage, str] = {
    "float32": "float",
    "int32": "int or unsigned",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float64": "double",
}
_MOST_PADDING = 2**20


def parse(data: bytes, shown: str, file: Path | None = None) -> Kernel:
    """The kernel of a file's content; `shown` is what messages call the file.

    Where the file is says which files its `#include` lines mean.
    """
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: larger than {MAX_FILE_BYTES:,} bytes; is it a kernel file?")
    try:
        source = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{shown}: not UTF-8 text; is it a kernel file?") from None
    kernel = _Reader(shown, source).kernel()
    included = includes.of(source, file) if file is not None else ()
    return msgspec.structs.replace(
        kernel,
        file=str(file.absolute()) if file is not None else "",
        sha256=includes.identity(data, included),
        includes=included,
    )


def check_name(name: str) -> None:
    """`UsageError` for a name that no kernel can have."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"name {name!r:.60}: use lower-case letters, digits, `-`, `_`, `.`")


def default_entry(name: str) -> str:
    """The function that a kernel of this name calls when its file gives no `entry`."""
    return re.sub(r"\W", "_", name)


class _Reader:
    """Reads one file's front matter and says where it is wrong."""

    def __init__(self, shown: str, source: str) -> None:
        self.shown = shown
        self.source = source
        fence = FENCE.search(source)
        if fence is None:
            opened = _OPEN.search(source)
            if opened is None:
                self.fail("no front matter; open the file with `// /// matbench` … `// ///`", 1)
            line = source.count("\n", 0, opened.start()) + 1
            self.fail("front matter is not closed; end it with a line `// ///`", line)
        self.first_line = source.count("\n", 0, fence.start("body")) + 1
        lines = fence["body"].splitlines()
        self.toml = [line[3:] if line.startswith("// ") else line[2:] for line in lines]

    # -- where it is wrong -----------------------------------------------------------------

    def fail(self, reason: str, line: int) -> NoReturn:
        raise UsageError(f"{self.shown}:{line}: {reason}")

    def wrong(self, reason: str, *keys: str) -> NoReturn:
        self.fail(reason, self.line_of(*keys))

    @contextlib.contextmanager
    def blaming(self, *keys: str, before: str = "") -> Iterator[None]:
        """An error in this block is the fault of these keys."""
        try:
            yield
        except MatbenchError as error:
            line = error.line if isinstance(error, signature.SourceError) else None
            self.fail(f"{before}{error}", line or self.line_of(*keys))

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

    # -- what it says ----------------------------------------------------------------------

    def kernel(self) -> Kernel:
        table = self.table()
        try:
            front = msgspec.convert(table, FrontMatter)
        except msgspec.ValidationError as error:
            reason, keys = _explained(str(error), table)
            self.wrong(reason, *keys or [""])
        with self.blaming("name"):
            check_name(front.name)
        with self.blaming("workload"):
            workload = workloads.get(front.workload)
        entry = front.entry if "entry" in table else default_entry(front.name)
        named_by = "entry" if "entry" in table else "name"
        if not _IDENTIFIER.fullmatch(entry):
            self.wrong(f"entry {entry!r:.60}: not the name of a function", named_by)
        with self.blaming(named_by):
            parameters = signature.parameters(self.source, entry)
        given = {name: getattr(front, name) for name in front.__struct_fields__}
        given |= {"entry": entry, "args": front.args if table.get("args") else workload.arguments}
        kernel = Kernel(**given, source=self.source, path=self.shown, parameters=parameters)
        if "precision" not in table and kernel.reading.storage != "int32":
            kernel = msgspec.structs.replace(kernel, precision=kernel.reading.storage)
        self.check(kernel)
        return kernel

    def table(self) -> dict[str, Any]:
        try:
            table: dict[str, Any] = tomllib.loads("\n".join(self.toml))
        except RecursionError:
            self.fail("not TOML: nested too deeply", self.first_line)
        except ValueError as error:
            where = re.search(r"\(at line ([0-9]+), column [0-9]+\)", str(error))
            line = self.first_line + (int(where[1]) - 1 if where else 0)
            self.fail(f"not TOML: {str(error).split(' (at ')[0]}", line)
        return table

    # -- what types cannot say -------------------------------------------------------------

    def check(self, kernel: Kernel) -> None:
        """Names and values, and every expression tried once."""
        workload = workloads.get(kernel.workload)
        if not kernel.summary.isprintable() or not kernel.summary.strip():
            self.wrong("summary: one line of text", "summary")
        if not 0 <= kernel.error_constant <= MAX_ERROR_CONSTANT:
            self.wrong(
                f"error_constant = {kernel.error_constant:g}: a number from 0 to "
                f"{MAX_ERROR_CONSTANT}; an error beyond that is no float32 result: say which "
                "`precision` the inputs are rounded to instead",
                "error_constant",
            )
        for requirement in kernel.requires:
            if not _REQUIREMENT.fullmatch(requirement):
                known = "known are cuda, host, sm_80, sm_90a, …"
                self.wrong(f"requires {requirement!r}: {known}", "requires")
        low, high = kernel.exponents or (-126, 127)
        if not -126 <= low < high < 128:
            self.wrong("exponents: the lowest and the highest, as in [-14, 15]", "exponents")
        if kernel.finish is not None and not workload.is_reduction:
            whole = f"C of {workload.name} is not a single number, so there is nothing to add up"
            self.wrong(f"finish = {kernel.finish!r}: {whole}", "finish")
        for table, space in (("sweep", kernel.sweep), ("tune", kernel.tune)):
            for name, values in space.items():
                if not _IDENTIFIER.fullmatch(name) or name in _RESERVED or keyword.iskeyword(name):
                    self.wrong(f"[{table}] {name}: not a name for a swept constant", table, name)
                if not values or any(not 0 < value < 2**31 for value in values):
                    self.wrong(f"[{table}] {name}: a list of whole numbers above 0", table, name)
        self.check_arithmetic(kernel.model.get(_ARITHMETIC))
        self.check_product(kernel)
        self.check_expressions(kernel)
        if "\0" in self.source:
            line = self.source.count("\n", 0, self.source.index("\0")) + 1
            self.fail("holds a NUL byte; is it a kernel file?", line)

    def check_product(self, kernel: Kernel) -> None:
        """What only a matrix product can have: its layout, and what it is scaled by."""
        if kernel.workload != workloads.DEFAULT:
            plain = {f.name: f.default for f in msgspec.structs.fields(FrontMatter)}
            for key in _PRODUCT_KEYS:
                if getattr(kernel, key) != plain[key]:
                    self.wrong(f"{key}: only for matmul, not {kernel.workload}", key)
            return
        if not 0 <= kernel.padding <= _MOST_PADDING:
            limits = f"from 0 to {_MOST_PADDING:,} elements"
            self.wrong(f"padding = {kernel.padding}: {limits}", "padding")
        for key in ("alpha", "beta", "batch"):
            value = getattr(kernel, key)
            values = value if isinstance(value, tuple) else (value,)
            if not values or not all(map(math.isfinite, values)):
                self.wrong(f"{key}: a number, or a list of some", key)
            if key == "batch" and not all(1 <= number < 2**31 for number in values):
                self.wrong("batch: how many products, at least 1", key)
        if any(not (b == 0 or 2.0**-60 <= abs(b) <= 2.0**60) for b in _numbers(kernel)):
            self.wrong("alpha and beta: 0, or from 2⁻⁶⁰ to 2⁶⁰ in size", "alpha")

    def check_arithmetic(self, text: str | None) -> None:
        """A number and a precision, where the file says what it multiplies with."""
        try:
            if text is not None:
                Arithmetic.parse(text)
        except ValueError:
            known = ", ".join(get_args(Precision))
            what = f"how many products it takes for one, 1 to 16, and their precision ({known})"
            self.wrong(
                f'model.arithmetic {text!r:.40}: {what}, as in "3 tf32"', "model", _ARITHMETIC
            )

    def check_expressions(self, kernel: Kernel) -> None:
        """Geometry, conditions, claims and arguments, with the first values of all constants."""
        workload = workloads.get(kernel.workload)
        largest = Problem(2**31 - 1, 2**31 - 1, 2**31 - 1, workload=workload.name)
        sizes = kernel.values(largest)
        constants = {name: numbers[0] for name, numbers in (kernel.tune | kernel.sweep).items()}
        values: dict[str, expressions.Number] = {**sizes, **DEVICE_LIMITS, **constants}

        def attempt(text: int | str, *keys: str, whole: bool = True) -> None:
            with self.blaming(*keys, before=f"{'.'.join(keys)} {str(text)[:60]!r}: "):
                if whole:
                    expressions.whole(text, values)
                else:
                    expressions.evaluate(str(text), values)

        rules = kernel.launch
        for key, axes in (("block", rules.block), ("grid", rules.grid)):
            if not 1 <= len(axes) <= 3:
                self.wrong(f"launch.{key}: one to three numbers", "launch", key)
            for axis in axes:
                attempt(axis, "launch", key)
        attempt(rules.shared_bytes, "launch", "shared_bytes")
        for condition in rules.where:
            attempt(condition, "launch", "where", whole=False)
        for key, text in kernel.model.items():
            if key != _ARITHMETIC:
                attempt(text, "model", key, whole=False)

        if len(kernel.args) != len(kernel.parameters):
            entries = f"args has {len(kernel.args)} entries"
            taken = f"{kernel.entry} has {len(kernel.parameters)} parameters"
            self.wrong(f"{entries}, {taken}", "args")
        for index, (text, parameter) in enumerate(zip(kernel.args, kernel.parameters, strict=True)):
            if parameter.type == signature.TENSOR_MAP and not parameter.pointer:
                described = signature.tensor_map(text)
                if described is None or described[0] not in workload.buffers:
                    example = f"`tensor_map({workload.buffers[0]}, rows, columns)`"
                    self.wrong(f"args: {parameter.name} takes {example}, not {text!r}", "args")
                for side in described[1:]:
                    attempt(side, "args")
            elif parameter.pointer != (text in workload.buffers):
                known = f"{', '.join(workload.reads)} or C"
                kind = f"a buffer ({known})" if parameter.pointer else "a number"
                self.wrong(f"args: {parameter.name} takes {kind}, not {text!r}", "args")
            elif parameter.pointer:
                self.check_storage(kernel, index, text, parameter)
            else:
                attempt(text, "args", whole=False)
        for buffer in workload.buffers:
            if buffer not in kernel.args:
                self.wrong(f"args: {buffer} is not among them", "args")

    def check_storage(self, kernel: Kernel, index: int, buffer: str, parameter: Parameter) -> None:
        """Pointers are to what the buffer holds; a kernel declares inputs of 16 bits."""
        storage = STORAGE.get(parameter.type)
        allowed = workloads.get(kernel.workload).storages(buffer)
        if storage not in allowed:
            *others, last = (_WRITTEN[each] for each in allowed)
            known = f"{', '.join(others)} or {last}" if others else last
            self.fail(
                f"{parameter.name} points to `{parameter.type}`: "
                f"{buffer} of {kernel.workload} is {known}",
                signature.line_of(self.source, kernel.entry, index),
            )
        if buffer == "C":
            return
        if storage != kernel.reading.storage:
            kinds = f"A is {kernel.reading.storage} and {buffer} is {storage}"
            line = signature.line_of(self.source, kernel.entry, index)
            self.fail(f"{kinds}; operands have one type", line)
        own = storage in ("float16", "bfloat16", "float64")
        if (own and storage != kernel.precision) or kernel.precision == "float64" != storage:
            self.wrong(
                f"{parameter.name} is {parameter.type}: say precision = {storage!r}", "precision"
            )


def _numbers(kernel: Kernel) -> list[float]:
    """Every alpha and beta that is listed."""
    both = (kernel.alpha, kernel.beta)
    return [number for v in both for number in (v if isinstance(v, tuple) else (v,))]


def _explained(message: str, table: dict[str, Any]) -> tuple[str, list[str]]:
    """msgspec's message in the words of front matter, and the keys that it is about."""
    reason, _, where = message.partition(" - at ")
    keys = re.findall(r"[A-Za-z_][\w-]*", where.replace("key in ", ""))[:2]
    if "[...]" in where and keys[0] in _TABLES:  # msgspec does not say which key
        keys += [key for key, value in table[keys[0]].items() if not _fits(keys[0], value)][:1]
    unknown = re.search(r"unknown field `(.*?)`", reason)
    missing = re.search(r"missing required field `(.*?)`", reason)
    name = ".".join(keys)
    if unknown:
        known = (LaunchRules if keys else FrontMatter).__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
        return f"unknown key `{unknown[1]}`; {hint}", [*keys, unknown[1]]
    if missing:
        return f"`{'.'.join([*keys, missing[1]])}` is missing", keys
    if reason.startswith("Invalid enum") and name in _CHOICES:
        reason = f"{reason.split()[-1]} is none of {', '.join(_CHOICES[name])}"
    return f"`{name}`: {reason}" if name else reason, keys


def _fits(table: str, value: object) -> bool:
    """Whether a value may stand in a table whose keys are free."""
    try:
        msgspec.convert(value, _TABLES[table])
    except msgspec.ValidationError:
        return False
    return True
