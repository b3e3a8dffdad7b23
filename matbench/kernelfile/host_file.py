"""Functions on the host as kernels, of C++ and CUDA: `entry = "host sgemm"`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from matbench import workloads
from matbench.kernelfile import entry as entries
from matbench.kernelfile import includes, native, signature
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.front_matter import ON_HOST, Reader
from matbench.kernelfile.signature import Signature
from matbench.model import (
    BASELINE,
    HOST,
    SCALE_OF,
    WORKSPACE,
    FrontMatter,
    Included,
    Kernel,
    LaunchRules,
    Parameter,
)
from matbench.workloads import Workload

#: What matbench passes for parameters of these types.
HANDLES = {"cudaStream_t": "stream", "CUstream": "stream", "cublasHandle_t": "cublas"}
#: What parameters are by their names, in upper or lower case.
_ROLES = {
    name.lower(): name
    for name in ("A", "B", "C", "M", "N", "K", "alpha", "beta", "batch", *SCALE_OF.values())
}
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_CUDA = re.compile(r"\bcu(?:da|blas|rand|sparse|solver|tensor)|__global__|<<<")


def _named(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """The arguments that the names of parameters say, in any order; empty if they do not."""
    args = tuple(_ROLES.get(parameter.name.lower(), "") for parameter in parameters)
    return args if {*"ABCMNK"} <= {*args} and "" not in args else ()


class HostReader(Reader):
    """Reads the front matter of a function on the host."""

    library = HOST
    unused = ("finish", "reads"), "a function on the host has no use for it; remove it"

    def front(self, table: dict[str, Any]) -> FrontMatter:
        front = super().front(table)
        rules = front.launch
        plain = LaunchRules((1,), (1,), workspace_bytes=rules.workspace_bytes, where=rules.where)
        if rules != plain:
            only = "only `where` and `workspace_bytes`; the function launches its kernels itself"
            self.wrong(f"launch: {only}", "launch")
        if front.workload != workloads.DEFAULT and self.library == HOST:
            self.wrong(f"workload: functions compute {workloads.DEFAULT} alone", "workload")
        for reason in filter(None, map(native.mistake, front.options)):
            self.wrong(reason, "options")
        needs = front.requires
        if "host" not in needs:
            is_of_host = "requires" not in table and self.is_of_host(front)
            needs = ("host",) if is_of_host else ("cuda", *needs)
        return msgspec.structs.replace(front, requires=tuple(dict.fromkeys(needs)))

    def is_of_host(self, front: FrontMatter) -> bool:
        """Whether this is a file in C or C++ that does not mention CUDA."""
        if self.file is None or self.file.suffix not in _C_SUFFIXES:
            return False
        included = includes.find_includes(self.source, self.file, front.include_dirs)
        return not any(map(_CUDA.search, [self.source, *includes.texts(included)]))

    def entry(self, front: FrontMatter, included: tuple[Included, ...]) -> tuple[Entry, Signature]:
        self.refuse(("storage", "result"), "only if no source in C says it; the pointers do")
        wanted = entries.parsed(front.entry.removeprefix(ON_HOST))
        if wanted is None:
            self.wrong(f"entry {front.entry!r:.80}: not the name of a function", "entry")
        texts = [self.given, *includes.texts(included, self.SEARCHED_BYTES)]
        with self.blaming("entry"):
            functions = [function for text in texts for function in signature.host_functions(text)]
        function = entries.find(functions, wanted)
        if function is None:
            names = ", ".join(dict.fromkeys(function.name for function in functions))
            there = f"; the file has {names:.200}" if names else ""
            self.wrong(f"no function {wanted.name}(…) on the host{there}", "entry")
        with self.blaming("entry"):
            called = entries.called(function, wanted, signature.aliases(*reversed(texts)))
        # One argument says that it is a template; C++ knows the defaults of the others.
        defaults = tuple(p.default for p in function.template[:1] if p.default is not None)
        return Entry(function.name, wanted.arguments or defaults), called

    def arguments(
        self, front: FrontMatter, workload: Workload, parameters: Sequence[Parameter]
    ) -> tuple[str, ...]:
        """Between them the handles, which the table need not list."""
        handles = [None if p.pointer else HANDLES.get(p.type) for p in parameters]
        listed = [p for p, handle in zip(parameters, handles, strict=True) if handle is None]
        named = () if self.table.values.get("args") else _named(listed)
        args = named or super().arguments(front, workload, listed)
        if len(args) != len(listed):
            return args
        others = iter(args)
        return tuple(handle or next(others) for handle in handles)

    def check_argument(self, kernel: Kernel, text: str, parameter: Parameter) -> None:
        handle = None if parameter.pointer else HANDLES.get(parameter.type)
        buffers = workloads.get(kernel.workload).buffers
        is_buffer = text in (*buffers, WORKSPACE, *SCALE_OF.values())
        if handle is not None or text in HANDLES.values():
            if text != handle:
                wanted = handle or "no handle"
                self.wrong(f"args: {parameter.name} takes {wanted}, not {text!r}", "args")
        elif parameter.pointer and not is_buffer:  # the address of a number
            self.attempt(kernel, text, "args", whole=False)
        else:
            super().check_argument(kernel, text, parameter)


class BaselineReader(HostReader):
    """Reads that of matbench's own baselines, which are trusted and may compute any workload."""

    library = BASELINE

    def front(self, table: dict[str, Any]) -> FrontMatter:
        return msgspec.structs.replace(super().front(table), group="baseline")
