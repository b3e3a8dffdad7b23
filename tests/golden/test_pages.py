"""Tables of made-up records, as a terminal shows them: the files beside this one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.devices import gpu
from support.tables import (
    GPU,
    H200,
    MIXED,
    compared,
    environment,
    hot,
    made,
    on_h200,
    outcome,
    perturbed,
    printed,
    rows,
    shown,
    timing,
)

from matbench.model import CUBLAS, Conditions, Kernel, LaunchRules, Problem, Skip
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Accuracy, Claims, Sustained
from matbench.show import comparisons, kernels, outcomes
from matbench.show.formats import text
from matbench.show.table import Report

FOLDER = Path(__file__).parent
NO = Skip("unavailable", "no")
ON_H200 = [environment(devices=(H200,))]
WIDE: dict[str, Any] = {"settled": False, "stopped": "time is up"}


def at(n: int, **changes: Any) -> dict[str, Any]:
    return {"problem": Problem(n, n, n, **changes)}


# Outcomes


NEWER = gpu(driver="590.2", toolkit="CUDA 14.0")
CLAIMS = {
    "tf32": Claims(precision="tf32"),
    "8": Claims(error_constant=8.0),
    "16": Claims(error_constant=16.0),
    "where": Claims(where=("N <= 8",)),
    "64": Claims(precision="float64", result="float64"),
    "64, 32": Claims(precision="float64", result="float64", accumulator="float32"),
}
SKIPPED = {
    (name, n): outcome(name, status="skipped", skip=Skip("condition", "N <= 64", {"N": n}), **at(n))
    for name, sizes in (("big", (100, 200, 300)), ("most", (200, 300)), ("once", (300,)))
    for n in sizes
}
DOT = Problem(1, 2**28, 1, inputs="ramp", workload="dot")
BESIDE = timing(
    0.5, notes=("clocks throttled during sampling: SwPowerCap",),
    conditions=tuple(Conditions(sm_mhz=clock) for clock in (345, 1200, 1210)), **WIDE,
)  # fmt: skip
LOADED = [
    timing(1, conditions=tuple(Conditions(load=load, governor="powersave") for load in loads))
    for loads in ((3.2, 9.9), (0.4, 9.9))
]
DRIFTING = timing(5, samples_ns=tuple(5e6 * (0.8 + n / 100) for n in range(40)),
                  interval_ns=(4.9e6, 5.1e6))  # fmt: skip
SLOPES = [
    timing(1, samples_ns=tuple(1e6 * (1 + slope * i) for i in range(30)), notes=("mine",),
           interval_ns=(1e6, 1.002e6))
    for slope in (0.0003, 0.002)
]  # fmt: skip
LASTING = Sustained(
    blocks_ns=(2e6, 2.2e6), mean_ns=2.1e6, launches=100, duration_s=10.04, warm_up_s=4, steady=True,
    sm_mhz=1332.4, temperature_c=61, power_w=697.6, idle_w=124.2,
)  # fmt: skip
#: Of a library whose threads had their processors to themselves, and which had not.
SHARED = [
    outcome(f"shared {share:.0%}", 1, backend="host",
            conditions=(Conditions(), Conditions(others_share=share)))
    for share in (0.05, 0.5)
]  # fmt: skip
UNSTEADY = msgspec.structs.replace(
    LASTING, steady=False, throttled=("SwPowerCap",), power_w=None, idle_w=None
)


OUTCOMES: dict[str, Report] = {
    "every status, on two devices and the host": made(*MIXED),
    "nothing": made(),
    "two environments": outcomes.report(
        [outcome("x", 1, GPU)], [environment(), environment(host="elsewhere", devices=(NEWER,))]
    ),
    "other inputs are another group": made(
        outcome("a", 1), outcome("b", 2, **at(1000, inputs="signed"))
    ),
    "a failure that was tried anew": made(
        outcome("x", status="failed", reason="killed"), outcome("x", 2)
    ),
    "the fastest parameters of each kernel": outcomes.report(
        [
            *(outcome("tiled", ms, params={"TILE": n}) for n, ms in ((8, 3), (16, 1), (32, 2))),
            outcome("tiled", status="skipped", skip=NO, params={"TILE": 64}),
            outcome("other", 4), outcome("never", status="skipped", skip=NO),
        ],
        [environment()], fastest=True,
    ),
    "right, but not timed": made(outcome("untimed", accuracy=Accuracy(1e-6, 1e-7, 0.1))),
    "claims": made(
        outcome("a", 4), outcome("b", 8), outcome("narrow", 1, claims=CLAIMS["tf32"]),
        outcome("split-2", 2, claims=CLAIMS["8"]), outcome("split-3", 3, claims=CLAIMS["16"]),
        outcome("bad", status="wrong", reason="no", claims=CLAIMS["tf32"]),
        outcome("never", status="skipped", skip=NO, claims=CLAIMS["where"]),
    ),
    "float64": made(
        outcome("a", 4), outcome("a-64", 5, claims=CLAIMS["64"]), outcome("b", 8),
        outcome("b-64", 9, claims=CLAIMS["64"]), outcome("odd-64", 1, claims=CLAIMS["64, 32"]),
        outcome("narrow", 1, claims=CLAIMS["tf32"]),
        outcome("bad-64", status="wrong", reason="no", claims=CLAIMS["64"]),
    ),
    "what cannot be told apart shares the star": made(
        outcome("a", 4), outcome("b", 4.5), outcome("c", 8)
    ),
    "a star needs rivals": made(outcome("a", 1), outcome("b", 2, **at(64))),
    "no result at several sizes": made(
        *(outcome(name, ms, **at(n)) for n in (100, 200, 300) for name, ms in (("a", 1), ("b", 2))),
        *SKIPPED.values(),
        *(outcome("bad", status="failed", reason=f"killed by {n}", **at(n)) for n in (100, 200)),
        *(outcome("x", status="failed", reason="error: no\n  x", **at(n)) for n in (64, 128)),
    ),
    "errors of 0 and far beyond the bound, no parameters": made(
        outcome("a", 10), outcome("b", 20, params={}, accuracy=Accuracy(0.0, 0.0, 12.0)),
        outcome("c", 40, interval_ns=None), outcome("d", 80, interval_ns=(8e7, 8e7)),
    ),
    "a bound that is not known": made(
        outcome("x", accuracy=Accuracy(1e-6, 1e-7, None)), outcome("y", status="skipped", skip=NO)
    ),
    "shares of the limit and of cuBLAS": outcomes.report(
        [on_h200("mine", 0.5), on_h200("cublas", 0.4, params={}, group="baseline")], ON_H200
    ),
    "shares of a copy": outcomes.report(
        [on_h200("dot", 1, copy_bytes_per_s=4.3e12, problem=DOT)], ON_H200
    ),
    "cold and hot": made(outcome("cold", 3), hot("hot", 1), outcome("colder", 6)),
    "cold alone": made(outcome("one", 1)),
    "hot alone": made(hot("one", 1)),
    "hot beside cold": outcomes.report(
        [on_h200("both", 1, cold=timing(1), hot=BESIDE), on_h200("other", 2)], ON_H200
    ),
    "load": made(outcome("x", 1, cold=LOADED[1], hot=LOADED[0])),
    "sustained": made(
        on_h200("bf16-wgmma", 1.0, sustained=LASTING, **at(4096)),
        on_h200("mine", 1.5, sustained=UNSTEADY, **at(4096)), on_h200("other", 1.7, **at(4096)),
    ),
}  # fmt: skip

NOTES: dict[str, Report] = {
    "on a CPU, a doubt that leaves open which is fastest": made(
        outcome("alone", 1, **at(8), **WIDE), outcome("steady", 6),
        outcome("first", 1, interval_ns=(0.9e6, 1.1e6), **WIDE),
        outcome("near", 1.15, interval_ns=(1.0e6, 1.3e6), **WIDE),
        outcome("clear", 4, interval_ns=(3.9e6, 4.1e6), **WIDE),
        outcome("drifts", 5, cold=DRIFTING),
    ),
    "a drift that reaches the fastest": made(
        outcome("fast", 3.9, interval_ns=(3.8e6, 4.0e6)), outcome("drifts", 5, cold=DRIFTING),
        outcome("drifts", 5, cold=DRIFTING, **at(9)),
    ),
    "a clear lead": made(
        outcome("fast", 1, interval_ns=(0.9e6, 1.1e6), **WIDE), outcome("slow", 4, **WIDE)
    ),
    "on a GPU, every doubt": made(*(outcome(f"k{n}", 1 + 3 * n, GPU, **WIDE) for n in range(3))),
    "busy processors": made(*SHARED),
    "each note once": made(
        outcome("a", 1, GPU, notes=("samples drift",)),
        outcome("b", 2, GPU, notes=("samples drift",), **WIDE),
        perturbed("c", 3, 0.082, GPU), perturbed("d", 4, 0.05, GPU),
    ),
    "a drift of 4%, and one of 0.6%": made(
        outcome("a", 1, cold=SLOPES[0], hot=SLOPES[1]), outcome("b", 2, cold=SLOPES[1])
    ),
}  # fmt: skip


# Comparisons


def claiming(record: ComparisonRecord, **claims: Claims) -> ComparisonRecord:
    """The record with other claims for its two sides."""
    sides = {}
    for side, found in claims.items():
        outcome = getattr(record, side)
        case = msgspec.structs.replace(outcome.case, claims=found)
        sides[side] = msgspec.structs.replace(outcome, case=case)
    return msgspec.structs.replace(record, **sides)


def noted(ratio: float | None, n: int, *notes: str) -> ComparisonRecord:
    return msgspec.structs.replace(compared(ratio, n), notes=notes)


COMPARED = [compared(), compared(0.068, 256), compared(None, 9000)]
TF32 = CLAIMS["tf32"]
COMPARISONS: dict[str, Report] = {
    "slower, faster and not timed": comparisons.report(COMPARED, [environment()]),
    "nothing": comparisons.report([]),
    "claims of one, of both, and of each": comparisons.report([
        claiming(compared(0.068), candidate=TF32),
        claiming(compared(1.4, 64), baseline=TF32, candidate=TF32),
        claiming(compared(1.4, 32), baseline=TF32, candidate=Claims(deterministic=False)),
    ]),
    "undecided": comparisons.report([
        compared(1.001, verdict="UNDECIDED", reason="the interval holds 1 after 24 pairs")
    ]),
    "files": comparisons.report([
        compared(1.4, size, baseline_name="old.jsonl", candidate_name="new", kernel=kernel)
        for kernel in ("tiled", "kahan")
        for size in (256, 1000)
    ]),
    "what no size could time": comparisons.report(
        [compared(), compared(None, 9000), compared(None, 9500)]
    ),
    "several pairs": comparisons.report(
        [compared(), compared(candidate_name="naive"), compared(size=64)]
    ),
    "a note of every row": comparisons.report(
        [noted(1.4, 256, "as assumed"), noted(1.2, 1000, "as assumed", "busy"), noted(None, 9000)],
        [environment()],
    ),
    "a note of one row": comparisons.report(
        [noted(1.4, 256, "as assumed"), noted(1.2, 1000), noted(None, 9000)], [environment()]
    ),
}  # fmt: skip

# Kernels

TILED = Kernel(
    name="tiled", summary="Tiles in shared memory.",
    launch=LaunchRules(block=("TILE", "TILE"), grid=(1,), where=("TILE <= 32",)), entry="tiled",
    sweep={"TILE": (8, 16)}, tune={"TILE": (4,)}, requires=("sm_80",),
    model={"global_loads": "2 * M"},
    source='/// [x]\n// ///\n\nextern "C" __global__ void tiled() {}\n', path="kernels/tiled.cu",
)  # fmt: skip
FOLLOWER = msgspec.structs.replace(TILED, name="mine", previous="tiled")
BASELINE = Kernel(
    name="cublas", summary="cuBLAS.", launch=LaunchRules(block=(1,), grid=(1,)), group="baseline",
    kind=CUBLAS, deterministic=False,
)  # fmt: skip


def of_reports(reports: dict[str, Report]) -> Iterator[str]:
    """What a terminal shows, and what is in the CSV alone."""
    for caption, report in reports.items():
        yield f"=== {caption}\n\n{shown(report)}\n"
        of_csv = rows(report)
        if best := [row["kernel"] for row in of_csv if row.get("best") == "true"]:
            yield f"csv: best: {', '.join(best)}"
        for row in of_csv:
            for name, cell in row.items():
                if cell and re.match("claims|notes|timing_mode|hot_|sustained_", name):
                    yield f"csv: {row.get('kernel')}: {name}: {cell}"
        yield ""


def of_formats() -> Iterator[str]:
    mixed, listed = (
        OUTCOMES["every status, on two devices and the host"],
        [TILED, FOLLOWER, BASELINE],
    )
    yield f"=== 80 columns\n\n{shown(mixed, 80)}\n"
    yield f"=== 60 columns\n\n{shown(comparisons.report(COMPARED), 60)}\n"
    for fmt in ("plain", "github"):
        yield "\n\n".join((f"=== {fmt}", text(mixed, fmt), text(kernels.report(listed), fmt), ""))
    for name in ("claims", "no result at several sizes"):
        yield f"=== plain: {name}\n\n{text(OUTCOMES[name], 'plain')}\n"
    narrow = shown(OUTCOMES["shares of the limit and of cuBLAS"], 80)
    yield f"=== 80 columns for more\n\n{narrow}\n"
    yield f"=== json\n\n{text(kernels.report(listed), 'json')}\n"
    yield f"=== a list\n\n{shown(kernels.report(listed), 80)}\n"
    for kernel in (FOLLOWER, BASELINE):
        yield f"=== {kernel.name}\n\n{printed([kernels.details(kernel)], 100)}\n"


PAGES = {
    "pages-outcomes": lambda: of_reports(OUTCOMES),
    "pages-notes": lambda: of_reports(NOTES),
    "pages-comparisons": lambda: of_reports(COMPARISONS),
    "pages-formats": of_formats,
}


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str, file_regression: FileRegressionFixture) -> None:
    lines = "".join(f"{line}\n" for line in PAGES[name]())
    # `make golden` accepts what differs.
    file_regression.check(lines, fullpath=FOLDER / f"{name}.txt", encoding="utf-8")
