"""One case under NVIDIA's Nsight Compute: hardware counters of one launch.

`ncu` watches a child Python process that checks the case as usual, and counts the kernel's first
launch. It does not change the clocks; by its default, caches are flushed before the launch.
"""

from __future__ import annotations

import csv
import math
import re

from matbench.errors import MatbenchError
from matbench.features.explain.record import HardwareCounters
from matbench.features.nvidia_tools import observer
from matbench.kernelfile import entry
from matbench.model import Case, DeviceInfo

#: Nsight Compute's names (*Kernel Profiling Guide*, metrics reference) for the fields below.
METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_written_bytes": "dram__bytes_write.sum",
    "shared_bytes": "sm__sass_data_bytes_mem_shared.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}

#: ncu expands these to the metrics that this GPU has: how busy each of its parts is.
_BREAKDOWNS = (
    "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)
#: The resource that such a metric is about, by a pattern of its name; the first that fits.
_RESOURCES = {
    r"sm__(inst_issued|issue_active|inst_executed[.])": "issue slots",
    r"pipe_(fp32|fma)": "float32 pipe",
    r"pipe_alu": "integer pipe",
    r"pipe_fp16": "float16 pipe",
    r"pipe_fp64|pipe_shared_cycles": "float64 pipe",
    r"pipe_xu": "special functions",
    r"tensor": "tensor cores",
    r"l1tex__m_|lts__|l2": "L2 cache",
    r"dram__|fbpa__": "DRAM",
    r"l1tex__|sm__mio|pipe_lsu|mem_shared|lsu_mem": "shared memory and L1",
}
_PERCENT = ".pct_of_peak_sustained_elapsed"


def executable() -> str:
    """ncu's path; `UsageError` says how to get it."""
    return observer.executable("ncu", "--counters", "Nsight Compute")


def count(device: DeviceInfo, case: Case, timeout_s: float) -> HardwareCounters:
    """The counters of the first launch of a case."""
    command = [
        executable(), "--csv", "--print-units", "base", "--clock-control", "none",
        "--kernel-name-base", "function", "--kernel-name", entry.entry_of(case.kernel).last_name,
        "--launch-count", "1", "--metrics", ",".join((*METRICS.values(), *_BREAKDOWNS)),
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
    fields = {metric: name for name, metric in METRICS.items()}
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
            fitting = [name for pattern, name in _RESOURCES.items() if re.search(pattern, metric)]
            if fitting:
                busy[fitting[0]] = max(busy.get(fitting[0], 0.0), value / 100)
    return HardwareCounters(**values, busy=busy) if values else None
