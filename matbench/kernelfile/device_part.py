"""The part of a CUDA C++ file that its kernel needs: for compilers of device code alone, and for
nvcc where the host code includes headers that may not be there.

Lines keep their numbers. Host code, and other code that the entry does not need, is blanked out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping

from matbench.kernelfile import signature, syntax
from matbench.kernelfile.signature import SourceError

#: Names that exist only in CUDA.
_WARPS = re.compile(r"__(?:shfl|ballot|any|all|match|reduce|activemask|syncwarp)\w*|\w*wmma\w*")
#: Headers of device code that only CUDA has. Others that are not the user's are dropped: what
#: device code takes from them is built in, or the compiler reports it as missing.
_DEVICE_HEADER = re.compile(
    r"cuda_(?:fp|bf|pipeline|awbarrier)\w*\.h(?:pp)?|mma\.h|(?:crt|cooperative_groups)\b.*"
    r"|(?:cuda|cub|thrust|nv)/.*"
)
#: Those of them that a kernel may not need though its file includes them: their namespaces tell.
_OF_SPACE = re.compile(r"(thrust|cub)/.*")
#: Headers of libraries that do not come with CUDA or C++, most of them for host code alone.
_HOST_HEADER = re.compile(
    rf"(?!(?:{_DEVICE_HEADER.pattern}|(?:sys|bits|arpa|net|netinet|linux|asm|experimental)/.*)$)\w+/.*"
    r"|(?!cuda|curand|device|math|sm_|vector_)\w+\.(?:hpp|hxx|cuh)|(?:Python|wb|mpi|nccl|nvml)\.h"
    r"|(?:mkl|cblas|openblas|lapacke)\w*\.h"
    r"|(?:helper|exception|nvtx)_?\w*\.h|cu(?:blas|sparse|solver|fft|dnn|tensor|pti)\w*\.h"
)
#: Nodes that only macros of libraries make at the top level: `BENCHMARK(f)->Range(8, 64);`.
_REGISTERING = {"expression_statement", "compound_statement", "ERROR"}
#: Headers that nvcc has, also if they are included as `"cuda_runtime.h"`.
_TOOLKIT = re.compile(
    rf"{_DEVICE_HEADER.pattern}|(?:cuda|curand|device|driver|math|nv|sm|std|vector)_?\w*\.hp?p?"
)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if.*", re.MULTILINE)
_STANDARD = re.compile(r"\bstd\s*::\s*")
#: Headers that libraries include, by what they declare.
_DECLARED = {
    "half": "cuda_fp16.h", "bfloat16": "cuda_bf16.h", "fp8": "cuda_fp8.h", "wmma": "mma.h",
    r"int(?:_fast|_least)?(?:8|16|32|64)_t|int(?:max|ptr)_t|INT\d+_M": "cstdint",
    "(?:FLT|DBL)_": "cfloat", "(?:INT|LONG|SHRT|CHAR)_M": "climits", "numeric_limits": "limits",
}  # fmt: skip
#: Types that only CUDA's headers have.
_NARROW = re.compile(r"(?:__)?(?:half2?|nv_bfloat16\w*|nv_fp8\w*)")
#: Where a template parameter may be used.
_BOUND = {"identifier", "type_identifier", "namespace_identifier", "preproc_arg"}
#: Namespaces of headers of device code.
_DEVICE_SPACES = {"std", "nvcuda", "cooperative_groups", "cuda", "cub"}
#: What top-level nodes may be inside of.
_OUTER = {
    "translation_unit", "declaration_list", "linkage_specification", "namespace_definition",
    "preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else",
}  # fmt: skip
#: What declares other names for a namespace's.
_USING = {"using_declaration", "namespace_alias_definition"}


class NeedsCudaError(SourceError):
    """The source uses something that only CUDA has."""

    def __init__(self, what: str, code: str, node: syntax.Node) -> None:
        super().__init__(f"needs CUDA ({what}, line {_place(code, node)})", syntax.line_of(node))


def _place(code: str, node: syntax.Node) -> str:
    """The line of a node, as its file counts: `3`, or `3 of mine.h` in a header."""
    file, line = syntax.place_of(code, node)
    return f"{line} of {file}" if file else str(line)


@functools.lru_cache(maxsize=64)
def device_part(
    source: str,
    entry: str,
    bound: tuple[tuple[str, str], ...] | None,
    included: tuple[str, ...] = (),
) -> str:
    """What `entry`, a function's name with its namespaces, needs of a source.

    The entry's template parameters are replaced by what they are `bound` to. Headers are dropped,
    except those `included`, the user's. With None for `bound` it is for nvcc, which takes templates
    and all headers but `host_headers`.
    """
    code = syntax.expanded(source)
    values = dict(bound) if bound is not None else None
    return syntax.applied(code, _File(code, entry, values, set(included)).edits())


def host_headers(source: str, included: Collection[str] = ()) -> dict[str, str]:
    """The headers, with their lines, of libraries for host code."""
    code = syntax.expanded(source)
    nodes = _top(syntax.parse(syntax.skeleton(code)))
    headers = (node for node in nodes if node.type == "preproc_include")
    return {_header(n): _place(code, n) for n in headers if _is_of_host(n, included)}


def is_of_library(header: str) -> bool:
    return _HOST_HEADER.fullmatch(header) is not None


def _is_of_host(node: syntax.Node, included: Collection[str]) -> bool:
    """Whether a header is of a library for host code, or the user's but not there."""
    header = _header(node)
    is_own = '"' in syntax.text_of(node) and not _TOOLKIT.fullmatch(header)
    return header not in included and bool(header and (is_own or is_of_library(header)))


