"""Sustained launches: steady first, verified, and with the energy that the device counts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from support.cli import QUICK, Matbench, last_run, records_in
from support.fixtures import Watch
from support.kernels import GOOD_BODY, PADDED, PRODUCT, SIZES, KernelWriter, changed, saved, text_of
from support.optional import present, some
from support.paths import ROOT
from support.products import case_of, opened

from matbench.analysis.statistics import ComparisonPlan
from matbench.backends.protocol import Backend, Work
from matbench.bench import checks, launches, sustained
from matbench.bench.options import CHECKS, Options, Round
from matbench.bench.session import Session
from matbench.bench.sustained import Block, Meter
from matbench.cache import Cache
from matbench.model import Conditions, DeviceInfo
from matbench.records.outcome import Outcome, Sustained
from matbench.show import comparisons, formats
from matbench.worker import comparing

pytestmark = pytest.mark.usefixtures("own_state")

SHORT = ("--sizes", "64", "--sustained", "0.1", *QUICK)
TILED = ("tiled", "--set", "TILE=8", *SHORT)


def only() -> Outcome:
    [outcome] = last_run()
    return outcome


# -- what is measured ------------------------------------------------------------------------------


def test_a_run_reports_speed_over_seconds(matbench: Matbench) -> None:
    shown = matbench("run", *TILED).stdout
    lasting = present(only().sustained)
    assert len(lasting.blocks_ns) == 5
    assert lasting.launches > 100
    total_s = lasting.launches * lasting.mean_ns / 1e9
    assert lasting.duration_s == pytest.approx(total_s)
    assert 0.03 < total_s < 3
    assert lasting.warm_up_s >= 2 * 0.01, "two blocks at least"
    assert min(lasting.blocks_ns) <= lasting.mean_ns <= max(lasting.blocks_ns)
    rate = 2 * 64**3 / lasting.mean_ns
    assert "sustained GFLOP/s" in shown
    assert f"{rate:.1f}" in shown or f"{rate:.2f}" in shown or f"{rate:.3f}" in shown
    assert "this device has no energy counter" in shown
    assert "J per launch" not in shown


def test_compare_takes_turns_in_blocks(device: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sustained, "BLOCK_S", 0.02)
    monkeypatch.setattr(launches, "_LOOK_NS", 2e6)
    options = Options(blocks=False, sustained_s=0.2)
    case = case_of("naive-2d", 64, device, TILE=8)
    plan = ComparisonPlan(looks=(9,))
    with opened(device, options) as session:
        record = comparing.here(session, case, case, plan, 0)
    assert present(record.comparison).samples == (9, 9)
    for side in (record.baseline, record.candidate):
        assert len(side.samples_ns) == 9
        assert side.samples_ns == present(side.sustained).blocks_ns
        assert present(side.sustained).duration_s > 0.05, "a block has many looks"
    shown = formats.text(comparisons.report([record]), "plain")
    assert "sustained: blocks of launches back to back, " in shown


def test_a_run_is_resumed_only_with_what_was_asked_for(matbench: Matbench, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    plain = ("run", "tiled", "--set", "TILE=8", "--sizes", "64", *QUICK)
    matbench(*plain, "--output", file)
    matbench(*plain, "--sustained", "0.1", "--resume", file)
    assert [outcome.sustained is None for outcome in records_in(file)] == [True, False]
    before = file.read_text()
    matbench(*plain, "--sustained", "0.1", "--resume", file)
    assert file.read_text().count('"type":"outcome"') == before.count('"type":"outcome"')


SCALED = changed(
    GOOD_BODY, (SIZES, f"{SIZES}, float beta"),
    ("= 0.0f;", "= beta == 0.0f ? 0.0f : beta * C[(size_t)row * N + column];"),
)  # fmt: skip


@pytest.mark.long
def test_sustained_launches_may_take_longer_than_the_deadline(matbench: Matbench) -> None:
    matbench("run", "tiled", "--set", "TILE=8", "--sizes", "64", *QUICK, "--timeout", "1.5",
             "--sustained", "1.5")  # fmt: skip
    assert present(only().sustained).duration_s > 1


def test_with_beta_a_note_says_why_none(matbench: Matbench, write_kernel: KernelWriter) -> None:
    front = 'args = ["A", "B", "C", "M", "N", "K", "beta"]'
    path = write_kernel("scaled", front=front, body=SCALED)
    shown = matbench("run", path, "--beta", "0.5", *SHORT).stdout
    assert "not sustained: with beta, each launch would add to C of the one before" in shown
    assert all(outcome.sustained is None for outcome in last_run())


# -- verified --------------------------------------------------------------------------------------

#: Keeps C, and takes it from there for a block whose inputs seem to be those of the launch before.
SKIPS = text_of("skips.cu")
SKIPPING = {
    "front": 'args = ["A", "B", "C", "workspace", "M", "N", "K"]',
    "launch": 'workspace_bytes = "4 * ceil_div(N, TILE) * ceil_div(M, TILE) + 4 * M * N"',
    "body": SKIPS,
}


#: It counts in its workspace, which only a new block poisons.
COUNTS = SKIPS.replace("STEP", "1").replace(
    "seen[block] = sum;", "seen[block] = seen[block] >= 0 ? seen[block] + 1 : 0;"
)


def after_rounds(path: Path, info: DeviceInfo, without: set[str], n: int = 384) -> Outcome:
    """A kernel file's outcome with sustained launches, without some checks."""
    seconds = 0.3 if n == 384 else 1.0
    options = Options(blocks=False, sustained_s=seconds, max_time_s=0.05, checks=CHECKS - without)
    case = case_of(path, n, info, TILE=16)
    with opened(info, options) as session:
        first = session.measure(case)
        lasting = session.measure(case, Round(2, is_sustained=True))
    return msgspec.structs.replace(lasting, cold=first.cold, hot=first.hot)


