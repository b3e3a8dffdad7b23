"""What others have published: kernels, for docs/published.md; judges and tricks, for judges.md."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import msgspec
import pandas as pd
from tables import DOCS, RECORDS, ROOT, read, table

from matbench import workloads
from matbench.features.charts.definitions import Chart, filled, quantity
from matbench.features.charts.style import INK, PALETTE

#: What was measured: published kernels, and a library's.
DATA = RECORDS / "h100-published.csv"
LIBRARY = "NVIDIA/cuBLAS"
#: The record with the fastest float16 product of cuBLASLt on this GPU, which sums in float32.
HALF = "h100-tuned.jsonl", "cublaslt-best-f16"
#: The verdicts of benchmarks/judges.py, and its rules that others have published.
RECORD = json.loads((RECORDS / "cpu-judges.json").read_text(encoding="utf-8"))
PUBLISHED = [rule for rule in RECORD["rules"] if rule["source"] is not None]
DRAWS = {"uniform": "[0, 1)", "signed": "±1", "to_ten": "±10", "normal": "normal"}


def specified(file: str, **parts: Any) -> Any:
    """A chart's specification beside this file, with its parts."""
    return filled(json.loads((DOCS / file).read_text(encoding="utf-8")), parts)


@functools.cache
def measured() -> tuple[pd.DataFrame, dict[str, float]]:
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
    for (name, precision), own in measured()[0].groupby(["repository", "precision"], sort=False):
        best, any_size = own.iloc[0], sum(own["where"] == "")
        figures = [best["tflops"], f"{best['share']:.1%}", f"{own['share'].median():.1%}"]
        shown.append([name, precision, best["code"], len(own), any_size, *figures])
    titles = ["repository", "type", "its fastest", "functions", "any size", "TFLOP/s"]
    return table([*titles, "of cuBLAS", "median"], shown, 5)


def functions(precision: str) -> str:
    """All functions of a type."""
    rows: Any = measured()[0].query("precision == @precision").itertuples()
    shown = [[of.code, of.repository.split("/")[0], of.where.replace(" and ", ", ") or "any",
              of.max_rel_err, f"{of.median_ms:.3f}", of.tflops, f"{of.share:.1%}"]
             for of in rows]  # fmt: skip
    titles = ["function", "of", "sizes", "max rel err", "ms", "TFLOP/s", "of cuBLAS"]
    return table(titles, shown, 4)


def marks() -> tuple[list[Chart], str, list[str]]:
    """Speed against error, a mark for each function; marks of a repository are side by side."""
    rows, libraries = measured()
    spec = specified(
        "published.vl.json", palette=list(PALETTE),
        y=quantity("tflops", title="TFLOP/s", close=True),
        marks=rows[["repository", "max_rel_err", "tflops"]].to_dict("records"),
        lines=[{"tflops": speed, "type": name} for name, speed in libraries.items()],
    )  # fmt: skip
    about = DATA.read_text(encoding="utf-8").partition("\n")[0].strip("# ").rsplit("; ", 1)
    return [Chart("", "", spec)], "Published kernels: speed and error", about


def operands(rule: dict[str, Any]) -> str:
    return f"{rule['kind']}, {DRAWS[rule['draw']]}"


def rules() -> str:
    """The published rules, with where each was read."""
    rows = []
    for rule in PUBLISHED:
        repository, path, revision, lines = rule["source"]
        url = f"https://github.com/{repository}/blob/{revision}/{path}#L{lines.replace('–', '-L')}"
        source = f"[{repository}]({url}), `{path}`, lines {lines}, `{revision[:10]}`"
        plus, of = ", or" if rule["either"] else " +", "C" if rule["of_C"] else "R"
        bound = f"{rule['atol']:g}{plus} {rule['rtol']:g}·\\|{of}\\|"
        rows.append([rule["name"], bound, operands(rule), f"{rule['K']:,}", source])
    return table(["rule", "an element may be off by", "operands", "K", "read in"], rows, 0)


def scores() -> str:
    """How many honest results each refuses, and how many others it accepts."""
    verdicts, rows = pd.DataFrame(RECORD["verdicts"]), []
    for rule in RECORD["rules"]:
        own = verdicts[verdicts["rule"] == rule["name"]]
        honest, others = own[own["honest"]], own[~own["honest"]]
        rows.append([rule["name"], operands(rule)])
        for key in ("accepted", "verified") if rule in PUBLISHED else ("accepted",):
            accepted = others[others[key] > 0]["result"]
            names = re.sub(r"(\d+)( bits, operands of (\d+))+", r"\1–\3", ", ".join(accepted))
            told = f"{len(accepted)} of {len(others)}: {names}".removesuffix(": ")
            rows[-1] += [f"{sum(honest[key] < honest['judged'])} of {len(honest)}", told]
    titles = ["judge", "operands", "refuses, though honest", "accepts, though not honest"]
    titles += ["`verify`, same arrays: refuses", "`verify`, same arrays: accepts"]
    return table(titles, rows, 0)


def tricks() -> str:
    """What becomes of each trick, as the tests hold it (`expected.toml`)."""
    expected: dict[str, dict[str, Any]] = {}
    for folder in ("cheats", "functions"):
        text = (ROOT / "tests" / "kernels" / folder / "expected.toml").read_bytes()
        expected |= msgspec.toml.decode(text)
    rows = []
    for trick in msgspec.toml.decode((DOCS / "tricks.toml").read_bytes())["trick"]:
        about = [trick["what"], trick["published"]]
        for name in trick["kernels"]:
            rows.append([*about, f"`{name}`", *_stopped(expected[name])])
            about = ["", ""]
    return table(["trick", "published by", "here", "it is", "by, or because"], rows, 0)


def _stopped(of: dict[str, Any]) -> tuple[str, str]:
    """What becomes of a kernel, and the checks that see to it or the reason."""
    status = of.get("status", "wrong")
    either = status if isinstance(status, str) else " or ".join(status)
    if "why" in of:
        return "**not always stopped**", of["why"]
    checks = [*of.get("defused_by", ()), *(of.get("caught_by") or of.get("only", ()))[:2]]
    said = [f"“{text.strip(': ')}”" for text in of.get("reason", ())]
    words = [f"`{check}`" for check in dict.fromkeys(checks)] or said
    return "defused" if "defused_by" in of else either, ", ".join(words)


def grid() -> tuple[list[Chart], str]:
    """The grid of all results and judges."""
    note = "marked with ! where it is wrong about them; C is {0}×{0}".format(RECORD["side"])
    spec = specified("judges.vl.json", rows=RECORD["verdicts"], ink=INK)
    return [Chart("", note, spec)], "Which results a rule accepts"
