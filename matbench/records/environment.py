"""Where and how a record file was made: one line per run."""

from __future__ import annotations

import msgspec

from matbench.model import DeviceInfo

#: The version of the record format. Raise it when a field is renamed or changes its meaning; a new
#: field with a default needs no new version.
SCHEMA = 2


class Environment(msgspec.Struct, frozen=True, tag="environment", tag_field="type", kw_only=True):
    """The run's command line, machine, software and devices; `schema` is that of its outcomes."""

    schema: int
    argv: tuple[str, ...]
    time: str
    host: str
    os: str
    python: str
    packages: dict[str, str]
    devices: tuple[DeviceInfo, ...]
    project_revision: str | None
    settings: dict[str, str | int | float | bool | None] = {}
