"""Pictures hold what they should, say what they leave out, and need nothing but themselves."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from conftest import Matbench
from hypothesis import given
from hypothesis import strategies as st
from support.paths import BAD_KERNELS

from matbench.analysis import blocks
from matbench.analysis.blocks import BlockProfile, BlockSample
from matbench.errors import UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.measure import bench
from matbench.model import DeviceInfo, Launch, Outcome, Problem
from matbench.show import plots

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the extra `plots` is not installed"
)

SVG = "{http://www.w3.org/2000/svg}"
RATE = 2.0
TITLE = "tiled TILE=16 <&> $x$ at 1000"
ALL = frozenset({".svg", ".png", ".html"})


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


def bars(svg: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    [group] = [node for node in root.iter(f"{SVG}g") if node.get("id") == "blocks"]
    return [node for node in group.iter() if node.find(f"{SVG}title") is not None]


def tooltip(bar: ElementTree.Element) -> str:
    title = bar.find(f"{SVG}title")
    assert title is not None and title.text is not None
    return title.text


def texts(svg: str) -> set[str]:
    nodes = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return {"".join(node.itertext()).strip() for node in nodes}


def words(svg: str) -> str:
    return " ".join(
        "".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


class Page(HTMLParser):
    """The tags of a page, and what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if re.search("src|href", name)]

    def handle_data(self, data: str) -> None:
        self.text += data


