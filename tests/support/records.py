"""Records for tests: a measured case unless a test says otherwise, and Hypothesis' idea of one.

`outcome("tiled", ms=2.5, params={"TILE": 8}, notes=("busy",))` takes fields of the case and of the
outcome alike; `cold=timing(2.5, settled=False)` says more about the samples.
"""

from __future__ import annotations

import statistics
from typing import Any

import msgspec
from hypothesis import strategies as st

from matbench.model import Conditions, DeviceInfo, Launch, Problem, Resources
from matbench.records.environment import Environment
from matbench.records.outcome import (
    Accuracy,
    BlockTimes,
    Build,
    CaseRecord,
    Claims,
    ErrorCells,
    Outcome,
    Timing,
)


def device(**changes: Any) -> DeviceInfo:
    """A CPU through OpenCL."""
    fields: dict[str, Any] = {
        "backend": "opencl",
        "index": 0,
        "name": "A Processor",
        "kind": "cpu",
        "driver": "1.2",
        "toolkit": "OpenCL C 3.0",
        "limits": {"warp_size": 1},
    }
    return DeviceInfo(**(fields | changes))


def environment(**changes: Any) -> Environment:
    """A run on `device()`."""
    fields: dict[str, Any] = {
        "schema": 2,
        "argv": ("matbench", "run"),
        "time": "2026-11-21T12:00:00+00:00",
        "host": "host",
        "os": "Linux",
        "python": "CPython 3.12",
        "packages": {"numpy": "2.0"},
        "devices": (device(),),
        "project_revision": None,
    }
    return Environment(**(fields | changes))


def timing(ms: float = 0.0011, **changes: Any) -> Timing:
    """Three samples around a median of `ms` milliseconds; the median follows other samples."""
    median = ms * 1e6
    samples = changes.pop("samples_ns", (0.9 * median, median, 1.1 * median))
    fields: dict[str, Any] = {
        "samples_ns": tuple(samples),
        "median_ns": statistics.median(samples) if samples else None,
        "seed": "9f3c2b",
    }
    return Timing(**(fields | changes))


def outcome(kernel: str = "tiled", ms: float | None = None, **changes: Any) -> Outcome:
    """The outcome of a case; fields of a `CaseRecord` may be named directly.

    A measured one has cold samples around `ms`, 1.1 µs by default, unless `cold` or `hot` is given.
    """
    case: dict[str, Any] = {
        "kernel": kernel,
        "sha256": "0" * 64,
        "group": "tutorial",
        "params": {"TILE": 16},
        "problem": Problem(17, 33, 65),
        "backend": "opencl",
        "device": "A Processor",
        "device_kind": "cpu",
        "device_id": "opencl:0",
    }
    named = {name: changes.pop(name) for name in CaseRecord.__struct_fields__ if name in changes}
    fields: dict[str, Any] = {"case": CaseRecord(**(case | named)), "status": "measured"} | changes
    if fields["status"] == "measured" and not {"cold", "hot"} & fields.keys():
        fields["cold"] = timing() if ms is None else timing(ms)
    return Outcome(**fields)


def repeated(found: Outcome, times: int = 5) -> list[Outcome]:
    """The same outcome in several processes."""
    return [msgspec.structs.replace(found, repetition=one + 1) for one in range(times)]


# Hypothesis strategies, made once: each is checked where it is made

#: Of what lasts, or is counted in fractions; the largest can still be added up.
amounts = st.floats(0, 1e300)
times = st.floats(1e-3, 1e300)
counts = st.integers(1, 2**31)
flags = st.none() | st.booleans()
texts = st.lists(st.text(max_size=8), max_size=3).map(tuple)
maybe_amount, maybe_count, maybe_time = (st.none() | known for known in (amounts, counts, times))
maybe_text = st.none() | st.text()
samples_ns = st.lists(times, max_size=5).map(tuple)
shares = st.none() | st.tuples(st.floats(0, 1), st.floats(1, 2))
moments = st.builds(
    Conditions, maybe_count, maybe_count, st.none() | st.integers(-40, 120), maybe_amount, texts,
    maybe_amount, maybe_amount, maybe_text,
)  # fmt: skip
conditions = st.lists(moments, max_size=2).map(tuple)