@pytest.mark.parametrize(
    ("body", "n", "reason"),
    [
        pytest.param(
            *(SKIPS.replace("STEP", "1"), 384, "on the inputs of the launch before it takes"),
            marks=pytest.mark.long,
        ),
        # C did not change, unless a number that it reads does by chance.
        (SKIPS.replace("STEP", "100"), 384, ""),
        (COUNTS.replace("!(seen[block] == sum)", "!(seen[block] > 2)"), 192, "A changed after"),
    ],
    ids=["if nothing has changed", "if some numbers have not changed", "after many launches"],
)
def test_a_kernel_that_skips_work_is_wrong(
    write_kernel: KernelWriter, device: DeviceInfo, body: str, n: int, reason: str
) -> None:
    path = write_kernel("skips", **SKIPPING | {"body": body})
    told = after_rounds(path, device, set(), n)
    assert (told.status, told.check) == ("wrong", "repeated")
    assert f"skips work: {reason}" in present(told.reason)
    passes = after_rounds(path, device, {"repeated"}, n)
    assert passes.status == "measured", passes.reason
    assert present(passes.sustained).mean_ns < 0.7 * present(passes.median_ns), "the control"


@pytest.mark.parametrize("usual_ns", [1e5, 1e9])
def test_how_much_longer_a_launch_takes_on_changed_inputs(usual_ns: float) -> None:
    """That of one launch, of several pairs or of one."""
    now = SimpleNamespace(A=0, seen=0, ns=0.0)

    def change() -> Callable[[], None]:
        now.A = 1
        return lambda: setattr(now, "A", 0)

    def start() -> None:
        now.ns += usual_ns + 3e4 * (now.seen != now.A)
        now.seen = now.A

    def timed_ns(work: Work) -> float:
        now.ns = 0.0
        work.calls[0].run()
        return float(now.ns)

    backend = SimpleNamespace(info=SimpleNamespace(kind="gpu"), timed_ns=timed_ns)
    samples = SimpleNamespace(set_aside=lambda *_, whole: change())
    made: Any = SimpleNamespace(
        samples=samples, buffers=None, case=SimpleNamespace(kernel=None), backend=backend,
        start=start,
    )  # fmt: skip
    assert checks._longer_ns(made, usual_ns) == pytest.approx(3e4)


