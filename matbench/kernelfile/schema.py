"""What is wrong with the types of a table, in the words of front matter."""

from __future__ import annotations

import difflib
import re
from typing import Any, get_args

import msgspec

from matbench.model import Finish, FrontMatter, Group, LaunchRules, Precision

#: The values of keys that have few.
_CHOICES: dict[str, tuple[str, ...]] = {
    "group": get_args(Group),
    "precision": get_args(Precision),
    "finish": get_args(Finish),
}
#: What the tables whose keys are free hold.
_TABLES: dict[str, Any] = {"sweep": tuple[int, ...], "tune": tuple[int, ...], "model": str}


def explained(message: str, table: dict[str, Any]) -> tuple[str, list[str]]:
    """msgspec's message in the words of front matter, and the keys that it is about."""
    reason, _, where = message.partition(" - at ")
    keys = re.findall(r"[A-Za-z_][\w-]*", where.replace("key in ", ""))[:2]
    if "[...]" in where and keys[0] in _TABLES:  # msgspec does not say which key
        keys += [key for key, value in table[keys[0]].items() if not _fits(keys[0], value)][:1]
    unknown = re.search(r"unknown field `(.*?)`", reason)
    name = ".".join(keys)
    if unknown:
        known = (LaunchRules if keys else FrontMatter).__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
        return f"unknown key `{unknown[1]}`; {hint}", [*keys, unknown[1]]
    if reason.startswith("Invalid enum") and name in _CHOICES:
        reason = f"{reason.split()[-1]} is none of {', '.join(_CHOICES[name])}"
    return f"`{name}`: {reason}" if name else reason, keys


def _fits(table: str, value: object) -> bool:
    """Whether a value may stand in a table whose keys are free."""
    try:
        msgspec.convert(value, _TABLES[table])
    except msgspec.ValidationError:
        return False
    return True
