"""One case under NVIDIA's Nsight Compute: hardware counters of one launch.

`ncu` watches a child Python process that checks the case as usual, and counts the kernel's first
launch. It does not change the clocks; by its default, caches are flushed before the launch.
"""

from __future__ import annotations

import csv

from matbench.errors import MatbenchError
from matbench.kernelfile import entry
from matbench.measure import observer
from matbench.model import Case, DeviceInfo
from matbench.records.explanation import HardwareCounters

#: Nsight Compute's names (*Kernel Profiling Guide*, metrics reference) for the fields below.
METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_written_bytes": "dram__bytes_write.sum",
    "shared_bytes": "sm__sass_data_bytes_mem_shared.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}


def executable() -> str:
    """ncu's path; `UsageError` says how to get it."""
    return observer.executable("ncu", "--counters", "Nsight Compute")


def count(device: DeviceInfo, case: Case, timeout_s: float) -> HardwareCounters:
    """The counters of the first launch of a case."""
    command = [
        executable(), "--csv", "--print-units", "base", "--clock-control", "none",
        "--kernel-name-base", "function", "--kernel-name", entry.of(case.kernel).last_name,
        "--launch-count", "1", "--metrics", ",".join(METRICS.values()),
    ]  # fmt: skip
    done = observer.observe(command, device, case, guarded=True, timeout_s=timeout_s, tool="ncu")
    found = counted(done.stdout)
    if found is None:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if line.startswith("==ERROR==")] or lines
        raise MatbenchError(f"ncu counted nothing: {errors[0] if errors else 'no output'}")
    return found


def counted(output: str) -> HardwareCounters | None:
    """The counters in the output of `ncu --csv`, a line per metric; None if there are none."""
    lines = [line for line in output.splitlines() if line.startswith('"')]
    fields = {metric: name for name, metric in METRICS.items()}
    values: dict[str, float] = {}
    for row in csv.DictReader(lines):
        name = fields.get(row.get("Metric Name") or "")
        try:
            value = float((row.get("Metric Value") or "").replace(",", ""))
        except ValueError:
            continue  # "n/a"
        if name is not None:
            values[name] = value / 100 if name == "achieved_occupancy" else value
    return HardwareCounters(**values) if values else None
