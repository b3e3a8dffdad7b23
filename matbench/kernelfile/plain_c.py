"""Translates C++ to C where C has an equivalent: the entry of a CUDA C++ file and what it needs.

Lines keep their numbers. Host code, and other code that the entry does not need, may be any C++; it
is blanked out.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from matbench.kernelfile import host_code, rewriting, signature, syntax
from matbench.kernelfile.rewriting import Edit
from matbench.kernelfile.signature import SourceError

if TYPE_CHECKING:
    from tree_sitter import Node

#: Constructs that only C++ or CUDA has, and their names in messages.
_ONLY_CPLUSPLUS = {
    "template_declaration": "template", "template_function": "template",
    "template_type": "template", "lambda_expression": "lambda", "class_specifier": "class",
    "reference_declarator": "reference", "abstract_reference_declarator": "reference",
    "placeholder_type_specifier": "auto", "for_range_loop": "loop over a range",
    "new_expression": "new", "delete_expression": "delete", "throw_statement": "throw",
    "try_statement": "try", "gnu_asm_expression": "inline PTX", "operator_name": "operator",
    "compound_literal_expression": "initializer", "kernel_call_syntax": "launch",
    "access_specifier": "class", "base_class_clause": "class", "decltype": "decltype",
    "optional_parameter_declaration": "default argument", "concept_definition": "concept",
}  # fmt: skip
_CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
#: Names that exist only in CUDA.
_WARPS = re.compile(r"__(?:shfl|ballot|any|all|match|reduce|activemask|syncwarp)\w*|\w*wmma\w*")
#: Headers of device code that only CUDA has. Others that are not the user's are dropped: what
#: device code takes from them is built in, or the compiler reports it as missing.
_DEVICE_HEADER = re.compile(
    r"cuda_(?:fp|bf|pipeline|awbarrier)\w*\.h(?:pp)?|mma\.h|(?:crt|cooperative_groups)\b.*"
    r"|(?:cuda|cub|cute|cutlass|thrust|nv)/.*"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_INTEGERS = {"int", "unsigned", "unsigned int", "size_t", "uint", "long", "short", "uint32_t",
             "int32_t", "uint64_t", "int64_t", "std::size_t", "unsigned long", "char"}  # fmt: skip
#: In files with more definitions than this, only those that are used are analysed.
_MANY = 200


class NeedsCudaError(SourceError):
    """The source uses something that has no equivalent in C."""

    def __init__(
        self, what: str, node: Node, told: str = "needs CUDA ({what}, line {line})"
    ) -> None:
        self.what, self.node, self.told = what, node, told
        line = syntax.line_of(node)
        super().__init__(told.format(what=what, line=line), line)

    def located(self, code: str) -> NeedsCudaError:
        """The same error, located in the header that this line of the code comes from."""
        lines = code.split("\n")[: self.node.start_point[0]]
        for distance, line in enumerate(reversed(lines)):
            if found := re.fullmatch(r'#line (\d+) "(.*)"', line):
                number = int(found[1]) + distance
                told = self.told.replace("line {line}", f"line {number} of {found[2]}")
                return NeedsCudaError(self.what, self.node, told)
        return self


@functools.lru_cache(maxsize=64)
def translated(
    source: str, entry: str, bound: tuple[tuple[str, str], ...] = (), own: tuple[str, ...] = ()
) -> str:
    """The source as C with CUDA's keywords; `entry` is a function's name with its namespaces.

    The entry's template parameters are replaced by what they are `bound` to. Headers are dropped,
    except the user's `own`.
    """
    code = syntax.expanded(source)
    file = _File(code, entry, dict(bound), set(own))
    try:
        return rewriting.applied(code, file.edits())
    except NeedsCudaError as error:
        raise error.located(code) from None


class _File:
    def __init__(self, code: str, entry: str, bound: Mapping[str, str], own: set[str]) -> None:
        self.code = code
        self.bound = bound
        self.own = own
        self.entry_name = entry
        self.root = syntax.parse(syntax.skeleton(code))
        self.spaces = {
            syntax.text_of(name)
            for node in syntax.walk(self.root)
            if node.type == "namespace_definition"
            and (name := syntax.fields(node, "name")) is not None
        }
        self.entry: Node | None = None
        self.drops = False
        headers = [_header(node) for node in _top(self.root) if node.type == "preproc_include"]
        self.includes_more = bool(own & {*headers}) or "" in headers
        self.needed = self._needed()

    # -- what is kept --------------------------------------------------------------------------

    def _needed(self) -> set[str]:
        """The names that the entry uses, directly or not."""
        defined: dict[str, set[str]] = {}
        for node in _top(self.root):
            words = set(_WORD.findall(self._text(node)))
            function = signature.definition_of(node)
            if function is not None and signature.qualified_name(function) == self.entry_name:
                self.entry = function
                defined.setdefault("", set()).update(words)
            for name in _names(node):
                defined.setdefault(name, set()).update(words)
        self.used = self._used(defined)
        return _reached(defined, defined.get("", set()))

    def _used(self, defined: Mapping[str, set[str]]) -> set[str]:
        """The names that any device function or macro uses."""
        functions = [
            node
            for node in _top(self.root)
            if not host_code.is_host(node) and not host_code.is_type(node)
        ]
        words = (word for node in functions for word in _WORD.findall(self._text(node)))
        return _reached(defined, words)

    def _text(self, node: Node) -> str:
        return self.code[node.start_byte : node.end_byte]

    def edits(self) -> Iterator[Edit]:
        nodes = list(_top(self.root))
        for node in nodes:
            # Each node is parsed separately, which would take long for thousands.
            if len(nodes) > _MANY and self._is_unused(node):
                yield node.start_byte, node.end_byte, ""
            else:
                yield from self._of_top(node)
        if self.drops:  # other functions may use what was dropped
            for node in _top(self.root):
                if self._is_unused(node):
                    yield node.start_byte, node.end_byte, ""
        for node in syntax.walk(self.root):  # the braces of namespaces
            if node.type == "namespace_definition" or _is_linkage(node):
                body = syntax.fields(node, "body")
                if body is None or body.type != "declaration_list":
                    first = node.children[1] if len(node.children) > 1 else node
                    yield node.start_byte, first.end_byte, ""
                    continue
                yield node.start_byte, body.start_byte + 1, ""
                yield body.end_byte - 1, body.end_byte, ""

    def _is_unused(self, node: Node) -> bool:
        """Whether this is a function that the entry does not use."""
        function = signature.definition_of(node)
        return function not in (None, self.entry) and not self.needed & _names(node)

    def _of_top(self, node: Node) -> Iterator[Edit]:
        function = signature.definition_of(node)
        is_entry = function is not None and function == self.entry
        if node.type == "preproc_include":
            name = _header(node)
            if name and name not in self.own:
                if not _DEVICE_HEADER.fullmatch(name):
                    yield node.start_byte, node.end_byte, "\n"
                elif not _is_conditional(node):
                    raise NeedsCudaError(name, node)
            return
        if node.type in host_code.OF_HOST or host_code.is_host(node) or self._is_left_out(node):
            yield node.start_byte, node.end_byte, ""
            return
        if is_entry and node.type == "template_declaration":
            assert function is not None
            yield node.start_byte, function.start_byte, ""
            node = function
        if node.type in ("preproc_def", "preproc_function_def"):
            with contextlib.suppress(NeedsCudaError):  # if it is used, the compiler reports it
                yield from list(self._of_macro(node))
            return
        edits, wrong = [], None
        try:
            tree = syntax.only(self.code, node)
            edits = list(self._within(tree, self.bound if is_entry else {}))
        except NeedsCudaError as error:
            wrong = error
        if wrong is not None:
            if is_entry or self.needed.intersection(_names(node)):
                raise wrong
            edits = [(node.start_byte, node.end_byte, "")]
            self.drops = True
        yield from edits

    def _is_left_out(self, node: Node) -> bool:
        """Whether this is a type, or a constant of such a type, that only the host uses."""
        if not host_code.is_type(node) or self.includes_more or "##" in self.code:
            return False
        return not self.used & _names(node)

    # -- what is rewritten ---------------------------------------------------------------------

    def _of_macro(self, node: Node) -> Iterator[Edit]:
        """Casts in the body of a macro, which the tree does not parse."""
        value = syntax.fields(node, "value")
        if value is None:
            return
        text = self._text(value)
        before = "void f() { x = "
        for child in syntax.walk(syntax.parse(f"{before}{text}; }}")):
            for start, end, new in self._cast(child, {}):
                shift = value.start_byte - len(before)
                yield start + shift, end + shift, new

    def _within(self, top: Node, bound: Mapping[str, str]) -> Iterator[Edit]:
        pending = [top]
        while pending:
            node = pending.pop()
            done = list(self._cast(node, bound))
            yield from done
            if done:  # including its type
                arguments = syntax.fields(node, "arguments")
                pending.extend(arguments.children if arguments is not None else ())
                continue
            try:
                yield from self._of_node(node, bound)
            except NeedsCudaError:
                if not _is_conditional(node):
                    raise
            pending.extend(node.children)

    def _of_node(self, node: Node, bound: Mapping[str, str]) -> Iterator[Edit]:
        text = syntax.text_of(node) if node.child_count < 8 else ""
        if node.type in ("identifier", "type_identifier", "namespace_identifier"):
            if text in bound:
                yield node.start_byte, node.end_byte, _in_place(bound[text])
            elif _WARPS.fullmatch(text):
                raise NeedsCudaError(f"`{text}`", node)
        elif node.type == "preproc_arg" and bound:
            new = _WORD.sub(lambda word: bound.get(word[0], word[0]), self._text(node))
            yield node.start_byte, node.end_byte, new
        elif node.type == "qualified_identifier":
            scope = syntax.fields(node, "scope")
            space = syntax.text_of(scope) if scope is not None else ""
            if space not in ("", *self.spaces, "std"):
                raise NeedsCudaError(f"`{text}`", node)
            yield node.start_byte, node.children[-1].start_byte, ""
        elif node.type == "optional_parameter_declaration" and self._is_of_entry(node):
            equals = next(child for child in node.children if child.type == "=")
            yield equals.start_byte, node.end_byte, ""
        elif node.type in _ONLY_CPLUSPLUS and not _is_doubtful(node):
            what = _ONLY_CPLUSPLUS[node.type]
            named = min(_names(node), default="") if what == "template" else ""
            raise NeedsCudaError(f"{what} `{named}`" if named else what, node)
        elif node.type == "nullptr":
            yield node.start_byte, node.end_byte, "0"
        elif node.type == "static_assert_declaration":
            condition = syntax.fields(node, "condition")
            if condition is not None:
                yield node.start_byte, node.start_byte + len("static_assert"), "_Static_assert"
                if syntax.fields(node, "message") is None:
                    yield condition.end_byte, condition.end_byte, ', "static_assert"'
        elif node.type == "alias_declaration":
            name, kind = syntax.fields(node, "name"), syntax.fields(node, "type")
            if name is not None and kind is not None:
                what = _replaced(syntax.text_of(kind), bound)
                yield node.start_byte, node.end_byte, f"typedef {what} {syntax.text_of(name)};"
        elif node.type == "declaration":
            yield from self._declaration(node)
        elif node.type == "constexpr":
            yield node.start_byte, node.end_byte, ""
        elif node.type == "init_declarator" and (value := syntax.fields(node, "value")):
            if value.type in ("initializer_list", "argument_list") and not _has(node, "="):
                raise NeedsCudaError("initializer", node)
        elif node.type == "enum_specifier" and _has(node, "class"):
            raise NeedsCudaError("class", node)
        elif node.type == "struct_specifier":
            if _has_function(node):
                raise NeedsCudaError("class", node)
            tag = syntax.fields(node, "name")
            if tag is not None and node.parent is not None and node.parent.parent is None:
                named = self._text(tag)
                yield node.start_byte, node.start_byte, f"typedef struct {named} {named}; "

    def _is_of_entry(self, node: Node) -> bool:
        if self.entry is None:
            return False
        return self.entry.start_byte <= node.start_byte < self.entry.end_byte

    def _declaration(self, node: Node) -> Iterator[Edit]:
        """Integer constants as an `enum`, which C accepts as the size of an array."""
        qualifiers = [child for child in node.children if child.type == "type_qualifier"]
        words = {syntax.text_of(child) for child in qualifiers}
        kind = syntax.fields(node, "type")
        is_top = not any(above.type == "compound_statement" for above in syntax.parents(node))
        if "constexpr" not in words and not ("const" in words and is_top):
            return
        declared = [child for child in node.named_children if child.type == "init_declarator"]
        names = [each for each in declared if each.named_children[0].type == "identifier"]
        whole = kind is not None and syntax.text_of(kind) in _INTEGERS
        if whole and declared and len(names) == len(declared):
            yield node.start_byte, declared[0].start_byte, "enum { "
            yield node.end_byte - 1, node.end_byte, " };"
            return
        for child in qualifiers:
            if syntax.text_of(child) == "constexpr":
                yield child.start_byte, child.end_byte, "__constant" if is_top else "const"
            elif syntax.text_of(child) == "const" and is_top and declared:
                yield child.start_byte, child.end_byte, "__constant"
        for child in node.children:
            if child.type == "storage_class_specifier" and is_top:
                yield child.start_byte, child.end_byte, ""

    def _cast(self, node: Node, bound: Mapping[str, str]) -> Iterator[Edit]:
        """`static_cast<T>(x)` and `T(x)` as `((T)(x))`."""
        if node.type != "call_expression":
            return
        function, arguments = syntax.fields(node, "function"), syntax.fields(node, "arguments")
        if function is None or arguments is None:
            return
        kind = None
        if function.type == "primitive_type":
            kind = syntax.text_of(function)
        elif function.type == "identifier" and syntax.text_of(function) in bound:
            what = bound[syntax.text_of(function)]
            kind = what if what in signature.SCALARS else None
        elif function.type == "template_function":
            name, given = syntax.fields(function, "name"), syntax.fields(function, "arguments")
            if name is not None and syntax.text_of(name) in _CASTS and given is not None:
                kind = syntax.text_of(given)[1:-1].strip()
        if kind is not None:
            if "&" in kind or "<" in kind:
                raise NeedsCudaError("reference" if "&" in kind else "template", node)
            yield node.start_byte, arguments.start_byte, f"(({_replaced(kind, bound)})"
            yield arguments.end_byte, arguments.end_byte, ")"


def _top(root: Node) -> Iterator[Node]:
    """The top-level nodes, including those inside namespaces and preprocessor conditions."""
    pending = [root]
    while pending:
        node = pending.pop()
        inside = node.type in ("translation_unit", "declaration_list", "preproc_else", "preproc_if")
        if inside or node.type in ("preproc_ifdef", "preproc_elif", "namespace_definition"):
            pending.extend(reversed(node.named_children))
        elif _is_linkage(node):
            body = syntax.fields(node, "body")
            pending.extend(reversed(body.named_children) if _is_list(body) else [body])  # type: ignore[list-item, union-attr]
        elif "identifier" not in node.type and node.type != "string_literal":
            yield node


def _header(node: Node) -> str:
    """The header that a line includes; empty if a macro names it."""
    path = syntax.fields(node, "path")
    is_named = path is not None and path.type in ("string_literal", "system_lib_string")
    return syntax.text_of(path)[1:-1] if path is not None and is_named else ""


def _is_linkage(node: Node) -> bool:
    return node.type == "linkage_specification" and syntax.fields(node, "body") is not None


def _is_list(node: Node | None) -> bool:
    return node is not None and node.type == "declaration_list"


def _names(node: Node) -> set[str]:
    """The names that a top-level node defines."""
    found = set()
    inner = node
    if node.type == "template_declaration" and node.named_children:
        inner = node.named_children[-1]
    for each in (node, inner):
        name = syntax.fields(each, "name")
        if name is not None:
            found.add(syntax.text_of(name))
    if inner.type in ("function_definition", "declaration", "type_definition"):
        for child in inner.children_by_field_name("declarator"):
            declared = syntax.declared(child)
            named = declared if declared is not None else child
            found.add(syntax.text_of(named).rpartition("::")[2])
        kind = syntax.fields(inner, "type")
        name = syntax.fields(kind, "name") if kind is not None else None
        if name is not None:
            found.add(syntax.text_of(name))
    return found


def _reached(defined: Mapping[str, set[str]], words: Iterable[str]) -> set[str]:
    """The words, and all names that their definitions use."""
    found: set[str] = set()
    pending = list(words)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(defined.get(name, ()))
    return found


def _is_conditional(node: Node) -> bool:
    """Whether this is inside a preprocessor condition, which only the compiler evaluates."""
    above = (each for each in syntax.parents(node) if each.type.startswith("preproc_"))
    return any(not _is_guard(each) for each in above)


def _is_guard(node: Node) -> bool:
    """Whether a condition is an include guard."""
    first = [syntax.fields(each, "name") for each in node.named_children[1:2]]
    name = syntax.fields(node, "name")
    named = [syntax.text_of(each) for each in (name, *first) if each is not None]
    is_open = node.type == "preproc_ifdef" and syntax.text_of(node).startswith("#ifndef")
    return is_open and len(named) == 2 and named[0] == named[1]


def _has(node: Node, kind: str) -> bool:
    return any(child.type == kind for child in node.children)


def _has_function(node: Node) -> bool:
    return any(child.type == "function_definition" for child in syntax.walk(node))


def _is_doubtful(node: Node) -> bool:
    """Whether macros may have misled the parser: `<` and `&` are ambiguous."""
    if not any(word in node.type for word in ("template", "reference", "optional")):
        return False
    return any(above.has_error for above in syntax.parents(node))


def _in_place(text: str) -> str:
    """The value or type of a template argument, to replace its name."""
    return text if re.fullmatch(r"[\w ]+", text) else f"({text})"


def _replaced(kind: str, bound: Mapping[str, str]) -> str:
    return _WORD.sub(lambda word: bound.get(word[0], word[0]), kind)
