"""What docs/judges.md shows: the verdicts of benchmarks/judges.py, and published tricks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tabulate import tabulate

from matbench.features.charts import picture as charts
from matbench.features.charts.definitions import Chart

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "cpu-judges.json"
KERNELS = ROOT / "tests" / "kernels"
#: What a rule says of a result, and the colour of each.
OUTCOMES = {
    "accepted, and honest": "#2c965055", "refused, and not honest": "#7d858e30",
    "accepted, though not honest": "#cf4444", "refused, though honest": "#f09010",
}  # fmt: skip
SAYS = {"uniform": "[0, 1)", "signed": "±1", "to_ten": "±10", "normal": "normal"}


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def rules_table(record: dict[str, Any]) -> str:
    """The published rules, with where each was read."""
    rows = []
    for rule in record["rules"]:
        if rule["source"] is None:
            continue
        repository, path, revision, lines = rule["source"]
        first, _, last = lines.partition("–")
        at = f"#L{first}-L{last}" if last else f"#L{first}"
        url = f"https://github.com/{repository}/blob/{revision}/{path}{at}"
        size = "C" if rule["of_C"] else "R"
        bound = f"{rule['atol']:g} + {rule['rtol']:g}·\\|{size}\\|"
        if rule["either"]:
            bound = f"{rule['atol']:g}, or {rule['rtol']:g}·\\|{size}\\|"
        rows.append(
            {
                "rule": rule["name"], "an element may be off by": bound,
                "operands": f"{rule['kind']}, {SAYS[rule['draw']]}", "K": rule["K"],
                "read in": f"[{repository}]({url}), `{path}`, lines {lines}, `{revision[:10]}`",
            }
        )  # fmt: skip
    return tabulate(rows, headers="keys", tablefmt="pipe", intfmt=",", disable_numparse=False)


def scores_table(record: dict[str, Any]) -> str:
    """How many honest results each refuses, and how many others it accepts."""
    rows = []
    for rule in record["rules"]:
        of = [row for row in record["verdicts"] if row["rule"] == rule["name"]]
        row = {"judge": rule["name"], "operands": f"{rule['kind']}, {SAYS[rule['draw']]}"}
        for title, key in (("", "accepted"), ("`verify`, same arrays: ", "verified")):
            refused = [one for one in of if one["honest"] and one[key] < one["judged"]]
            accepted = [one for one in of if not one["honest"] and one[key]]
            count = {
                is_honest: sum(one["honest"] is is_honest for one in of)
                for is_honest in (True, False)
            }
            if title and rule["source"] is None:
                row |= {f"{title}refuses": "", f"{title}accepts": ""}
                continue
            row[f"{title}refuses" if title else "refuses, though honest"] = (
                f"{len(refused)} of {count[True]}"
            )
            row[f"{title}accepts" if title else "accepts, though not honest"] = (
                f"{len(accepted)} of {count[False]}{_named(accepted)}"
            )
        rows.append(row)
    side, [drawn] = record["side"], {row["judged"] for row in record["verdicts"]}
    table = tabulate(rows, headers="keys", tablefmt="pipe")
    return f"{table}\n\nM = N = {side}; each result is judged with {drawn} sets of operands."


def _named(accepted: Iterable[dict[str, Any]]) -> str:
    """`: operands of 9–18 bits, 1 term lost`."""
    names = [one["result"] for one in accepted]
    bits = [int(name.split()[2]) for name in names if name.startswith("operands of")]
    said = [f"operands of {bits[0]}–{bits[-1]} bits"] if len(bits) > 1 else []
    said += [name for name in names if len(bits) < 2 or not name.startswith("operands of")]
    return f": {', '.join(said)}" if said else ""


def drawn(path: Path) -> None:
    """The grid of all results and judges."""
    record = read()
    published = {rule["name"] for rule in record["rules"] if rule["source"] is not None}
    rows = []
    for row in record["verdicts"]:
        sides = [("the published rule", "accepted")] if row["rule"] in published else []
        for by, key in (*sides, ("matbench.verify, on the same arrays", "verified")):
            accepts = row[key] > 0 if not row["honest"] else row[key] == row["judged"]
            said = f"{'accepted' if accepts else 'refused'}, "
            is_right = accepts == row["honest"]
            said += ("and " if is_right else "though ") + (
                "honest" if row["honest"] else "not honest"
            )
            mark = "" if is_right else "!"
            rows.append(
                {"by": by, "judge": row["rule"], "result": row["result"], "is": said, "mark": mark}
            )
    results = list(dict.fromkeys(row["result"] for row in record["verdicts"]))
    judges = [rule["name"] for rule in record["rules"]]

    def panel(by: str, *, labelled: bool) -> dict[str, Any]:
        of = [row for row in rows if row["by"] == by]
        own = [judge for judge in judges if any(row["judge"] == judge for row in of)]
        y: dict[str, Any] = {
            "field": "result", "type": "nominal", "sort": results, "title": None,
            "axis": {"labelLimit": 260, "ticks": False, "domain": False} if labelled else None,
        }  # fmt: skip
        x = {
            "field": "judge", "type": "nominal", "sort": own, "title": by,
            "axis": {"orient": "top", "labelAngle": -40, "ticks": False, "domain": False},
        }  # fmt: skip
        colour = {
            "field": "is", "type": "nominal", "title": None,
            "scale": {"domain": [*OUTCOMES], "range": [*OUTCOMES.values()]},
            "legend": {"orient": "bottom", "columns": 2, "labelLimit": 400} if labelled else None,
        }  # fmt: skip
        cells = {
            "mark": {"type": "rect", "stroke": "#8080804d"},
            "encoding": {"x": x, "y": y, "color": colour},
        }
        marks = {
            "mark": {"type": "text", "color": "#fff", "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "mark"}},
        }  # fmt: skip
        return {
            "data": {"values": of}, "width": {"step": 34}, "height": {"step": 17},
            "layer": [cells, marks],
        }  # fmt: skip

    spec = {
        "hconcat": [
            panel("the published rule", labelled=True),
            panel("matbench.verify, on the same arrays", labelled=False),
        ],
        "resolve": {"scale": {"color": "independent", "y": "independent"}},
    }
    side = record["side"]
    note = f"marked with ! where it is wrong about them; C is {side}×{side}"
    charts.draw(path, [Chart("", note, spec)], "Which results a rule accepts")


class Trick(NamedTuple):
    """A trick, where it was published, and matbench's kernels and functions that play it."""

    what: str
    published: str
    kernels: tuple[str, ...]


