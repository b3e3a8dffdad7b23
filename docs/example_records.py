"""The records in docs/examples/, for the scripts that draw them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from matbench.analysis.block_times import BlockSample
from matbench.features.check.probe import Need, Probe
from matbench.features.watch.version import TimedVersion, Version
from matbench.model import DeviceInfo, Problem
from matbench.records.blocks import BlockProfile
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.explanation import Explanation
from matbench.records.outcome import CaseRecord, ErrorCells, Outcome
from matbench.records.tuning import TuningRecord

FOLDER = Path(__file__).parent / "examples"

#: A record of any command that `--format json` prints.
Record = (
    Environment | Outcome | Probe | Need | ComparisonRecord | TuningRecord | Explanation
    | BlockProfile
)  # fmt: skip


def read(name: str) -> tuple[list[Environment], list[Any]]:
    """The environments of an example, and its other records."""
    found = msgspec.json.decode((FOLDER / name).read_bytes(), type=list[Record])
    environments = [each for each in found if isinstance(each, Environment)]
    return environments, [each for each in found if not isinstance(each, Environment)]


def device(environments: Sequence[Environment]) -> DeviceInfo:
    [found] = environments[0].devices
    return found


def explained() -> tuple[list[Environment], Explanation]:
    environments, [found] = read("explain.json")
    return environments, found


def profiled() -> tuple[list[Environment], Outcome, BlockProfile, BlockSample]:
    environments, found = read("blocks.json")
    [outcome] = [each for each in found if isinstance(each, Outcome)]
    [profile] = [each for each in found if isinstance(each, BlockProfile)]
    told = json.loads((FOLDER / "stamps.json").read_bytes())
    stamps = np.array(told.pop("stamps"), np.uint64)
    return environments, outcome, profile, BlockSample(stamps, **told)


def wrong_elements() -> ErrorCells:
    return msgspec.json.decode((FOLDER / "error-map.json").read_bytes(), type=ErrorCells)


def watched() -> tuple[DeviceInfo, list[Version]]:
    told = json.loads((FOLDER / "watch.json").read_bytes())
    at = Problem(1000, 1000, 1000)

    def standing(one: dict[str, Any]) -> TimedVersion:
        against = []
        for other in one["against"]:

            def side(kernel: str, params: dict[str, int]) -> Outcome:
                case = CaseRecord(
                    kernel=kernel, sha256="", group="tutorial", params=params, problem=at,
                    backend="opencl", device="", device_kind="cpu", device_id="",
                    storage="float32",
                )  # fmt: skip
                return Outcome(case=case, status="measured")

            interval = tuple(other["interval"]) if other["interval"] else None
            record = ComparisonRecord(
                baseline_name=other["name"],
                candidate_name="strip",
                baseline=side(other["name"], other["params"]),
                candidate=side("strip", one["params"]),
                comparison=Comparison(
                    other["ratio"], interval, None, other["verdict"], 1, (0, 0), ""
                ),
            )
            against.append(record)
        return TimedVersion(one["params"], one["median_ns"], against)

    versions = [
        Version(
            one["number"], one["saved"], one.get("wrong", ""),
            standings={at: standing(one)} if "params" in one else {},
        )
        for one in told["versions"]
    ]  # fmt: skip
    return msgspec.convert(told["device"], DeviceInfo), versions
