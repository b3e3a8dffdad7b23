"""Pictures of speed and error: what is measured is drawn, where it belongs, and can be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import records
from support.cli import QUICK, Matbench
from support.ladder import LADDER, timed
from support.pictures import Mark, bars, marks, needs_plots, picture, texts, words

from matbench.errors import UsageError
from matbench.features.charts import style
from matbench.features.plot import picture as chart
from matbench.model import Precision, Problem, WorkloadName
from matbench.records.outcome import Accuracy, Claims, Outcome

pytestmark = needs_plots


def drawn(outcomes: Iterable[Outcome], path: Path) -> str:
    chart.draw(list(outcomes), path, "")
    return path.read_text(encoding="utf-8")


def of(workload: WorkloadName, n: int, milliseconds: float, **more: Any) -> Outcome:
    inputs = more.pop("inputs", "ramp")
    problem = Problem(1, n, 1, inputs=inputs, workload=workload)
    return timed("k", n, milliseconds, problem=problem, **more)


def panel(svg: str, row: int, column: int, kind: str = "") -> list[Mark]:
    """What is drawn in a panel of speed (column 0) or errors (1)."""
    return [m for m in marks(svg, f"role-mark concat_{row}_concat_{column}_") if kind in m.kind]


def titles(svg: str) -> list[str]:
    return [mark.text for mark in marks(svg, "role-title-text") if mark.text]


def at(drawing: list[Mark], colour: str, kind: str = "mark-symbol") -> list[Mark]:
    return [mark for mark in drawing if kind in mark.kind and mark.stroke == colour]


def names(svg: str) -> list[str]:
    """What the legends name."""
    return [mark.text for mark in marks(svg, "role-legend-label")]


def test_a_chart_says_what_it_shows_and_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    chart.draw(LADDER, path, "H200 <&> $x$")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for word in ("fast", "slow", "library", "TFLOP/s over n", "largest relative error over n",
                 "H200 <&> $x$", "matrix product"):  # fmt: skip
        assert word in said
    assert "1 case of another shape is not shown" in said
    assert "broken" not in said
    assert "thin" not in said
    assert drawn(LADDER[1:], path) == drawn(LADDER, path), "one is not the fastest at its size"
    chart.draw(LADDER, tmp_path / "chart.png", "")
    assert picture(tmp_path / "chart.png").shape[1] > 1000


sizes = st.lists(st.integers(3, 14).map(lambda p: 2**p), min_size=2, max_size=6, unique=True)
times = st.floats(1e-3, 1e4)


@settings(suppress_health_check=list(HealthCheck))
@given(st.data(), sizes.map(sorted))
def test_values_are_where_the_axes_say(tmp_path: Path, data: st.DataObject, ns: list[int]) -> None:
    ms = [data.draw(times) for _ in ns]
    svg = drawn((timed("a", n, t) for n, t in zip(ns, ms, strict=True)), tmp_path / "c.svg")
    found = at(panel(svg, 0, 0), style.PALETTE[0])
    assert len(found) == len(ns)
    across = np.polyfit([mark.x for mark in found], np.log([float(n) for n in ns]), 1)
    assert across[0] > 0
    np.testing.assert_allclose(np.polyval(across, [m.x for m in found]), np.log(ns), atol=0.02)
    rates = [2 * n**3 / t for n, t in zip(ns, ms, strict=True)]
    marked = {
        float(mark.text.replace(",", "").replace("−", "-")): mark.y - 3.0
        for mark in marks(svg, "role-axis-label")
        if mark.text and mark.node.get("text-anchor") == "end" and mark.x < found[0].x
    }
    assert len(marked) >= 3
    scale = 1e9 if "TFLOP" in words(svg) else 1e6
    up = np.polyfit([*marked.values()], np.log([*marked]), 1)
    assert up[0] < 0
    pixels = [abs((np.polyval(up, m.y) - math.log(rate / scale)) / up[0])
              for m, rate in zip(found, rates, strict=True)]  # fmt: skip
    assert max(pixels) < 2


def test_awkward_sizes_make_no_cliffs_but_a_panel(tmp_path: Path) -> None:
    found = [timed("a", n, n**3 / 1e9) for n in (512, 1024, 2048, 4096)]
    found += [timed("a", 1000, 2.0), timed("a", 4095, 4 * 4095**3 / 1e9)]
    svg = drawn(found, tmp_path / "c.svg")
    for column in (0, 1):
        [line] = panel(svg, 0, column, "mark-line")
        assert len(re.findall("[ML]", line.text)) == 4
        assert len(panel(svg, 0, column, "mark-symbol")) == 4
    first, second = marks(svg, "mark-symbol role-mark concat_1_layer_2")
    [same] = marks(svg, "mark-rule role-mark concat_1_layer_0")
    assert second.x < first.x < same.x, "slower than beside it"
    assert [first.fill, second.fill] == [*style.PALETTE[:2]]
    assert names(svg)[-2:] == ["n = 1,000 relative to 1,024", "n = 4,095 relative to 4,096"]


def test_kernels_near_cublas_have_a_linear_panel_of_their_share(tmp_path: Path) -> None:
    shares = {"ahead": (1.9, 1.2), "beside": (0.6, 0.8), "far": (1.0, 0.7), "beyond": (1.0, 1.4)}
    found = [
        timed(name, n, n**3 / 1e9 / share, group="baseline" if name == "cublas" else "ladder")
        for name, both in {"cublas": (1.0, 1.0), **shares}.items()
        for n, share in zip((1024, 4096), both, strict=True)
    ]
    svg = drawn(found, tmp_path / "c.svg")
    title = (
        "float32: share of cublas over n, of kernels that reach 75% to 135% of it at the largest"
    )
    assert title in titles(svg)
    panel = marks(svg, "role-mark concat_1_layer_")
    lines = [mark for mark in panel if "mark-line" in mark.kind]
    assert len(lines) == 3
    assert names(svg)[-3:] == ["ahead", "cublas", "beside"]
    heights = {}
    for line in lines:
        points = [m for m in panel if "mark-symbol" in m.kind and m.stroke == line.stroke]
        heights[line.stroke] = max(points, key=lambda m: m.x).y
    ahead, cublas, beside = sorted(heights.values())
    assert cublas - ahead == pytest.approx(beside - cublas, abs=0.2), "a linear axis"
    marked = [text.removesuffix("%") for text in texts(svg) if text.endswith("%")]
    assert max(map(float, marked)) <= 160, "190% is beyond the axis"
    assert "clip-path" in svg


@pytest.mark.parametrize("name", ["library", "far"])
def test_without_cublas_or_a_kernel_near_it_there_is_no_such_panel(
    name: str, tmp_path: Path
) -> None:
    names = {"cublas": 1.0, name: 3.0} if name == "far" else {name: 1.0, "a": 1.1}
    found = [timed(k, n, factor * n) for k, factor in names.items() for n in (512, 1024)]
    svg = drawn(found, tmp_path / "c.svg")
    assert "share of" not in words(svg)
    assert "clip-path" not in svg


def test_each_precision_has_a_row_and_baselines_are_dashed(tmp_path: Path) -> None:
    kernels: tuple[tuple[str, Precision, str, int], ...] = (
        ("a", "float32", "ladder", 1), ("b", "float32", "ladder", 2),
        ("c", "float32", "baseline", 3), ("d", "tf32", "ladder", 1),
    )  # fmt: skip
    found = [
        timed(name, n, ms * n, group=group, claims=Claims(precision=precision))
        for n in (256, 512)
        for name, precision, group, ms in kernels
    ]
    svg = drawn(found, tmp_path / "c.svg")
    assert titles(svg) == [
        f"{precision}: {rest} over n"
        for precision in ("float32", "tf32")
        for rest in ("GFLOP/s", "largest relative error")
    ]
    assert names(svg) == ["a", "b", "c", "d"]
    lines = {m.stroke: m.node.get("stroke-dasharray") for m in panel(svg, 0, 0, "mark-line")}
    assert lines == {style.PALETTE[0]: "1,0", style.PALETTE[1]: "1,0", style.NEUTRAL: "6,3"}
    assert len(panel(svg, 1, 0, "mark-line")) == 1


def test_lines_with_claims_have_hollow_markers(tmp_path: Path) -> None:
    narrow = [timed("narrow", n, 1, claims=Claims(precision="tf32")) for n in (1000, 2000)]
    said = "hollow: with claims, so by weaker checks"
    svg = drawn([*LADDER, *narrow], tmp_path / "c.svg")
    assert said in words(svg)
    hollow = [mark for mark in marks(svg, "mark-symbol") if mark.is_hollow]
    assert len(hollow) == 4, "two panels, each with two sizes"
    without = drawn(LADDER, tmp_path / "c.svg")
    assert said not in words(without)
    assert not [mark for mark in marks(without, "mark-symbol") if mark.is_hollow]


def test_every_line_has_a_look_and_a_name_and_the_fastest_is_on_top(tmp_path: Path) -> None:
    found = [timed(f"k{i:02}", n, (1 + i) * n, error=1e-7 * (1 + i)) for i in range(40)
             for n in (256, 512)]  # fmt: skip
    svg = drawn(found, tmp_path / "c.svg")
    for column in (0, 1):
        lines = [mark.stroke for mark in panel(svg, 0, column, "mark-line")]
        assert lines == [style.PALETTE[i % 8] for i in reversed(range(40))]
    assert names(svg) == [f"k{i:02}" for i in range(40)]


def test_intervals_are_as_high_as_they_are_wide(tmp_path: Path) -> None:
    def case(n: int, low: float, high: float) -> Outcome:
        ms = float(n)
        cold = records.timing(ms, interval_ns=(low * ms * 1e6, high * ms * 1e6))
        return timed("a", n, ms, cold=cold)

    svg = drawn([case(256, 0.9, 1.1), case(512, 0.8, 1.25), case(1024, 1, 1)], tmp_path / "c.svg")
    assert "bars: intervals of the median" in words(svg)
    first, second, third = (
        abs(float(mark.node.get("y2", 0))) for mark in panel(svg, 0, 0, "mark-rule")
    )
    assert second > first > 1 > third
    assert not [m for m in panel(svg, 0, 1, "mark-rule") if abs(float(m.node.get("y2", 0))) > 1]


def test_a_chart_names_inputs_and_how_they_were_timed(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    assert "cold samples · uniform inputs" in words(drawn(LADDER, path))
    mixed = [*LADDER, timed("slow", 2000, 9, problem=Problem(2000, 2000, 2000, inputs="signed"))]
    said = words(drawn(mixed, path))
    assert "slow · signed inputs" in said
    assert "slow · uniform inputs" in said
    assert "cold samples · " not in said


def test_sizes_are_marked_by_powers_of_two(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    named = texts(drawn([of("dot", 2**p, 1) for p in (9, 10, 11, 12)], path))
    assert {"512", "1,024", "2,048", "4,096"} <= named
    many = [of("dot", n, 1) for p in range(28) for n in (2**p, 2**p + 1)]
    named = texts(drawn(many, path))
    assert "1,048,576" in named
    assert not [text for text in named if "e+" in text]
    svg = drawn([timed("a", 1000, 1), timed("a", 1024, 1), timed("a", 1025, 1)], path)
    assert len(panel(svg, 0, 0, "mark-symbol")) == 3, "where all are neighbours, none is awkward"


def test_exact_results_get_no_picture_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    for outcomes in (
        [of("reverse", n, 1, error=None) for n in (2**10, 2**20)],
        [of("dot", n, 1, error=0.0) for n in (2**10, 2**20)],
    ):
        svg = drawn(outcomes, path)
        assert "every result is exact" in words(svg)
        assert "relative error" not in words(svg)
        assert len(titles(svg)) == 1


def test_an_error_of_nothing_is_not_on_a_logarithmic_axis(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn(LADDER, path)
    assert "errors of 0 are not shown" in words(svg)
    assert len(panel(svg, 0, 1, "mark-symbol")) == len(panel(svg, 0, 0, "mark-symbol")) - 1
    unknown = Accuracy(None, None, None)
    untold = [o if o.max_rel_err else msgspec.structs.replace(o, accuracy=unknown) for o in LADDER]
    assert "errors of 0" not in words(drawn(untold, path))


@pytest.mark.parametrize(("outcomes", "name", "told"), [
    ([], "c.svg", "nothing to draw"),
    (LADDER[-2:], "c.svg", "nothing to draw: no measured case has a single size n"),
    (LADDER, "c.pdf", "must end in .svg or .png"),
    (LADDER, "no/c.svg", "no folder"),
    (LADDER[:2], "c.svg", "needs two or more sizes; these records have only 1,000"),
    ([LADDER[0], of("dot", 8, 1)], "c.svg", "a chart shows one workload, not matmul and dot"),
])  # fmt: skip
def test_charts_that_cannot_be_drawn(
    outcomes: list[Outcome], name: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        chart.draw(outcomes, tmp_path / name, "")
    assert list(tmp_path.iterdir()) == []


def test_noise_does_not_fill_the_chart(tmp_path: Path) -> None:
    found = [timed("a", n, n**3 / 1e9 * (1 + n / 1e5)) for n in (512, 1024)]
    first, second = panel(drawn(found, tmp_path / "c.svg"), 0, 0, "mark-symbol")
    assert 0 < second.y - first.y < 20, "0.5% of at least 25%"


# The command


@needs_plots
@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_a_timeline_of_a_real_launch(matbench: Matbench, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    matbench("blocks", "tiled", "--sizes", "100", "--set", "TILE=16", "--timeline", path)
    text = path.read_text(encoding="utf-8")
    assert "tiled TILE=16 at 100" in text
    assert suffix == ".html" or len(bars(text)) == 49


@needs_plots
def test_charts_from_record_files(matbench: Matbench, tmp_path: Path) -> None:
    files = []
    for number, sizes in enumerate(("8,16", "32,4x8x4")):
        files.append(tmp_path / f"{number}.jsonl")
        matbench("run", "single-block", "numpy", "--sizes", sizes, *QUICK,
                 "--output", files[-1])  # fmt: skip
    matbench("plot", *files, "--output", tmp_path / "c.svg")
    said = words((tmp_path / "c.svg").read_text(encoding="utf-8"))
    assert "single-block" in said
    assert "numpy" in said
    assert all(size in said for size in ("8", "16", "32"))
    assert "2 cases of other shapes" in said
    # The folder that a picture was drawn in holds nothing else.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl", "c.svg"]
