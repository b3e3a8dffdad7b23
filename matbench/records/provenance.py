"""The environment of a run, and the user's state folder with the file of the last run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import platformdirs

from matbench import __version__, programs
from matbench.model import DeviceInfo
from matbench.records.environment import SCHEMA, Environment

_PACKAGES = (
    "numpy", "scipy", "pycuda", "cuda-bindings", "cuda-pathfinder", "nvidia-ml-py", "pyopencl",
    "intel-opencl-rt", "intel-cmplr-lib-rt", "pocl", "pocl-binary-distribution", "msgspec",
)  # fmt: skip


def environment(
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
