"""The signature of a kernel's entry: what it is called, and what it takes."""

from __future__ import annotations

import functools
import re

from matbench.errors import MatbenchError
from matbench.model import Parameter

#: Comments, and what may hold the signs of one: strings, characters, numbers such as 1'000.
#: What is not closed goes on to the end, so that nothing is looked for twice.
_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|(?<!\w)(?:(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)|\d(?:'?[\w.])*)""",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = {
    "const", "volatile", "restrict", "__restrict__", "__restrict", "struct", "__grid_constant__"
}  # fmt: skip
_TENSOR_MAP_ARGUMENT = re.compile(r"\s*tensor_map\s*\(\s*(\w+)\s*,([^,]+),([^,]+)\)\s*")

#: The types that an entry can take by value, and NumPy's names for them.
SCALARS = {
    "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "float": "float32",
    "double": "float64", "size_t": "uint64", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "short": "int16", "char": "int8",
}  # fmt: skip
#: Describes a matrix to the copy engine (TMA); passed by value as `__grid_constant__`.
TENSOR_MAP = "CUtensorMap"


class SourceError(MatbenchError):
    """Something that the source lacks; `line` counts from 1, None: no line is to blame."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


def tensor_map(text: str) -> tuple[str, str, str] | None:
    """The matrix of an argument `tensor_map(A, 128, 64)`, and its box's rows and columns."""
    found = _TENSOR_MAP_ARGUMENT.fullmatch(text)
    return (found[1], found[2].strip(), found[3].strip()) if found else None


def holds(kind: str, value: int | float) -> bool:
    """Whether a parameter of this type can take the value as it is."""
    whole = re.fullmatch(r"(u?)int(\d+)", SCALARS[kind])
    if whole is None:
        return abs(value) < 2.0**128  # about where float32 ends
    bits = int(whole[2]) - (not whole[1])
    return value == int(value) and (0 if whole[1] else -(2**bits)) <= value < 2**bits


@functools.lru_cache(maxsize=4)
def without_comments(source: str) -> str:
    """The source with comments blanked and every character where it was."""

    def blank(match: re.Match[str]) -> str:
        text = match.group()
        is_open = text.startswith("/*") and not text[2:].endswith("*/")
        if is_open or not text.startswith("/"):
            return text
        return "\n".join(" " * len(line) for line in text.split("\n"))

    return _COMMENT.sub(blank, source)


def parameters(source: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of the entry, in order."""
    code = without_comments(source)
    start, end = parameter_list(code, entry)
    text = code[start:end].strip()
    if text in ("", "void"):
        return ()
    return tuple(_parameter(piece, _line(code, start)) for piece in text.split(","))


def line_of(source: str, entry: str, index: int) -> int:
    """The line on which a parameter of the entry is named."""
    code = without_comments(source)
    start, end = parameter_list(code, entry)
    pieces = code[start:end].split(",")[: index + 1]
    return _line(code, start + len(",".join(pieces).rstrip()))


def _parameter(text: str, line: int) -> Parameter:
    words = _NAME.findall(text)
    if len(words) < 2:
        raise SourceError(f"parameter `{text.strip()}` has no name", line)
    if text.count("*") > 1:
        raise SourceError(f"{words[-1]} is a pointer to a pointer; buffers are flat", line)
    kind = " ".join(word for word in words[:-1] if word not in _QUALIFIERS)
    pointer = "*" in text or "[" in text
    if not pointer and kind not in SCALARS and kind != TENSOR_MAP:
        known = ", ".join((*SCALARS, TENSOR_MAP))
        raise SourceError(f"{words[-1]} is a `{kind}`; known are {known}", line)
    return Parameter(type=kind, name=words[-1], pointer=pointer)


def parameter_list(code: str, entry: str) -> tuple[int, int]:
    """Where the entry's parameter list starts and ends, between its parentheses."""
    pattern = rf"\b__global__\b[^;{{}}]*?\b{re.escape(entry)}\s*\("
    found = re.search(pattern, code)
    if found is None:
        raise SourceError(f"no entry `__global__ void {entry}(…)`", None)
    start = found.end()
    depth = 1
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            break
    else:
        raise SourceError(f"the parameter list of {entry} is not closed", _line(code, start))
    if not re.search(r'\bextern\s+"C"', code[: found.start()]) and not re.match(
        r'__global__\s+extern\s+"C"', code[found.start() :]
    ):
        line = _line(code, found.start())
        raise SourceError(f'entry {entry} must be declared `extern "C"`', line)
    return start, position


def _line(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1