def picture(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    return np.asarray(imread(path))[:, :, :3]


def near(image: np.ndarray, colour: str) -> np.ndarray:
    """Where a picture shows a colour, left of its scale."""
    wanted = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    left = image[:, : int(image.shape[1] * 0.87)]
    return (np.abs(left - wanted) < 0.04).all(axis=2)


# Timelines


@needs_matplotlib
def test_an_svg_holds_every_block_where_it_ran(tmp_path: Path) -> None:
    sample, profile = launched()
    plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
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
    # The bars' sides on the page against their times: one straight line.
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
    plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
    said = words((tmp_path / "t.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "Device & Sons", "24 blocks", "≈ the clock changed the launch's time by +8.0%",
        "time since the first block started (µs)", "multiprocessor", "block duration (µs)", "tail",
        "1 of 5 multiprocessors ran no block",
    ):  # fmt: skip
        assert part in said
    assert "thinned" not in said


@needs_matplotlib
def test_the_same_launch_is_the_same_picture(tmp_path: Path) -> None:
    sample, profile = launched()
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        plots.timeline(sample, profile, tmp_path / name, TITLE)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@needs_matplotlib
def test_a_png_as_wide_as_a_laptop(tmp_path: Path) -> None:
    sample, profile = launched()
    plots.timeline(sample, profile, tmp_path / "t.PNG", TITLE)
    image = picture(tmp_path / "t.PNG")
    assert 1000 <= image.shape[1] <= 1400
    assert near(image, "#00224e").sum() > 1000, "the shortest blocks' colour"
    assert near(image, "#fee838").sum() > 1000, "the longest ones'"


@needs_matplotlib
def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    sample, profile = launched()
    plots.timeline(sample, profile, tmp_path / "t.html", TITLE)
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "svg" in page.tags
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert [ref for ref in page.references if not ref.startswith(("#", "data:"))] == []
    assert not re.search(r"url\((?!#)|@import", text)
    assert page.tags.count("title") >= 1 + profile.blocks
    assert TITLE in page.text
    assert blocks.explanation(profile) in page.text
    for fact in blocks.facts(profile):
        assert fact.value in page.text


@needs_matplotlib
@pytest.mark.parametrize(
    ("units", "resident", "waves"),
    [(132, 8, 12), (1, 1, 25_000), (3, 64, 60), (700, 1, 16)],
    ids=["a GPU", "one lane", "crowded lanes", "many lanes"],
)
def test_too_many_blocks_are_thinned_and_said_so(
    units: int, resident: int, waves: int, tmp_path: Path
) -> None:
    sample, profile = launched(units, resident, waves)
    plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    found = bars(svg)
    assert 0 < len(found) <= plots.MOST_BARS
    assert f"thinned: {len(found):,} of {profile.blocks:,} blocks drawn" in words(svg)
    if units < plots.MOST_ROWS:
        lanes = {tooltip(bar).split(" on ")[1].split(":")[0] for bar in found}
        assert len(lanes) == units


@needs_matplotlib
def test_a_cpus_lanes_claim_no_core(tmp_path: Path) -> None:
    sample, profile = launched(1, 2, 5, kind="cpu", told=False)
    plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
    svg = (tmp_path / "t.svg").read_text(encoding="utf-8")
    assert len(bars(svg)) == 10
    assert "on multiprocessor" not in svg
    assert "which compute unit ran a block is not told" in words(svg)
    assert "ran no block" not in words(svg)


@needs_matplotlib
def test_without_a_shared_clock_nothing_is_drawn(tmp_path: Path) -> None:
    sample, profile = launched(told=False)
    with pytest.raises(UsageError, match="no clock that its multiprocessors share"):
        plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
    assert list(tmp_path.iterdir()) == []


@needs_matplotlib
def test_blocks_that_take_no_time_still_make_a_picture(tmp_path: Path) -> None:
    sample, _ = launched(1, 1, 2)
    sample.stamps[:] = sample.stamps[:1]
    sample.stamps[:, 1] = sample.stamps[:, 0]
    sample.stamps[:, 3] = sample.stamps[:, 2]
    device = DeviceInfo("test", 0, "d", "gpu", "", "", {"multiprocessors": 1})
    profile = blocks.analyse(sample, Launch(grid=(2, 1, 1), block=(1, 1, 1)), device)
    plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)
    assert len(bars((tmp_path / "t.svg").read_text(encoding="utf-8"))) == 2


# What is asked of the file


@pytest.mark.parametrize("suffix", sorted(ALL))
def test_without_matplotlib_the_error_says_what_to_install(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    sample, profile = launched()
    with pytest.raises(UsageError, match=r"pip install 'matbench-cuda\[plots\]'$"):
        plots.timeline(sample, profile, tmp_path / f"t{suffix}", TITLE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t.gif", "t", "t.svg.txt", ".svg"])
def test_a_kind_of_picture_that_is_not_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"name ends in \.svg, \.png, \.html"):
        plots.require(tmp_path / name, plots.TIMELINE_SUFFIXES)


def test_a_picture_needs_a_folder_and_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        plots.require(tmp_path / "missing" / "t.svg", plots.TIMELINE_SUFFIXES)
    (tmp_path / "t.svg").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        plots.require(tmp_path / "t.svg", plots.TIMELINE_SUFFIXES)


@needs_matplotlib
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.svg").symlink_to("/dev/full")
    sample, profile = launched()
    with pytest.raises(UsageError, match=r"t\.svg: cannot be written: No space left"):
        plots.timeline(sample, profile, tmp_path / "t.svg", TITLE)


# Error maps


def product(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, R and the bound; C is right everywhere, its error a third of the bound."""
    random = np.random.default_rng(1)
    R = 1 + random.random((rows, columns))
    bound = 1e-4 * R
    return (R + bound * random.uniform(-0.3, 0.3, R.shape)).astype(np.float32), R, bound


def draw(C: np.ndarray, R: np.ndarray, bound: np.ndarray | None, path: Path) -> np.ndarray:
    wrong = ~(np.abs(C - R) <= bound) if bound is not None else ~(C == R)
    plots.error_map(C, R, wrong, path, bound=bound, title=TITLE)
    return picture(path)


@needs_matplotlib
@pytest.mark.parametrize("at", [(0, 0), (700, 123), (1499, 1499)])
def test_a_single_wrong_element_is_seen(at: tuple[int, int], tmp_path: Path) -> None:
    C, R, bound = product(1500, 1500)
    before = draw(C, R, bound, tmp_path / "right.png")
    assert not near(before, "#7a1c00").any()
    C[at] *= 2
    after = draw(C, R, bound, tmp_path / "wrong.png")
    if 0 < at[0] < 1499:  # else half under the frame
        assert near(after, "#7a1c00").any(), "the cell of the element"
    assert near(after, "#000000").sum() > near(before, "#000000").sum() + 20, "a ring around it"


@needs_matplotlib
def test_what_was_never_a_number_is_black(tmp_path: Path) -> None:
    C, R, bound = product(64, 64)
    C[32:, :] = np.nan
    image = draw(C, R, bound, tmp_path / "nan.png")
    rows = np.flatnonzero(near(image, "#000000").mean(axis=1) > 0.5)
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    assert max(map(len, runs)) > 0.3 * len(image), "half of C"
    assert sum(map(len, runs)) - max(map(len, runs)) < 5, "and but for the frame nothing else"


@needs_matplotlib
@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 3), (65, 129), (401, 400)])
def test_any_shape_of_c(shape: tuple[int, int], tmp_path: Path) -> None:
    C, R, bound = product(*shape)
    C[shape[0] // 2, shape[1] // 2] += 1
    assert near(draw(C, R, bound, tmp_path / "e.png"), "#7a1c00").any()


@needs_matplotlib
@pytest.mark.parametrize("off", [1e-6, 1.0, 1e30, np.inf])
def test_where_c_must_be_exact(off: float, tmp_path: Path) -> None:
    R = np.arange(64.0, dtype=np.float32).reshape(8, 8) / 64
    C = R.copy()
    assert not near(draw(C, R, None, tmp_path / "right.png"), "#7a1c00").any()
    C[2, 3] += np.float32(off)
    image = draw(C, R, None, tmp_path / "wrong.png")
    colour = "#000000" if np.isinf(off) else "#7a1c00"
    assert near(image, colour).sum() > 1000


@needs_matplotlib
def test_an_error_map_says_how_many_are_wrong(tmp_path: Path) -> None:
    C, R, bound = product(1000, 900)
    C[5:7, 8] = 0
    wrong = ~(np.abs(C - R) <= bound)
    plots.error_map(C, R, wrong, tmp_path / "e.svg", bound=bound, title=TITLE)
    said = words((tmp_path / "e.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "2 of 900,000 elements wrong", "the worst of 3 × 3 elements", "row of C",
        "column of C", "share of what rounding allows",
    ):  # fmt: skip
        assert part in said


@given(
    st.integers(1, 60), st.integers(1, 60), st.integers(1, 9), st.integers(0, 2**32), st.booleans()
)
def test_a_cell_is_the_worst_of_its_elements(
    rows: int, columns: int, step: int, seed: int, exact: bool
) -> None:
    random = np.random.default_rng(seed)
    R = random.integers(-3, 4, (rows, columns)).astype(np.float64)
    C = R.astype(np.float32)
    C[random.random(C.shape) < 0.1] += 1
    C[random.random(C.shape) < 0.02] = np.nan
    bound = None if exact else np.abs(R)  # zero where R is
    wrong = ~(C == R) if bound is None else ~(np.abs(C - R) <= bound)
    worst, bad = plots._worst(C, R, wrong, bound, step)
    for i, j in np.ndindex(worst.shape):
        cell = (slice(i * step, (i + 1) * step), slice(j * step, (j + 1) * step))
        assert bad[i, j] == wrong[cell].any()
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(C[cell] - R[cell])
            shares = error if bound is None else np.where(error == 0, 0, error / bound[cell])
        assert worst[i, j] == np.nan_to_num(shares, nan=np.inf, posinf=np.inf).max()


# From the command line


@needs_matplotlib
@pytest.mark.parametrize("suffix", sorted(ALL))
def test_a_timeline_of_a_real_launch(matbench: Matbench, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    matbench("blocks", "tiled", "--size", "100", "--tile", "16", "--timeline", path)
    if suffix == ".png":
        assert picture(path).shape[1] > 1000
        return
    text = path.read_text(encoding="utf-8")
    svg = text[text.index("<svg") : text.rindex("</svg>") + 6]
    assert len(bars(svg)) == 49
    assert "tiled TILE=16 at 100" in words(svg)


def test_without_matplotlib_nothing_is_run(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for command in (
        ("blocks", "tiled", "--timeline", tmp_path / "t.html"),
        ("run", "tiled", "--error-map", tmp_path / "e.png"),
    ):
        done = matbench(*command, code=2)
        assert done.stdout == ""
        assert done.stderr.endswith("pip install 'matbench-cuda[plots]'\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"), [("e.html", "ends in .png, .svg"), ("missing/e.png", "no folder")]
)
def test_an_error_map_that_cannot_be_written(matbench: Matbench, name: str, message: str) -> None:
    done = matbench("run", "tiled", "--error-map", name, code=2)
    assert done.stdout == ""
    assert message in done.stderr


@needs_matplotlib
def test_each_wrong_case_gets_a_picture_and_right_ones_none(
    matbench: Matbench, tmp_path: Path
) -> None:
    arguments = ("run", "tiled", "--tiles", "8", "--format", "json")
    arguments += ("--error-map", str(tmp_path / "e.png"))
    matbench(*arguments, "--sizes", "20")
    assert list(tmp_path.iterdir()) == []

    bad = BAD_KERNELS / "bad-last-row-left-out.cu"
    done = matbench(*arguments, "--sizes", "20,24,20x31x7", "--kernel", bad, code=1)
    outcomes = [record for record in json.loads(done.stdout) if record["type"] == "outcome"]
    wrong = [outcome for outcome in outcomes if outcome["status"] == "wrong"]
    assert [outcome["notes"] for outcome in wrong] == [
        [f"error map: {tmp_path / name}"] for name in ("e.png", "e_2.png", "e_3.png")
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.png", "e_2.png", "e_3.png"]
    image = picture(tmp_path / "e.png")
    black = near(image, "#000000").mean(axis=1)
    assert 0 < (black > 0.5).sum() < len(image) / 10, "one row of 20 was never written"


@needs_matplotlib
def test_a_picture_that_fails_leaves_the_outcome(session: bench.Session, tmp_path: Path) -> None:
    kernel = catalogue.load(BAD_KERNELS / "bad-last-row-left-out.cu")
    [case] = sweep.cases([kernel], [Problem(20, 20, 20)], {"TILE": (8,)}, session.backend.info)
    into = tmp_path / "gone" / "e.png"
    options = msgspec.structs.replace(session.options, error_map=str(into))
    outcome = bench.Session(session.backend, session.cache, options).measure(case)
    assert outcome.status == "wrong"
    [note] = outcome.notes
    assert note.startswith(f"no error map: {into}: no folder")


def test_a_name_that_nothing_lies_at(tmp_path: Path) -> None:
    path = tmp_path / "e.png"
    for name in ("e.png", "e_2.png", "e_3.png"):
        assert plots.unused(path) == tmp_path / name
        (tmp_path / name).touch()


# Speed and error over n


def timed(kernel: str, n: int, milliseconds: float, **more: Any) -> Outcome:
    made = Outcome(
        kernel=kernel, sha256="", group="ladder", params={}, problem=Problem(n, n, n),
        backend="cuda", device="H200", device_kind="gpu", status="measured",
        median_ns=milliseconds * 1e6, timing_mode="cold", max_rel_err=1e-6,
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


LADDER = [
    timed("slow", 1000, 20), timed("slow", 1000, 10, params={"T": 2}), timed("slow", 2000, 90),
    timed("fast", 2000, 1, max_rel_err=0.0), timed("fast", 1000, 2, max_rel_err=3e-7),
    timed("library", 1000, 1, group="baseline"), timed("thin", 0, 1, problem=Problem(64, 8192, 64)),
    timed("broken", 1000, 0.1, status="wrong", median_ns=None),
]  # fmt: skip


def test_a_line_is_a_kernel_at_its_fastest_and_the_fastest_comes_first() -> None:
    found, left_out = plots.lines(LADDER)
    assert left_out == 1
    assert [line.label for line in found] == ["fast", "slow", "library"]
    fast, slow, library = found
    assert fast.n == slow.n == (1000, 2000)
    assert fast.giga_per_s == (1000, 16000)
    assert slow.giga_per_s == pytest.approx((200, 16000 / 90))
    assert fast.error == (3e-7, 0.0)
    assert library.is_baseline and not fast.is_baseline


def test_devices_and_ways_of_timing_are_lines_of_their_own() -> None:
    found, _ = plots.lines([timed("a", 8, 1), timed("a", 8, 2, device="A100")])
    assert [line.label for line in found] == ["a · H200", "a · A100"]
    found, _ = plots.lines([timed("a", 8, 1), timed("a", 8, 2, timing_mode="hot")])
    assert [line.label for line in found] == ["a · cold samples", "a · hot samples"]
    signed = Problem(8, 8, 8, inputs="signed")
    found, _ = plots.lines([timed("a", 8, 1), timed("a", 8, 2, problem=signed)])
    assert [line.label for line in found] == ["a · uniform inputs", "a · signed inputs"]


@needs_matplotlib
def test_a_chart_says_what_it_shows_and_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    plots.chart(LADDER, path, "H200 <&> $x$")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for word in ("fast", "slow", "library", "GFLOP/s", "largest relative error", "H200 <&> $x$"):
        assert word in said
    assert "1 case of another shape is not shown" in said
    assert "broken" not in said and "thin" not in said
    plots.chart(LADDER, path, "H200 <&> $x$")
    assert path.read_text(encoding="utf-8") == svg
    # Other figures make another picture, even where its words are the same.
    assert plots.digest(LADDER) in svg
    assert plots.digest(LADDER[1:]) == plots.digest(LADDER)
    assert plots.digest([*LADDER, timed("slow", 1000, 9)]) not in svg
    plots.chart(LADDER, tmp_path / "chart.png", "")
    assert picture(tmp_path / "chart.png").shape[1] > 1000


def drawn(outcomes: list[Outcome], path: Path) -> str:
    plots.chart(outcomes, path, "")
    return path.read_text(encoding="utf-8")


def of(workload: str, n: int, milliseconds: float, **more: Any) -> Outcome:
    inputs = more.pop("inputs", "ramp")
    problem = Problem(1, n, 1, inputs=inputs, workload=workload)
    return timed("k", n, milliseconds, problem=problem, **more)


@needs_matplotlib
def test_a_chart_names_inputs_and_how_they_were_timed(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    assert "cold samples · uniform inputs" in words(drawn(LADDER, path))
    mixed = [*LADDER, timed("slow", 2000, 9, problem=Problem(2000, 2000, 2000, inputs="signed"))]
    said = words(drawn(mixed, path))
    assert "slow · signed inputs" in said and "slow · uniform inputs" in said
    assert "cold samples · " not in said


@needs_matplotlib
def test_large_sizes_are_powers_of_two_and_few(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn([of("dot", n, 1) for n in (33792, 2**20, 2**28)], path)
    named = texts(svg)
    assert {"33,792", "2²⁰", "2²⁸"} <= named
    assert not [text for text in named if "e+" in text]
    svg = drawn([of("dot", n, 1) for p in range(28) for n in (2**p, 2**p + 1)], path)
    assert 5 <= len([text for text in texts(svg) if re.fullmatch("2[⁰¹²³⁴⁵⁶⁷⁸⁹]+", text)]) <= 14
    svg = drawn([timed("a", 1000, 1), timed("a", 1024, 1), timed("a", 1025, 1)], path)
    assert {"1000", "1025"} <= texts(svg)


@needs_matplotlib
@pytest.mark.parametrize("ratio", [1.0, 1.001, 1.5, 7.0, 1e3, 1e9])
def test_speeds_can_be_read_however_near_they_are(tmp_path: Path, ratio: float) -> None:
    svg = drawn([timed("a", 1000, 10), timed("a", 1001, 10 / ratio)], tmp_path / "c.svg")
    numbers = {text for text in texts(svg) if re.fullmatch(r"[\d,.]+", text)} - {"1000", "1001"}
    assert len(numbers) >= 3


@needs_matplotlib
def test_exact_results_get_no_picture_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    for outcomes in (
        [of("reverse", n, 1, max_rel_err=None) for n in (2**10, 2**20)],
        [of("dot", n, 1, max_rel_err=0.0) for n in (2**10, 2**20)],
    ):
        said = words(drawn(outcomes, path))
        assert "every result is exact" in said
        assert "relative error" not in said


@needs_matplotlib
def test_an_error_of_nothing_is_drawn_at_the_edge(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn(LADDER, path)
    assert "an error of 0 is drawn at the bottom edge" in words(svg)
    untold = [msgspec.structs.replace(o, max_rel_err=o.max_rel_err or None) for o in LADDER]
    without = drawn(untold, path)
    assert "bottom edge" not in words(without)
    assert svg.count("<use") == without.count("<use") + 1


@needs_matplotlib
def test_one_size_is_no_chart(matbench: Matbench, tmp_path: Path) -> None:
    records = tmp_path / "one.jsonl"
    matbench("run", "single-block", "--sizes", "8", "--output", records, "--no-blocks")
    refused = matbench("plot", records, "--output", tmp_path / "c.svg", code=2)
    [line] = refused.stderr.splitlines()
    assert "a chart over n needs two sizes or more, these records have 8 alone" in line
    assert not (tmp_path / "c.svg").exists()


@needs_matplotlib
def test_a_picture_never_replaces_what_it_is_made_from(matbench: Matbench, tmp_path: Path) -> None:
    data, link = tmp_path / "data.svg", tmp_path / "link.svg"
    matbench("run", "single-block", "--sizes", "8,16", "--output", data, "--no-blocks")
    link.symlink_to(data)
    before = data.read_bytes()
    for path in (data, link):
        refused = matbench("plot", data, "--output", path, code=2)
        assert "is read for this picture; name another file" in refused.stderr
    kernel = tmp_path / "kernel.svg"
    kernel.write_text("not read", encoding="utf-8")
    refused = matbench("explain", "tiled", "--kernel", kernel, "--plot", kernel, code=2)
    assert "is read for this picture" in refused.stderr
    assert (data.read_bytes(), kernel.read_text(encoding="utf-8")) == (before, "not read")


@needs_matplotlib
def test_charts_from_record_files(matbench: Matbench, tmp_path: Path, device: DeviceInfo) -> None:
    files = []
    for number, sizes in enumerate(("8,16", "32,4x8x4")):
        files.append(tmp_path / f"{number}.jsonl")
        matbench("run", "single-block", "numpy", "--sizes", sizes, "--output", files[-1])
    matbench("plot", *files, "--output", tmp_path / "c.svg")
    said = words((tmp_path / "c.svg").read_text(encoding="utf-8"))
    assert "single-block" in said and "numpy" in said
    assert all(size in said for size in ("8", "16", "32"))
    assert "2 cases of other shapes" in said


@needs_matplotlib
@pytest.mark.parametrize(("outcomes", "name", "told"), [
    ([], "c.svg", "nothing to draw"),
    ([LADDER[-1], LADDER[-2]], "c.svg", "nothing to draw"),
    (LADDER, "c.pdf", "ends in .svg, .png"),
    (LADDER, "no/c.svg", "no folder"),
    ([LADDER[0], timed("d", 8, 1, problem=Problem(1, 8, 1, workload="dot"))], "c.svg", "workload"),
])  # fmt: skip
def test_charts_that_cannot_be_drawn(
    outcomes: list[Outcome], name: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        plots.chart(outcomes, tmp_path / name, "")
    assert list(tmp_path.iterdir()) == []
