"""What docs/published.md shows of `results/h100-published.csv`: tables, and a chart."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd
from measured import RECORDS, read, specified, table

from matbench import workloads
from matbench.features.charts.definitions import Chart, quantity
from matbench.features.charts.style import PALETTE

DATA = RECORDS / "h100-published.csv"
#: The library's rows are no published function.
LIBRARY = "NVIDIA/cuBLAS"
#: The record with the fastest float16 product of cuBLASLt on this GPU, which sums in float32.
HALF = "h100-tuned.jsonl", "cublaslt-best-f16"


@functools.cache
def published() -> tuple[pd.DataFrame, dict[str, float]]:
    """The functions, the fastest first, with links and shares; the library's TFLOP/s by type."""
    rows = pd.read_csv(DATA, comment="#", dtype={"max_rel_err": str}, keep_default_na=False)
    is_library = rows["repository"] == LIBRARY
    libraries = dict(rows.loc[is_library, ["precision", "tflops"]].to_numpy())
    [half] = [pair.baseline for pair in read(HALF[0])[0] if pair.baseline_name == HALF[1]]
    libraries["float16"] = workloads.work_of(half.case.problem) / half.median_ns / 1e3
    rows = rows[~is_library].sort_values("median_ms", kind="stable")
    rows["share"] = rows["tflops"] / rows["precision"].map(libraries)
    place = "https://github.com/" + rows["repository"] + "/blob/" + rows["revision"]
    rows["code"] = "[`" + rows["function"] + "`](" + place + "/" + rows["file"] + ")"
    return rows, libraries


def repositories() -> str:
    """The fastest and the median function of each repository and type."""
    shown = []
    for (name, precision), own in published()[0].groupby(["repository", "precision"], sort=False):
        best, any_size = own.iloc[0], sum(own["where"] == "")
        figures = [best["tflops"], f"{best['share']:.1%}", f"{own['share'].median():.1%}"]
        shown.append([name, precision, best["code"], len(own), any_size, *figures])
    titles = ["repository", "type", "its fastest", "functions", "any size", "TFLOP/s"]
    return table([*titles, "of cuBLAS", "median"], shown, 5)


def functions(precision: str) -> str:
    """All functions of a type."""
    rows: Any = published()[0].query("precision == @precision").itertuples()
    shown = [[of.code, of.repository.split("/")[0], of.where.replace(" and ", ", ") or "any",
              of.max_rel_err, f"{of.median_ms:.3f}", of.tflops, f"{of.share:.1%}"]
             for of in rows]  # fmt: skip
    titles = ["function", "of", "sizes", "max rel err", "ms", "TFLOP/s", "of cuBLAS"]
    return table(titles, shown, 4)


def picture() -> tuple[list[Chart], str, list[str]]:
    """Speed against error, a mark for each function; marks of a repository are side by side."""
    rows, libraries = published()
    spec = specified(
        "published.vl.json", palette=list(PALETTE),
        y=quantity("tflops", title="TFLOP/s", close=True),
        marks=rows[["repository", "max_rel_err", "tflops"]].to_dict("records"),
        lines=[{"tflops": speed, "type": name} for name, speed in libraries.items()],
    )  # fmt: skip
    about = DATA.read_text(encoding="utf-8").partition("\n")[0].strip("# ").rsplit("; ", 1)
    return [Chart("", "", spec)], "Published kernels: speed and error", about
