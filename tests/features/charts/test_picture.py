"""`--picture`: what is measured is drawn, where it belongs, and can be read."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import records, tables
from support.cli import QUICK, Matbench
from support.launches import UNEVEN, analysed, gpu_or_cpu, sampled
from support.paths import BAD_KERNELS, ROOT
from support.pictures import SVG, TITLE, Mark, marks, near, needs_plots, pixels, texts, words

from matbench.analysis import error_map
from matbench.errors import UsageError
from matbench.features.charts import outcomes, picture, style
from matbench.features.charts.definitions import Chart
from matbench.features.charts.error_map_chart import MISSING, RIGHT
from matbench.features.charts.style import ORANGES
from matbench.features.grade.record import Grade
from matbench.features.timeline import record as timeline
from matbench.model import Problem
from matbench.records import encoding, reading
from matbench.records.outcome import Accuracy, Claims, ErrorCells, Outcome
from matbench.records.reading import RecordSet


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


pytestmark = needs_plots
EXAMPLES = ROOT / "docs" / "examples"
SVGS = ("a.svg", "b.svg")


def drawn(found: Iterable[Any], folder: Path) -> str:
    path = folder / "c.svg"
    picture.write(path, RecordSet(found))
    return path.read_text(encoding="utf-8")


def panel(svg: str, column: int, kind: str = "") -> list[Mark]:
    """What is drawn in a panel of speed (column 0) or errors (1)."""
    place = f"role-mark concat_0_concat_0_concat_{column}_"
    return [mark for mark in marks(svg, place) if kind in mark.kind]


def names(svg: str) -> list[str]:
    """What the legends name."""
    return [mark.text for mark in marks(svg, "role-legend-label")]


def test_a_picture_of_outcomes_says_what_it_shows(tmp_path: Path) -> None:
    narrow = [timed("narrow", n, 1, claims=Claims(precision="tf32")) for n in (1000, 2000)]
    svg = drawn([*LADDER, *narrow], tmp_path)
    said = words(svg)
    for part in (
        "H200", "matrix product", "cold samples · uniform inputs", "TFLOP/s over n", "tf32",
        "largest relative error over n", "dashed: a baseline", "errors of 0 are not shown",
        "hollow: with claims, so by weaker checks", "float32: TFLOP/s at 64x8192x64",
    ):  # fmt: skip
        assert part in said
    assert "broken" not in said
    assert names(svg) == ["fast", "slow", "library", "narrow"]
    again = drawn([*LADDER[1:], *narrow], tmp_path)
    places = [[mark[:4] for mark in marks(one)] for one in (svg, again)]
    assert places[0] == places[1], "one is not the fastest at its size"
    assert len([mark for mark in marks(svg, "mark-symbol") if mark.is_hollow]) == 4
    signed = timed("slow", 2000, 9, problem=Problem(2000, 2000, 2000, inputs="signed"))
    assert "H200 · matmul · signed inputs" in words(drawn([*LADDER, signed], tmp_path))


sizes = st.lists(st.integers(3, 14).map(lambda p: 2**p), min_size=2, max_size=6, unique=True)


@settings(suppress_health_check=list(HealthCheck), max_examples=10)
@given(st.data(), sizes.map(sorted))
def test_values_are_where_the_axes_say(tmp_path: Path, data: st.DataObject, ns: list[int]) -> None:
    ms = [data.draw(st.floats(1e-3, 1e4)) for _ in ns]
    svg = drawn((timed("a", n, t) for n, t in zip(ns, ms, strict=True)), tmp_path)
    found = panel(svg, 0, "mark-symbol")
    assert len(found) == len(ns)
    across = np.polyfit([mark.x for mark in found], np.log([float(n) for n in ns]), 1)
    assert across[0] > 0
    np.testing.assert_allclose(np.polyval(across, [m.x for m in found]), np.log(ns), atol=0.02)
    marked = {
        float(mark.text.replace(",", "").replace("−", "-")): mark.y - 3.0
        for mark in marks(svg, "role-axis-label")
        if mark.text and mark.node.get("text-anchor") == "end" and mark.x < found[0].x
    }
    scale = 1e9 if "TFLOP" in words(svg) else 1e6
    up = np.polyfit([*marked.values()], np.log([*marked]), 1)
    assert up[0] < 0
    rates = [2 * n**3 / t for n, t in zip(ns, ms, strict=True)]
    pixels = [abs((np.polyval(up, m.y) - math.log(rate / scale)) / up[0])
              for m, rate in zip(found, rates, strict=True)]  # fmt: skip
    assert max(pixels) < 2


def test_awkward_sizes_make_no_cliffs_but_bars(tmp_path: Path) -> None:
    found = [timed("a", n, n**3 / 1e9) for n in (512, 1024, 2048)] + [timed("a", 1000, 2.0)]
    svg = drawn(found, tmp_path)
    assert [len(panel(svg, column, "mark-symbol")) for column in (0, 1)] == [3, 3]
    assert "float32: TFLOP/s at 1000" in words(svg)
    assert "tick: at 1,024" in words(svg)
    [bar] = marks(svg, "mark-rect role-mark concat_1_concat_0_layer_0")
    assert bar.fill == panel(svg, 0, "mark-line")[0].stroke, "one colour for a kernel"
    assert len(marks(svg, "mark-rect role-mark concat_1_concat_0_layer_2")) == 1


def test_every_line_has_a_look_and_the_fastest_is_on_top(tmp_path: Path) -> None:
    found = [timed(f"k{i:02}", n, (1 + i) * n) for i in range(20) for n in (256, 512)]
    svg = drawn(found, tmp_path)
    for column in (0, 1):
        lines = [mark.stroke for mark in panel(svg, column, "mark-line")]
        assert lines == [style.PALETTE[i % 8] for i in reversed(range(20))]
    assert names(svg) == [f"k{i:02}" for i in range(20)]


def test_intervals_are_as_high_as_they_are_wide(tmp_path: Path) -> None:
    def case(n: int, low: float, high: float) -> Outcome:
        cold = records.timing(n, interval_ns=(low * n * 1e6, high * n * 1e6))
        return timed("a", n, n, cold=cold)

    svg = drawn([case(256, 0.9, 1.1), case(512, 0.8, 1.25), case(1024, 1, 1)], tmp_path)
    assert "bars: intervals of the median" in words(svg)
    heights = [abs(float(mark.node.get("y2", 0))) for mark in panel(svg, 0, "mark-rule")]
    assert heights[1] > heights[0] > 1 > heights[2]


def test_baselines_of_the_cpu_stand_with_the_kernels_that_ran_there(tmp_path: Path) -> None:
    found = [
        records.outcome(name, ms, group=group, problem=Problem(n, n, n))
        for name, ms, group in (("tiled", 1, "ladder"), ("numpy", 2, "baseline"))
        for n in (64, 128)
    ]
    svg = drawn(found, tmp_path)
    assert names(svg) == ["tiled", "numpy"]
    dashes = [mark.node.get("stroke-dasharray") for mark in panel(svg, 0, "mark-line")]
    assert dashes == ["6,3", "1,0"]


def test_exact_results_get_no_picture_of_errors(tmp_path: Path) -> None:
    said = words(drawn([timed("k", n, 1, error=0.0) for n in (512, 1024)], tmp_path))
    assert "every result is exact" in said
    assert not any(words in said for words in ("relative error", "errors of 0"))


@pytest.mark.parametrize("found", [
    [], [records.environment()],
    reading.Contents(EXAMPLES / "explain.json").environments,
])  # fmt: skip
def test_what_has_nothing_to_draw_leaves_no_file(found: list[Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"c\.svg: nothing to draw"):
        drawn(found, tmp_path)
    assert list(tmp_path.iterdir()) == []


# Other kinds of records


def test_comparisons_are_ratios_with_their_verdicts(tmp_path: Path) -> None:
    compared = tables.compared(baseline_name="a", candidate_name="b")
    svg = drawn([compared], tmp_path)
    assert "times as fast as the baseline" in words(svg)
    [point] = marks(svg, "mark-symbol role-mark concat_0_concat_0_layer_2")
    assert point.fill == "#cf4444", "SLOWER"
    assert "over n" not in words(svg), "its sides are in its own chart"


def test_a_search_shows_its_candidates_beside_the_default(tmp_path: Path) -> None:
    svg = drawn(reading.Contents(EXAMPLES / "tune.json").records, tmp_path)
    assert "times as fast as the fastest default" in words(svg)
    assert names(svg) == ["winner", "default", "candidate"]
    fills = [mark.fill for mark in marks(svg, "mark-symbol role-mark concat_0_concat_0_layer_2")]
    assert len(fills) > 2
    assert fills[0] == style.PALETTE[0]


def test_a_roofline_has_the_case_below_the_limits(tmp_path: Path) -> None:
    [(explained, _)] = reading.Contents(EXAMPLES / "explain.json").findings
    svg = drawn([explained], tmp_path)
    assert "Roofline: tiled TILE=16 at 1000" in words(svg)
    least, modelled, measured = marks(svg, "mark-symbol role-mark concat_0_concat_0_layer_1")
    assert measured.x == modelled.x < least.x
    assert least.y < modelled.y < measured.y, "the rates, downwards"
    assert [m.is_hollow for m in (least, modelled, measured)] == [True, True, False]
    with pytest.raises(UsageError, match="nothing to draw"):
        drawn([msgspec.structs.replace(explained, limits=None, outcome=None)], tmp_path)


def test_grades_are_errors_over_k(tmp_path: Path) -> None:
    contents = reading.Contents(ROOT / "results" / "cpu-grade.jsonl")
    svg = drawn(contents.records, tmp_path)
    assert "Largest error over K, relative to u·(|A|·|B|)" in words(svg)
    graded = [
        g
        for g, _ in contents.findings
        if isinstance(g, Grade) and g.growth and any(g.growth.errors)
    ]
    assert len(marks(svg, "mark-line role-mark")) == len(graded)


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_a_timeline_holds_every_block(kind: str, tmp_path: Path) -> None:
    profile = analysed(sampled(UNEVEN, told=kind == "gpu"), gpu_or_cpu(kind))
    profile = msgspec.structs.replace(profile, perturbation=0.08)
    svg = drawn([records.outcome("tiled"), profile], tmp_path)
    bars = marks(svg, "mark-rect role-mark concat_0_concat_0_layer_0")
    assert len(bars) == profile.blocks
    said = words(svg)
    assert f"{profile.blocks:,} blocks" in said
    assert "≈ reading the clock changed the launch's time by +8.0%" in said
    assert ("the compute unit of a block is not known" in said) is (kind == "cpu")


def test_a_timeline_may_have_the_most_lanes(tmp_path: Path) -> None:
    profile = analysed(sampled(UNEVEN))
    lanes = timeline.MOST_BARS
    numbers = tuple(range(lanes, 0, -1))  # as the record has them, from the top
    ran = tuple(timeline.Bar(lane, 0, 1000, 0, lane) for lane in (0, lanes - 1))
    many = timeline.Timeline(lanes=lanes, slots=1, multiprocessors=numbers, bars=ran)
    svg = drawn(
        [records.outcome("tiled"), msgspec.structs.replace(profile, timeline=many)], tmp_path
    )
    bars = marks(svg, "mark-rect role-mark concat_0_concat_0_layer_0")
    first, last = (float(bar.text.removeprefix("M0,").split("h")[0]) for bar in bars)
    assert first < last


# The options


@pytest.mark.parametrize("command", [
    "run tiled", "compare tiled naive-2d", "check tiled", "tune tiled", "explain tiled",
    "blocks tiled", "grade tiled", "history tiled", "report old.jsonl",
])  # fmt: skip
@pytest.mark.usefixtures("own_state")
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    command: str, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("kept.svg").write_text("mine")
    Path("kept.html").write_text("mine")
    Path("folder.png").mkdir()
    for option, name, told in (
        ("--picture", "kept.svg", "exists; --force replaces it"),
        ("--page", "kept.html", "exists; --force replaces it"),
        ("--picture", "folder.png", "is a folder; name a file in it"),
        ("--picture", "t.gif", "the name must end in .svg or .png"),
        ("--page", "t.svg", "the name must end in .html"),
        ("--page", "gone/t.html", "no folder gone; create it, or name another file"),
    ):
        done = matbench(*command.split(), option, name, code=2)
        assert done.stdout == ""
        assert done.stderr.endswith(f"{option} {name}: {told}\n")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = matbench(*command.split(), "--page", "new.html", code=2)
    assert "--page new.html: needs vl_convert; pip install 'matbench-cuda[plots]'" in done.stderr
    assert Path("kept.svg").read_text() == Path("kept.html").read_text() == "mine"


@pytest.mark.usefixtures("own_state")
def test_a_command_draws_what_a_report_of_its_records_draws(matbench: Matbench) -> None:
    bad = BAD_KERNELS / "bad-last-row-left-out.cu"
    run = ("run", bad, "tiled", "--set", "TILE=8", "--sizes", "20,40", *QUICK)
    done = matbench(*run, "--output", "a.jsonl", "--picture", "a.svg", "--page", "a.html", code=1)
    assert "wrote a.svg (" in done.stderr
    matbench("report", "a.jsonl", "--picture", "b.svg", "--page", "b.html")
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    first, second = ([mark[:4] for mark in marks(Path(name).read_text())] for name in SVGS)
    assert first == second
    said = words(Path("a.svg").read_text())
    assert "GFLOP/s over n" in said
    assert "20 of 400 elements wrong" in said, "where C is wrong"


@pytest.mark.usefixtures("own_state")
def test_a_check_is_drawn_from_its_file_too(matbench: Matbench) -> None:
    check = ("check", "tiled", "--set", "TILE=8", "--quick")
    done = matbench(*check, "--picture", "a.svg", "--format", "json")
    Path("a.json").write_text(done.stdout)
    report = matbench("report", "a.json", "--picture", "b.svg", "--format", "csv")
    svg = Path("a.svg").read_text()
    assert words(Path("b.svg").read_text()) == words(svg)
    assert "Which cases are right" in words(svg)
    probes = [one for one in json.loads(done.stdout) if one["type"] == "probe"]
    assert len(marks(svg, "mark-rect role-mark concat_")) == len(probes)
    assert len(report.stdout.splitlines()) == 1 + len(probes)


@pytest.mark.usefixtures("own_state")
def test_what_cannot_be_drawn_ends_a_report_but_no_measurement(matbench: Matbench) -> None:
    Path("a.jsonl").write_text(f"{encoding.line(records.environment())}\n")
    refused = matbench("report", "a.jsonl", "--picture", "a.svg", code=2)
    assert "a.svg: nothing to draw" in refused.stderr
    Path("full.svg").symlink_to("/dev/full")
    more = ("--sizes", "20", "--set", "TILE=8", *QUICK, "--picture", "full.svg")
    done = matbench("run", "tiled", *more, "--force")
    assert "full.svg: cannot be written: No space left" in done.stderr
    assert "1 measured" in done.stdout


# One plain file, harmless whatever its chart says


HOSTILE = "<&>\"' $x$ \u202e\0\ufffe ]]> 😀 --><script>"


def chart(label: str = "a") -> dict[str, Any]:
    return {
        "data": {"values": [{"x": 1, "label": label}, {"x": 3, "label": "b"}]},
        "mark": "text",
        "encoding": {
            "x": {"field": "x", "type": "quantitative"}, "text": {"field": "label"},
        },
        "width": 200,
    }  # fmt: skip


def svg(folder: Path, spec: dict[str, Any], title: str = "t", *lines: str) -> str:
    picture.draw(folder / "p.svg", [Chart("", "", spec)], title, lines)
    return (folder / "p.svg").read_text(encoding="utf-8")


def test_a_picture_says_what_it_is(tmp_path: Path) -> None:
    drawn = svg(tmp_path, chart(), "tiled", "one", "two")
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert [root[0].tag, root[0].text] == [f"{SVG}title", "tiled"]
    assert [root[1].tag, root[1].text] == [f"{SVG}desc", "one. two"]
    assert {"tiled", "onetwo"} <= texts(drawn), "each line is a part of the text"


def test_text_is_text_and_never_anything_else(tmp_path: Path) -> None:
    drawn = svg(tmp_path, chart(HOSTILE), HOSTILE, HOSTILE)
    root = ElementTree.fromstring(drawn)
    assert not [node for node in root.iter() if node.tag == f"{SVG}script"]
    shown = "<&>\"' $x$ \ufffd\ufffd\ufffd ]]> 😀 --><script>"
    assert [found for found in texts(drawn) if found == shown]
    assert root[0].text == shown
    assert re.findall(r'(?:href|src)="([^"]*)"|url\(([^#])|@import', drawn) == []


def test_a_long_heading_has_several_lines(tmp_path: Path) -> None:
    title, line = "a title " * 30, "a line " * 40
    root = ElementTree.fromstring(svg(tmp_path, chart(), title, line))
    assert 500 < float(root.get("width", 0)) < 1200
    spans = [node.text or "" for node in root.iter(f"{SVG}tspan")]
    assert "".join("".join(spans).split()) == "".join(f"{title}{line}".split())


def test_a_png_has_a_page_and_dark_ink(tmp_path: Path) -> None:
    picture.draw(tmp_path / "p.PNG", [Chart("", "", chart())], "title")
    image = pixels(tmp_path / "p.PNG")
    assert (image[0, 0] == 1).all(), "white"
    assert image.min() < 0.3, "ink"
    drawn = svg(tmp_path, chart(), "title")
    width = float(ElementTree.fromstring(drawn).get("width", 0))
    assert image.shape[1] == pytest.approx(2 * width, abs=2)
    assert style.DARK_INK not in drawn


def test_nothing_is_fetched(tmp_path: Path) -> None:
    spec = {**chart(), "data": {"url": "http://127.0.0.1:9/points.json"}}
    for name in ("p.svg", "p.png"):
        with pytest.raises(ValueError, match="not allowed"):
            picture.draw(tmp_path / name, [Chart("", "", spec)], "t")


# Error maps


def wrong_at(shape: tuple[int, int], *at: tuple[int, int], off: float = 1.0) -> ErrorCells:
    """The map of a C that is right but for some elements; without a bound, it must be exact."""
    R = np.zeros(shape)
    C = R.astype(np.float32)
    for place in at:
        C[place] += np.float32(off)
    return error_map.make_error_map(C, R, ~(C == R))


def draw(found: ErrorCells, path: Path) -> np.ndarray:
    [chart] = outcomes.error_maps([records.outcome(status="wrong", error_map=found)])
    picture.draw(path, [chart], TITLE)
    return pixels(path)


@pytest.mark.parametrize("at", [(700, 123), (0, 0), (1499, 1499)])
def test_a_single_wrong_element_is_seen_where_it_is(at: tuple[int, int], tmp_path: Path) -> None:
    image = draw(wrong_at((1500, 1500), at), tmp_path / "e.png")
    right, wrong = near(image, RIGHT), near(image, ORANGES[0])
    rows, columns = np.nonzero(right | wrong)
    (top, bottom), (left, width) = ((found.min(), np.ptp(found) + 1) for found in (rows, columns))
    row, column = (found.mean() for found in np.nonzero(wrong))
    assert (row - top) / bottom == pytest.approx(at[0] / 1500, abs=0.02)
    assert (column - left) / width == pytest.approx(at[1] / 1500, abs=0.02)


@pytest.mark.parametrize(
    ("off", "colour"),
    [(1e-6, ORANGES[0]), (1e30, ORANGES[0]), (np.inf, MISSING), (np.nan, MISSING)],
)
def test_colours_tell_how_far_an_element_is_off(off: float, colour: str, tmp_path: Path) -> None:
    image = draw(wrong_at((8, 8), (2, 3), off=off), tmp_path / "e.png")
    assert near(image, colour).sum() > 1000
    assert not near(draw(wrong_at((8, 8)), tmp_path / "right.png"), colour).any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 3), (65, 129)])
def test_any_shape_of_c(shape: tuple[int, int], tmp_path: Path) -> None:
    found = wrong_at(shape, (shape[0] // 2, shape[1] // 2))
    assert near(draw(found, tmp_path / "e.png"), ORANGES[0]).any()


def test_an_error_map_says_how_many_are_wrong(tmp_path: Path) -> None:
    found = wrong_at((1000, 900), (5, 8), (6, 8), off=np.inf)
    wrong = records.outcome(status="wrong", reason="reference: 2 wrong\nmore", error_map=found)
    picture.draw(tmp_path / "e.svg", outcomes.error_maps([wrong]), TITLE)
    said = words((tmp_path / "e.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "reference: 2 wrong · 2 of 900,000 elements wrong",
        "the worst of 10 × 10 elements", "row of C", "column of C", "|C − expected|",
        "black: NaN or infinite",
    ):  # fmt: skip
        assert part.replace(" ", "") in said.replace(" ", ""), "in lines"


def test_a_label_that_is_cut_within_an_emoji_is_drawn(tmp_path: Path) -> None:
    """The library would fail on half of it."""
    spec = chart("a" + 99 * "😀")
    spec["encoding"]["y"] = {"field": "label"}
    for width in (60, 97):
        spec["encoding"]["y"]["axis"] = {"labelLimit": width}
        assert "\ufffd" in svg(tmp_path, spec)
