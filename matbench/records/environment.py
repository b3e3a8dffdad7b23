"""Where and how a record file was made, one line per run; and the file of the last run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import platformdirs

from matbench import __version__, programs
from matbench.model import DeviceInfo

#: The version of the record format. Raise it when a field is renamed or changes its meaning; a new
#: field with a default needs no new version.
SCHEMA = 2
_PACKAGES = (
    "numpy", "scipy", "pycuda", "cuda-bindings", "cuda-pathfinder", "nvidia-ml-py", "pyopencl",
    "intel-opencl-rt", "intel-cmplr-lib-rt", "pocl", "pocl-binary-distribution", "msgspec",
)  # fmt: skip


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


def run_environment(
    argv: Iterable[str],
    devices: Iterable[DeviceInfo],
    settings: Mapping[str, str | int | float | bool | None],
) -> Environment:
    """The environment of this run, with the current time, machine and packages."""
    versions = {"matbench-cuda": __version__}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name) or "unknown"
    return Environment(
        schema=SCHEMA,
        argv=tuple(argv),
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        host=platform.node(),
        os=platform.platform(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=versions,
        devices=tuple(devices),
        project_revision=programs.git_commit("HEAD"),
        settings=dict(settings),
    )


def state_folder() -> Path:
    """`MATBENCH_STATE_DIR`, or the platform's folder for this user's state."""
    return Path(os.environ.get("MATBENCH_STATE_DIR") or platformdirs.user_state_dir("matbench"))


def last_run_path() -> Path:
    return state_folder() / "last-run.jsonl"
