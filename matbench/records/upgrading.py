"""Turns records of older schemas into the current one, as plain objects, before they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matbench.records.environment import SCHEMA

Plain = dict[str, Any]

_CASE = (
    "kernel", "sha256", "group", "summary", "params", "problem", "backend", "device",
    "device_kind", "launch",
)  # fmt: skip
_SAMPLING = ("warmups", "settled", "stopped", "attempts", "conditions")
_ABOUT_TIMES = {*_SAMPLING, "block_imbalance", "block_perturbation", "sm_mhz"}


def upgrade(plain: Plain, schema: int) -> Plain:
    """An object of `schema` as one of the current schema.

    Fields that an object lacks are still missing afterwards: decoding says which.
    """
    for older in range(schema, SCHEMA):
        plain = UPGRADES[older](plain)
    return plain


def _nested(old: Plain) -> Plain:
    """Schema 1 to 2: the flat outcome, with its fields in groups."""
    if old["type"] == "environment":
        return old | {"schema": 2}
    case = _present(old, _CASE)
    if "precision" in old:
        case["claims"] = {"precision": old["precision"]}
    new: Plain = {
        "type": "outcome",
        "case": case,
        "build": _group(
            old,
            duration_s="build_s",
            resources="resources",
            resident_blocks="resident_blocks",
            occupancy="occupancy",
        ),
        **_present(old, ("status", "reason", "copy_bytes_per_s", "notes")),
    }
    errors = ("max_rel_err", "avg_rel_err", "bound_ratio")
    accuracy = _group(old, **dict(zip(errors, errors, strict=True)))
    if accuracy is not None:
        new["accuracy"] = dict.fromkeys(errors) | accuracy
    return new | _times(old)


def _times(old: Plain) -> Plain:
    """The samples, cold and hot, and the block times of a flat outcome.

    An outcome that was not measured has no times, so what else it says of them has no place.
    """
    if old.get("status") != "measured":
        old = {name: old[name] for name in old.keys() - _ABOUT_TIMES}
    new: Plain = {}
    own = _group(
        old,
        samples_ns="samples_ns",
        median_ns="median_ns",
        interval_ns="interval_ns",
        **{name: name for name in _SAMPLING},
    )
    if own is not None:
        mode = old.get("timing_mode")
        own["graph"] = mode == "hot graph"
        new["hot" if mode in ("hot", "hot graph") else "cold"] = {"median_ns": None} | own
    hot_beside = _group(
        old,
        samples_ns="hot_samples_ns",
        median_ns="hot_median_ns",
        interval_ns="hot_interval_ns",
    )
    if hot_beside is not None:
        if "hot" in new:
            raise ValueError("hot samples twice")
        new["hot"] = {"median_ns": None} | hot_beside
    blocks = _group(
        old,
        median_ns="block_median_ns",
        imbalance="block_imbalance",
        perturbation="block_perturbation",
        sm_mhz="sm_mhz",
    )
    if blocks is not None:
        new["blocks"] = {"median_ns": None} | blocks
    return new


def _present(old: Plain, names: tuple[str, ...]) -> Plain:
    return {name: old[name] for name in names if name in old}


def _group(old: Plain, **names: str) -> Plain | None:
    """The fields under their new names; None where none of them says anything."""
    found = {new: old[name] for new, name in names.items() if name in old}
    return found if any(value not in (None, [], {}) for value in found.values()) else None


#: From each older schema to the next.
UPGRADES: dict[int, Callable[[Plain], Plain]] = {1: _nested}
