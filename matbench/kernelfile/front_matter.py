"""Reads and checks front matter; errors name the file and the line."""

from __future__ import annotations

import contextlib
import difflib
import json
import keyword
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import msgspec

from matbench import model, workloads
from matbench.errors import MatbenchError, UsageError, listed
from matbench.kernelfile import expressions, includes, signature, sizes, tables
from matbench.kernelfile.signature import Entry, Signature
from matbench.kernelfile.tables import Beside, MissingKeysError, Table
from matbench.kernelfile.unpacking import unpacked
from matbench.model import FrontMatter, Included, Kernel, LaunchRules, Parameter, Problem

MAX_FILE_BYTES = 500_000
#: The suffixes of files that are already compiled.
COMPILED = (".ptx", ".cubin")
#: Begins the `entry` that is a function on the host.
ON_HOST = "host "
#: Device limits that front matter may name, with a small device's values to try expressions with.
DEVICE_LIMITS = {
    "max_threads_per_block": 1024, "max_block_x": 1024, "max_block_y": 1024, "max_block_z": 64,
    "max_grid_x": 2**31 - 1, "max_grid_y": 65535, "max_grid_z": 65535,
    "max_shared_bytes_per_block": 49152, "max_static_shared_bytes": 49152, "warp_size": 32,
    "multiprocessors": 16,
}  # fmt: skip
#: The keys that only matrix products have.
_OF_PRODUCTS = (
    "layout", "transpose", "padding", "alpha", "beta", "batch", "reads", "accumulator", "scales",
    "promotes",
)  # fmt: skip
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_RESERVED = {
    *("M", "N", "K", "A", "B", "C", model.WORKSPACE), *model.SCALE_OF.values(),
    *("lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c", "alpha", "beta", "batch"),
    *DEVICE_LIMITS, *expressions.FUNCTIONS, *keyword.kwlist,
}  # fmt: skip
#: The usual C++ type of each storage.
_WRITTEN = {storage: kind for kind, storage in reversed(model.STORAGE.items())}


def parse(
    data: bytes,
    shown: str,
    file: Path | None = None,
    beside: Beside | None = None,
    given: Mapping[str, Any] | None = None,
    reader: type[Reader] | None = None,
) -> Kernel:
    """The kernel in a file's content; `shown` is what messages call the file.

    The path of the `file` resolves its `#include` lines. Front matter is in the file or `beside`
    it; keys `given` on the command line replace its own.
    """
    source = "" if file is not None and file.suffix == ".cubin" else decoded(data, shown)
    table = Table(shown, source, beside, given or {})
    if reader is None or not str(table.values.get("entry", "")).startswith(reader.entry_prefix):
        reader = Reader
    kernel = reader(shown, source, file, table, data).kernel()
    # The hash of the file covers only its own content, so front matter from elsewhere is added, but
    # not `previous`: it changes nothing that is compiled, launched or claimed.
    values = {key: value for key, value in table.values.items() if key != "previous"}
    outside = json.dumps(values, default=str).encode() if beside or given else b""
    identity = includes.identity(data + outside, kernel.includes)
    return msgspec.structs.replace(kernel, sha256=identity)


def decoded(data: bytes, shown: str) -> str:
    """The text of a kernel file, with `\\n` at the end of each line; none of a cubin."""
    if shown.endswith(".cubin"):
        return ""
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: larger than {MAX_FILE_BYTES:,} bytes; is it a kernel file?")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{shown}: not UTF-8 text; is it a kernel file?") from None


def name_from(text: str) -> str:
    """A valid kernel name like the text, such as a file's name; letters lose their accents."""
    plain = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-") or "kernel"


