"""Converts records of older schemas, as plain objects, into the current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matbench.records.environment import SCHEMA

Plain = dict[str, Any]

_SAMPLING = ("warmups", "settled", "stopped", "attempts", "conditions")
_ABOUT_TIMES = {*_SAMPLING, "block_imbalance", "block_perturbation", "sm_mhz"}
#: The groups of an outcome, and the name in its group of each flat field of schema 1. `own` are
#: the samples that the case is ranked by, cold or hot according to `timing_mode`.
_GROUPS: dict[str, dict[str, str]] = {
    "outcome": {name: name for name in ("type", "status", "reason", "copy_bytes_per_s", "notes")},
    "case": {
        name: name
        for name in (
            "kernel", "sha256", "group", "summary", "params", "problem", "backend", "device",
            "device_kind", "launch",
        )
    },
    "claims": {"precision": "precision"},
    "build": {
        "build_s": "duration_s",
        **{name: name for name in ("resources", "resident_blocks", "occupancy")},
    },
    "accuracy": {name: name for name in ("max_rel_err", "avg_rel_err", "bound_ratio")},
    "own": {name: name for name in ("samples_ns", "median_ns", "interval_ns", *_SAMPLING)},
    "hot": {f"hot_{name}": name for name in ("samples_ns", "median_ns", "interval_ns")},
    "blocks": {
        **{f"block_{name}": name for name in ("median_ns", "imbalance", "perturbation")},
        "sm_mhz": "sm_mhz",
    },
}  # fmt: skip
#: The fields that a group requires, if not `median_ns`.
_REQUIRED = {"build": (), "accuracy": tuple(_GROUPS["accuracy"])}


def upgrade(plain: Plain, schema: int) -> Plain:
    """An object of `schema` as one of the current schema.

    Fields that an object lacks stay missing: decoding reports them.
    """
    for older in range(schema, SCHEMA):
        plain = UPGRADES[older](plain)
    return plain


def _nested(old: Plain) -> Plain:
    """Schema 1 to 2: the fields of a flat outcome in groups; an empty group is None.

    An outcome that was not measured has no times, so its other fields about times are dropped.
    """
    if old["type"] == "environment":
        return old | {"schema": 2}
    has_place = old.keys() - (set() if old.get("status") == "measured" else _ABOUT_TIMES)
    groups: dict[str, Plain] = {
        group: {new: old[name] for name, new in names.items() if name in has_place}
        for group, names in _GROUPS.items()
    }
    new = groups.pop("outcome")
    new["case"] = groups.pop("case") | {"claims": groups.pop("claims")}
    told = {
        group: dict.fromkeys(_REQUIRED.get(group, ("median_ns",))) | fields
        for group, fields in groups.items()
        if any(value not in (None, [], {}) for value in fields.values())
    }
    if "own" in told:
        mode = old.get("timing_mode")
        kind = "hot" if mode in ("hot", "hot graph") else "cold"
        if kind in told:
            raise ValueError("hot samples twice")
        told[kind] = told.pop("own") | {"graph": mode == "hot graph"}
    return new | told


#: The step from each older schema to the next.
UPGRADES: dict[int, Callable[[Plain], Plain]] = {1: _nested}
