"""What the file of a function on the host is built with: compiler options, OpenMP, libraries."""

from __future__ import annotations

import re
from pathlib import Path

from matbench.kernelfile import includes, syntax
from matbench.model import HOST, Kernel

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
_CUDA = re.compile(r"(cublas|cublasLt|curand|cusparse|cusolver)(?:_v2|Dn|Sp)?\.h")
_BLAS: dict[str, tuple[str, ...]] = {
    "cblas.h": ("openblas", "cblas", "blas", "mkl_rt", "blis"),
    "mkl.h": ("mkl_rt",),
}


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
    code = map(syntax.without_comments, _texts(kernel) if kernel.library == HOST else [])
    return "omp.h" in _headers(kernel) or any(map(_OPENMP.search, code))


def options(kernel: Kernel) -> list[str]:
    """The options of its table, after those that its pragmas need."""
    return [*(["-fopenmp"] if has_openmp(kernel) else []), *kernel.options]


def libraries(kernel: Kernel) -> list[tuple[str, ...]]:
    """The libraries of the headers that it includes: the names of each, none of which its table
    links."""
    declared: dict[tuple[str, ...], None] = {}
    for name in _headers(kernel):
        cuda = _CUDA.fullmatch(name)
        declared[(cuda[1],) if cuda else _BLAS.get(name, ())] = None
    return [names for names in declared if names and not {*names} & {*kernel.link}]


def _texts(kernel: Kernel) -> list[str]:
    return [kernel.source, *includes.texts(kernel.includes)]


def _headers(kernel: Kernel) -> list[str]:
    """The names of all headers that it includes, without their folders."""
    operands = [operand for text in _texts(kernel) for operand in includes.operands(text)]
    return [Path(name).name for name in map(includes.name_in, operands) if name is not None]
