"""Output without what differs from run to run or from machine to machine."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pytest_regressions.file_regression import FileRegressionFixture

from matbench.model import DeviceInfo

#: Titles of columns that depend on time. All others are compared.
_TITLES = {
    "time", "±", "per block", "GFLOP/s", "GB/s", "× slowest", "baseline", "candidate",
    "the candidate is", "interval", "samples", "figure", "remark", "ticks", "µs",
    "ratio to events", "duration (µs)", "blocks", "share",
}  # fmt: skip
#: Keys of values that depend on time or on the machine, of which only types are compared.
_KEYS = re.compile(
    r"(.*_(ns|us|s|ticks)|.*span_ratio|.*samples|block_(imbalance|perturbation)|attempts|bars"
    r"|blocks|conditions|device_id|gbytes_per_s|gflops|histogram|imbalance|interval|lanes|looks"
    r"|max_threads_per_block|multiprocessors|perturbation|ratio(s|_low|_high)?|rounds"
    r"|running_most|settled|sha256|slots|spread|stopped|tail_share|ticks_per_ns|times_slowest"
    r"|warmups|waves)"
)
#: Titles and keys of errors, with the largest value of a right kernel: below it they depend on
#: how the processor rounds (fused or not, and in which order NumPy's BLAS adds).
_ROUNDING = {
    "max rel err": 1e-3, "avg rel err": 1e-3, "of bound": 1.0,
    "max_rel_err": 1e-3, "avg_rel_err": 1e-3, "bound_ratio": 1.0,
}  # fmt: skip
#: Lines and notes that are there by chance.
_CHANCE = re.compile(
    r"\d+ of \d+ times are unsteady|≈ per block: |load average |frequency governor |not settled: "
    r"|drifting: |without the [0-9…]+ µs|other programs took "
)
_NOTE = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹]+) (.*)")
#: The fixture `table_regression`: from the name of a table beside the test and what answers a
#: question to the comparison.
TableRegression = Callable[[str, Callable[[str], str]], None]


def told_again(text: Path, said: Callable[[str], str], check: FileRegressionFixture) -> None:
    """As `table_regression` compares."""
    check.check(answered(text, said), fullpath=text, encoding="utf-8")


def steady(text: str) -> str:
    """A text whose cells under titles that depend on time are `#`.

    Wrapped cells are whole again, and notes stand in the rows that they are of.
    """
    lines: list[str] = []
    titles: list[str] = []
    first = 0
    for line in re.sub(r"(?<=\S)\n {12,}(?=\S)", " ", text.replace("█", "")).splitlines():
        cells = re.split(r" *\| *" if line.startswith("|") else "  +", line.strip())
        note = _NOTE.match(line)
        if _CHANCE.match(line):
            continue
        if note:
            said = "" if _CHANCE.match(note[2]) else f" [{note[2]}]"
            lines[first:] = [re.sub(f" *{note[1]}", said, row) for row in lines[first:]]
            continue
        if sum(cell in _TITLES for cell in cells) > 1:
            first, titles = len(lines), cells
            cells = [cell for cell in cells if cell != "notes"]
        elif not titles or len(cells) < len(titles) - 1:
            cells = [line.rstrip()]
        else:
            cells = [
                "#" if title in _TITLES and re.search(r"\w", cell) else _rounded(title, cell)
                for title, cell in zip_longest(titles[: len(cells)], cells, fillvalue="")
            ]
        line = re.sub("─+|-{3,}", "---", "  ".join(cells).rstrip())
        lines += [line] if lines[-1:] != [line] else []
    return "\n".join(lines).strip("\n")


def anywhere(text: str, device: DeviceInfo) -> str:
    """What any format may hold: names and versions, and times in words."""
    for known, name in (
        (device.name, "DEVICE"), (device.driver, "DRIVER"), (device.toolkit, "TOOLKIT"),
        (str(Path.cwd()), "FOLDER"),
    ):  # fmt: skip
        text = text.replace(known, name)
    text = re.sub(r"(?m)^driver \S+ · NumPy .*", "driver OS · NumPy", text)
    text = re.sub(r'( time=")[\d.]+', r"\1#", text)
    return re.sub(r"(?m)(machine has|by up to|the) [\d,.]+(%| ticks|$)", r"\1 #\2", text)


def csv_lines(text: str) -> Iterator[str]:
    """The columns of a table, then what its rows hold in those that are not empty."""
    columns, *rows = csv.reader(text.splitlines())
    yield ",".join(columns)
    for row in rows:
        yield ""
        for name, cell in zip(columns, row, strict=True):
            if cell and not _CHANCE.match(cell):
                yield f"{name}: {'#' if _is_noisy(name) else _rounded(name, cell)}"


def leaves(value: Any, path: str = "", *, whole: bool = True) -> Iterator[str]:
    """A line for each value in JSON; or of an outcome, only what is special about it."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "environment":
        yield f"{path}: environment with {', '.join(value)}"
        return
    if kind == "outcome" and not whole:
        yield f"{path}: outcome of {value['case']['kernel']}"
        special = ("status", "reason", "skip", "check", "notes", "error_map")
        value = {name: value[name] for name in special if value.get(name)}
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".lstrip("."), whole=whole)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, one in enumerate(value[:1] if _is_noisy(path) else value):
            yield from leaves(one, f"{path}[{number}]", whole=whole)
    else:
        is_noisy = _is_noisy(path) or (path.endswith(".seed") and isinstance(value, str))
        if path.endswith(".others_share"):
            value = 0.5  # unknown in the first moments of a process
        told = _kind(value) if is_noisy else json.dumps(value, ensure_ascii=False)
        yield f"{path}: {_rounded(path.rpartition('.')[2], told)}"


def _rounded(title: str, cell: str) -> str:
    """An error that is a right kernel's without its digits; any other cell as it is."""
    if title in _ROUNDING and " / " in cell:
        return " / ".join(_rounded(title, part) for part in cell.split(" / "))
    number = re.fullmatch(r"<?([\d.]+(?:e-?\d+)?)(%?)", cell)
    if title not in _ROUNDING or not number:
        return cell
    value = float(number[1]) / (100 if number[2] else 1)
    return "rounding" if 0 < value <= _ROUNDING[title] else cell


def _is_noisy(path: str) -> bool:
    return any(_KEYS.fullmatch(name) for name in re.split(r"\.|\[\d+\]", path))


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def answered(path: Path, answer: Callable[[str], str]) -> str:
    """The text of a file of questions, answered anew: what follows `=> ` answers the lines above
    it, or else an indented line does; those that begin with `# ` are no part of a question. A new
    one is written there, before `make golden`."""
    text = path.read_text(encoding="utf-8")
    if "\n=> " in text:
        questions = re.findall(r"(?s)(.*?)\n=> .*?\n\n", text)
        return "".join(f"{question}\n=> {answer(question)}\n\n" for question in questions)
    lines, asked = list[str](), list[str]()
    for line in text.splitlines():
        if line.startswith("    "):
            line = f"    {answer(chr(10).join(asked))}".rstrip()
            asked.clear()
        elif not line.startswith("# "):
            asked.append(line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def paged(pages: Mapping[str, str]) -> str:
    """Pages in one text, each below its name."""
    return "".join(f"=== {name}\n\n{page}\n\n" for name, page in pages.items())
