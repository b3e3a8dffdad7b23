"""What `matbench doctor` finds out about one thing."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["ok", "note", "problem"]


class DoctorFinding(msgspec.Struct, frozen=True):
    """What `matbench doctor` found about one thing, and how to fix it.

    A *problem* keeps this machine's NVIDIA GPU, or its CPU if it has none, from being measured; a
    *note* does not.
    """

    name: str
    status: Status
    seen: str
    fix: str = ""