#: Links that the page resolves.
_ADVERSARIAL, _HACKS, _GUIDE = "[KernelBench][k]", "[SOL-ExecBench][s]", "[E. Andere][a]"
TRICKS = (
    Trick("returns memory that may still hold the answer", f"{_ADVERSARIAL}, {_GUIDE}",
          ("cheat-skip-element", "tricks.py::uninitialized")),
    Trick("changes the inputs, so that the reference has nothing to multiply", _ADVERSARIAL,
          ("cheat-zeroes-a", "on_gpu.py::cheat_inputs")),
    Trick("works on a stream that is not waited for", f"{_ADVERSARIAL}, {_GUIDE}",
          ("on_gpu.py::cheat_early", "on_gpu.py::cheat_late")),
    Trick("works in a thread after the call", f"{_HACKS}, {_GUIDE}", ("on_cpu.py::cheat_thread",)),
    Trick("returns an object that computes when it is looked at", f"{_HACKS}, {_GUIDE}",
          ("tricks.py::profiled_result", "tricks.py::finalized")),
    Trick("replaces what measures time", f"{_HACKS}, {_GUIDE}",
          ("on_gpu.py::cheat_events", "on_gpu.py::cheat_clock", "tricks.py::slow_clock")),
    Trick("replaces functions of the evaluator", _HACKS,
          ("on_gpu.py::cheat_comparison", "tricks.py::replaced_wait")),
    Trick("works while it is checked, and not while it is timed", _HACKS,
          ("cheat-launch-counter", "cheat-first-moments", "tricks.py::after_warm_up")),
    Trick("keeps results by the addresses of A and B", _GUIDE,
          ("cheat-fingerprint", "on_gpu.py::cheat_by_address")),
    Trick("computes in a lower precision", _GUIDE,
          ("cheat-eighteen-bits", "cheat-spares-integers", "on_gpu.py::cheat_tf32",
           "cheat-spares-sparse-rows")),
    Trick("returns an input, or nothing", _GUIDE, ("tricks.py::identity", "tricks.py::nothing")),
    Trick("reads shared memory that it did not write", _GUIDE, ("cheat-shared-leftovers",)),
)  # fmt: skip


def tricks_table(tables: dict[str, dict[str, Any]]) -> str:
    """What becomes of each trick, as the tests hold it (`expected.toml`)."""
    rows = []
    for trick in TRICKS:
        for name in trick.kernels:
            status, by = _stopped(tables[name])
            row = {"trick": trick.what, "published by": trick.published, "here": f"`{name}`"}
            rows.append(row | {"it is": status, "by, or because": by})
            trick = trick._replace(what="", published="")
    return tabulate(rows, headers="keys", tablefmt="pipe")


def _stopped(of: dict[str, Any]) -> tuple[str, str]:
    """What becomes of a kernel, and the checks that see to it or the reason."""
    status = of.get("status", "wrong")
    checks = [*of.get("defused_by", ()), *(of.get("caught_by") or of.get("only", ()))[:2]]
    said = of.get("reason", ())
    checks += [text.split(":")[0] for text in said if re.match(r"\w+: ", text)]
    words = [f"`{check}`" for check in dict.fromkeys(checks)]
    words += [] if checks else [f"“{text.strip()}”" for text in said]
    either = status if isinstance(status, str) else " or ".join(status)
    if "measured" in status:
        is_known = "takes_s" in of
        return (
            (either, "no time is below that of the work")
            if is_known
            else ("**not always stopped**", of["why"])
        )
    return "defused" if "defused_by" in of else either, ", ".join(words)


def expected() -> dict[str, dict[str, Any]]:
    """The tables of matbench's cheats and functions, by their names."""
    found: dict[str, dict[str, Any]] = {}
    for folder in ("cheats", "functions"):
        text = (KERNELS / folder / "expected.toml").read_bytes()
        found |= msgspec.toml.decode(text)
    return found


#: What docs/judges.md has between its markers.
BLOCKS = {
    "rules": lambda: rules_table(read()),
    "scores": lambda: scores_table(read()),
    "tricks": lambda: tricks_table(expected()),
}
