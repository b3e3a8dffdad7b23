"""The kernels of a file without front matter, with what is known of the file around them, and its
functions on the host."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from matbench.errors import MatbenchError, UsageError
from matbench.features.adopt.scope import Scope, definition_of, definitions, last
from matbench.kernelfile import includes, signature, syntax
from matbench.kernelfile.host_file import HANDLES
from matbench.kernelfile.signature import Signature, TemplateParameter
from matbench.kernelfile.unpacking import unpacked
from matbench.model import STORAGE, Included, Parameter

#: How many files near a kernel's are searched for its launches, how much of each, and how many that
#: have some are read.
_MOST_BESIDE = 200
_MOST_TEXT = 200_000
_MOST_LAUNCHING = 3
_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp")
#: Those of them that are compiled themselves.
_UNITS = (".cu", ".cpp", ".cc")
#: Where projects keep headers.
_USUAL_FOLDERS = ("include", "inc", "common", "utils")
_BUILD_FILES = ("Makefile", "makefile", "GNUmakefile", "CMakeLists.txt")
#: What they say, as far as no variables are in it except for folders.
_MACRO = re.compile(r"(?<!\S)-D[A-Za-z_]\w*(?:=[\w.+-]+)?(?!\S)")
_INCLUDE_FOLDER = re.compile(
    r"(?<![\w-])-I\s*([\w./+-]+)"
    r"|\binclude_directories\s*\([^)]*?(?:\$\{\w*SOURCE_DIR\}/|[\s\"(])([\w./+-]+)\"?\s*\)"
)
#: Instructions that sm_90a alone has.
_OF_HOPPER = re.compile(r"\b(?:wgmma|setmaxnreg)\b")
#: How many folders above a file are searched.
_MOST_ABOVE = 2
#: The kind of a template's parameter that is a constant for the build.
MACRO = "macro"
#: What such a constant is called.
_TILE = re.compile(
    r"(?:\w+_)?(?:block|tile|bs|threads?|work|wpt)\w*(?:_?(?:size|dim|width|[xymnk]))?\w*|[BT][MNK]",
    re.IGNORECASE,
)
_BUILT_IN = ("threadIdx", "blockIdx", "blockDim", "gridDim")


class ForeignKernel(NamedTuple):
    """A kernel to adopt: one `__global__` function of a file.

    `bare` is the file's text, `source` the same after the headers if these define the function;
    `headers` are their texts, and `beside` those of files that launch it. `given` are keys of its
    table, and values of `constants` of its build or template.
    """

    bare: str
    path: Path
    source: str
    function: Signature
    headers: str = ""
    beside: str = ""
    given: Mapping[str, Any] = {}
    constants: Mapping[str, int] = {}


def subjects(
    bare: str, path: Path, entry: str | None, given: Mapping[str, Any], constants: Mapping[str, int]
) -> list[ForeignKernel]:
    """The kernels to adopt: the one that is named `entry`, or all."""
    given = build_keys(bare, path, given)
    texts = _texts(includes.find_includes(bare, path, given.get("include_dirs", ())))
    with syntax.located(path):
        source = unpacked(bare)
        if not signature.functions(source):
            source = unpacked("\n".join([*texts, syntax.marked(bare)]))
        functions = signature.functions(source)
    types = signature.aliases(*texts, source)
    for name in constants:
        directives = re.findall(rf"(?m)^\s*#\s*(ifndef|define)\s+{name}\b", source)
        if directives[:1] == ["define"]:
            raise UsageError(
                f"{path} defines {name} itself; change it there, or add #ifndef {name}"
            )
        if not re.search(rf"\b{name}\b", source):
            raise UsageError(f"{path} has no constant {name}")
    if not functions:
        raise UsageError(f"{path}: no `__global__` function; is it a kernel file?")
    chosen = [f for f in functions if entry in (None, f.name, last(f.name))]
    if not chosen:
        there = ", ".join(dict.fromkeys(function.name for function in functions))
        raise UsageError(f"--entry {entry!r}: not in {path}; it has: {there:.200}")
    kernels = []
    for function in chosen[:1] if entry is not None else chosen:
        kinds = (replace(p, type=signature.resolved(p.type, types)) for p in function.parameters)
        plain = replace(function, parameters=tuple(kinds))
        headers = "\n".join(texts)
        beside = "\n".join(_launching(path, last(function.name), source))
        known = _completed(plain, source, headers, beside, constants)
        kernels.append(ForeignKernel(bare, path, source, known, headers, beside, given, constants))
    return kernels


def _completed(
    function: Signature, source: str, headers: str, beside: str, constants: Mapping[str, int]
) -> Signature:
    """The function with the constants that its file leaves to the build, or to a file that includes
    it, as parameters of a template: those that are given, and others that it uses."""
    root = syntax.parse(syntax.expanded(source))
    entry = definition_of(root, function)
    if entry is None:
        return function
    nodes = [*syntax.walk(entry)]
    called = {node.children[0] for node in nodes if node.type == "call_expression"}
    names = (node for node in nodes if node.type == "identifier" and node not in called)
    known = {*_BUILT_IN, *syntax.WORD.findall(headers)}
    for node in syntax.walk(root):
        name = syntax.declared(node) if "declarat" in node.type else syntax.fields(node, "name")
        known.add(syntax.text_of(name))
    near = syntax.parse(syntax.expanded(beside))
    scope = Scope([*definitions(near)], near)
    given = {name: scope.text(name) for name in sorted({*map(syntax.text_of, names)} - known)}
    missing = {n: text for n, text in given.items() if text is not None or _TILE.fullmatch(n)}
    missing |= {n: v for n, v in constants.items() if n not in {p.name for p in function.template}}
    texts = {name: None if text is None else str(text) for name, text in missing.items()}
    macros = (TemplateParameter(MACRO, name, text) for name, text in texts.items())
    return replace(function, template=(*function.template, *macros))


def candidates(source: str, kernels: Iterable[str] = ()) -> list[str]:
    """The functions on the host of a source that may compute a product of matrices, with template
    arguments that the source has; of a source with `kernels`, those that launch one, directly or
    not, the closest first."""
    code = syntax.expanded(source)
    taken = [(one, as_kernel(one).parameters) for one in signature.host_functions(source)]
    functions = [one for one, given in taken if sum(p.pointer for p in given) == 3]
    if reached := [*map(last, kernels)]:
        nodes = [n for n in syntax.walk(syntax.parse(code)) if n.type == "function_definition"]
        names = [last(syntax.text_of(signature.name_of(node))) for node in nodes]
        bodies = (syntax.text_of(syntax.fields(node, "body")) for node in nodes)
        words = dict(zip(names, (re.findall(r"\w+", body) for body in bodies), strict=True))
        for name in reached:
            reached += [other for other in words if name in words[other] and other not in reached]
        functions = [one for one in functions if last(one.name) in reached]
        functions.sort(key=lambda one: reached.index(last(one.name)))
    return [_instantiated(function, code) for function in functions]


def callers(
    path: Path, bare: str, kernels: Sequence[str], given: Mapping[str, Any]
) -> Iterator[tuple[Path, str, str]]:
    """The functions on the host that may compute a product with one of the kernels: the file and
    its text, and the function's name; of files that include this one first, as a header may need
    what stands above it there."""
    for source, text in (*includers(path), (path, bare)):
        folders = build_keys(text, source, given).get("include_dirs", ())
        included = includes.texts(includes.find_includes(text, source, folders))
        for name in candidates("\n".join([text, *included]), kernels):
            yield source, text, name


def _instantiated(function: Signature, code: str) -> str:
    """The function's name with template arguments: those of a use of it, if it needs any."""
    for listed in re.findall(rf"\b{last(function.name)}\s*<([^;(){{}}]*)>\s*\(", code):
        given = signature.pieces(listed)
        kinds = [signature.resolved(text, {}) for text in given]
        if function.template and all(k in signature.SCALARS or k.isdigit() for k in kinds):
            return f"{function.name}<{', '.join(given)}>"
    return signature.suggested(function)


