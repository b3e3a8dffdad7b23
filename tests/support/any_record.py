"""Hypothesis' idea of a record: any values that its type allows, extreme ones above all.

Records are plain values, as JSON holds them. Most are consistent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from hypothesis import reject
from hypothesis import strategies as st
from msgspec import inspect

from matbench.features.grade.record import Growth
from matbench.features.timeline.record import Bin, BlockProfile, Timeline
from matbench.records.environment import SCHEMA, Environment
from matbench.records.outcome import ErrorCells, Outcome, Timing

Plain = dict[str, Any]

_WHOLE = (0, 1, -1, 2, 3, 1000, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**400)
_REAL = (
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-3, 1e3, 1e18, 1e-60, 1e60),
    *(5e-324, -5e-324, 1e-300, 1e300, -1e308, 1.7976931348623157e308),
)
_TEXTS = ("", " ", "\0\x1b[2J\x7f\x9b", "a\nb\r\n\tc", "\u202e\u2066\u2028", "<b>&|`$\\_{}%", "-0")
_ABSENT = object()
_NEARLY_ALWAYS = st.sampled_from((True,) * 15 + (False,))


@lru_cache(None)
def plain(record: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Records of a type."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    fields = [
        (field.encode_name, field.required, _FIELDS.get((record, field.name), _any(field.type)))
        for field in info.fields
    ]
    if info.array_like:
        return st.tuples(*(values for _, _, values in fields)).map(list)
    tag = {info.tag_field: info.tag} if info.tag_field else {}

    @st.composite
    def drawn(draw: st.DrawFn) -> Plain:
        one = {
            name: draw(values) for name, always, values in fields if always or draw(_NEARLY_ALWAYS)
        }
        if record in _CONSISTENT and draw(_NEARLY_ALWAYS):
            one |= _CONSISTENT[record](**one)
        return tag | {name: value for name, value in one.items() if value is not _ABSENT}

    return drawn()


@lru_cache(None)
def outcomes() -> st.SearchStrategy[Outcome]:
    """Outcomes whose parts fit together."""

    def converted(one: Plain) -> Outcome:
        try:
            return msgspec.convert(one, Outcome)
        except msgspec.ValidationError:
            reject()

    return plain(Outcome).map(converted)


@lru_cache(None)
def timed() -> st.SearchStrategy[Plain]:
    """Outcomes that a chart can show: with cold samples of a square product."""

    def of(one: Plain, cold: Plain, n: int) -> Plain:
        one.pop("error_map", None)
        problem = one["case"]["problem"] | {"workload": "matmul", "M": n, "N": n, "K": n}
        one["case"] = one["case"] | {"problem": problem}
        return one | {"status": "measured", "cold": cold | {"graph": False}}

    sizes = _any(inspect.IntType(ge=1, le=2**63 - 1))
    return st.builds(of, plain(Outcome), plain(Timing), sizes)


def _any(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.StructType(cls=record):
            return plain(record)
        case inspect.UnionType(types=types):
            return _one_of(types)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.IntType():
            return _extreme(kind, _WHOLE) | st.integers(*_range(kind, -9, 2000))
        case inspect.FloatType():
            return _extreme(kind, _REAL) | st.floats(*_range(kind, -1.0, 1e9))
        case inspect.StrType(pattern=pattern):
            known = st.sampled_from(_TEXTS) | st.text(max_size=8)
            return st.from_regex(pattern) if pattern is not None else known
    return _several(kind)


def _one_of(types: Sequence[inspect.Type]) -> st.SearchStrategy[Any]:
    values = [_any(one) for one in types if not isinstance(one, inspect.NoneType)]
    if len(values) == len(types):
        return st.one_of(values)
    whole = any(isinstance(one, inspect.StructType) for one in types)
    known = _NEARLY_ALWAYS if whole else st.booleans()
    return known.flatmap(lambda is_known: st.one_of(values) if is_known else st.none())


def _several(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.VarTupleType(item_type=item, min_length=least):
            return st.lists(_any(item), min_size=least or 0, max_size=3)
        case inspect.TupleType(item_types=items):
            return st.tuples(*map(_any, items)).map(list)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_any(key), _any(value), max_size=3)
    raise NotImplementedError(kind)


def _range(kind: inspect.IntType | inspect.FloatType, least: float, most: float) -> tuple[Any, Any]:
    """The numbers that are allowed from `least` to `most`."""
    assert kind.gt is kind.lt is None
    low, high = kind.ge, kind.le
    return least if low is None else max(least, low), most if high is None else min(most, high)


def _extreme(
    kind: inspect.IntType | inspect.FloatType, numbers: Iterable[float]
) -> st.SearchStrategy[Any]:
    low, high = _range(kind, -math.inf, math.inf)
    return st.sampled_from([number for number in numbers if low <= number <= high])


#: What the types of some fields do not tell.
_FIELDS: dict[tuple[type[msgspec.Struct], str], st.SearchStrategy[Any]] = {
    (Environment, "schema"): st.just(SCHEMA),
    (Outcome, "status"): st.sampled_from(("measured", "measured", "wrong", "failed", "skipped")),
}


# Changes without which hardly a record would be consistent


def _outcome(status: str, cold: Plain | None = None, **others: Any) -> Plain:
    return {
        "cold": cold and cold | {"graph": False},
        **({} if status == "measured" else dict.fromkeys(("cold", "hot", "blocks"))),
        **({} if status == "wrong" else {"error_map": _ABSENT}),
    }


def _timing(
    median_ns: float | None, samples_ns: list[float] | None = None,
    interval_ns: list[float] | None = None, **others: Any,
) -> Plain:  # fmt: skip
    median = statistics.median(samples_ns) if samples_ns else median_ns
    ends = sorted(interval_ns) if interval_ns else None
    if ends and median:
        ends = [min(ends[0], median), max(ends[1], median)]
    return {"median_ns": median, "interval_ns": ends}


def _error_cells(rows: list[str], step: int, **others: Any) -> Plain:
    width, side = len(rows[0]), min(step, 2**50)
    whole = [row[:width].ljust(width, ".") for row in rows]
    return {"rows": whole, "step": side, "shape": [len(rows) * side, width * side]}


def _growth(
    sizes: list[int] | None = None, errors: list[float] | None = None, **others: Any
) -> Plain:
    both = list(zip(sizes or (), errors or (), strict=False))
    return {"sizes": [size for size, _ in both], "errors": [error for _, error in both]}


def _bin(low_us: float, high_us: float, **others: Any) -> Plain:
    return {"low_us": min(low_us, high_us), "high_us": max(low_us, high_us)}


def _profile(counters: str, counter_offset_ticks: float | None = None, **others: Any) -> Plain:
    names = ("blocks_per_multiprocessor", "multiprocessors_used", "resident_median")
    unknown = {} if all(others.get(name) is not None for name in names) else dict.fromkeys(names)
    return unknown | {"counters": counters if counter_offset_ticks is not None else "one"}


def _timeline(
    lanes: int, slots: int, multiprocessors: list[int] | None, bars: list[list[int]]
) -> Plain:
    many = len(multiprocessors or ()) or lanes

    def bar(lane: int, start: int, end: int, slot: int, block: int) -> list[int]:
        return [lane % many, min(start, end), max(start, end), slot % slots, block]

    return {
        "lanes": many,
        "multiprocessors": multiprocessors or None,
        "bars": sorted(bar(*one) for one in bars),
    }


_CONSISTENT: dict[type[msgspec.Struct], Callable[..., Plain]] = {
    Bin: _bin, BlockProfile: _profile, ErrorCells: _error_cells, Growth: _growth,
    Outcome: _outcome, Timeline: _timeline, Timing: _timing,
}  # fmt: skip
