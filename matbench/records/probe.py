"""What `matbench check` found: a probe of one shape, and what NVIDIA's sanitizer saw."""

from __future__ import annotations

import msgspec

from matbench.records.outcome import Outcome


class Finding(msgspec.Struct, frozen=True, order=True):
    """One kind of error that a sanitizer's tool saw at one place of the source, and how often."""

    tool: str
    what: str
    where: str
    count: int

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        return f"{self.tool}: {self.what} at {self.where} ({times})"


class Probe(msgspec.Struct, frozen=True, tag="probe", tag_field="type", kw_only=True):
    """One case at a shape that finds mistakes; `purpose` says which ones."""

    purpose: str
    outcome: Outcome
