"""What docs/published.md shows of `results/h100-published.csv`: tables, and a chart."""

from __future__ import annotations

import functools
import json

import pandas as pd
from measured import DOCS, RECORDS, compared_in, table, tflops

from matbench.features.charts import style
from matbench.features.charts.definitions import Chart, filled, quantity

DATA = RECORDS / "h100-published.csv"
#: The library's rows are no published function.
LIBRARY = "NVIDIA/cuBLAS"
#: The record with the fastest float16 product of cuBLASLt on this GPU, which sums in float32.
HALF = RECORDS / "h100-tuned.jsonl", "cublaslt-best-f16"
#: What has each error that occurs.
KINDS = {
    "4.7e-06": "4.7e-6: float32", "9.4e-03": "9.4e-3: float16, tensor cores",
    "1.1e-01": "0.11: float16, multiply-adds",
}  # fmt: skip


@functools.cache
def read() -> tuple[pd.DataFrame, dict[str, float]]:
    """The functions, the fastest first, with links and shares; the library's TFLOP/s by type."""
    rows = pd.read_csv(DATA, comment="#", dtype={"max_rel_err": str}, keep_default_na=False)
    is_library = rows["repository"] == LIBRARY
    libraries = dict(rows.loc[is_library, ["precision", "tflops"]].to_numpy())
    path, name = HALF
    sides = [compared.baseline for compared in compared_in(path)]
    [libraries["float16"]] = [tflops(side) for side in sides if side.case.kernel == name]
    rows = rows[~is_library].sort_values("median_ms", kind="stable")
    rows["share"] = rows["tflops"] / rows["precision"].map(libraries)
    place = "https://github.com/" + rows["repository"] + "/blob/" + rows["revision"]
    rows["code"] = "[`" + rows["function"] + "`](" + place + "/" + rows["file"] + ")"
    return rows, libraries


def repositories() -> str:
    """The fastest and the median function of each repository and type."""
    rows, _ = read()
    shown = []
    for (name, precision), own in rows.groupby(["repository", "precision"], sort=False):
        best, any_size = own.iloc[0], int((own["where"] == "").sum())
        figures = [best["tflops"], f"{best['share']:.1%}", f"{own['share'].median():.1%}"]
        shown.append([name, precision, best["code"], len(own), any_size, *figures])
    titles = ["repository", "type", "its fastest", "functions", "any size", "TFLOP/s"]
    return table([*titles, "of cuBLAS", "median"], shown, 5)


def functions(precision: str) -> str:
    """All functions of a type."""
    rows, _ = read()
    shown = [
        [row["code"], row["repository"].split("/")[0], row["where"].replace(" and ", ", ") or "any",
         f"{float(row['max_rel_err']):.1e}", f"{row['median_ms']:.3f}", row["tflops"],
         f"{row['share']:.1%}"]
        for _, row in rows[rows["precision"] == precision].iterrows()
    ]  # fmt: skip
    titles = ["function", "of", "sizes", "max rel err", "ms", "TFLOP/s", "of cuBLAS"]
    return table(titles, shown, 4)


def picture() -> tuple[list[Chart], str, list[str]]:
    """Speed against error, a mark for each function; marks of a repository are side by side."""
    rows, libraries = read()
    looks = style.looks((name, False) for name in sorted(set(rows["repository"])))
    marks = rows.assign(error=rows["max_rel_err"].map(KINDS), value=rows["tflops"])
    lines = [{"value": speed, "label": f"cuBLAS, {name}"} for name, speed in libraries.items()]
    parts = {"marks": marks[["repository", "error", "value"]].to_dict("records"), "lines": lines,
             "errors": [*KINDS.values()], "names": [*looks],
             "colours": [look.colour for look in looks.values()],
             "shapes": [look.shape for look in looks.values()],
             "y": quantity("value", title="TFLOP/s", close=True)}  # fmt: skip
    spec = filled(json.loads((DOCS / "published.vl.json").read_text(encoding="utf-8")), parts)
    about = DATA.read_text(encoding="utf-8").partition("\n")[0].strip("# ").rsplit("; ", 1)
    return [Chart("", "", spec)], "Published kernels: speed and error", about