@st.composite
def timings(draw: st.DrawFn, graph: bool = False) -> Timing:
    """Samples with their median, and an interval around it."""
    samples = draw(samples_ns)
    median = statistics.median(samples) if samples else draw(maybe_time)
    interval = draw(shares) if median is not None else None
    return Timing(
        samples_ns=samples,
        median_ns=median,
        interval_ns=interval and (interval[0] * median, interval[1] * median),
        graph=graph and draw(flags) is True,
        warmups=draw(maybe_count),
        settled=draw(flags),
        stopped=draw(maybe_text),
        attempts=draw(maybe_count),
        conditions=draw(conditions),
        notes=draw(texts),
    )


triples = st.tuples(counts, counts, counts)
claims = st.builds(
    Claims,
    precision=st.sampled_from(["float32", "tf32", "float16", "bfloat16", "float64"]),
    error_constant=amounts,
    exponents=st.none() | st.tuples(st.integers(-126, 0), st.integers(1, 127)),
    deterministic=st.booleans(),
    where=texts,
)
inputs = st.sampled_from(["uniform", "signed", "normal"])
cases = st.builds(
    CaseRecord,
    kernel=st.text(),
    sha256=st.text(),
    group=st.sampled_from(["tutorial", "ladder", "blas", "baseline"]),
    summary=st.text(),
    claims=claims,
    params=st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), max_size=3),
    problem=st.builds(Problem, counts, counts, counts, inputs, counts),
    backend=st.text(),
    device=st.text(),
    device_kind=st.sampled_from(["gpu", "cpu"]),
    launch=st.none() | st.builds(Launch, triples, triples, counts),
)
resources = st.builds(Resources, *[maybe_count] * 5, maybe_text)
builds = st.none() | st.builds(
    Build,
    duration_s=maybe_amount,
    resources=st.none() | resources,
    resident_blocks=maybe_count,
    occupancy=maybe_amount,
)
block_times = st.none() | st.builds(
    BlockTimes,
    median_ns=maybe_time,
    imbalance=maybe_amount,
    perturbation=st.none() | st.floats(-1, 1e300),
    sm_mhz=maybe_amount,
)
accuracies = st.none() | st.builds(Accuracy, maybe_amount, maybe_amount, maybe_amount)
statuses = st.sampled_from(["measured", "wrong", "skipped", "failed"])
cold_samples, hot_samples = (st.none() | timings(graph=graph) for graph in (False, True))


@st.composite
def error_maps(draw: st.DrawFn) -> ErrorCells:
    """Any cells of a C of that shape."""
    rows, columns = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    row = st.text("0z.!", min_size=columns, max_size=columns)
    return ErrorCells(
        shape=(rows, columns),
        step=1,
        wrong_elements=draw(counts),
        exact=draw(st.booleans()),
        least_power=draw(st.integers(-60, 60)),
        rows=tuple(draw(st.lists(row, min_size=rows, max_size=rows))),
    )


maybe_map = st.just(msgspec.UNSET) | error_maps()


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """Any outcome that does not contradict itself."""
    status = draw(statuses)
    measured = status == "measured"
    return Outcome(
        case=draw(cases),
        status=status,
        reason=draw(maybe_text),
        build=draw(builds),
        accuracy=draw(accuracies),
        cold=draw(cold_samples) if measured else None,
        hot=draw(hot_samples) if measured else None,
        blocks=draw(block_times) if measured else None,
        copy_bytes_per_s=draw(maybe_amount),
        repetition=draw(counts),
        notes=draw(texts),
        error_map=draw(maybe_map) if status == "wrong" else msgspec.UNSET,
    )
