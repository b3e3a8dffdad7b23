"""Results of `matbench check`: probes, and whether claims are needed."""

from __future__ import annotations

import msgspec

from matbench.records.outcome import Outcome


class Probe(msgspec.Struct, frozen=True, tag="probe", tag_field="type", kw_only=True):
    """One case at a size that reveals mistakes; `purpose` says which ones."""

    purpose: str
    outcome: Outcome


class Need(msgspec.Struct, frozen=True, tag="need", tag_field="type", kw_only=True):
    """How much of a claim a kernel needs, according to runs without it or with less of it.

    `key` is the claim's key in front matter, `declared` its value in the file. `needed`: the runs
    show that some of it is needed; None: they show nothing. `finding` says how much, in words.
    """

    key: str
    declared: str
    needed: bool | None
    finding: str
