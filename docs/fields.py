"""The fields and types of records, from their Python types, for docs/records.md.

What a field means is written by hand, in its row, and kept.
"""

from __future__ import annotations

import re
from itertools import groupby
from pkgutil import resolve_name

from measured import table
from msgspec import inspect

#: The features whose types share a table, by their records.
FEATURES = {"blocks": "timeline", "tune": "tune", "explain": "explain", "grade": "grade"}
#: The meaning of a field that has none yet.
MISSING = "?"
NAMES: dict[type[inspect.Type], str] = {
    inspect.IntType: "integer", inspect.FloatType: "number", inspect.StrType: "string",
    inspect.BoolType: "boolean",
}  # fmt: skip
NUMBERS = {2: "two", 3: "three"}


def told(kind: inspect.Type) -> str:
    """A type of Python as that of JSON; of a string that can be one of some, these."""
    match kind:
        case inspect.UnionType(types=types):
            return told(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case inspect.TupleType(item_types=parts):
            return f"{NUMBERS[len(parts)]} {told(parts[0])}s"
        case inspect.VarTupleType(item_type=part):
            return f"{told(part)}s"
        case inspect.StructType(array_like=True):
            return "array"
    return NAMES.get(type(kind), "object")


def of(name: str, old: str) -> str:
    """The table of a type, as `records.outcome:Claims`, with the meanings of the old one."""
    meanings, lines = dict[str, str](), ["| field | type | meaning |", "| --- | --- | --- |"]
    for line in old.splitlines():
        names, _, meaning = re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=2)
        meanings |= dict.fromkeys(re.findall(r"`(\w+)`", names), meaning)
    fields = inspect.type_info(resolve_name(f"matbench.{name}")).fields  # type: ignore[attr-defined]
    rows = [(f"`{f.name}`", told(f.type), meanings.get(f.name, MISSING)) for f in fields]
    for (kind, meaning), same in groupby(rows, lambda row: row[1:]):
        lines.append(f"| {', '.join(name for name, *_ in same)} | {kind} | {meaning} |")
    return "\n".join(lines)


def others(*shown: str) -> str:
    """The types of each feature's records, with their fields, but those that are `shown`."""
    rows = []
    for name, feature in FEATURES.items():
        module = resolve_name(f"matbench.features.{feature}.record")
        own = [k for k in vars(module).values() if getattr(k, "__module__", "") == module.__name__]
        said = [f"*{kind.__name__}* {', '.join(f'`{f}`' for f in kind.__struct_fields__)}"
                for kind in own if kind.__name__ not in shown]  # fmt: skip
        rows.append([name, "; ".join(said)])
    return table(["record", "types and their fields"], rows, 0)