class _File:
    """`bound` is None for nvcc, which takes templates, namespaces and CUDA's headers too."""

    def __init__(
        self, code: str, entry: str, bound: Mapping[str, str] | None, included: set[str]
    ) -> None:
        self.code = code
        self.bound = bound
        self.included = included
        self.root = syntax.parse(syntax.skeleton(code))
        self.nodes = list(_top(self.root))
        self.declaring = [name for what, name in _DECLARED.items() if re.search(what, code)]
        self.entry: syntax.Node | None = None
        spaces = [n for n in syntax.walk(self.root) if n.type == "namespace_definition"]
        self.spaces = {syntax.text_of(syntax.fields(node, "name")) for node in spaces} - {""}
        headers = {_header(node) for node in self.nodes if node.type == "preproc_include"}
        macros = (node for node in self.nodes if node.type in syntax.MACROS)
        self.macros = {name for node in macros for name in _names(node)}
        #: The names that it defines, and the words of their definitions.
        self.own: dict[str, set[str]] = {}
        #: Whether the tree does not show all that uses a name: a header or a macro may.
        self.is_partial = bool(included & headers) or "" in headers or "##" in code
        # The names that the entry uses, directly or not.
        pending = syntax.WORD.findall(" ".join(_CONDITION.findall(self.code)))
        for node in self.nodes:
            words = set(syntax.WORD.findall(self._text(node)))
            function = signature.definition_of(node)
            if function is not None and signature.qualified_name(function) == entry:
                self.entry = function
                pending += words
            if node.type in _REGISTERING and words & self.macros:
                pending += words
            for defines in _names(node):
                self.own.setdefault(defines, set()).update(words)
        self.needed: set[str] = set()
        while pending:
            word = pending.pop()
            if word not in self.needed:
                self.needed.add(word)
                pending += self.own.get(word, ())

    def _text(self, node: syntax.Node) -> str:
        return self.code[node.start_byte : node.end_byte]

    def edits(self) -> Iterator[syntax.Edit]:
        for node in self.nodes:
            if node.type == "preproc_include":
                yield from self._of_header(node)
            elif self._is_left_out(node):
                after = node.next_sibling  # a class leaves its semicolon, which confuses the parser
                last = after if after is not None and after.type == ";" else node
                yield node.start_byte, last.end_byte, ""
            elif self.bound is not None and node.type not in syntax.MACROS:
                yield from self._of_needed(node)
        if self.bound is None:
            return
        for standard in _STANDARD.finditer(self.code):  # its names are built in
            yield standard.start(), standard.end(), ""
        for node in syntax.walk(self.root):
            yield from _without_braces(node)

    def _of_header(self, node: syntax.Node) -> Iterator[syntax.Edit]:
        name = _header(node)
        space = _OF_SPACE.fullmatch(name)
        is_unused = False
        if space is not None and space[1] not in self.needed:  # by way of its namespace
            used = rf"\busing\s+(?:namespace\s+)?{space[1]}\b"
            is_unused = re.search(used, self.code) is None
        if self.bound is None:
            if is_unused or _is_of_host(node, self.included):
                lines = [f"#include <{name}>" for name in self.declaring] or [""]
                if self.declaring[1:]:
                    lines.append(f"#line {int(_place(self.code, node).split()[0]) + 1}")
                self.declaring = []
                yield node.start_byte, node.end_byte, "\n".join((*lines, ""))
        elif name and name not in self.included:
            if is_unused or not _DEVICE_HEADER.fullmatch(name):
                yield node.start_byte, node.end_byte, "\n"
            elif not _is_conditional(node):
                raise NeedsCudaError(name, self.code, node)

    def _is_left_out(self, node: syntax.Node) -> bool:
        """Whether this is host code, or a definition that the entry does not need."""
        if node.type in _USING:
            known = self.spaces if self.bound is not None else self.spaces | _DEVICE_SPACES
            return not known & set(syntax.WORD.findall(self._text(node)))
        if node.type == "template_instantiation" or _is_host(node):
            return True
        declared = signature.untemplated(node)
        if declared.type == "declaration" and "__global__" in signature.words(declared):
            return self.bound is not None  # OpenCL's compilers refuse kernels without a body
        if node.type in _REGISTERING:
            kept = self.macros | {"__global__", "__device__", "__constant__"}
            return not kept & set(syntax.WORD.findall(self._text(node)))
        function, names = signature.definition_of(node), _names(node)
        if function is not None and function == self.entry:
            return False
        is_told = not names or any(name.startswith("operator") for name in names)
        if is_told or any(inner.type == "enum_specifier" for inner in syntax.walk(node)):
            return False  # expressions do not name operators, nor enumerators their type
        return not self.is_partial and not self.needed & names

    def _of_needed(self, node: syntax.Node) -> Iterator[syntax.Edit]:
        """Bind the entry's template parameters, and refuse what only CUDA has."""
        function = signature.definition_of(node)
        is_entry = function is not None and function == self.entry
        if is_entry and function is not None:
            yield node.start_byte, function.start_byte, ""  # the template's head
            for word in function.children:
                if syntax.text_of(word) == "static":
                    yield word.start_byte, word.end_byte, ""
            node = function
        bound = (self.bound or {}) if is_entry else {}
        for inner in syntax.walk(syntax.only(self.code, node)):
            text = syntax.text_of(inner) if inner.child_count == 0 else ""
            meant = bound.get(text, text)
            is_asm = inner.type == "gnu_asm_expression"
            is_type = inner.type == "type_identifier" and meant not in self.own
            is_narrow = is_type and _NARROW.fullmatch(meant)
            if (is_asm or is_narrow or _WARPS.fullmatch(text)) and not _is_conditional(inner):
                raise NeedsCudaError("inline PTX" if is_asm else f"`{meant}`", self.code, inner)
            if bound and inner.type in _BOUND:
                yield inner.start_byte, inner.end_byte, signature.with_types(text, bound)


