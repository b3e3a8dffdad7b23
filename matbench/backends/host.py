"""The CPU itself, for library baselines, which have no kernel."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from matbench.kernelfile.front_matter import DEVICE_LIMITS
from matbench.model import Conditions, DeviceInfo


def device() -> DeviceInfo:
    """This machine's CPU, with the BLAS that NumPy calls."""
    import numpy as np

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    library = f"{blas.get('name', 'unknown BLAS')} {blas.get('version', '')}".strip()
    return DeviceInfo(
        backend="host",
        index=0,
        name=_processor(),
        kind="cpu",
        driver=platform.platform(terse=True),
        toolkit=f"NumPy {np.__version__}, {library}",
        limits=dict.fromkeys(DEVICE_LIMITS, 1)
        | {"max_shared_bytes_per_block": 0, "max_static_shared_bytes": 0},
    )


def conditions() -> Conditions:
    """The load of this machine over the last minute, and its frequency governor."""
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = None
    try:
        policy = governor.read_text().strip()
    except OSError:
        policy = None
    return Conditions(load=load, governor=policy)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
