"""Writes what the page on published kernels shows of `results/h100-published.csv`: tables, a chart.

`python docs/generate_published.py` writes them; with `--check` it names those that are out of date
and exits 1.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import freshness
import generate_readme
from tabulate import tabulate

from matbench.features.charts import picture, style
from matbench.features.charts.definitions import Chart, quantity
from matbench.records import reading
from matbench.records.comparison import ComparisonRecord

ROOT = freshness.ROOT
DATA = ROOT / "results" / "h100-published.csv"
PAGE, CHART = ROOT / "docs" / "published.md", ROOT / "docs" / "published.svg"
#: The library's rows are no published function.
LIBRARY = "NVIDIA/cuBLAS"
#: The record with the fastest float16 product of cuBLASLt on this GPU, which sums in float32.
HALF = ROOT / "results" / "h100-tuned.jsonl", "cublaslt-best-f16"
#: What has each error that occurs.
KINDS = {
    "4.7e-06": "4.7e-6: float32", "9.4e-03": "9.4e-3: float16, tensor cores",
    "1.1e-01": "0.11: float16, multiply-adds",
}  # fmt: skip

LEGEND = {"title": None, "labelLimit": 400, "orient": "bottom", "columns": 3}

Row = dict[str, str]


def read() -> tuple[str, list[Row], dict[str, float]]:
    """About the run; its functions, the fastest first; the library's TFLOP/s by precision."""
    about, *lines = DATA.read_text(encoding="utf-8").splitlines()
    rows = [*csv.DictReader(lines)]
    libraries = {r["precision"]: float(r["tflops"]) for r in rows if r["repository"] == LIBRARY}
    path, name = HALF
    found = [f for f, _ in reading.Contents(path).findings if isinstance(f, ComparisonRecord)]
    [half] = [r.baseline for r in found if r.baseline.case.kernel == name]
    libraries["float16"] = generate_readme.tflops(half)
    rows = [row for row in rows if row["repository"] != LIBRARY]
    return about, sorted(rows, key=lambda row: float(row["median_ms"])), libraries


def of_library(row: Row, libraries: dict[str, float]) -> str:
    return f"{float(row['tflops']) / libraries[row['precision']]:.1%}"


def code(row: Row) -> str:
    """A link to a function's file, as it was measured."""
    address = f"https://github.com/{row['repository']}/blob/{row['revision']}/{row['file']}"
    return f"[`{row['function']}`]({address})"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """A table whose last columns are `numbers`."""
    align = ["left"] * (len(titles) - numbers) + ["right"] * numbers
    return tabulate(rows, titles, "pipe", colalign=align, disable_numparse=True)


def repositories(rows: Sequence[Row], libraries: dict[str, float]) -> str:
    """The fastest and the median function of each repository and type."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["repository"], row["precision"]), []).append(row)
    shown = []
    for (name, precision), own in groups.items():
        median = statistics.median(float(row["tflops"]) for row in own)
        figures = [own[0]["tflops"], of_library(own[0], libraries)]
        figures.append(f"{median / libraries[precision]:.1%}")
        any_size = str(sum(not row["where"] for row in own))
        shown.append([name, precision, code(own[0]), str(len(own)), any_size, *figures])
    titles = ["repository", "type", "its fastest", "functions", "any size", "TFLOP/s"]
    return table([*titles, "of cuBLAS", "median"], shown, 5)


def functions(rows: Sequence[Row], libraries: dict[str, float], precision: str) -> str:
    """All functions of a type."""
    shown = [
        [code(row), row["repository"].split("/")[0], row["where"].replace(" and ", ", ") or "any",
         f"{float(row['max_rel_err']):.1e}", f"{float(row['median_ms']):.3f}", row["tflops"],
         of_library(row, libraries)]
        for row in rows if row["precision"] == precision
    ]  # fmt: skip
    titles = ["function", "of", "sizes", "max rel err", "ms", "TFLOP/s", "of cuBLAS"]
    return table(titles, shown, 4)


def chart() -> str:
    """Speed against error, a mark for each function; marks of a repository are side by side."""
    about, rows, libraries = read()
    looks = style.looks((name, False) for name in sorted({row["repository"] for row in rows}))
    marks = [
        {"repository": row["repository"], "error": KINDS[row["max_rel_err"]],
         "value": float(row["tflops"])}
        for row in rows
    ]  # fmt: skip
    by_name: Callable[[int], dict[str, Any]] = lambda part: {  # noqa: E731
        "field": "repository", "type": "nominal", "legend": LEGEND,
        "scale": {"domain": [*looks], "range": [look[part] for look in looks.values()]},
    }  # fmt: skip
    lines = [{"value": speed, "label": f"cuBLAS, {name}"} for name, speed in libraries.items()]
    y = quantity("value", title="TFLOP/s", close=True)
    x = {"field": "error", "type": "nominal", "sort": [*KINDS.values()], "axis": {"labelAngle": 0},
         "title": "largest relative error, and what has it"}  # fmt: skip
    spec = {
        "height": 420, "width": 780,
        "layer": [
            {"data": {"values": lines}, "mark": {"type": "rule", "strokeDash": [4, 3]},
             "encoding": {"y": y}},
            {"data": {"values": lines},
             "mark": {"type": "text", "align": "left", "dx": 4, "dy": -6},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}}},
            {"data": {"values": marks}, "mark": {"type": "point", "size": 40, "strokeWidth": 1.6},
             "encoding": {"x": x, "xOffset": {"field": "repository"}, "y": y,
                          "stroke": by_name(0), "shape": by_name(1)}},
        ],
    }  # fmt: skip
    title, lines_below = "Published kernels: speed and error", [about.strip("# ")]
    return generate_readme.drawn(
        lambda path: picture.draw(path, [Chart("", "", spec)], title, lines_below),
        [*marks, *lines],
    )


def written(page: str) -> str:
    """The page with what it must hold between its markers."""
    _, rows, libraries = read()
    page = generate_readme.inserted(page, "repositories", repositories(rows, libraries))
    for precision in libraries:
        page = generate_readme.inserted(page, precision, functions(rows, libraries, precision))
    return page


PAGES: generate_readme.Pages = {PAGE: written, CHART: generate_readme.kept(chart)}

if __name__ == "__main__":
    sys.exit(freshness.finish(generate_readme.outdated(PAGES)))
