"""Finds the files that a kernel file includes, because they determine the build as well; and tells
when two kernel files are the same code.

Kernels are also loaded without a compiler, so the text is searched for directives, and all of them
count, whatever condition they are under: a file too many is better than one too few. Headers that
are neither beside the kernel nor reached by a path from there belong to the compiler.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from matbench.errors import UsageError
from matbench.kernelfile import syntax
from matbench.model import FrontMatter, Included, Kernel

#: Limits on what is read.
MAX_FILE_BYTES = 16_000_000
MAX_FILES = 5000
MAX_BYTES = 20_000_000  # in all; to look for a file counts as a thousand
#: The most words and signs of a Python file, whose tree takes up to 2 KB for each.
_MOST_TOKENS = 80_000

#: Keys of front matter that change nothing: headers count by their text, wherever they are.
_IDLE = ("summary", "previous", "group", "include_dirs")
_HASH = r"^[^\S\n]*#[^\S\n]*"
_DIRECTIVE = re.compile(_HASH + r"include(?:_next)?\b(.*)", re.MULTILINE)
_NAMED = re.compile(r'"([^"\n]+)"|<([^>\n]+)>')
_CONTINUED = re.compile(r"\\[^\S\n]*\n")
#: Suffixes of the files that a macro may name.
_SUFFIXES = {
    "", ".c", ".cc", ".cl", ".cpp", ".cu", ".cuh", ".cxx", ".def", ".h", ".hh", ".hpp", ".hxx",
    ".inc", ".inl", ".ipp", ".tpp",
}  # fmt: skip


def operands(source: str) -> list[str]:
    """The operands of the include directives in a text: `"mine.h"`, `<cuda_fp16.h>`, a macro."""
    lines = _logical_lines(source)  # as the preprocessor sees it
    code = syntax.without_comments(lines) if "include" in lines else ""
    return [text.strip() for text in _DIRECTIVE.findall(code)]


def imports(source: str) -> list[str]:
    """The files that may be the modules which a Python file imports, written like operands."""
    try:
        nodes = list(ast.walk(python(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # importing it fails, too
    modules, paths = [], []
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{module}." if (module := getattr(node, "module", None)) else ""
            level = getattr(node, "level", 0)
            modules += [(level, f"{package}{alias.name}") for alias in node.names]
    for level, module in modules:
        parts, level = module.split(".")[:32], min(level, 32)
        for count in range(1, len(parts) + 1):
            path = "/".join([*[".."] * (level - 1), *parts[:count]])
            paths += [f'"{path}.py"', f'"{path}/__init__.py"']
    return paths


def python(source: str) -> ast.Module:
    """The tree of a Python file; a `ValueError` if it would be too large."""
    if sum(1 for _ in re.finditer(r"\w+|[^\w ]", source)) > _MOST_TOKENS:
        raise ValueError(f"more than {_MOST_TOKENS:,} words and signs")
    return ast.parse(source)


def name_in(operand: str) -> str | None:
    """The file that an operand names; None for a macro."""
    named = _NAMED.match(operand)
    return (named[1] or named[2]) if named else None


def is_source(name: str) -> bool:
    return Path(name).suffix.lower() in _SUFFIXES


def find_includes(
    source: str, file: Path, include_dirs: Sequence[str] = ()
) -> tuple[Included, ...]:
    """The user's files that a kernel file includes, directly or indirectly; of a Python file, the
    modules in its folder that it imports."""
    if file.suffix != ".py" and "include" not in _logical_lines(source):
        return ()
    return IncludeSearch(file, include_dirs).files(source)


def folder_of(file: Path, include_dir: str) -> Path:
    """A folder of headers, given relative to the kernel file."""
    return file.absolute().parent / include_dir


def folders(kernel: Kernel) -> list[Path]:
    """The folders of the user's headers: the kernel's own, and its `include_dirs`."""
    file = Path(kernel.file).absolute()
    return [file.parent, *(folder_of(file, folder) for folder in kernel.include_dirs)]


def again(kernel: Kernel) -> tuple[Included, ...]:
    return (
        find_includes(kernel.source, Path(kernel.file), kernel.include_dirs) if kernel.file else ()
    )


def identity(data: bytes, included: tuple[Included, ...]) -> str:
    """The hash of a kernel file and all files that it includes."""
    digest = hashlib.sha256(data).hexdigest()
    if not included:
        return digest
    lines = [digest, *(f"{header.sha256} {header.name}" for header in included)]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def texts(included: Iterable[Included], most_bytes: int | None = None) -> list[str]:
    """The texts of the readable included files, up to `most_bytes` in total."""
    contents = []
    for header in included:
        with contextlib.suppress(OSError):
            path = Path(header.path)
            if most_bytes is not None:
                most_bytes -= path.stat().st_size
                if most_bytes < 0:
                    break
            contents.append(path.read_text(encoding="utf-8", errors="replace"))
    return contents


def flattened(kernel: Kernel) -> str:
    """The source with the user's headers in place of the lines that include them."""
    if not kernel.includes:
        return kernel.source
    own_paths = {header.path for header in kernel.includes}
    once: set[Path] = set()

    def text_of(text: str, shown: str, folder: Path, above: tuple[Path, ...]) -> str:
        lines = text.split("\n")
        for number, line in enumerate(syntax.without_comments(text).split("\n")):
            named = _NAMED.match(match[1].strip()) if (match := _DIRECTIVE.match(line)) else None
            if re.match(_HASH + r"pragma[^\S\n]+once\b", line):
                lines[number] = ""
                once.update(above[-1:])
            if named is None:
                continue
            name = named[1] or named[2]
            places = dict.fromkeys((folder, *folders(kernel)) if named[1] else folders(kernel))
            paths = [_located(place / name) for place in places]
            path = next((path for path in paths if str(path) in own_paths), None)
            if path is not None and path not in above:
                inner = path.read_text(encoding="utf-8-sig", errors="replace")
                inner = "" if path in once else text_of(inner, name, path.parent, (*above, path))
                after = f'#line {number + 2} "{shown}"'
                lines[number] = f'#line 1 "{name}"\n{inner}\n{after}'
        return "\n".join(lines)

    try:
        return text_of(kernel.source, kernel.path, Path(kernel.file).absolute().parent, ())
    except OSError:
        return kernel.source


