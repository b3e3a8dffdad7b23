"""The entry of a kernel as front matter names it: `sgemm`, `ns::sgemm<float, BM, 2 * BN>`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from matbench.kernelfile import expressions, signature
from matbench.kernelfile.signature import Signature, SourceError
from matbench.model import Kernel

_ENTRY = re.compile(r"((?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<(.*)>)?", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: The characters allowed in a template argument: none that ends it, or the line.
_ARGUMENT = re.compile(r"[\w\s:*+/%()<>=!&|,.?-]+")


class Entry(NamedTuple):
    """A function's name with its namespaces, and its template arguments."""

    name: str
    arguments: tuple[str, ...]

    @property
    def last_name(self) -> str:
        return self.name.rpartition("::")[2]

    @property
    def names(self) -> set[str]:
        return {name for argument in self.arguments for name in _NAME.findall(argument)}


def parsed(text: str) -> Entry | None:
    """The entry that a text names; None if it is not one."""
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        return None
    arguments = signature.pieces(match[2]) if match[2] and match[2].strip() else ()
    if not all(argument and _ARGUMENT.fullmatch(argument) for argument in arguments):
        return None
    return Entry(match[1].removeprefix("::"), arguments)


def entry_of(kernel: Kernel) -> Entry:
    """The entry of a kernel; library routines have none."""
    return parsed(kernel.entry) or Entry(kernel.entry, ())


def as_text(entry: Entry) -> str:
    """The entry as front matter names it."""
    return f"{entry.name}<{', '.join(entry.arguments)}>" if entry.arguments else entry.name


def written(entry: Entry, values: Mapping[str, int]) -> str:
    """The entry in C++, with the constants' values in place of their names."""
    arguments = tuple(with_values(argument, values) for argument in entry.arguments)
    return as_text(entry._replace(arguments=arguments))


def with_values(text: str, values: Mapping[str, object]) -> str:
    """A text, such as a template argument, with values in place of their names."""
    return _NAME.sub(lambda name: str(values.get(name[0], name[0])), text)


def with_types(text: str, bound: Mapping[str, str]) -> str:
    """A text with template parameters replaced by what they are bound to: types and values."""
    in_place = {
        name: value if re.fullmatch(r"[\w ]+", value) else f"({value})"
        for name, value in bound.items()
    }
    return with_values(text, in_place)


def macros(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """The constants that are passed as macros: those that are no template arguments.

    `-DBM=64` would break `template <int BM>`.
    """
    arguments, values = entry_of(kernel).names, expressions.constants(kernel.let, params)
    return {name: value for name, value in values.items() if name not in arguments}


def find(functions: Iterable[Signature], entry: Entry) -> Signature | None:
    same = [function for function in functions if function.name == entry.name]
    same = same or [function for function in functions if function.name.endswith(f"::{entry.name}")]
    templates = [function for function in same if bool(function.template) == bool(entry.arguments)]
    return next(iter(templates or same), None)


def bound(function: Signature, entry: Entry) -> dict[str, str]:
    """The values of the entry's template parameters."""
    if not function.template:
        if entry.arguments:
            raise SourceError(f"{function.name} is not a template", function.line)
        return {}
    given = dict(zip((p.name for p in function.template), entry.arguments, strict=False))
    if len(entry.arguments) > len(function.template):
        taken = f"{function.name} takes {len(function.template)}"
        raise SourceError(f"{len(entry.arguments)} template arguments; {taken}", None)
    for parameter in function.template:
        if parameter.name not in given:
            if parameter.default is None:
                raise SourceError(
                    f"{function.name} is a template; specify `{parameter.name}`, as in "
                    f'entry = "{suggested(function)}"',
                    function.line,
                )
            given[parameter.name] = parameter.default
    return given


def suggested(function: Signature) -> str:
    """An entry with the names of the template parameters as arguments."""
    needed = [parameter.name for parameter in function.template if parameter.default is None]
    types = {parameter.name for parameter in function.template if parameter.kind == "typename"}
    named = ["float" if name in types else name for name in needed]
    return f"{function.name}<{', '.join(named)}>" if named else function.name


def called(function: Signature, entry: Entry, aliases: Mapping[str, str]) -> Signature:
    """The function with template parameters and aliases replaced in its parameters' types."""
    types = {**aliases, **bound(function, entry)}
    parameters = tuple(
        msgspec.structs.replace(parameter, type=signature.resolved(parameter.type, types))
        for parameter in function.parameters
    )
    return msgspec.structs.replace(function, parameters=parameters)
