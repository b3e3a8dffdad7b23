"""The fields and types of records, from their Python types, for docs/records.md.

What a field means is written by hand, in its row, and kept.
"""

from __future__ import annotations

import re
from itertools import groupby
from pkgutil import resolve_name
from typing import Any

from msgspec.json import schema_components

#: The meaning of a field that has none yet.
MISSING = "?"
NUMBERS = {2: "two", 3: "three"}


def told(kind: dict[str, Any], types: dict[str, Any]) -> str:
    """A JSON schema in words; of a string that can be one of some, these."""
    match kind:
        case {"anyOf": [one, *_]}:  # the other is null
            return told(one, types)
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"prefixItems": parts}:
            return f"{NUMBERS[len(parts)]} {told(parts[0], types)}s"
        case {"items": part}:
            return f"{told(part, types)}s"
        case {"$ref": name}:
            kind = types[name]
    return str(kind["type"])


def of(name: str, old: str) -> str:
    """The table of a type, as `records.outcome:Claims`, with the meanings of the old one."""
    meanings, lines = dict[str, str](), ["| field | type | meaning |", "| --- | --- | --- |"]
    for line in old.splitlines():
        names, _, meaning = re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=2)
        meanings |= dict.fromkeys(re.findall(r"`(\w+)`", names), meaning)
    kind = resolve_name(f"matbench.{name}")
    _, types = schema_components([kind], ref_template="{name}")
    fields = types[kind.__name__]["properties"].items()
    rows = [(f"`{field}`", told(of, types), meanings.get(field, MISSING))
            for field, of in fields if field != "type"]  # fmt: skip
    for (kind, meaning), same in groupby(rows, lambda row: row[1:]):
        lines.append(f"| {', '.join(name for name, *_ in same)} | {kind} | {meaning} |")
    return "\n".join(lines)
