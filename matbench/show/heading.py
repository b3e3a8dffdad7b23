"""The lines above a table: the device, its software, and the conditions of the measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench.analysis.ranking import held_mhz
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.show import units

CPU_TIMINGS = "CPU timings: measured on a processor, not on a GPU"

_MODES = {
    "cold": "cold samples: the cache is overwritten before each",
    "hot": "hot samples: the cache is not overwritten",
    "hot graph": "hot samples: launches back to back, as one CUDA graph",
}


def device_lines(
    outcomes: Sequence[Outcome], environments: Sequence[Environment], *, baselines: bool = False
) -> list[str]:
    """Device, driver and toolkit, then the conditions; the outcomes are those of one device."""
    first = outcomes[0].case
    backends = {outcome.case.backend for outcome in outcomes}
    used = [
        (str(device.properties.get("host") or environment.host), device)
        for environment in environments
        for device in environment.devices
        if device.name == first.device and device.backend in backends
    ]
    hosts = dict.fromkeys(host for host, _ in used)
    named = [
        "baselines on the CPU" if baselines else "",
        _agreed(outcome.case.backend for outcome in outcomes),
        first.device,
    ]
    # The host's load when its cases began, and its frequency governor.
    timings = [timing for one in outcomes for timing in (one.cold, one.hot) if timing is not None]
    moments = [timing.conditions[0] for timing in timings if timing.conditions]
    loads = [moment.load for moment in moments if moment.load is not None]
    governors = _agreed(sorted({moment.governor for moment in moments if moment.governor}))
    load = [
        f"load average {_range(loads, 1)}" if loads else "",
        f"frequency governor {governors}" if governors else "",
    ]
    # SM clocks while blocks were stamped or samples taken, separately for hot samples.
    stamped = [o.blocks.sm_mhz for o in outcomes if o.blocks is not None and o.blocks.sm_mhz]
    held = stamped or [clock for o in outcomes if (clock := held_mhz(o.timing))]
    hot = [clock for o in outcomes if o.cold is not None and (clock := held_mhz(o.hot))]
    clocks = [
        f"SM clock held: {_range(held)} MHz" if held else "",
        f"hot: {_range(hot)} MHz" if hot else "",
    ]
    repeats = {environment.settings.get("repeat", 1) for environment in environments} - {1}
    lines = [
        " · ".join(filter(None, named)) or "device unknown",
        _agreed(f"driver {device.driver} · {device.toolkit}" for _, device in used),
        *([CPU_TIMINGS, " · ".join(filter(None, load))] if first.device_kind == "cpu" else []),
        ", ".join(filter(None, clocks)),
        _modes(outcomes),
        f"each case in {_agreed(map(str, repeats))} processes" if repeats else "",
        f"from several hosts: {_agreed(hosts)}" if len(hosts) > 1 else "",
    ]
    return [line for line in lines if line]


def _agreed(texts: Iterable[str]) -> str:
    """Different texts, each once."""
    return " / ".join(dict.fromkeys(filter(None, texts)))


def _range(values: Sequence[float], decimals: int = 0) -> str:
    return units.extremes(values, lambda value: f"{value:,.{decimals}f}")


def _modes(outcomes: Iterable[Outcome]) -> str:
    """The kind of samples that rows are ranked by, and the kind in the column `hot`."""
    timed = [outcome for outcome in outcomes if outcome.mode is not None]
    modes = {outcome.mode for outcome in timed}
    if len(modes) > 1:
        return "cold and hot samples, ranked separately"
    graphs = {outcome.hot.graph for outcome in timed if outcome.hot is not None}
    hot = [_MODES["hot graph" if graph else "hot"] for graph in sorted(graphs)]
    beside = [mode.replace("hot samples", "hot") for mode in hot] if "cold" in modes else []
    return "; ".join([_MODES[mode] for mode in modes if mode] + beside)