def check_name(name: str) -> None:
    """Raise `UsageError` for an invalid kernel name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"name {name!r:.60}: use lower-case letters, digits, `-`, `_`, `.`")


class Reader:
    """Reads the front matter of one file."""

    #: How many bytes of headers are searched for kernels and types.
    SEARCHED_BYTES = 1_000_000
    #: That of its kernels.
    kind: model.KernelKind = model.CUDA_C
    #: What they are if they are already compiled.
    code = b""
    #: What their device must be, whatever the table says.
    needs: tuple[str, ...] = ()
    #: Keys that they have no use for, and why.
    unused: tuple[tuple[str, ...], str] = ((), "")
    #: The only keys of `[launch]` that they have a use for; None: all.
    launch: tuple[str, ...] | None = None
    #: What their `entry` in the table begins with.
    entry_prefix = ""

    def __init__(
        self, shown: str, source: str, file: Path | None, table: Table, data: bytes = b""
    ) -> None:
        self.shown = shown
        self.file = file
        self.table = table
        self.wrong = table.wrong
        self.given = self.source = source

    def fail(self, reason: str, line: int | None) -> NoReturn:
        raise UsageError(f"{self.shown}:{line or 1}: {reason}")

    @contextlib.contextmanager
    def blaming(self, *keys: str, before: str = "") -> Iterator[None]:
        """Raise errors in this block at the source line they name, or else at these keys."""
        try:
            yield
        except MatbenchError as error:
            if (line := getattr(error, "line", None)) is not None:
                self.fail(f"{before}{error}", line)
            self.wrong(f"{before}{error}", *keys)

    def refuse(self, keys: Iterable[str], reason: str) -> None:
        """Raise an error if the table has one of these keys, which the kernel has no use for."""
        for key in keys:
            if key in self.table.values:
                self.wrong(f"{key}: {reason}", key)

    # -- reading ---------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        table = self.table.values
        front = self.front(table)
        with self.blaming("name"):
            check_name(front.name)
        workload = workloads.workload_of(front)
        included: tuple[Included, ...] = ()
        if self.file is not None:
            for folder in front.include_dirs:
                at = includes.folder_of(self.file, folder)
                if not os.path.isdir(at):  # noqa: PTH112 - it never raises
                    self.wrong(f"include_dirs {folder!r:.300}: no such folder", "include_dirs")
            included = includes.find_includes(self.source, self.file, front.include_dirs)
        entry, function = self.entry(front, included)
        self.lines = function.lines
        args = self.arguments(front, function.parameters)
        values = {name: getattr(front, name) for name in front.__struct_fields__}
        # Of template arguments that only `[tune]` names, the first value.
        tuned = sorted(entry.names & (front.tune.keys() - front.sweep.keys()))
        sweep = front.sweep | {name: front.tune[name][:1] for name in tuned}
        kernel = Kernel(
            **values | {"entry": signature.as_text(entry), "args": args, "sweep": sweep},
            source=self.given,
            path=self.shown,
            file=str(self.file.absolute()) if self.file is not None else "",
            includes=included,
            parameters=function.parameters,
            is_extern_c=function.is_extern_c,
            kind=self.kind,
            code=self.code,
        )
        if lacking := self.lacking(kernel, entry):
            raise MissingKeysError(self.table, lacking, workload, function, entry)
        is_product = front.workload == workloads.DEFAULT
        if "precision" not in table and (is_product or kernel.contract.storage != "int32"):
            kernel = msgspec.structs.replace(kernel, precision=kernel.contract.storage)
        self.check(kernel)
        return kernel

    def arguments(self, front: FrontMatter, parameters: Sequence[Parameter]) -> tuple[str, ...]:
        """The arguments for these parameters; empty if the table must say them."""
        if self.table.values.get("args"):
            return front.args
        workload = workloads.workload_of(front)
        buffers = [text in workload.buffers for text in workload.arguments]
        is_usual = buffers == [parameter.pointer for parameter in parameters]
        return workload.arguments if is_usual else ()

    def lacking(self, kernel: Kernel, entry: Entry) -> list[str]:
        values, launch = self.table.values, {"block", "grid"} if kernel.kind.is_launched else set()
        known = {*kernel.sweep, *kernel.tune, *kernel.let}
        lacking = [] if "entry" in values or known.issuperset(entry.arguments) else ["entry"]
        if not kernel.args:
            lacking.append("args")
        if model.WORKSPACE in (kernel.args or [parameter.name for parameter in kernel.parameters]):
            launch.add("workspace_bytes")
        launch -= values.get("launch", {}).keys()
        return lacking + [f"launch.{key}" for key in sorted(launch)]

    def front(self, table: dict[str, Any]) -> FrontMatter:
        """Front matter with the right types; missing keys are reported later, all at once."""
        self.refuse(*self.unused)
        path = self.file or Path(self.shown)
        name = path.name if path.suffix in COMPILED else path.stem
        values = {"name": name_from(name), "launch": {}, **table}
        if isinstance(values["launch"], dict):
            values["launch"] = {"block": (1,), "grid": (1,), **values["launch"]}
        try:
            front = msgspec.convert(values, FrontMatter)
        except msgspec.ValidationError as error:
            reason, keys = _explained(str(error), table)
            self.wrong(reason, *keys or [""])
        if front.workload != workloads.DEFAULT and self.kind.is_apart:
            self.wrong(f"workload: functions compute {workloads.DEFAULT} alone", "workload")
        if self.launch is not None and not {*table.get("launch", ())} <= {*self.launch}:
            only = listed((f"`{key}`" for key in self.launch), "and")
            self.wrong(f"launch: only {only}; the function launches its kernels itself", "launch")
        requires = tuple(dict.fromkeys((*front.requires, *self.needs)))
        return msgspec.structs.replace(front, requires=requires)

    def pointers(self, front: FrontMatter) -> dict[str, str]:
        """The C++ types of buffers' elements, where only the table says them."""
        usual = front.storage or ("float32" if front.precision == "tf32" else front.precision)
        types = {}
        workload = workloads.workload_of(front)
        for buffer in workload.buffers:
            key = "result" if buffer == "C" else "storage"
            kind, allowed = getattr(front, key), workload.storages(buffer, usual)
            if kind not in (None, *allowed):
                self.wrong(f"{key}: {kind}; known: {', '.join(allowed)}", key)
            kind = kind or (usual if usual in allowed else allowed[0])
            types[buffer] = _WRITTEN[kind]
        return types

    def entry(self, front: FrontMatter, included: tuple[Included, ...]) -> tuple[Entry, Signature]:
        """The entry, and its function with the types that its parameters then have."""
        self.refuse(("result",), "only if no source in C says it; the pointer does")
        on_host = 'only for functions on the host, as in entry = "host sgemm"'
        self.refuse(("link", "options"), on_host)
        with self.blaming("entry"):
            self.source = unpacked(self.given)
        headers = includes.texts(included, self.SEARCHED_BYTES)
        functions: list[Signature] = []
        function = None
        for texts in ([self.source], headers):
            if function is None:
                for text in texts:
                    with contextlib.suppress(signature.SourceError):
                        functions += signature.functions(unpacked(text))
                wanted = self.wanted(front, functions)
                function = signature.find(functions, wanted)
        named_by = "entry" if "entry" in self.table.values else "name"
        if function is None:
            self.no_entry(functions, wanted, named_by)
        unbound = [p for p in function.template[len(wanted.arguments) :] if p.default is None]
        if named_by == "name" and unbound:  # reported with other missing keys
            wanted = signature.entry_named(signature.suggested(function)) or wanted
        with self.blaming(named_by):
            called = signature.called(function, wanted, signature.aliases(self.source))
            if not all(map(signature.is_known, called.parameters)):
                types = signature.aliases(*reversed(headers), self.source)
                called = signature.called(function, wanted, types)
            signature.checked(called.parameters, function.line)
        return wanted._replace(name=function.name), called

    def wanted(self, front: FrontMatter, functions: list[Signature]) -> Entry:
        """The entry of the table; else the function with the kernel's name, or the only one, and
        its swept template arguments."""
        if "entry" in self.table.values:
            if (named := signature.entry_named(front.entry)) is None:
                self.wrong(f"entry {front.entry!r:.60}: not the name of a function", "entry")
            return named
        usual = re.sub(r"\W", "_", front.name)
        names = list(dict.fromkeys(function.name for function in functions))
        wanted = Entry(names[0] if len(names) == 1 and usual not in names else usual, ())
        function = signature.find(functions, wanted)
        for parameter in function.template if function else ():
            if parameter.name not in {*front.sweep, *front.tune, *front.let}:
                break
            wanted = wanted._replace(arguments=(*wanted.arguments, parameter.name))
        return wanted

    def no_entry(self, functions: list[Signature], wanted: Entry, named_by: str) -> NoReturn:
        is_bare = not self.table.is_there and not self.table.given
        of_host: list[Signature] = []
        with contextlib.suppress(signature.SourceError):
            of_host = signature.host_functions(self.source)
        meant = signature.find(of_host, wanted)
        if is_bare and not functions:
            meant = meant or next(iter(of_host), None)
            how = "is it a kernel file?"
            if meant is not None:
                how = f"for one on the host, add --entry '{ON_HOST}{signature.suggested(meant)}'"
            self.fail(f"no front matter and no `__global__` function; {how}", 1)
        with self.blaming(named_by):
            signature.functions(self.source)  # raises if the source cannot be parsed
        names = list(dict.fromkeys(function.name for function in functions))
        if len(names) > 1 and named_by == "name":
            which = ", ".join(f"{function.name} (line {function.line})" for function in functions)
            which = f"several kernels, {which:.200}"
            if is_bare:
                how = f"run `matbench adopt {self.shown}`, with --entry NAME for one of them"
                self.fail(f"{which}, and no front matter; {how}", functions[0].line)
            self.wrong(f'{which}; choose one, as in entry = "{names[0]}"', "name")
        hint = f"; the file has {', '.join(names)}" if names else ""
        if meant is not None:
            hint = f'; for that on the host, entry = "{ON_HOST}{signature.suggested(meant)}"'
        self.wrong(f"no entry `__global__ void {wanted.name}(…)`{hint:.200}", named_by)

    # -- checks beyond types ---------------------------------------------------------------

    def check(self, kernel: Kernel) -> None:
        """Check names and values, and evaluate every expression once."""
        if "\0" in self.source:
            line = self.source.count("\n", 0, self.source.index("\0")) + 1
            self.fail("contains a NUL byte; is it a kernel file?", line)
        if not kernel.summary.isprintable():
            self.wrong("summary: must be one line of text", "summary")
        if kernel.previous is not None:
            with self.blaming("previous"):
                check_name(kernel.previous)
                if kernel.previous == kernel.name:
                    raise UsageError("previous: a kernel cannot follow itself")
        if kernel.exponents is not None and not kernel.exponents[0] < kernel.exponents[1]:
            reason = "exponents: must be the lowest and the highest, as in [-14, 15]"
            self.wrong(reason, "exponents")
        workload = workloads.workload_of(kernel)
        if kernel.finish is not None and not workload.is_reduction:
            whole = f"C of {workload.name} is not a single number, so there is nothing to add up"
            self.wrong(f"finish = {kernel.finish!r}: {whole}", "finish")
        with self.blaming("sizes"):
            sizes.parse_sizes(kernel.sizes or workload.default_sizes, workload)
        self.check_constants(kernel)
        self.check_product(kernel)
        self.check_launch(kernel)
        self.check_arguments(kernel)
        for reason, key in unsuitable(kernel):  # all other keys, and the types, are valid
            self.wrong(reason, key)

    def check_product(self, kernel: Kernel) -> None:
        """Check the keys that only matrix products have, and `arithmetic`."""
        try:
            if kernel.arithmetic is not None:
                model.Arithmetic.parse(kernel.arithmetic)
        except ValueError:
            known = ", ".join(get_args(model.Precision))
            what = f"must be a number of products, 1 to 16, and their precision ({known})"
            reason = f'arithmetic {kernel.arithmetic!r:.40}: {what}, as in "3 tf32"'
            self.wrong(reason, "arithmetic")
        for key in _OF_PRODUCTS if kernel.workload != workloads.DEFAULT else ():
            if getattr(kernel, key) != getattr(model.USUAL, key):
                self.wrong(f"{key}: only for {workloads.DEFAULT}, not {kernel.workload}", key)
        for key in ("alpha", "beta"):
            for number in sizes.numbers(getattr(kernel, key)):
                if not sizes.is_factor(number):
                    self.wrong(f"{key} = {number:g}: {sizes.FACTORS}", key)

    def check_constants(self, kernel: Kernel) -> None:
        """Check that constants can have their names in C++ and in expressions, and evaluate `[let]`
        in its order."""
        for table in ("sweep", "tune", "let"):
            for name in getattr(kernel, table):
                if name in _RESERVED or not (name.isascii() and name.isidentifier()):
                    self.wrong(f"[{table}] {name}: not a valid name for a constant", table, name)
        values = self.first_values(kernel)
        for name, text in kernel.let.items():
            if name in values:
                self.wrong(f"[let] {name}: also in [sweep] or [tune]; keep one", "let", name)
            with self.blaming("let", name):
                values = expressions.constants({name: text}, values)

    @staticmethod
    def first_values(kernel: Kernel) -> dict[str, int]:
        return {name: numbers[0] for name, numbers in (kernel.tune | kernel.sweep).items()}

    def attempt(self, kernel: Kernel, text: int | str, *keys: str, whole: bool = True) -> None:
        """Try an expression at the largest size, with the first value of each constant."""
        largest = Problem(2**31 - 1, 2**31 - 1, 2**31 - 1, workload=kernel.workload)
        constants = expressions.constants(kernel.let, self.first_values(kernel))
        values = {**kernel.values(largest), **DEVICE_LIMITS, **constants}
        with self.blaming(*keys, before=f"{'.'.join(keys)} {str(text)[:60]!r}: "):
            evaluate = expressions.whole if whole else expressions.evaluate
            evaluate(str(text), values)

    def check_launch(self, kernel: Kernel) -> None:
        rules = kernel.launch
        for key in ("block", "grid", "shared_bytes", "workspace_bytes"):
            given = getattr(rules, key)
            for text in given if isinstance(given, tuple) else (given,):
                if text is not None:
                    self.attempt(kernel, text, "launch", key)
        if rules.workspace_bytes is not None and model.WORKSPACE not in kernel.args:
            reason = f"launch.workspace_bytes: `{model.WORKSPACE}` is missing in args"
            self.wrong(reason, "launch", "workspace_bytes")
        for condition in rules.where:
            self.attempt(kernel, condition, "launch", "where", whole=False)
        for key, text in kernel.model.items():
            self.attempt(kernel, text, "model", key, whole=False)

    def check_arguments(self, kernel: Kernel) -> None:
        """Check that each parameter takes its argument, and that no buffer is left out."""
        if len(kernel.args) != len(kernel.parameters):
            taken = f"{kernel.entry} has {len(kernel.parameters)} parameters"
            self.wrong(f"args: {len(kernel.args)} arguments, but {taken}", "args")
        for index, (text, parameter) in enumerate(zip(kernel.args, kernel.parameters, strict=True)):
            self.check_argument(kernel, text, parameter)
            if text in model.SCALE_OF.values():  # of declared factors, passed as floats
                if kernel.scales is None:
                    known = listed(f'"{name}"' for name in get_args(model.Scales))
                    self.wrong(f"args: {text} needs `scales`: {known}", "args")
                if model.STORAGE.get(parameter.type) != "float32":
                    self.wrong(f"args: {text} is of floats, not `{parameter.type}`", "args")
            elif parameter.pointer and text in workloads.workload_of(kernel).buffers:
                self.check_storage(kernel, index, text, parameter)
        scales = model.SCALE_OF.values() if kernel.scales is not None else ()
        for buffer in (*workloads.workload_of(kernel).buffers, *scales):
            if buffer not in kernel.args:
                self.wrong(f"args: {buffer} is missing", "args")

    def check_argument(self, kernel: Kernel, text: str, parameter: Parameter) -> None:
        """Check that an argument is of the parameter's kind: tensor map, buffer or number."""
        buffers = workloads.workload_of(kernel).buffers
        if parameter.type == signature.TENSOR_MAP and not parameter.pointer:
            described = expressions.tensor_map(text)
            if described is None or described[0] not in buffers:
                example = f"`tensor_map({buffers[0]}, rows, columns)`"
                self.wrong(f"args: {parameter.name} takes {example}, not {text!r}", "args")
            for side in described[1:]:
                self.attempt(kernel, side, "args")
        elif parameter.pointer != (text in workloads.memory_of(kernel)):
            known = f"{', '.join(buffers)} or {model.WORKSPACE}"
            kind = f"a buffer ({known})" if parameter.pointer else "a number"
            self.wrong(f"args: {parameter.name} takes {kind}, not {text!r}", "args")
        elif not parameter.pointer:
            self.attempt(kernel, text, "args", whole=False)

    def check_storage(self, kernel: Kernel, index: int, buffer: str, parameter: Parameter) -> None:
        """Check that pointers match the buffers' element types and the declared precision."""
        storage = model.STORAGE.get(parameter.type)
        allowed = workloads.workload_of(kernel).storages(buffer, kernel.contract.storage)
        is_packed = storage == "int32" and kernel.storage in model.EIGHT_BITS  # four in a word
        if buffer != "C" and (parameter.type in model.BYTES or is_packed):
            storage = kernel.storage
            if storage not in model.EIGHT_BITS:
                known = listed(f'"{kind}"' for kind in model.EIGHT_BITS)
                self.wrong(f"{parameter.name} points to bytes: set `storage` to {known}", "storage")
        elif buffer != "C" and kernel.storage not in (None, storage):
            self.wrong("storage: only for pointers to bytes; the pointers say it", "storage")
        wrong = ""
        if storage not in allowed:
            known = listed(_WRITTEN[kind] for kind in allowed)
            points = f"{parameter.name} points to `{parameter.type}`"
            wrong = f"{points}: {buffer} of {kernel.workload} must be {known}"
        elif buffer != "C" and storage != kernel.contract.storage:
            kinds = f"A is {kernel.contract.storage} and {buffer} is {storage}"
            wrong = f"{kinds}; operands must have the same type"
        if wrong:
            self.fail(wrong, self.lines[index] if self.lines else None)
        if buffer == "C":
            return
        declared = ["float16", "bfloat16", "float64", *model.EIGHT_BITS]
        declared += ["int32"] * (kernel.workload == workloads.DEFAULT)
        needs = kernel.precision in ("float64", *model.EIGHT_BITS, *model.INTEGERS)
        if (storage in declared or needs) and storage != kernel.precision:
            kind = f"{parameter.name} is {parameter.type}"
            self.wrong(f"{kind}: set precision = {storage!r}", "precision")