def code_of(kernel: Kernel) -> str:
    """The hash of all that decides what a kernel does: comments, descriptions and groups do not.
    Without a source in C, that of its file. Lines count where the code uses their numbers."""
    if not kernel.source or kernel.arrays:
        return kernel.sha256
    table = msgspec.to_builtins(kernel)
    table = {
        field.name: table[field.name]
        for field in msgspec.structs.fields(FrontMatter)
        if field.name not in _IDLE and getattr(kernel, field.name) != field.default
    }
    table["launch"] = {key: value for key, value in table["launch"].items() if value is not None}
    code = syntax.without_comments(flattened(kernel)).replace("\\\n", "")
    lines = [" ".join(line.split()) for line in code.splitlines()]
    if "__LINE__" not in code:
        lines = [line for line in lines if line and not line.startswith("#line")]
    every = [kernel.source, *texts(kernel.includes)] if kernel.includes else []
    if any("include_next" in text or None in map(name_in, operands(text)) for text in every):
        # Only the preprocessor knows which header is meant.
        lines += [header.sha256 for header in kernel.includes]
    return hashlib.sha256(json.dumps([table, lines], sort_keys=True).encode()).hexdigest()


def changed(kernel: Kernel) -> str | None:
    """The name of an included file that has changed since the kernel was loaded."""
    different = set(again(kernel)) ^ set(kernel.includes)
    return min((header.name for header in different), default=None)


class IncludeSearch:
    """Follows directives until no new file is found."""

    def __init__(self, file: Path, include_dirs: Sequence[str]) -> None:
        self.file = _located(file)
        self.folder = self.file.parent
        self.operands = imports if file.suffix == ".py" else operands
        self.folders = (self.folder, *(self.folder / folder for folder in include_dirs))
        self.included: dict[Path, Included] = {}
        self.pending: list[tuple[str, Path]] = []  # texts and their folders
        self.took_all = False
        self.bytes = 0

    def files(self, source: str) -> tuple[Included, ...]:
        self.pending.append((source, self.folder))
        while self.pending:
            text, folder = self.pending.pop()
            for operand in dict.fromkeys(self.operands(text)):
                name = name_in(operand)
                if name is None:
                    self.add_all(operand)
                    continue
                # All of them: `#include_next` may mean a later one.
                inner = (folder,) if operand.startswith('"') else ()
                for place in dict.fromkeys((*inner, *self.folders)):
                    self.add(place / name, name)
        return tuple(self.included.values())

    def add(self, path: Path, name: str) -> None:
        self.bytes += 1000
        if self.bytes > MAX_BYTES:
            raise UsageError(f"{self.file}: includes too many files, or too large ones")
        try:
            path = _located(path)
            if path in self.included or not path.is_file():
                return
            if len(self.included) >= MAX_FILES:
                raise UsageError(f"{self.file}: includes more than {MAX_FILES:,} files")
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError):  # the compiler cannot read it either
            return
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"{path}: included file is larger than {MAX_FILE_BYTES:,} bytes")
        self.bytes += len(data)
        self.included[path] = Included(name, str(path), hashlib.sha256(data).hexdigest())
        self.pending.append((data.decode("utf-8-sig", errors="surrogateescape"), path.parent))

    def add_all(self, operand: str) -> None:
        """Add every source file in the kernel's folder: only the compiler knows which is meant."""
        if self.took_all:
            return
        self.took_all = True
        entries = 0
        for folder, below, names in os.walk(self.folder):
            below[:] = sorted(name for name in below if not name.startswith("."))
            entries += len(below) + len(names)
            if entries > MAX_FILES:
                meant = f"`#include {operand}` may mean any file in {self.folder}"
                raise UsageError(f"{self.file}: {meant}, which has too many; write out the name")
            for name in sorted(names):
                path = Path(folder, name)
                if is_source(name) and path != self.file and name[0] != ".":
                    self.add(path, path.relative_to(self.folder).as_posix())


def _logical_lines(text: str) -> str:
    return _CONTINUED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _located(path: Path) -> Path:
    return path.parent.resolve() / path.name
