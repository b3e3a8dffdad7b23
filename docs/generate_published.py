"""Writes what the page on published kernels shows of `results/h100-published.csv`: tables, a chart.

`python docs/generate_published.py` writes them; with `--check` it names those that are out of date
and exits 1.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from collections.abc import Sequence
from functools import partial

import freshness
import measured
import screens

from matbench.features.charts import picture, style
from matbench.features.charts.definitions import Chart, filled, quantity

ROOT = freshness.ROOT
DATA = ROOT / "results" / "h100-published.csv"
PAGE, CHART, SPEC = (ROOT / "docs" / f"published.{kind}" for kind in ("md", "svg", "vl.json"))
#: The library's rows are no published function.
LIBRARY = "NVIDIA/cuBLAS"
#: The record with the fastest float16 product of cuBLASLt on this GPU, which sums in float32.
HALF = ROOT / "results" / "h100-tuned.jsonl", "cublaslt-best-f16"
#: What has each error that occurs.
KINDS = {
    "4.7e-06": "4.7e-6: float32", "9.4e-03": "9.4e-3: float16, tensor cores",
    "1.1e-01": "0.11: float16, multiply-adds",
}  # fmt: skip

Row = dict[str, str]


def read() -> tuple[str, list[Row], dict[str, float]]:
    """About the run; its functions, the fastest first; the library's TFLOP/s by precision."""
    about, *lines = DATA.read_text(encoding="utf-8").splitlines()
    rows = [*csv.DictReader(lines)]
    libraries = {r["precision"]: float(r["tflops"]) for r in rows if r["repository"] == LIBRARY}
    path, name = HALF
    sides = [compared.baseline for compared in measured.compared_in(path)]
    [half] = [side for side in sides if side.case.kernel == name]
    libraries["float16"] = measured.tflops(half)
    rows = [row for row in rows if row["repository"] != LIBRARY]
    return about, sorted(rows, key=lambda row: float(row["median_ms"])), libraries


def of_library(row: Row, libraries: dict[str, float]) -> str:
    return f"{float(row['tflops']) / libraries[row['precision']]:.1%}"


def code(row: Row) -> str:
    """A link to a function's file, as it was measured."""
    address = f"https://github.com/{row['repository']}/blob/{row['revision']}/{row['file']}"
    return f"[`{row['function']}`]({address})"


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
    return freshness.table([*titles, "of cuBLAS", "median"], shown, 5)


def functions(rows: Sequence[Row], libraries: dict[str, float], precision: str) -> str:
    """All functions of a type."""
    shown = [
        [code(row), row["repository"].split("/")[0], row["where"].replace(" and ", ", ") or "any",
         f"{float(row['max_rel_err']):.1e}", f"{float(row['median_ms']):.3f}", row["tflops"],
         of_library(row, libraries)]
        for row in rows if row["precision"] == precision
    ]  # fmt: skip
    titles = ["function", "of", "sizes", "max rel err", "ms", "TFLOP/s", "of cuBLAS"]
    return freshness.table(titles, shown, 4)


def chart() -> str:
    """Speed against error, a mark for each function; marks of a repository are side by side."""
    about, rows, libraries = read()
    looks = style.looks((name, False) for name in sorted({row["repository"] for row in rows}))
    marks = [{"repository": row["repository"], "error": KINDS[row["max_rel_err"]],
              "value": float(row["tflops"])} for row in rows]  # fmt: skip
    lines = [{"value": speed, "label": f"cuBLAS, {name}"} for name, speed in libraries.items()]
    parts = {"marks": marks, "lines": lines, "errors": [*KINDS.values()], "names": [*looks],
             "colours": [look.colour for look in looks.values()],
             "shapes": [look.shape for look in looks.values()],
             "y": quantity("value", title="TFLOP/s", close=True)}  # fmt: skip
    drawn = [Chart("", "", filled(json.loads(SPEC.read_text(encoding="utf-8")), parts))]
    title, below = "Published kernels: speed and error", about.strip("# ").rsplit("; ", 1)
    return screens.drawn(lambda to: picture.draw(to, drawn, title, below), [*marks, *lines])


def pages() -> freshness.Pages:
    _, rows, libraries = read()
    made = {"repositories": partial(repositories, rows, libraries)}
    made |= {name: partial(functions, rows, libraries, name) for name in libraries}
    return {PAGE: freshness.page(made), CHART: screens.kept(chart)}


if __name__ == "__main__":
    sys.exit(freshness.finish(pages()))
