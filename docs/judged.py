"""What docs/judges.md shows: the verdicts of benchmarks/judges.py, and published tricks."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pandas as pd
from measured import DOCS, RECORDS, ROOT, specified, table

from matbench.features.charts import style
from matbench.features.charts.definitions import Chart

RECORD = json.loads((RECORDS / "cpu-judges.json").read_text(encoding="utf-8"))
PUBLISHED = [rule for rule in RECORD["rules"] if rule["source"] is not None]
DRAWS = {"uniform": "[0, 1)", "signed": "±1", "to_ten": "±10", "normal": "normal"}


def operands(rule: dict[str, Any]) -> str:
    return f"{rule['kind']}, {DRAWS[rule['draw']]}"


def rules() -> str:
    """The published rules, with where each was read."""
    rows = []
    for rule in PUBLISHED:
        repository, path, revision, lines = rule["source"]
        url = f"https://github.com/{repository}/blob/{revision}/{path}#L{lines.replace('–', '-L')}"
        source = f"[{repository}]({url}), `{path}`, lines {lines}, `{revision[:10]}`"
        either = ", or" if rule["either"] else " +"
        bound = f"{rule['atol']:g}{either} {rule['rtol']:g}·\\|{'C' if rule['of_C'] else 'R'}\\|"
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
            accepted = list(others[others[key] > 0]["result"])
            rows[-1].append(f"{sum(honest[key] < honest['judged'])} of {len(honest)}")
            rows[-1].append(
                f"{len(accepted)} of {len(others)}{': ' * bool(accepted)}{_named(accepted)}"
            )
    titles = ["judge", "operands", "refuses, though honest", "accepts, though not honest"]
    titles += [f"`verify`, same arrays: {does}" for does in ("refuses", "accepts")]
    side, [drawn] = RECORD["side"], set(verdicts["judged"])
    about = f"M = N = {side}; each result is judged with {drawn} sets of operands."
    return f"{table(titles, rows, 0)}\n\n{about}"


def _named(results: list[str]) -> str:
    """`operands of 9–18 bits, 1 term lost`."""
    bits = [name.split()[2] for name in results if name.startswith("operands of")]
    ends = "–".join(dict.fromkeys([*bits[:1], *bits[-1:]]))
    return ", ".join([f"operands of {ends} bits"] * bool(bits) + results[len(bits) :])


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
    if "takes_s" in of:
        return either, "no time is below that of the work"
    checks = [*of.get("defused_by", ()), *(of.get("caught_by") or of.get("only", ()))[:2]]
    said = [f"“{text.strip(': ')}”" for text in of.get("reason", ())]
    words = [f"`{check}`" for check in dict.fromkeys(checks)] or said
    return "defused" if "defused_by" in of else either, ", ".join(words)


def picture() -> tuple[list[Chart], str]:
    """The grid of all results and judges."""
    names = [rule["name"] for rule in PUBLISHED]
    rows = [row | {"published": row["rule"] in names} for row in RECORD["verdicts"]]
    note = "marked with ! where it is wrong about them; C is {0}×{0}".format(RECORD["side"])
    spec = specified("judges.vl.json", rows=rows, ink=style.INK)
    return [Chart("", note, spec)], "Which results a rule accepts"