def unsuitable(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Why its scales and accumulator do not suit its types, with the key of each reason."""
    contract = kernel.contract
    if kernel.scales is not None and contract.storage not in model.EIGHT_BITS:
        known = listed(model.EIGHT_BITS)
        yield f"scales: only for operands of {known}, not {contract.storage}", "scales"
    if kernel.scales is not None and contract.result == "int32":
        yield "scales: C is int32, so there are none; leave it out", "scales"
    if kernel.promotes is not None and kernel.accumulator != "float22":
        yield 'promotes: only with accumulator = "float22"', "promotes"
    suits = {"int32": model.INTEGERS, "float22": tuple(set(model.EIGHT_BITS) - set(model.INTEGERS))}
    if contract.storage not in suits.get(kernel.accumulator or "", (contract.storage,)):
        sums = f"sums of {contract.storage} products are not in {kernel.accumulator}"
        yield f"accumulator: {sums}", "accumulator"
    if kernel.scales is not None and kernel.batch != 1:
        yield "scales: not for batches", "scales"


def _explained(message: str, table: dict[str, Any]) -> tuple[str, list[str]]:
    """msgspec's message in terms of front matter, and the keys that it is about."""
    reason, _, where = message.partition(" - at ")
    keys = re.findall(r"[A-Za-z_][\w-]*", where.replace("key in ", ""))[:2]
    if "[...]" in where and keys[0] in ("sweep", "tune", "let", "model"):
        inside = table[keys[0]].items()  # msgspec does not say which key
        keys += [key for key, value in inside if not tables.fits(value, keys[0], key)][:1]
    if unknown := re.search(r"unknown field `(.*?)`", reason):
        known = (LaunchRules if keys else FrontMatter).__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
        return f"unknown key `{unknown[1]}`; {hint}", [*keys, unknown[1]]
    if reason.startswith("Invalid enum"):
        kind = tables.type_of(keys)  # a literal, or one or None; the group `baseline` is reserved
        texts = [text for each in (kind, *get_args(kind)) for text in get_args(each)]
        choices = ", ".join(text for text in texts if isinstance(text, str) and text != "baseline")
        reason = f"unknown value {reason.split()[-1]}; known: {choices}"
    return f"`{'.'.join(keys)}`: {reason}" if keys else reason, keys
