"""Pictures of speed and error: what is measured is drawn, where it belongs, and can be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import records
from support.ladder import LADDER, timed
from support.pictures import Mark, marks, needs_plots, picture, texts, words

from matbench.errors import UsageError
from matbench.model import Problem
from matbench.records.outcome import Accuracy, Claims, Outcome
from matbench.show.charts import layout, style, text
from matbench.show.pictures import chart

pytestmark = needs_plots


def drawn(outcomes: Iterable[Outcome], path: Path) -> str:
    chart.draw(list(outcomes), path, "")
    return path.read_text(encoding="utf-8")


def of(workload: str, n: int, milliseconds: float, **more: Any) -> Outcome:
    inputs = more.pop("inputs", "ramp")
    problem = Problem(1, n, 1, inputs=inputs, workload=workload)
    return timed("k", n, milliseconds, problem=problem, **more)


def panels(svg: str) -> dict[str, list[Mark]]:
    """What is drawn in each panel, by its title."""
    root = ElementTree.fromstring(svg)
    found = {}
    for group in root:
        inside = marks(ElementTree.tostring(group, encoding="unicode"))
        if group.tag.endswith("}g"):
            found[inside[0].text] = inside
    return found


def at(drawing: list[Mark], colour: str, kind: str = "mark-symbol role-mark") -> list[Mark]:
    return [mark for mark in drawing if kind in mark.kind and mark.stroke == colour]


def names(drawing: list[Mark]) -> list[Mark]:
    return [mark for mark in drawing if mark.kind == "mark-text role-mark layer_4_marks"]


def test_a_chart_says_what_it_shows_and_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    chart.draw(LADDER, path, "H200 <&> $x$")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for word in ("fast", "slow", "library", "TFLOP/s over n", "largest relative error over n",
                 "H200 <&> $x$", "matrix product"):  # fmt: skip
        assert word in said
    assert "1 case of another shape is not shown" in said
    assert "broken" not in said and "thin" not in said
    chart.draw(LADDER, path, "H200 <&> $x$")
    assert path.read_text(encoding="utf-8") == svg
    # Other figures make another picture, even if its words are the same.
    assert chart.digest(LADDER) in svg
    assert chart.digest(LADDER[1:]) == chart.digest(LADDER)
    assert chart.digest([*LADDER, timed("slow", 1000, 9)]) not in svg
    chart.draw(LADDER, tmp_path / "chart.png", "")
    assert picture(tmp_path / "chart.png").shape[1] > 1000


def test_a_screen_reader_is_told_what_is_fastest(tmp_path: Path) -> None:
    described = ElementTree.fromstring(drawn(LADDER, tmp_path / "c.svg"))[1].text or ""
    assert "of 3 float32 kernels, the fastest at n = 2,000 fast with 16.0 TFLOP/s" in described


sizes = st.lists(st.integers(3, 14).map(lambda p: 2**p), min_size=2, max_size=6, unique=True)
times = st.floats(1e-3, 1e4)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), sizes.map(sorted))
def test_values_are_where_the_axes_say(tmp_path: Path, data: st.DataObject, ns: list[int]) -> None:
    ms = [data.draw(times) for _ in ns]
    svg = drawn((timed("a", n, t) for n, t in zip(ns, ms, strict=True)), tmp_path / "c.svg")
    [speed] = [marks for title, marks in panels(svg).items() if "FLOP/s" in title]
    found = at(speed, style.PALETTE[0])[1:]  # the first stands beside the name
    assert len(found) == len(ns)
    across = np.polyfit([mark.x for mark in found], np.log([float(n) for n in ns]), 1)
    assert across[0] > 0
    np.testing.assert_allclose(np.polyval(across, [m.x for m in found]), np.log(ns), atol=0.02)
    rates = [2 * n**3 / t for n, t in zip(ns, ms, strict=True)]
    marked = {
        float(mark.text.replace(",", "").replace("−", "-")): mark.y - 3.0
        for mark in speed
        if "role-axis-label" in mark.kind and mark.node.get("text-anchor") == "end"
    }
    assert len(marked) >= 3
    scale = 1e9 if "TFLOP" in words(svg) else 1e6
    up = np.polyfit([*marked.values()], np.log([*marked]), 1)
    assert up[0] < 0
    pixels = [abs((np.polyval(up, m.y) - math.log(rate / scale)) / up[0])
              for m, rate in zip(found, rates, strict=True)]  # fmt: skip
    assert max(pixels) < 2


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.floats(1, 100), min_size=1, max_size=30),
    st.integers(1, 60),
    st.sampled_from(["<&>", "k", "x y ", "😀"]),
)
@example(speeds=[1.0], length=150, letters="k")
def test_names_do_not_overlap_and_stay_in_the_picture(
    tmp_path: Path, speeds: list[float], length: int, letters: str
) -> None:
    found = [
        timed((letters * length)[:length] + str(i), n, n / speed, error=1e-7 * speed)
        for i, speed in enumerate(speeds)
        for n in (256, 1000, 1024)
    ]
    svg = drawn(found, tmp_path / "c.svg")
    width = float(ElementTree.fromstring(svg).get("width", 0))
    by_panel = [names(drawing) for drawing in panels(svg).values()]
    assert sum(map(len, by_panel)) >= 2
    for labels in by_panel:
        ys = sorted(label.y for label in labels)
        assert all(b - a >= layout.NAME_HEIGHT - 0.1 for a, b in pairwise(ys))
    for drawing in panels(svg).values():
        leaders = [mark for mark in drawing if mark.kind == "mark-rule role-mark layer_2_marks"]
        if named := names(drawing):
            ends = [mark.y + float(mark.node.get("y2", 0)) for mark in leaders]
            below = [name.y - end for name, end in zip(named, ends, strict=True)]
            assert max(below) - min(below) < 0.1, "a leader ends beside its name"
    for mark in marks(svg, "mark-text role-mark"):
        wider = (
            1.12 if mark.text.replace("…", "").isascii() else 1
        )  # DejaVu Sans, where Arial is missing
        assert mark.x + wider * text.width(mark.text, 11) <= width


def test_awkward_sizes_make_no_cliffs_but_panels(tmp_path: Path) -> None:
    found = [timed("a", n, n**3 / 1e9) for n in (512, 1024, 2048, 4096)]
    found += [timed("a", 1000, 2.0), timed("a", 4095, 4 * 4095**3 / 1e9)]
    drawing = panels(drawn(found, tmp_path / "c.svg"))
    [speed, error, first, second] = drawing.items()
    for _, shown in (speed, error):
        [line] = [mark for mark in shown if "mark-line" in mark.kind]
        assert len(re.findall("[ML]", line.text)) == 4
        assert len(at(shown, style.PALETTE[0])) == 5
    for (title, shown), size in ((first, "n = 1,000"), (second, "n = 4,095")):
        assert title.startswith(size)
        [mark] = at(shown, style.PALETTE[0])
        [same] = [m for m in shown if "mark-rule" in m.kind and m.node.get("stroke-dasharray")]
        assert mark.x < same.x, "slower than beside it"
    assert "speed relative to n = 1,024" in first[0]
    # Both axes have the same ends.
    [less], [more] = at(second[1], style.PALETTE[0]), at(first[1], style.PALETTE[0])
    assert less.x - 480 < more.x


def test_few_awkward_sizes_get_panels_and_the_others_are_counted(tmp_path: Path) -> None:
    found = [of("dot", n, 1 + n / 1e6) for p in range(5, 15) for n in (2**p, 2**p + 1)]
    svg = drawn(found, tmp_path / "c.svg")
    shown = [title for title in panels(svg) if title.startswith("n = ")]
    assert [title.split("speed")[0] for title in shown] == [
        f"n = {2**p + 1:,}" for p in range(9, 15)
    ]
    assert "the 4 smallest awkward sizes are not shown" in words(svg)


def test_each_precision_has_a_row_and_baselines_are_dashed(tmp_path: Path) -> None:
    found = [
        timed(name, n, ms * n, group=group, claims=Claims(precision=precision))
        for n in (256, 512)
        for name, precision, group, ms in (
            ("a", "float32", "ladder", 1), ("b", "float32", "ladder", 2),
            ("c", "float32", "baseline", 3), ("d", "tf32", "ladder", 1),
        )
    ]  # fmt: skip
    drawing = panels(drawn(found, tmp_path / "c.svg"))
    assert [title.split()[0] for title in drawing] == [
        f"{precision}{rest}" for precision in ("float32", "tf32") for rest in ("GFLOP/s", "largest")
    ]
    first, _, second, _ = drawing.values()
    assert {mark.text for mark in names(first)} == {"a", "b", "c"}
    assert {mark.text for mark in names(second)} == {"d"}
    lines = {m.stroke: m.node.get("stroke-dasharray") for m in first if "mark-line" in m.kind}
    assert lines == {style.PALETTE[0]: "1,0", style.PALETTE[1]: "1,0", style.NEUTRAL: "6,3"}


def test_lines_with_claims_have_hollow_markers(tmp_path: Path) -> None:
    narrow = [timed("narrow", n, 1, claims=Claims(precision="tf32")) for n in (1000, 2000)]
    said = "hollow: with claims, so by weaker checks"
    svg = drawn([*LADDER, *narrow], tmp_path / "c.svg")
    assert said in words(svg)
    hollow = [mark for mark in marks(svg, "mark-symbol") if not mark.fill]
    assert len(hollow) == 6, "two panels, each with two sizes and a name"
    without = drawn(LADDER, tmp_path / "c.svg")
    assert said not in words(without)
    assert not [mark for mark in marks(without, "mark-symbol") if not mark.fill]


def test_colours_are_for_the_fastest_and_all_have_names(tmp_path: Path) -> None:
    found = [timed(f"k{i:02}", n, (1 + i) * n, error=1e-7 * (1 + i)) for i in range(12)
             for n in (256, 512)]  # fmt: skip
    speed, error = panels(drawn(found, tmp_path / "c.svg")).values()
    for shown in (speed, error):
        lines = [mark.stroke for mark in shown if "mark-line" in mark.kind]
        assert sorted(lines) == sorted([*style.PALETTE, *[style.CONTEXT] * 4])
        assert lines[:4] == [style.CONTEXT] * 4, "below the others"
        assert {mark.text for mark in names(shown)} == {f"k{i:02}" for i in range(12)}


def test_intervals_are_drawn_where_they_are_wide(tmp_path: Path) -> None:
    def case(n: int, low: float, high: float) -> Outcome:
        ms = float(n)
        cold = records.timing(ms, interval_ns=(low * ms * 1e6, high * ms * 1e6))
        return timed("a", n, ms, cold=cold)

    found = [case(256, 0.995, 1.005), case(512, 0.8, 1.25), case(1024, 1, 1)]
    svg = drawn(found, tmp_path / "c.svg")
    speed, error = panels(svg).values()
    assert "bars: intervals of the median wider than 2%" in words(svg)
    lengths = [float(m.node.get("y2", 0)) for m in at(speed, style.PALETTE[0], "mark-rule")]
    assert len([length for length in lengths if abs(length) > 3]) == 1
    assert not [m for m in at(error, style.PALETTE[0], "mark-rule")
                if abs(float(m.node.get("y2", 0))) > 1]  # fmt: skip
    assert "intervals" not in words(drawn([case(256, 0.995, 1.005), case(512, 1, 1)],
                                          tmp_path / "c.svg"))  # fmt: skip


def test_kernels_with_the_same_errors_are_one_line(tmp_path: Path) -> None:
    found = [timed(k, n, ms * n, error=e) for n in (256, 512)
             for k, ms, e in (("a", 1, 2e-7), ("b", 2, 2e-7), ("c", 3, 4e-7))]  # fmt: skip
    speed, error = panels(drawn(found, tmp_path / "c.svg")).values()
    assert {mark.text for mark in names(speed)} == {"a", "b", "c"}
    assert {mark.text for mark in names(error)} == {"a + 1 alike", "c"}
    assert len([mark for mark in error if "mark-line" in mark.kind]) == 2


def test_a_chart_names_inputs_and_how_they_were_timed(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    assert "cold samples · uniform inputs" in words(drawn(LADDER, path))
    mixed = [*LADDER, timed("slow", 2000, 9, problem=Problem(2000, 2000, 2000, inputs="signed"))]
    said = words(drawn(mixed, path))
    assert "slow · signed inputs" in said and "slow · uniform inputs" in said
    assert "cold samples · " not in said


def test_large_sizes_are_powers_of_two_and_few(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn([of("dot", n, 1) for n in (33792, 2**20, 2**28)], path)
    named = texts(svg)
    assert {"33,792", "2²⁰", "2²⁸"} <= named
    assert not [text for text in named if "e+" in text]
    svg = drawn([of("dot", n, 1) for p in range(28) for n in (2**p, 2**p + 1)], path)
    assert 2 <= len([text for text in texts(svg) if re.fullmatch("2[⁰¹²³⁴⁵⁶⁷⁸⁹]+", text)]) <= 14
    svg = drawn([timed("a", 1000, 1), timed("a", 1024, 1), timed("a", 1025, 1)], path)
    assert "1,000" in texts(svg), "where all sizes are neighbours, none is awkward"


def test_exact_results_get_no_picture_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    for outcomes in (
        [of("reverse", n, 1, error=None) for n in (2**10, 2**20)],
        [of("dot", n, 1, error=0.0) for n in (2**10, 2**20)],
    ):
        svg = drawn(outcomes, path)
        assert "every result is exact" in words(svg)
        assert "relative error" not in words(svg)
        assert len(panels(svg)) == 1


def test_an_error_of_nothing_is_drawn_at_the_edge(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn(LADDER, path)
    assert "an error of 0 is drawn at the bottom edge" in words(svg)
    _, error = panels(svg).values()
    [axis] = {m.y for m in error if m.text in ("1,000", "2,000") and "axis-label" in m.kind}
    lowest = max(mark.y for mark in at(error, style.PALETTE[0]))
    assert axis - 18 < lowest < axis
    unknown = Accuracy(None, None, None)
    untold = [o if o.max_rel_err else msgspec.structs.replace(o, accuracy=unknown) for o in LADDER]
    without = drawn(untold, path)
    assert "bottom edge" not in words(without)
    assert len(marks(svg, "mark-symbol")) == len(marks(without, "mark-symbol")) + 1


@pytest.mark.parametrize(("outcomes", "name", "told"), [
    ([], "c.svg", "nothing to draw"),
    ([LADDER[-1], LADDER[-2]], "c.svg", "nothing to draw"),
    (LADDER, "c.pdf", "must end in .svg or .png"),
    (LADDER, "no/c.svg", "no folder"),
    (LADDER[:2], "c.svg", "needs two or more sizes; these records have only 1,000"),
    ([LADDER[0], timed("d", 8, 1, problem=Problem(1, 8, 1, workload="dot"))], "c.svg", "workload"),
])  # fmt: skip
def test_charts_that_cannot_be_drawn(
    outcomes: list[Outcome], name: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        chart.draw(outcomes, tmp_path / name, "")
    assert list(tmp_path.iterdir()) == []
