"""Output for other programs: nothing in a record acts in a spreadsheet, on GitHub or in a page.

Each text stands wherever a record can hold one.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support import record_files, records
from support.cli import Matbench
from support.kernels import KernelWriter
from support.records import repeated, timing

from matbench.model import Problem
from matbench.records.outcome import BlockTimes, Outcome
from matbench.records.writing import RecordWriter

STEADY = tuple(100_000.0 + 10 * (i % 5) for i in range(20))


def written(path: Path, name: str, factor: float = 1.0) -> Path:
    """A record file whose every text is `name`: a measured case, a failed and a wrong one."""
    device = records.device(name=name, driver=name, toolkit=name)
    said: dict[str, Any] = {"device": name, "params": {name: 1}, "notes": (name,)}
    samples = timing(samples_ns=[factor * each for each in STEADY], stopped=name, settled=False)
    found: list[Outcome] = repeated(records.outcome(name, cold=samples, **said))
    found.append(records.outcome(name, cold=samples, device_id=name, **said))  # a column's title
    for size, status in ((5, "failed"), (6, "wrong" if factor > 1 else "measured")):
        problem = Problem(size, size, size)
        reason = None if status == "measured" else name
        found.append(
            records.outcome(f"{name}, too", status=status, reason=reason, problem=problem, **said)
        )
    with RecordWriter(path, records.environment(host=name, devices=(device,))) as writer:
        for each in found:
            writer.write(each)
    return path


# Spreadsheets

FORMULAS = [
    "=1+1", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1+1", "\r\n=1+1", "  -x",
    '=HYPERLINK("x")',
]  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("fmt", ["csv", "tsv"])
def test_no_cell_is_a_formula(name: str, fmt: str, tmp_path: Path, matbench: Matbench) -> None:
    old, new = written(tmp_path / "old", name), written(tmp_path / "new", name, 1.2)
    for arguments in (("report", new), ("diff", old, new)):
        text = matbench(*arguments, "--format", fmt).stdout
        rows = list(csv.reader(io.StringIO(text), delimiter="," if fmt == "csv" else "\t"))
        cells = [cell.strip() for row in rows for cell in row]
        assert f"'{name.strip()}" in cells
        for cell in cells:
            assert not re.match(r"[=@]|[-+](?![\d.]+$)", cell), cell


def test_numbers_stay_numbers(tmp_path: Path, matbench: Matbench) -> None:
    blocks = BlockTimes(median_ns=1e4, perturbation=-0.25)
    record_files.write(tmp_path / "new", records.outcome("-5", blocks=blocks))
    text = matbench("report", tmp_path / "new", "--format", "csv").stdout
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["block_perturbation"], row["kernel"]) == ("-0.25", "-5")


# GitHub

MARKUP = [
    "a|b", "`code`", "<img src=x>", "</details>", "![image](http://evil.example/x.png)", "**bold**",
    "[text](javascript:x)", "~~gone~~", "_it_", "a\n\n# heading\n", "a\n- item", "1. item",
    "> quoted", "a\n===", "www.evil.example", "_www.evil.example", "a\n:-", "a@evil.example",
    "&lt;b&gt;", ":tada:", "\\\\", "$x$", "<!-- ", "| --- | --- |", "a\\|b", "``", "+ item", "***",
    "[ref]: http://evil.example", "WWW.evil.example", "\u202egnp.exe",
]  # fmt: skip
REFERENCES = [
    "@octocat", "#123", "owner/repo#1", "GH-123", "&#64;octocat", "https://evil.example",
    "@org/team",
]  # fmt: skip
TABLE = {"p", "table", "thead", "tbody", "tr", "th", "td"}
SUMMARY = {"h3", "ul", "li", "details", "summary", "br"}


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


@pytest.mark.parametrize("name", [*MARKUP, *REFERENCES])
def test_markdown_shows_text_as_it_is(name: str, tmp_path: Path, matbench: Matbench) -> None:
    old, new = written(tmp_path / "old", name), written(tmp_path / "new", name, 1.2)
    summary = tmp_path / "summary.md"
    reported = matbench("report", new, "--format", "github").stdout
    compared = matbench("diff", old, new, "--format", "github", "--summary", summary).stdout
    require_plain(reported, name)
    require_plain(compared, name)
    require_plain(summary.read_text(), name, TABLE | SUMMARY)
    assert rendered(summary.read_text()).count("<details>") <= 1


def require_plain(text: str, name: str, tags: Set[str] = TABLE) -> None:
    page = rendered(text)
    assert set(re.findall(r"</?(\w+)|<!--", page)) <= tags
    # GitHub looks for references behind the markup, and an invisible character hides them.
    shown = html.unescape(html.unescape(page))
    assert not re.search(r"@\w|#\d|\bGH-\d|\w://|www\.\w|:tada:|\$\w|\u202e", shown, re.IGNORECASE)
    cells = re.findall("<td[^>]*>(.*?)</td>", page)
    shown_cells = [re.sub("[\u200b\ufffd]", "", html.unescape(cell)) for cell in cells]
    plain = " ".join(name.replace("\u202e", "").split())
    assert any(cell.startswith(plain) for cell in shown_cells)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_control_github_would_find_these(name: str) -> None:
    assert re.search(r"@\w|#\d|\bGH-\d|\w://", html.unescape(rendered(name)))


def test_a_list_of_kernels_shows_their_summaries_as_they_are(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    path, summary = write_kernel(), "a|b @octocat <i>"
    path.write_text(path.read_text().replace("For a test", summary))
    require_plain(matbench("list", "--format", "github", "--kernel", path).stdout, summary)
