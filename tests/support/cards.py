"""Several GPUs of one model: scripted devices, which work at the same time, as GPUs do."""

from __future__ import annotations

import msgspec
import pytest

from matbench.model import DeviceInfo
from support import scripted


def cards(name: str = "A Card") -> list[DeviceInfo]:
    """Two GPUs of one model, with UUIDs."""
    return [
        msgspec.structs.replace(
            scripted.DEVICE, index=index, name=name, kind="gpu",
            properties={"UUID": f"GPU-{name[-1]}{index}"},
        )
        for index in range(2)
    ]  # fmt: skip


def installed(patch: pytest.MonkeyPatch, found: list[DeviceInfo]) -> None:
    """These are the devices of this machine, with the fixture `scripted_device`."""
    patch.setattr(scripted, "DEVICES", found)
