"""Records of a ladder of kernels over n, for tests of charts."""

from __future__ import annotations

from typing import Any

from matbench.model import Problem
from matbench.records.outcome import Accuracy, Outcome
from support import records


def timed(kernel: str, n: int, ms: float, error: float | None = 1e-6, **more: Any) -> Outcome:
    """A case of n × n × n on an H200."""
    fields: dict[str, Any] = {
        "group": "ladder", "params": {}, "problem": Problem(n, n, n), "backend": "cuda",
        "device": "H200", "device_kind": "gpu", "accuracy": Accuracy(error, error, None),
    }  # fmt: skip
    return records.outcome(kernel, ms, **(fields | more))


LADDER = [
    timed("slow", 1000, 20), timed("slow", 1000, 10, params={"T": 2}), timed("slow", 2000, 90),
    timed("fast", 2000, 1, error=0.0), timed("fast", 1000, 2, error=3e-7),
    timed("library", 1000, 1, group="baseline"), timed("thin", 0, 1, problem=Problem(64, 8192, 64)),
    timed("broken", 1000, 0.1, status="wrong"),
]  # fmt: skip
