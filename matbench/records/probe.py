"""What `matbench check` found: a probe of one shape, the need of a claim, a sanitizer's finding."""

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


class Need(msgspec.Struct, frozen=True, tag="need", tag_field="type", kw_only=True):
    """How much of a claim that weakens a check a kernel needs, by runs without it or with less.

    `key` is the claim's in front matter and `declared` what the file says there. `needed`: some of
    it is, as far as the runs show; None: they show nothing. `finding` says how much, in words.
    """

    key: str
    declared: str
    needed: bool | None
    finding: str