def as_kernel(function: Signature) -> Signature:
    """The parameters as a kernel would have them: without handles, addresses of numbers, and
    pointers that are not needed."""
    taken = [p for p in function.parameters if p.type not in HANDLES]
    reals = [p for p in taken if p.pointer and "int" not in STORAGE.get(p.type, "")]
    if len(reals) == 3:  # those to whole numbers are for something else
        taken = [p for p in taken if not p.pointer or p in reals]
    for i, parameter in enumerate(taken):
        if any(name in parameter.name.lower() for name in ("alpha", "beta")) and parameter.pointer:
            taken[i] = Parameter("float", parameter.name, False)
    return replace(function, parameters=tuple(taken))


def build_keys(bare: str, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys `given`, with the folders of headers and the architecture that the file needs."""
    folders = list(dict.fromkeys([*given.get("include_dirs", ()), *_folders(bare, path)]))
    texts = bare, *includes.texts(includes.find_includes(bare, path, folders))
    keys = {**given, **({"include_dirs": folders} if folders else {})}
    if any(map(_OF_HOPPER.search, texts)):
        keys.setdefault("requires", ["sm_90a"])
    return keys


def _folders(bare: str, path: Path) -> Iterator[str]:
    """The folders that have a header that the file includes: those that its build file names, then
    the usual ones beside the file or above."""
    here = path.resolve().parent
    above = (here, *here.parents[:_MOST_ABOVE])
    usual = [folder / name for folder in above for name in ("", *_USUAL_FOLDERS)]
    file, text = build_file(path)
    named = [file.parent / (found[1] or found[2]) for found in _INCLUDE_FOLDER.finditer(text)]
    for name in filter(None, map(includes.name_in, includes.operands(bare))):
        for folder in (*named, *usual) if not (here / name).exists() else ():
            if (folder / name).is_file():
                yield os.path.relpath(folder, here)


def build_file(path: Path) -> tuple[Path, str]:
    """The build file that is nearest to a file, beside it or above, and its text; empty if none."""
    here = path.resolve().parent
    for folder in (here, *here.parents[:_MOST_ABOVE]):
        for name in _BUILD_FILES:
            with contextlib.suppress(OSError):
                return folder / name, _text(folder / name)
    return path, ""


def macros(path: Path) -> list[str]:
    """The macros that a file's build file defines, as options of compilers."""
    return list(dict.fromkeys(_MACRO.findall(build_file(path)[1])))


def includers(path: Path) -> Iterator[tuple[Path, str]]:
    """The sources beside a file or above that include it, directly, and their texts."""
    file = path.resolve()
    for folder in (file.parent, *file.parent.parents[:_MOST_ABOVE]):
        for source, text in _others(file, [folder], _UNITS):
            names = filter(None, map(includes.name_in, includes.operands(text)))
            if any((folder / name).resolve() == file for name in names):
                yield source if path.is_absolute() else Path(os.path.relpath(source)), text


def _others(
    file: Path, folders: Iterable[Path], suffixes: Sequence[str]
) -> Iterator[tuple[Path, str]]:
    """The first other files in these folders, until one cannot be read, and their texts."""
    with contextlib.suppress(OSError):
        files = (one for folder in folders for one in sorted(folder.iterdir()))
        sources = (one for one in files if one.suffix in suffixes and one != file)
        for source in itertools.islice(sources, _MOST_BESIDE):
            yield source, _text(source)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")[:_MOST_TEXT]


def _texts(included: Iterable[Included]) -> list[str]:
    """The texts of files, each after a line that names it."""
    return [syntax.marked(text, h.name) for h in included for text in includes.texts([h])]


def _launching(path: Path, name: str, source: str) -> Iterator[str]:
    """The texts of the nearest files that launch a kernel, and have none of that name themselves,
    which they would mean, after those of their headers; none if its own source launches it."""
    launch = re.compile(rf"\b{name}\b[^;{{}}()]*<<<")
    if launch.search(source):
        return
    file = path.resolve()
    above = file.parent.parent
    near = (file.parent, above, above / "src", above / "kernels")
    many = 0
    for other, text in _others(file, filter(Path.is_dir, dict.fromkeys(near)), _SOURCES):
        if many == _MOST_LAUNCHING or not launch.search(text):
            continue
        headers, defined = list[str](), list[Signature]()
        with contextlib.suppress(MatbenchError):
            found = includes.find_includes(text, other)
            headers = _texts(h for h in found if Path(h.path).resolve() != file)
        for one in (text, *headers):
            with contextlib.suppress(signature.SourceError):
                defined += signature.functions(one)
        if not any(last(function.name) == name for function in defined):
            many += 1
            shown = other if path.is_absolute() else os.path.relpath(other)
            yield from (*headers, syntax.marked(text, str(shown)))
