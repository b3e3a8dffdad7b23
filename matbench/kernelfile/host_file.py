"""Functions on the host as kernels, of C++ and CUDA: `entry = "host sgemm"`; their front matter,
and what their files are built with: compiler options, OpenMP, libraries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from matbench import workloads
from matbench.kernelfile import includes, signature, syntax
from matbench.kernelfile.front_matter import ON_HOST, Reader
from matbench.kernelfile.signature import Entry, Signature
from matbench.model import CUBLAS, HOST, SCALE_OF, FrontMatter, Included, Kernel, Parameter

#: What matbench passes for parameters of these types.
HANDLES = {"cudaStream_t": "stream", "CUstream": "stream", "cublasHandle_t": "cublas"}
#: The argument for a pointer that need not point to anything.
NULL = "null"
#: What parameters are by their names, in upper or lower case.
_ROLES = {
    name.lower(): name
    for name in ("A", "B", "C", "M", "N", "K", "alpha", "beta", "batch", *SCALE_OF.values())
}
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_CUDA = re.compile(r"\bcu(?:da|blas|rand|sparse|solver|tensor)|__global__|<<<")
#: Options that change the code, and neither read nor write files nor start programs.
_OPTION = re.compile(
    r"-(?:m[\w=.+-]+|O(?:[0-3sgz]|fast)?|[DU][A-Za-z_]\w*(?:=[\w.+-]*)?|pthread"
    r"|f(?!plugin|module|dump|profile|auto-profile|syntax-only|preprocessed)[\w-]+(?:=[\w-]+)?)"
)
#: Those that nvcc takes itself, for both compilers or for the device.
_NVCC = re.compile(
    r"-[DU][\w=.+-]+|-O[0-3]|--?(?:use_fast_math|extended-lambda|expt-[a-z-]+|maxrregcount=\d+"
    r"|(?:fmad|ftz|prec-div|prec-sqrt)=(?:true|false))"
)
#: The keys of front matter that do what other options would.
_KEYS = {"-std": "std", "-I": "include_dirs", "-l": "link"}
_OPENMP = re.compile(r'^\s*#\s*pragma\s+omp\b|\b_Pragma\s*\(\s*"\s*omp\b', re.MULTILINE)
#: Headers of CUDA's libraries, and of the CPU's: of these, there may be several.
_CUDA_HEADER = re.compile(r"(cuda|cublas|cublasLt|curand|cusparse|cusolver)(?:_v2|Dn|Sp)?\.h")
_BLAS: dict[str, tuple[str, ...]] = {
    "cblas.h": ("openblas", "cblas", "blas", "mkl_rt", "blis"),
    "mkl.h": ("mkl_rt",),
}


class HostReader(Reader):
    """Reads the front matter of a function on the host."""

    kind = HOST
    unused = ("finish", "reads"), "a function on the host has no use for it; remove it"
    launch = ("where", "workspace_bytes")
    entry_prefix = ON_HOST

    def front(self, table: dict[str, Any]) -> FrontMatter:
        front = super().front(table)
        for reason in filter(None, map(mistake, front.options)):
            self.wrong(reason, "options")
        if "host" in front.requires:
            return front
        needs = ("cuda", *front.requires)
        if "requires" not in table and self.file is not None and self.file.suffix in _C_SUFFIXES:
            included = includes.find_includes(self.source, self.file, front.include_dirs)
            if not any(map(_CUDA.search, [self.source, *includes.texts(included)])):
                needs = ("host",)
        return msgspec.structs.replace(front, requires=tuple(dict.fromkeys(needs)))

    def entry(self, front: FrontMatter, included: tuple[Included, ...]) -> tuple[Entry, Signature]:
        self.refuse(("storage", "result"), "only if no source in C says it; the pointers do")
        wanted = signature.entry_named(front.entry.removeprefix(ON_HOST))
        if wanted is None:
            self.wrong(f"entry {front.entry!r:.80}: not the name of a function", "entry")
        texts = [self.given, *includes.texts(included, self.SEARCHED_BYTES)]
        with self.blaming("entry"):
            functions = [function for text in texts for function in signature.host_functions(text)]
        function = signature.find(functions, wanted)
        if function is None:
            names = ", ".join(dict.fromkeys(function.name for function in functions))
            there = f"; the file has {names:.200}" if names else ""
            self.wrong(f"no function {wanted.name}(…) on the host{there}", "entry")
        with self.blaming("entry"):
            called = signature.called(function, wanted, signature.aliases(*reversed(texts)))
        # One argument says that it is a template; C++ knows the defaults of the others.
        defaults = tuple(p.default for p in function.template[:1] if p.default is not None)
        return Entry(function.name, wanted.arguments or defaults), called

    def arguments(self, front: FrontMatter, parameters: Sequence[Parameter]) -> tuple[str, ...]:
        """Between them the handles, which the table need not list."""
        handles = [None if p.pointer else HANDLES.get(p.type) for p in parameters]
        listed = [p for p, handle in zip(parameters, handles, strict=True) if handle is None]
        # Their names may say what they are, in any order.
        args = tuple(_ROLES.get(parameter.name.lower(), "") for parameter in listed)
        if self.table.values.get("args") or "" in args or not {*"ABCMNK"} <= {*args}:
            args = super().arguments(front, listed)
        if len(args) != len(listed):
            return args
        others = iter(args)
        return tuple(handle or next(others) for handle in handles)

    def check_argument(self, kernel: Kernel, text: str, parameter: Parameter) -> None:
        handle = None if parameter.pointer else HANDLES.get(parameter.type)
        if handle is not None or text in HANDLES.values():
            if text != handle:
                wanted = handle or "no handle"
                self.wrong(f"args: {parameter.name} takes {wanted}, not {text!r}", "args")
        elif parameter.pointer and text not in workloads.memory_of(kernel):
            if text != NULL:  # the address of a number
                self.attempt(kernel, text, "args", whole=False)
        else:
            super().check_argument(kernel, text, parameter)


class BaselineReader(HostReader):
    """Reads that of matbench's own baselines, which are trusted and may compute any workload."""

    kind = CUBLAS

    def front(self, table: dict[str, Any]) -> FrontMatter:
        return msgspec.structs.replace(super().front(table), group="baseline")


