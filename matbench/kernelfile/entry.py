"""The entry of a kernel as a table names it: `sgemm`, `ns::sgemm<float, BM, 2 * BN>`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from matbench.kernelfile import includes, signature, syntax
from matbench.kernelfile.signature import Function, SourceError, TemplateParameter
from matbench.model import Kernel, Parameter

_ENTRY = re.compile(r"((?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<(.*)>)?", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: What an argument of a template may be made of: nothing that ends it, or the line.
_ARGUMENT = re.compile(r"[\w\s:*+/%()<>=!&|,.?-]+")


class Entry(NamedTuple):
    """A function's name with its namespaces, and the arguments of its template."""

    name: str
    arguments: tuple[str, ...]

    @property
    def last_name(self) -> str:
        """The name without namespaces."""
        return self.name.rpartition("::")[2]

    @property
    def is_plain(self) -> bool:
        """Whether C could call it so."""
        return not self.arguments and "::" not in self.name

    @property
    def names(self) -> set[str]:
        """The names that its arguments are made of."""
        return {name for argument in self.arguments for name in _NAME.findall(argument)}


def parsed(text: str) -> Entry | None:
    """The entry that a text means; None if it cannot be one."""
    found = _ENTRY.fullmatch(text.strip())
    if found is None:
        return None
    arguments = signature.pieces(found[2]) if found[2] and found[2].strip() else ()
    if not all(argument and _ARGUMENT.fullmatch(argument) for argument in arguments):
        return None
    return Entry(found[1].removeprefix("::"), arguments)


def of(kernel: Kernel) -> Entry:
    """The entry of a kernel; a library's has none."""
    return parsed(kernel.entry) or Entry(kernel.entry, ())


def as_text(entry: Entry) -> str:
    """The entry as a table names it."""
    return f"{entry.name}<{', '.join(entry.arguments)}>" if entry.arguments else entry.name


def written(entry: Entry, values: Mapping[str, int]) -> str:
    """The entry as C++ has it, with values in place of the names of constants."""
    if not entry.arguments:
        return entry.name
    return f"{entry.name}<{', '.join(with_values(each, values) for each in entry.arguments)}>"


def with_values(argument: str, values: Mapping[str, int]) -> str:
    """An argument of a template with values in place of the names of constants."""
    return _NAME.sub(lambda name: str(values.get(name[0], name[0])), argument)


def macros(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """The constants that reach the source as macros.

    Those that reach a template as its arguments do so only where the source has another use for
    them: `-DBM=64` would break `template <int BM>`.
    """
    names = of(kernel).names & params.keys()
    texts = [kernel.source, *includes.texts(kernel.includes)] if names else []
    codes = [syntax.expanded(text) for text in texts]
    return {
        name: value
        for name, value in params.items()
        if name not in names or any(_takes_macro(code, name) for code in codes)
    }


def _takes_macro(code: str, name: str) -> bool:
    """Whether a text asks for a macro, or uses a name that it does not give to anything."""
    if re.search(rf"^[ \t]*#[^\n]*\b{name}\b", code, re.MULTILINE):
        return True
    return re.search(rf"\b{name}\b", code) is not None and name not in _names_given(code)


def _names_given(code: str) -> set[str]:
    """The names that a source gives: to parameters of templates, and to variables."""
    found = set()
    for node in syntax.walk(syntax.parse(code)):
        if node.type in ("identifier", "type_identifier") and node.parent is not None:
            above = node.parent
            is_name = "declaration" in above.type or "declarator" in above.type
            if is_name or above.type == "enumerator":
                found.add(syntax.text_of(node))
    return found


def find(found: Iterable[Function], entry: Entry) -> Function | None:
    """The function that an entry means."""
    same = [each for each in found if each.name == entry.name]
    same = same or [each for each in found if each.name.endswith(f"::{entry.name}")]
    templates = [each for each in same if bool(each.template) == bool(entry.arguments)]
    return next(iter(templates or same), None)


def bound(function: Function, entry: Entry) -> dict[str, str]:
    """What the parameters of the entry's template stand for."""
    if not function.template:
        if entry.arguments:
            raise SourceError(f"{function.name} is no template", function.line)
        return {}
    given = dict(zip((p.name for p in function.template), entry.arguments, strict=False))
    if len(entry.arguments) > len(function.template):
        taken = f"{function.name} takes {len(function.template)}"
        raise SourceError(f"{len(entry.arguments)} template arguments; {taken}", None)
    for parameter in function.template:
        if parameter.name not in given:
            if parameter.default is None:
                raise SourceError(
                    f"{function.name} is a template; say what `{parameter.name}` is, as in "
                    f'entry = "{suggested(function)}"',
                    function.line,
                )
            given[parameter.name] = parameter.default
    return given


def unbound(function: Function, entry: Entry) -> list[TemplateParameter]:
    """The parameters of the entry's template that nothing says the value of."""
    return [each for each in function.template[len(entry.arguments) :] if each.default is None]


def suggested(function: Function) -> str:
    """The entry with the names of its template's parameters as arguments."""
    needed = [each.name for each in function.template if each.default is None]
    types = {each.name for each in function.template if each.kind == "typename"}
    named = ["float" if name in types else name for name in needed]
    return f"{function.name}<{', '.join(named)}>" if named else function.name


def parameters(function: Function, entry: Entry, aliases: Mapping[str, str]) -> list[Parameter]:
    """The parameters of an entry, the types of its template's parameters put in."""
    types = {**aliases, **bound(function, entry)}
    return [
        Parameter(signature.resolved(each.type, types), each.name, each.pointer)
        for each in function.parameters
    ]