def _top(root: syntax.Node) -> Iterator[syntax.Node]:
    """The top-level nodes, including those inside namespaces and preprocessor conditions."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type in _OUTER:
            pending.extend(reversed(node.named_children))
        elif "identifier" not in node.type and node.type != "string_literal":
            yield node


def _header(node: syntax.Node) -> str:
    """The header that a line includes; empty if a macro names it."""
    path = syntax.fields(node, "path")
    is_named = path is not None and path.type in ("string_literal", "system_lib_string")
    return syntax.text_of(path)[1:-1] if is_named else ""


def _without_braces(node: syntax.Node) -> Iterator[syntax.Edit]:
    """An anonymous namespace or a linkage specification as what is in it."""
    body = syntax.fields(node, "body")
    is_linkage = node.type == "linkage_specification" and body is not None
    is_anonymous = node.type == "namespace_definition" and syntax.fields(node, "name") is None
    if not is_linkage and not is_anonymous:
        return
    if body is None or body.type != "declaration_list":
        first = node.children[1] if len(node.children) > 1 else node
        yield node.start_byte, first.end_byte, ""
        return
    yield node.start_byte, body.start_byte + 1, ""
    yield body.end_byte - 1, body.end_byte, ""


def _names(node: syntax.Node) -> set[str]:
    """The names that a top-level node defines."""
    inner = signature.untemplated(node)
    names = {syntax.text_of(syntax.fields(inner, "name"))}
    if inner.type in ("function_definition", "declaration", "type_definition"):
        for child in inner.children_by_field_name("declarator"):
            names.add(syntax.text_of(syntax.declared(child) or child).rpartition("::")[2])
        names.add(syntax.text_of(syntax.fields(syntax.fields(inner, "type"), "name")))
    # A specialisation is of its template.
    return {name.partition("<")[0].strip() for name in names} - {""}


def _is_host(node: syntax.Node) -> bool:
    """Whether a node declares or defines a function or variable that no kernel can use. Kernels can
    use constants, and `constexpr` functions can compute them."""
    node = signature.untemplated(node)
    words = signature.words(node)
    if node.type == "function_definition":
        return not words & {"__global__", "__device__", "constexpr"}
    kind = syntax.fields(node, "type")
    if node.type != "declaration" or kind is None or syntax.fields(kind, "body") is not None:
        return False
    usable = ("__global__", "__device__", "__constant__", "__shared__", "constexpr", "const")
    return not words & {*usable}


def _is_conditional(node: syntax.Node) -> bool:
    """Whether this is inside a preprocessor condition, which only the compiler evaluates."""
    above = syntax.parents(node)
    return any(n.type.startswith("preproc_") and not _is_guard(n) for n in above)


def _is_guard(node: syntax.Node) -> bool:
    first = [syntax.fields(child, "name") for child in node.named_children[1:2]]
    named = [syntax.text_of(inner) for inner in (syntax.fields(node, "name"), *first) if inner]
    is_open = node.type == "preproc_ifdef" and syntax.text_of(node).startswith("#ifndef")
    return is_open and len(named) == 2 and named[0] == named[1]