# What a file is built with


def mistake(option: str) -> str | None:
    """Why a compiler option is refused; None if it is not."""
    if _OPTION.fullmatch(option) or _NVCC.fullmatch(option):
        return None
    key = next((key for start, key in _KEYS.items() if option.startswith(start)), None)
    other = "only -m…, -O…, -f…, -D… and -U…, such as -march=native"
    return f"options: {option!r:.60}: {f'use the key `{key}`' if key else other}"


def is_for_host(option: str) -> bool:
    """Whether nvcc must pass an option on to the host's compiler."""
    return _OPTION.fullmatch(option) is not None and _NVCC.fullmatch(option) is None


def has_openmp(kernel: Kernel) -> bool:
    """Whether it is a function on the host, of a file that uses OpenMP."""
    code = map(syntax.without_comments, _texts(kernel) if kernel.kind.is_native else [])
    return "omp.h" in _headers(kernel) or any(map(_OPENMP.search, code))


def options(kernel: Kernel) -> list[str]:
    """The options of its table, after those that its pragmas need."""
    return [*(["-fopenmp"] if has_openmp(kernel) else []), *kernel.options]


def libraries(kernel: Kernel) -> list[tuple[str, ...]]:
    """The libraries of the headers that it includes: the names of each, none of which its table
    links."""
    declared: dict[tuple[str, ...], None] = {}
    for name in _headers(kernel):
        cuda = _CUDA_HEADER.fullmatch(name)
        declared[(cuda[1],) if cuda else _BLAS.get(name, ())] = None
    return [names for names in declared if names and not {*names} & {*kernel.link}]


def _texts(kernel: Kernel) -> list[str]:
    return [kernel.source, *includes.texts(kernel.includes)]


def _headers(kernel: Kernel) -> list[str]:
    """The names of all headers that it includes, without their folders."""
    operands = [operand for text in _texts(kernel) for operand in includes.operands(text)]
    return [Path(name).name for name in map(includes.name_in, operands) if name is not None]