def test_compare_refuses_it_too(
    write_kernel: KernelWriter, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside a kernel that adds in another order, so that C differs in any case."""
    monkeypatch.setattr(sustained, "BLOCK_S", 0.02)
    monkeypatch.setattr(launches, "_LOOK_NS", 2e6)
    path = write_kernel("skips", **SKIPPING | {"body": SKIPS.replace("STEP", "100")})
    backwards = GOOD_BODY.replace("int k = 0; k < K; ++k", "int k = K - 1; k >= 0; --k")
    other = write_kernel("backwards", body=backwards)
    case, partner = (case_of(file, 384, device, TILE=16) for file in (path, other))
    options = Options(blocks=False, sustained_s=0.2)
    with opened(device, options) as session:
        record = comparing.here(session, case, partner, ComparisonPlan(looks=(9,)), 0)
    assert record.comparison is None
    assert record.baseline.check in ("repeated", "samples")  # by when it begins to skip


def test_what_is_wrong_after_many_is_wrong(write_kernel: KernelWriter, device: DeviceInfo) -> None:
    counts = COUNTS.replace("is_new = !(seen[block] == sum);", "is_new = 1;")
    counts = counts.replace("= is_new ? sum : *kept;", "= seen[block] > 20 ? 0.0f : sum;")
    told = after_rounds(write_kernel("counts", **SKIPPING | {"body": counts}), device, set())
    assert (told.status, told.check) == ("wrong", "samples"), told.reason


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("tiled-nt", ("--sizes", "64")),
        ("batched-small",
         ("--sizes", "32", "--batch", "3", "--alpha", "0,2", "--beta", "0", "--set", "TILE=8")),
        *(
            pytest.param(name, ("--sizes", sizes), marks=pytest.mark.long)
            for name, sizes in (
                ("cubes-shared", "1000"),
                ("reverse-static", "64"),
                ("naive-2d", "1,1x1x64,64x1x64"),
            )
        ),
    ],
)  # fmt: skip
def test_honest_kernels_pass(matbench: Matbench, kernel: str, words: tuple[str, ...]) -> None:
    matbench("run", kernel, *words, "--sustained", "0.02", *QUICK)
    outcomes = [outcome for outcome in last_run() if outcome.status != "skipped"]
    assert outcomes
    assert all(outcome.sustained is not None for outcome in outcomes)


def test_functions_are_called_back_to_back(matbench: Matbench, tmp_path: Path) -> None:
    """Each call has inputs of its own: one that updates what it has kept cannot."""
    file = saved(tmp_path / "mine.py", text_of("back-to-back.txt"))
    names = [f"{file}::{name}" for name in ("into", "returned", "updated")]
    words = ("--sizes", "64", "--backend", "opencl", "--sustained", "0.1", *QUICK)
    matbench("run", *names, *words, "--output", tmp_path / "r.jsonl")
    before = (tmp_path / "r.jsonl").read_bytes()
    matbench("run", *names, *words, "--resume", tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_bytes() == before, "its calls take a small part of that"
    assert [outcome.reason for outcome in last_run()] == [None] * 3
    assert min(present(last_run()[2].sustained).blocks_ns) > 1.9e6


@pytest.mark.parametrize(("most", "enough_s"), [(4, 20.0), (10**15, 20.0), (4, 0.0)])
def test_rotating_launches_have_buffers_of_their_own(
    most: int, enough_s: float, backend: Backend, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They warm up for so long, and are at least so many, or take long enough; without memory, one
    set has to do."""
    monkeypatch.setattr(sustained, "_GUIDED_MOST_S", enough_s)
    monkeypatch.setitem(launches._MOST_ROTATED, "cpu", most)
    monkeypatch.setattr(sustained, "_GUIDED_WARM_UP_S", 0.003)
    monkeypatch.setattr(sustained, "_MOST_OF_WARM_UP", 10_000)
    monkeypatch.setattr(sustained, "_GUIDED_LAUNCHES", 20 if enough_s else 10**12)
    monkeypatch.setattr(sustained, "_GUIDED_BLOCK_S", 1e-9)
    monkeypatch.setattr(launches, "_ROTATED_CACHES", 1e9)
    used: set[int] = set()
    watch(lambda work: used.update(id(C) for call in work.calls for C in call.arguments[2:3]))
    session = Session(backend, Cache(), Options(blocks=False, rotating=True).on("cpu"))
    found = session.measure(case_of("tiled", 64, backend.info, TILE=8))
    lasting = present(found.sustained)
    assert (found.mode, found.samples_ns) == ("rotating", lasting.blocks_ns)
    assert lasting.warm_up_s >= 0.003
    assert lasting.launches >= 20 or not enough_s
    assert len(lasting.blocks_ns) >= 9
    assert len(lasting.blocks_ns) == 9 or enough_s
    assert (len(used) >= 4) == (most == 4)


WITHOUT_A = changed(
    GOOD_BODY, (SIZES, f"{SIZES}, float alpha"), ("k < K", "k < K && alpha != 0.0f"),
    (PRODUCT, f"alpha * {PRODUCT}"),
)  # fmt: skip
WHOLE = changed(
    GOOD_BODY, ("const float *", "const signed char *"), ("float *C", "int *C"),
    ("float sum = 0.0f", "int sum = 0"),
)  # fmt: skip
#: Files, and options of a run. Samples of few columns may have only one term of B that is not 0.
OTHERS: dict[str, tuple[dict[str, str], str]] = {
    "that leaves A if alpha is 0": (
        {"front": 'args = ["A", "B", "C", "M", "N", "K", "alpha"]', "body": WITHOUT_A},
        "--alpha 0 --sizes 64",
    ),
    "of int8 with one column": ({"body": WHOLE}, "--sizes 60x1x64,63x1x64,66x1x64"),
    "with gaps between rows": (PADDED, "--sizes 32"),
}


@pytest.mark.parametrize("name", some(OTHERS, next(iter(OTHERS))))
def test_honest_files_pass(name: str, matbench: Matbench, write_kernel: KernelWriter) -> None:
    parts, words = OTHERS[name]
    matbench("run", write_kernel("one", **parts), *words.split(), "--sustained", "0.02", *QUICK)
    assert all(outcome.sustained for outcome in last_run())


def test_a_larger_A_is_put_aside_whole(matbench: Matbench, write_kernel: KernelWriter) -> None:
    """Padding is a kernel's own: here it comes after one without."""
    far = PADDED | {"front": PADDED["front"].replace("400", "2000")}
    files = write_kernel("dense"), write_kernel("padded", **far)
    matbench("run", *files, "--sizes", "64", "--sustained", "0.02", *QUICK)
    assert [outcome.reason for outcome in last_run()] == [None, None]


def test_a_sum_that_is_there_is_computed_again(matbench: Matbench, tmp_path: Path) -> None:
    """Within a block, only the first launch finds a C without a result."""
    honest = (ROOT / "kernels/gallery/dot-tree.cu").read_text(encoding="utf-8")
    line = "    const int t = threadIdx.x;\n"
    skips = changed(honest, (line, f"    if (!isnan(C[blockIdx.x])) return;\n{line}"))
    file = saved(
        tmp_path / "skips.cu", changed(skips, ("dot-tree", "skips"), ("dot_tree", "skips"))
    )
    matbench("run", file, "--sizes", "100000", "--sustained", "0.02", *QUICK, code=1)
    assert {outcome.check for outcome in last_run()} == {"repeated"}


def test_a_meter_that_fails_is_no_silence() -> None:
    device = Counting()
    device.conditions = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(ZeroDivisionError):
        lasting(device, 0.2)


# -- power and steadiness --------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of all durations."""
    monkeypatch.setattr(sustained, "_READING_S", 0.002)
    monkeypatch.setattr(sustained, "_LEAST_COUNTED_S", 0.2)
    monkeypatch.setattr(sustained, "_LEAST_COUNTED_IDLE_S", 0.1)
    monkeypatch.setattr(sustained, "_IDLE_S", 0.2)
    monkeypatch.setattr(sustained, "_SETTLE_S", 0.01)


class Counting:
    """A GPU that takes `power_w`, and counts energy in steps of a hundredth of a second."""

    def __init__(self, power_w: float | None = 400.0) -> None:
        self.power_w = power_w
        self.counted_j, self.steps = 1e6, self._step()
        self.now = Conditions(sm_mhz=1500, temperature_c=50, throttled=("SwPowerCap",))

    @staticmethod
    def _step() -> int:
        return int(time.perf_counter() * 100)

    def energy_j(self) -> float | None:
        if self.power_w is None:
            return None
        before, self.steps = self.steps, self._step()
        self.counted_j += (self.steps - before) * self.power_w / 100
        return self.counted_j

    def conditions(self) -> Conditions:
        return msgspec.structs.replace(self.now, power_w=self.power_w)

    def synchronize(self) -> None:
        pass


def block(least_s: float) -> Block:
    """Launches that take 2 ms each, as far as the clock of the block tells."""
    began_ns = time.perf_counter_ns()
    time.sleep(least_s)
    return Block(began_ns, time.perf_counter_ns(), 100, 2e6)


def lasting(device: Counting, seconds: float = 0.3) -> Sustained:
    return sustained.blocks_of(block, seconds, Meter(cast(Backend, device), 100.0))


@pytest.mark.usefixtures("quick")
def test_power_is_what_was_counted_over_the_time_between_two_steps() -> None:
    told = lasting(Counting())
    assert told.power_w == pytest.approx(400, rel=0.1)
    assert told.energy_j == pytest.approx(400 * 0.002, rel=0.1)
    assert (told.sm_mhz, told.temperature_c, told.idle_w) == (1500, 50, 100)
    assert told.throttled == ("SwPowerCap",)
    assert told.steady
    short = lasting(Counting(), 0.15)
    assert (short.power_w, short.energy_j) == (None, None), "less than two seconds"
    assert lasting(Counting(None)).power_w is None, "no counter"


@pytest.mark.usefixtures("quick")
def test_one_step_of_the_counter_says_nothing() -> None:
    """What it was before that step may be older than the time that counts."""
    device, began = Counting(), time.perf_counter()
    device.energy_j = lambda: 5.0 if time.perf_counter() < began + 0.16 else 99.0  # type: ignore[method-assign]
    assert sustained.idle_w(cast(Backend, device)) is None


@pytest.mark.usefixtures("quick")
def test_the_power_of_an_idle_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sustained.idle_w(cast(Backend, Counting())) == pytest.approx(400, rel=0.1)
    monkeypatch.setattr(sustained, "Meter", None)  # without a counter, there is no wait
    assert sustained.idle_w(cast(Backend, Counting(None))) is None


@pytest.fixture
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sustained]:
    """`lasting` by a clock that only blocks move, in steps that are read."""
    now = SimpleNamespace(ns=0)
    monkeypatch.setattr(sustained, "time", SimpleNamespace(perf_counter_ns=lambda: now.ns))
    monkeypatch.setattr(Meter, "reading", lambda _: nullcontext())

    def lasting(device: Counting, seconds: float, ms: Callable[[], float]) -> Sustained:
        meter = Meter(cast(Backend, device), 100.0)

        def block(least_s: float) -> Block:
            began_ns = now.ns
            for _ in range(5):
                now.ns += round(1e9 * least_s / 5)
                meter._read(with_conditions=True)
            return Block(began_ns, now.ns, 100, 1e6 * ms())

        return sustained.blocks_of(block, seconds, meter)

    return lasting


@pytest.mark.parametrize("drifting", ["time", "clock", "power", "temperature", "nothing"])
def test_launches_count_once_steady(drifting: str, in_no_time: Callable[..., Sustained]) -> None:
    device, number = Counting(), itertools.count()

    def ms() -> float:
        step = min(next(number), 3)
        if drifting == "power":
            device.power_w = 400.0 + 40 * step  # of the next block
        if drifting == "clock":
            device.now = msgspec.structs.replace(device.now, sm_mhz=1600 - 50 * step)
        if drifting == "temperature":
            device.now = msgspec.structs.replace(device.now, temperature_c=50 + 2 * step)
        return 2.0 + 0.05 * step * (drifting == "time")

    ms()
    told = in_no_time(device, 0.5, ms)
    blocks = round(told.warm_up_s / (100 * 0.002))
    assert told.steady
    assert (blocks > 3) == (drifting != "nothing")


def test_what_is_unsteady_is_measured_and_said_to_be(in_no_time: Callable[..., Sustained]) -> None:
    number = itertools.count()
    told = in_no_time(Counting(), 0.1, lambda: 2.0 * 1.1 ** next(number))
    assert not told.steady
    assert len(told.blocks_ns) == 5
    assert next(number) == 10 + 5
