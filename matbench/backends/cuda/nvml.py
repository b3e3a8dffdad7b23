"""An NVIDIA GPU's clocks, temperature, power and energy, read through NVML; nothing is ever set."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from matbench.model import Conditions

#: Harmless reasons for lower clocks: idle, and clocks set by the owner.
_HARMLESS = ("GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks", "DisplayClockSetting")


class ClockMonitor:
    """One device, by its PCI address; reports nothing if NVML is missing."""

    def __init__(self, pci_bus_id: str) -> None:
        self.handle: Any = None
        with suppress(Exception):  # NVML's errors, and that it is missing, have no common base
            import pynvml

            pynvml.nvmlInit()
            self.nvml = pynvml
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
            prefix = "nvmlClocksThrottleReason"
            #: Every throttle reason that matters, by name.
            self.reasons = {
                reason: value
                for name, value in vars(pynvml).items()
                if name.startswith(prefix) and isinstance(value, int)
                if (reason := name.removeprefix(prefix)) not in (*_HARMLESS, "None", "All")
            }
            self.handle = handle  # last: with it, all of this is there

    def read(self) -> Conditions | None:
        """Current clocks, temperature, power and throttle reasons; None if unknown."""
        if self.handle is None:
            return None
        nvml, handle = self.nvml, self.handle
        with suppress(nvml.NVMLError):
            active = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
            return Conditions(
                sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
                throttled=tuple(name for name, bit in self.reasons.items() if active & bit),
            )
        return None

    def energy_j(self) -> float | None:
        """Joules since the driver was loaded; None if the GPU does not count them."""
        if self.handle is None:
            return None
        with suppress(self.nvml.NVMLError):
            return float(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1000)  # mJ
        return None
