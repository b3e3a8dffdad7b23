"""One case under NVIDIA's Nsight Compute: hardware counters of one launch.

`ncu` watches a child Python process that checks the case as usual, and counts the kernel's first
launch. It does not change the clocks; by its default, caches are flushed before the launch.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import msgspec

from matbench.errors import MatbenchError
from matbench.features.explain.record import HardwareCounters
from matbench.features.nvidia_tools import observer
from matbench.kernelfile import signature
from matbench.model import Case, DeviceInfo

_NAMES = msgspec.toml.decode(Path(__file__).with_name("counters.toml").read_bytes())
_PERCENT = ".pct_of_peak_sustained_elapsed"


def count(device: DeviceInfo, case: Case, timeout_s: float) -> HardwareCounters:
    """The counters of the first launch of a case."""
    metrics = ",".join((*_NAMES["metrics"].values(), *_NAMES["breakdowns"]))
    command = [
        "ncu", "--csv", "--print-units", "base", "--clock-control", "none",
        "--kernel-name-base", "function",
        "--kernel-name", signature.entry_of(case.kernel).last_name,
        "--launch-count", "1", "--metrics", metrics,
    ]  # fmt: skip
    done = observer.observe(command, device, case, guarded=True, timeout_s=timeout_s, tool="ncu")
    counters = counted(done.stdout)
    if counters is None:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if line.startswith("==ERROR==")] or lines
        raise MatbenchError(f"ncu counted nothing: {errors[0] if errors else 'no output'}")
    return counters


def counted(output: str) -> HardwareCounters | None:
    """The counters in the output of `ncu --csv`, a line per metric; None if there are none."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    fields = {metric: name for name, metric in _NAMES["metrics"].items()}
    values: dict[str, float] = {}
    busy: dict[str, float] = {}
    for row in csv.DictReader(lines):
        metric = row.get("Metric Name") or ""
        name = fields.get(metric)
        try:
            value = float((row.get("Metric Value") or "").replace(",", ""))
        except ValueError:
            continue  # "n/a"
        if math.isnan(value):  # ncu counted nothing
            continue
        if name is not None:
            values[name] = value / 100 if name == "achieved_occupancy" else value
        elif metric.endswith(_PERCENT):
            resources = _NAMES["resources"].items()
            fitting = [resource for pattern, resource in resources if re.search(pattern, metric)]
            if fitting:
                busy[fitting[0]] = max(busy.get(fitting[0], 0.0), value / 100)
    return HardwareCounters(**values, busy=busy) if values else None
