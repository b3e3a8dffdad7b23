"""Writes the tables of docs/records.md: the fields and types of every record, from its Python type.

`python docs/generate_records.py` writes them; with `--check` it names the page if it is out of date
and exits 1. What a field means is written by hand, in its row, and kept.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import freshness
import msgspec

from matbench.features.explain import record as explain
from matbench.features.grade import record as grade
from matbench.features.timeline import record as timeline
from matbench.features.tune import record as tune
from matbench.model import Conditions, DeviceInfo
from matbench.records import outcome
from matbench.records.comparison import Comparison
from matbench.records.environment import Environment

PAGE = freshness.ROOT / "docs" / "records.md"
#: The types of the page's tables, in their order.
TABLES: tuple[type[msgspec.Struct], ...] = (
    Environment, DeviceInfo, outcome.Outcome, outcome.CaseRecord, outcome.Claims, outcome.Build,
    outcome.Accuracy, outcome.Timing, Conditions, outcome.Sustained, outcome.BlockTimes,
    outcome.ErrorCells, timeline.Timeline, Comparison, grade.Grade,
)  # fmt: skip
#: Records of features, whose other types share a table.
FEATURES = {"blocks": timeline, "tune": tune, "explain": explain, "grade": grade}
HEAD = "| field | type | meaning |\n| --- | --- | --- |\n"
#: The meaning of a field that has none yet.
MISSING = "?"
NAMES = {int: "integer", float: "number", str: "string", bool: "boolean"}
NUMBERS = {2: "two", 3: "three"}


def told(kind: Any) -> str:
    """A type of Python as that of JSON; of a string that can be one of some, these."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return told(parts[0])
    if origin in (Union, types.UnionType):
        return told(next(part for part in parts if part is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin is tuple and parts[-1] is not Ellipsis:
        return f"{NUMBERS[len(parts)]} {told(parts[0])}s"
    if origin is tuple:
        return f"{told(parts[0])}s"
    config = getattr(kind, "__struct_config__", None)
    return NAMES.get(kind, "array" if config is not None and config.array_like else "object")


def fields(kind: type[msgspec.Struct], old: str) -> Iterator[str]:
    """The rows of a type, with the meanings of the old ones; fields that share one are together."""
    hints, meanings = get_type_hints(kind, include_extras=True), dict[str, str]()
    for line in old.splitlines():
        names, _, meaning = re.split(r"(?<!\\) \| ", line.strip("| "), maxsplit=2)
        meanings |= dict.fromkeys(re.findall(r"`(\w+)`", names), meaning)
    rows = [(f, told(hints[f]), meanings.get(f, MISSING)) for f in kind.__struct_fields__]
    for (of, meaning), same in groupby(rows, lambda row: row[1:]):
        yield f"| {', '.join(f'`{name}`' for name, *_ in same)} | {of} | {meaning} |\n"


def others() -> str:
    """The types of each feature's records that have no table of their own, with their fields."""
    rows = []
    for name, module in FEATURES.items():
        own = [k for k in vars(module).values() if getattr(k, "__module__", "") == module.__name__]
        told = [f"*{kind.__name__}* {', '.join(f'`{f}`' for f in kind.__struct_fields__)}"
                for kind in own if kind not in TABLES]  # fmt: skip
        rows.append([name, "; ".join(told)])
    return freshness.table(["record", "types and their fields"], rows, 0)


def written(page: str) -> str:
    """The page with what its tables must hold."""
    kinds = iter(TABLES)
    pattern = rf"(?<={re.escape(HEAD)})(?:\|.*\n)+"
    page = re.sub(pattern, lambda old: "".join(fields(next(kinds), old[0])), page)
    if next(kinds, None) is not None:
        raise ValueError("the page needs a table for each type")
    return freshness.inserted(page, "others", others())


PAGES: freshness.Pages = {PAGE: written}

if __name__ == "__main__":
    sys.exit(freshness.finish(PAGES))
