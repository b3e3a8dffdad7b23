"""How much the time of unchanged code differs between runs on one device."""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Count
from matbench.records.outcome import Amount, Outcome


class Variation(msgspec.Struct, frozen=True):
    """Shares by which the times of unchanged code differ.

    `processes`: between two processes. `recordings`: between the medians of two groups of
    processes, because the machine drifts. `runs` counts the processes that were compared; 0: the
    shares are assumed.
    """

    processes: Amount
    recordings: Amount
    runs: Count = 0

    def covering(self, other: Variation) -> Variation:
        """The larger of each share."""
        return Variation(
            max(self.processes, other.processes),
            max(self.recordings, other.recordings),
            min(self.runs, other.runs),
        )


#: For devices that were not calibrated: rather too much than too little.
ASSUMED: dict[Literal["gpu", "cpu"], Variation] = {
    "gpu": Variation(processes=0.05, recordings=0.005),
    "cpu": Variation(processes=0.25, recordings=0.03),
}


class CaseVariation(msgspec.Struct, frozen=True, tag="variation", tag_field="type", kw_only=True):
    """The medians of a case in several processes, in the order they ran, and how they differ."""

    outcome: Outcome
    medians_ns: tuple[float, ...]
    variation: Variation
