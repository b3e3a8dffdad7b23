"""Timelines show every block where it ran."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.launches import Block, analysed, gpu_or_cpu, sampled
from support.pictures import TITLE, Mark, bars, needs_plots, words

from matbench.errors import UsageError
from matbench.features.timeline import picture
from matbench.features.timeline.record import BlockProfile

pytestmark = needs_plots


def launched(
    units: int = 4, resident: int = 2, waves: int = 3, *, kind: str = "gpu", told: bool = True
) -> BlockProfile:
    """Blocks of 10 µs and a little more each, in `waves` on `units` multiprocessors."""
    ran = [
        Block(10 + unit, start := wave * 10_500 + 3 * slot, start + 10_000 + 7 * unit + slot)
        for wave in range(waves)
        for unit in range(units)
        for slot in range(resident)
    ]
    profile = analysed(sampled(ran, told=told), gpu_or_cpu(kind, units + 1))
    return msgspec.structs.replace(profile, device="Device & Sons", perturbation=0.08)


def ends(bar: Mark) -> tuple[float, float]:
    """Where a bar begins and ends, in pixels."""
    [(left, width)] = re.findall(r"^M([\d.]+),[\d.]+h([\d.]+)v", bar.text)
    return float(left), float(left) + float(width)


def test_an_svg_holds_every_block_where_it_ran(tmp_path: Path) -> None:
    profile = launched()
    picture.draw(profile, tmp_path / "t.svg", TITLE)
    found = bars((tmp_path / "t.svg").read_text(encoding="utf-8"))
    assert profile.timeline is not None
    assert len(found) == profile.blocks == 24
    sides = [side for bar in found for side in ends(bar)]
    times = [ns for bar in profile.timeline.bars for ns in (bar.start_ns, bar.end_ns)]
    # The positions of bars are a linear function of their times.
    slope, offset = np.polyfit(times, sides, 1)
    assert slope > 0
    np.testing.assert_allclose(np.polyval([slope, offset], times), sides, atol=0.5)
    rows = {bar.text.split(",")[1].split("h")[0] for bar in found}
    assert len(rows) == 4 * 2, "lanes and their slots"


def test_a_timeline_says_what_it_shows(tmp_path: Path) -> None:
    profile = launched()
    picture.draw(profile, tmp_path / "t.svg", TITLE)
    said = words((tmp_path / "t.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "Device & Sons", "24 blocks",
        "≈ reading the clock changed the launch's time by +8.0%",
        "µs since the first block started", "a lane per multiprocessor", "block duration (µs)",
        "tail", "1 of 5 multiprocessors ran no block",
    ):  # fmt: skip
        assert part in said


def test_too_many_blocks_are_refused(tmp_path: Path) -> None:
    profile = msgspec.structs.replace(launched(), blocks=65_536, timeline=None)
    with pytest.raises(UsageError, match="up to 10,000 blocks, and this launch has 65,536; choose"):
        picture.draw(profile, tmp_path / "t.svg", TITLE)
    assert list(tmp_path.iterdir()) == []


def test_a_cpus_lanes_claim_no_core(tmp_path: Path) -> None:
    profile = launched(1, 2, 5, kind="cpu", told=False)
    picture.draw(profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    assert len(bars(svg)) == 10
    assert "the compute unit of a block is not known" in words(svg)
    assert "ran no block" not in words(svg)


def test_without_a_shared_clock_nothing_is_drawn(tmp_path: Path) -> None:
    profile = launched(told=False)
    with pytest.raises(UsageError, match="share no clock"):
        picture.draw(profile, tmp_path / "t.svg", TITLE)
    assert list(tmp_path.iterdir()) == []


def test_blocks_that_take_no_time_still_make_a_picture(tmp_path: Path) -> None:
    profile = analysed(sampled([Block(1, 5, 5)] * 2))
    picture.draw(profile, tmp_path / "t.svg", TITLE)
    assert len(bars((tmp_path / "t.svg").read_text(encoding="utf-8"))) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.svg").symlink_to("/dev/full")
    profile = launched()
    with pytest.raises(UsageError, match=r"t\.svg: cannot be written: No space left"):
        picture.draw(profile, tmp_path / "t.svg", TITLE)
