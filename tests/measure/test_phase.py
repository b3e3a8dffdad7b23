"""Phases of a case: in which order they are entered, and that the main process sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.kernels import KernelWriter

from matbench.backends import Backend
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.measure import phase
from matbench.measure.options import Deadlines, Options
from matbench.measure.process import Pool
from matbench.measure.session import Session
from matbench.measure.worker import Crew
from matbench.model import Case, DeviceInfo, Problem

QUICK = Options(blocks=False, max_time_s=0.01)


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The phases that this process enters."""
    found: list[str] = []
    enter: Callable[[phase.Phase], None] = phase.enter

    def noted(now: phase.Phase) -> None:
        found.append(now)
        enter(now)

    monkeypatch.setattr(phase, "enter", noted)
    return found


def case(name: str, device: DeviceInfo, **params: tuple[int, ...]) -> Case:
    kernel = catalogue.Catalogue(catalogue.builtin()).get(name)
    return sweep.cases([kernel], [Problem(33, 20, 40)], params, device)[0]


def test_a_case_is_checked_then_timed_then_verified(
    backend: Backend, device: DeviceInfo, entered: list[str]
) -> None:
    session = Session(backend, Cache(), QUICK)
    tiled = case("tiled", device)
    assert session.measure(tiled).outcome.status == "measured"
    assert entered == ["checking", "timing", "verifying"]
    entered.clear()
    session.look(tiled, 3, 1e9, check=True)
    session.look(tiled, 3, 1e9, check=False)
    assert entered == ["checking", "timing", "timing"]
    entered.clear()
    Session(backend, Cache(), Options(max_time_s=0.01)).clock_blocks(tiled)
    assert entered == ["checking", "verifying", "timing"]


def test_a_wrong_case_is_not_timed(
    backend: Backend, device: DeviceInfo, entered: list[str], write_kernel: KernelWriter
) -> None:
    wrong = write_kernel("wrong")
    wrong.write_text(wrong.read_text("utf-8").replace("k < K", "k < K - 1"), "utf-8")
    kernel = catalogue.load(wrong)
    [found] = sweep.cases([kernel], [Problem(33, 20, 40)], {"TILE": (8,)}, device)
    assert Session(backend, Cache(), QUICK).measure(found).outcome.status == "wrong"
    assert entered == ["checking"]


def test_the_phase_changes_only_before_and_after_the_samples(
    backend: Backend, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch, entered: list[str]
) -> None:
    """However many launches are timed, nothing is told between them."""
    launched: list[int] = []
    time_hot_ns: Callable[..., float] = type(backend).time_hot_ns
    time_ns: Callable[..., float] = type(backend).time_ns

    def counted(real: Callable[..., float]) -> Callable[..., float]:
        def timed(*arguments: Any, **more: Any) -> float:
            launched.append(len(entered))
            assert phase.now() == "timing"
            return real(*arguments, **more)

        return timed

    monkeypatch.setattr(type(backend), "time_hot_ns", counted(time_hot_ns))
    monkeypatch.setattr(type(backend), "time_ns", counted(time_ns))
    Session(backend, Cache(), QUICK).measure(case("tiled", device))
    assert len(launched) >= 10
    assert set(launched) == {2}


def test_the_main_process_sees_the_phase_of_its_worker(device: DeviceInfo) -> None:
    pool = Pool()
    try:
        pool.call(phase.enter, "timing")
        assert phase.now() == "timing"
        phase.enter("building")
        assert pool.call(phase.now) == "building"
        pool.kill()
        pool.call(phase.enter, "checking")  # in another process
        assert phase.now() == "checking"
    finally:
        pool.kill()


def test_a_worker_prepares_and_builds_first(device: DeviceInfo, entered: list[str]) -> None:
    tiled = case("tiled", device)
    with Crew(QUICK, Deadlines()) as crew:
        assert crew.worker(device).measure(tiled).outcome.status == "measured"
        assert entered == ["preparing", "building"]
        assert phase.now() == "verifying"  # from the worker


def test_the_host_s_library_has_phases_too(entered: list[str]) -> None:
    from matbench.backends import host
    from matbench.measure import library

    [numpy] = [kernel for kernel in catalogue.builtin() if kernel.library and kernel.on_host]
    info = host.device()
    [found] = sweep.cases([numpy], [Problem(33, 20, 40)], {}, info)
    assert library.measure(found, info, Cache(), QUICK).status == "measured"
    assert entered == ["preparing", "checking", "timing"]


def test_a_byte_that_a_kernel_overwrote_is_no_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    for byte in range(256):
        monkeypatch.setattr(phase, "_byte", bytearray([byte]))
        assert phase.now() in ("", "preparing", "building", "checking", "timing", "verifying")


def test_without_shared_memory_only_phases_of_workers_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from multiprocessing import sharedctypes

    def refused(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(sharedctypes, "RawArray", refused)
    monkeypatch.setattr(phase, "_byte", bytearray(1))
    pool = Pool()
    try:
        phase.enter("building")
        pool.call(phase.enter, "timing")
        assert phase.now() == "building"
    finally:
        pool.kill()
