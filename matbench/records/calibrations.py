"""The variation that was measured on each device: lines of JSON in the user's state folder.

The last line of a device counts.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from matbench.model import DeviceInfo
from matbench.records import encoding, state
from matbench.records.variation import Variation


class Calibration(msgspec.Struct, frozen=True):
    """The variation that was measured on one device."""

    backend: str
    device: str
    uuid: str
    time: str
    variation: Variation


def path() -> Path:
    return state.state_folder() / "calibrated.jsonl"


def keep(device: DeviceInfo, variation: Variation, time: str) -> None:
    """Add a calibration; `UsageError` if it cannot be stored."""
    found = Calibration(*_key(device), time, variation)
    state.append_line(path(), encoding.line(found).encode(), "the calibration")


def require() -> None:
    """`UsageError` if no calibration can be stored; call this before measuring."""
    state.append_line(path(), None, "the calibration")


def of(device: DeviceInfo) -> Variation | None:
    """The latest calibration of a device; None if there is none that can be read."""
    try:
        lines = state.content(path()).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        found = state.decoded(line, Calibration)
        if found is not None and (found.backend, found.device, found.uuid) == _key(device):
            return found.variation
    return None


def _key(device: DeviceInfo) -> tuple[str, str, str]:
    return device.backend, device.name, str(device.properties.get("UUID") or "")
