"""Timelines show every block where it ran, and say what they omit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.pictures import TITLE, Page, bars, near, needs_matplotlib, picture, tooltip, words

from matbench.analysis import blocks
from matbench.analysis.blocks import BlockSample
from matbench.errors import UsageError
from matbench.model import DeviceInfo, Launch
from matbench.records.blocks import BlockProfile
from matbench.show import blocks as words_of_blocks
from matbench.show.pictures import timeline

RATE = 2.0


def launched(
    units: int = 4, resident: int = 2, waves: int = 3, *, kind: str = "gpu", told: bool = True
) -> tuple[BlockSample, BlockProfile]:
    """Blocks of 10 µs and a little more each, in `waves` on `units` multiprocessors."""
    rows = []
    for wave in range(waves):
        for unit in range(units):
            for slot in range(resident):
                start = wave * 10_500 + 3 * slot
                end = start + 10_000 + 7 * unit + slot
                times = (2 * start + 10**9 * unit * told, 2 * end + 10**9 * unit * told)
                shared = (10**18 + start, 10**18 + end) if told else (0, 0)
                rows.append((*times, *shared, 10 + unit if told else 0))
    event_ns = 10_500.0 * waves
    sample = BlockSample(np.array(rows, np.uint64) + np.uint64(5), RATE, event_ns, 0.0, 0.08)
    if not told:
        sample.stamps[:, 2:] = 0
    device = DeviceInfo("test", 0, "Device & Sons", kind, "", "", {"multiprocessors": units + 1})  # type: ignore[arg-type]
    launch = Launch(grid=(resident, units, waves), block=(16, 16, 1))
    return sample, blocks.analyse(sample, launch, device)


@needs_matplotlib
def test_an_svg_holds_every_block_where_it_ran(tmp_path: Path) -> None:
    sample, profile = launched()
    timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    found = bars(svg)
    assert len(found) == profile.blocks == 24
    assert tooltip(found[0]) == (
        "block (0, 0, 0) on multiprocessor 15: 0.00 to 10.00 µs, took 10.000 µs"
    )
    assert {tooltip(bar).split(":")[0] for bar in found} == {
        f"block ({x}, {y}, {z}) on multiprocessor {15 + y}"
        for x in range(2)
        for y in range(4)
        for z in range(3)
    }
    # The positions of bars are a linear function of their times.
    sides, times = [], []
    for bar in found:
        numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", bar.get("d") or "")]
        sides += [min(numbers[::2]), max(numbers[::2])]
        said = re.search(r": ([\d.]+) to ([\d.]+) µs", tooltip(bar))
        assert said is not None
        times += [float(said[1]), float(said[2])]
    slope, offset = np.polyfit(times, sides, 1)
    assert slope > 0
    np.testing.assert_allclose(np.polyval([slope, offset], times), sides, atol=0.5)


@needs_matplotlib
def test_a_timeline_says_what_it_shows(tmp_path: Path) -> None:
    sample, profile = launched()
    timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    said = words((tmp_path / "t.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "Device & Sons", "24 blocks",
        "≈ reading the clock changed the launch's time by +8.0%",
        "time since the first block started (µs)", "multiprocessor", "block duration (µs)", "tail",
        "1 of 5 multiprocessors ran no block",
    ):  # fmt: skip
        assert part in said
    assert "thinned" not in said


@needs_matplotlib
def test_the_same_launch_is_the_same_picture(tmp_path: Path) -> None:
    sample, profile = launched()
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        timeline.draw(sample, profile, tmp_path / name, TITLE)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@needs_matplotlib
def test_a_png_as_wide_as_a_laptop(tmp_path: Path) -> None:
    sample, profile = launched()
    timeline.draw(sample, profile, tmp_path / "t.PNG", TITLE)
    image = picture(tmp_path / "t.PNG")
    assert 1000 <= image.shape[1] <= 1400
    assert near(image, "#00224e").sum() > 1000, "the shortest blocks' colour"
    assert near(image, "#fee838").sum() > 1000, "the longest ones'"


@needs_matplotlib
def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    sample, profile = launched()
    timeline.draw(sample, profile, tmp_path / "t.html", TITLE)
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "svg" in page.tags
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert [ref for ref in page.references if not ref.startswith(("#", "data:"))] == []
    assert not re.search(r"url\((?!#)|@import", text)
    assert page.tags.count("title") >= 1 + profile.blocks
    assert TITLE in page.text
    assert words_of_blocks.explanation(profile) in page.text
    for fact in words_of_blocks.facts(profile):
        assert fact.figure in page.text


@needs_matplotlib
@pytest.mark.parametrize(
    ("units", "resident", "waves"),
    [(20, 8, 12), (1, 1, 2500), (3, 32, 20), (70, 1, 16)],
    ids=["a GPU", "one lane", "crowded lanes", "many lanes"],
)
def test_too_many_blocks_are_thinned_and_said_so(
    units: int, resident: int, waves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MOST_BARS", 1000)
    monkeypatch.setattr(timeline, "MOST_ROWS", 60)
    sample, profile = launched(units, resident, waves)
    timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    found = bars(svg)
    assert 0 < len(found) <= timeline.MOST_BARS
    assert f"thinned: {len(found):,} of {profile.blocks:,} blocks drawn" in words(svg)
    if units < timeline.MOST_ROWS:
        lanes = {tooltip(bar).split(" on ")[1].split(":")[0] for bar in found}
        assert len(lanes) == units


@needs_matplotlib
def test_a_cpus_lanes_claim_no_core(tmp_path: Path) -> None:
    sample, profile = launched(1, 2, 5, kind="cpu", told=False)
    timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    assert len(bars(svg)) == 10
    assert "on multiprocessor" not in svg
    assert "the compute unit of a block is not known" in words(svg)
    assert "ran no block" not in words(svg)


@needs_matplotlib
def test_without_a_shared_clock_nothing_is_drawn(tmp_path: Path) -> None:
    sample, profile = launched(told=False)
    with pytest.raises(UsageError, match="share no clock"):
        timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    assert list(tmp_path.iterdir()) == []


@needs_matplotlib
def test_blocks_that_take_no_time_still_make_a_picture(tmp_path: Path) -> None:
    sample, _ = launched(1, 1, 2)
    sample.stamps[:] = sample.stamps[:1]
    sample.stamps[:, 1] = sample.stamps[:, 0]
    sample.stamps[:, 3] = sample.stamps[:, 2]
    device = DeviceInfo("test", 0, "d", "gpu", "", "", {"multiprocessors": 1})
    profile = blocks.analyse(sample, Launch(grid=(2, 1, 1), block=(1, 1, 1)), device)
    timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
    assert len(bars((tmp_path / "t.svg").read_text(encoding="utf-8"))) == 2


@pytest.mark.parametrize("suffix", timeline.SUFFIXES)
def test_without_matplotlib_the_error_says_what_to_install(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    sample, profile = launched()
    with pytest.raises(UsageError, match=r"pip install 'matbench-cuda\[plots\]'$"):
        timeline.draw(sample, profile, tmp_path / f"t{suffix}", TITLE)
    assert list(tmp_path.iterdir()) == []


@needs_matplotlib
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.svg").symlink_to("/dev/full")
    sample, profile = launched()
    with pytest.raises(UsageError, match=r"t\.svg: cannot be written: No space left"):
        timeline.draw(sample, profile, tmp_path / "t.svg", TITLE)
