"""The README and the pages in docs: up to date, and consistent with the program."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec
import pytest
from click.testing import Result
from rich.console import Console, Group
from support import record_files
from support import tables as tables_of
from support.kernels import saved
from support.optional import present
from support.paths import PAGES, ROOT, blocks, script
from support.records import device, outcome

from matbench import signals
from matbench.cli import main
from matbench.features.watch.versions import SavedVersion
from matbench.features.watch.view import screen
from matbench.kernelfile import catalogue, front_matter
from matbench.model import FrontMatter, LaunchRules, Problem
from matbench.worker.comparing import Contender

LINKED = [
    *PAGES, *(ROOT / page for page in ("SECURITY.md", "CHANGELOG.md", "benchmarks/README.md"))
]  # fmt: skip

generator = script("docs/generate.py")
printed = script("docs/tables.py")
#: The size of the README's tables.
SIZE: dict[str, Any] = {"problem": Problem(1000, 1000, 1000)}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each table, by the title of its first column and its number: `field 1`."""
    found: dict[str, list[list[str]]] = {}
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        lines = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.splitlines()
        ]
        title = lines[0][0]
        found[f"{title} {sum(key.rpartition(' ')[0] == title for key in found) + 1}"] = lines[2:]
    return found


def named(rows: list[list[str]]) -> list[str]:
    """The words in backquotes in the first column."""
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row[0])]


# Generated parts


def test_pages_name_every_result_that_is_stale() -> None:
    _, tutorial = record_files.read(printed.RECORDS / "h200.jsonl")
    _, ladder = record_files.read(printed.RECORDS / "h200-ladder.jsonl")
    shown = re.findall(r"^\| ([\w-]+) ", page("README.md"), re.MULTILINE)
    first = [o for o in ladder if o.case.kernel in shown]
    assert len({o.case.kernel for o in first}) == 5
    for path, found in (("README.md", first), ("docs/results.md", tutorial)):
        changed = printed.stale(found, catalogue.builtin())
        told = "".join(re.findall(r"^\*\*Stale:\*\*.*$", page(path), re.MULTILINE))
        assert set(re.findall(r"`(.+?)`", told)) >= set(changed), path


def test_a_kernel_that_changed_or_went_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    tiled = next(kernel for kernel in catalogue.builtin() if kernel.name == "tiled")
    same = outcome("tiled", sha256=tiled.sha256, **SIZE)
    other, gone = outcome("kahan", **SIZE), outcome("gone", **SIZE)
    assert printed.stale([same], catalogue.builtin()) == []
    assert printed.stale([same, other, gone], catalogue.builtin()) == ["gone", "kahan"]
    for found, names in (([same, other, gone], " `gone`, `kahan`"), ([same], None)):
        monkeypatch.setattr(printed, "read", lambda _, found=found: (found, []))
        told = printed.results("h200.jsonl").splitlines()[-1]
        assert told.partition(" measured:")[2].strip(".") == (names or ""), told


def test_text_outside_the_markers_stays() -> None:
    text = "before\n<!-- [[[cog print('new') ]]] -->\nold\n<!-- [[[end]]] -->\nafter\n"
    new = text.replace("old", "new")
    assert generator.page(text) == generator.page(new) == new
    with pytest.raises(Exception, match=r"Missing '\[\[\[end\]\]\]'"):
        generator.page(text.replace("[[[end]]]", ""))


@pytest.mark.parametrize("path", generator.PAGES, ids=name)
def test_a_page_shows_what_it_says(path: Path) -> None:
    """And notices a digit that changed in any of its blocks."""
    text = path.read_text(encoding="utf-8")
    assert generator.page(text) == text, "run `make docs`"
    block = re.compile(r"(?s)(\[\[\[cog.*?\]\]\] -->\n(?:(?!\[\[\[end).)*?)(\d)")
    changed = block.sub(lambda found: found[1] + str((int(found[2]) + 1) % 10), text)
    assert (changed == text) == ("[[[cog" not in text)
    if path.name != "records.md":  # whose meanings are written by hand
        assert generator.page(changed) == text


def test_files_that_are_out_of_date_are_named(tmp_path: Path) -> None:
    block = "<!-- [[[cog print('new') ]]] -->\n{}\n<!-- [[[end]]] -->\n"
    shutil.copytree(
        ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.md", "*.svg")
    )
    (tmp_path / "results").symlink_to(ROOT / "results")
    (tmp_path / "README.md").write_text(block.format("new"))
    old = tmp_path / "docs/old.svg"
    old.write_text(block.format("old"))
    generate = [sys.executable, str(tmp_path / "docs/generate.py")]
    checked = subprocess.run([*generate, "--check"], capture_output=True, text=True)
    assert checked.returncode
    assert "old.svg" in checked.stdout
    assert "README.md" not in checked.stdout
    assert old.read_text() == block.format("old")
    subprocess.run(generate, check=True)
    assert old.read_text() == block.format("new")
    subprocess.run([*generate, "--check"], check=True)


# Parts written by hand


@pytest.mark.parametrize("path", LINKED, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), f"{target}: no such file"
        if anchor:
            prose = re.sub(r"(?ms)^```.*?^```$", "", linked.read_text(encoding="utf-8"))
            titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in anchors, f"{target}: no such heading"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_kernels_in_the_text_can_be_loaded(path: Path, tmp_path: Path) -> None:
    for source in blocks(path.read_text(encoding="utf-8"), "c"):
        assert catalogue.load(saved(tmp_path / "shown.cu", source)).entry


def test_front_matter_is_described_key_by_key() -> None:
    found = tables(page("docs/kernels.md"))
    keys = [key.strip("[]") for key in named([[row[0]] for row in found["key 1"]])]
    assert sorted([*keys, "launch"]) == sorted(FrontMatter.__struct_fields__)
    assert sorted(named(found["key of `[launch]` 1"])) == sorted(LaunchRules.__struct_fields__)


def test_every_limit_that_front_matter_may_name_is_told() -> None:
    text = page("docs/kernels.md")
    for limit in front_matter.DEVICE_LIMITS:
        stem, axis = present(re.fullmatch(r"(.*?)(_[xyz])?", limit)).groups()
        assert f"`{limit}`" in text or (axis and f"`{stem}_x` (`y`, `z`)" in text), limit


def test_the_exit_codes_stand_in_one_table() -> None:
    """With every code that the program names; pages that need it lead there."""
    assert [name(path) for path in PAGES if "| exit code |" in page(name(path))] == ["docs/ci.md"]
    assert [
        name(path) for path in PAGES if re.search("^Exit codes?:", page(name(path)), re.MULTILINE)
    ] == []
    told = tables(page("docs/ci.md"))["exit code 1"]
    codes = {int(code) for row in told for code in row[0].split(",")}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "matbench").rglob("*.py")]
    named = {int(code) for text in sources for code in re.findall(r"sys\.exit\((\d+)\)", text)}
    usage, ended = click.UsageError.exit_code, {128 + number for number in signals.ENDING}
    assert codes == {0, usage, *named, *ended}


def test_records_are_described_field_by_field() -> None:
    text = page("docs/records.md")
    assert f"| {printed.MISSING} |" not in text
    new = re.sub(r"^\| `sha256` .*\n", "", text, count=1, flags=re.MULTILINE)
    assert f"| `sha256` | string | {printed.MISSING} |" in generator.page(new)
    assert generator.page(text.replace("| `status` | `failed`, ", "| `status` | ")) == text
    with pytest.raises(Exception, match="no attribute 'NoRecord'"):
        generator.page(text.replace(':CaseRecord"', ':NoRecord"'))


def test_pages_and_their_generators_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PAGES}
    long = {"ladder.md": 650, "kernels.md": 650, "results.md": 650}
    assert [name(path) for path in PAGES if lines[path] > long.get(path.name, 300)] == []
    generators = (ROOT / "docs").glob("*.py")
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in generators) <= 650


def test_every_command_has_an_example() -> None:
    text = "\n".join(blocks(page("docs/examples.md"), "sh"))
    for command in main.list_commands(click.Context(main)):
        assert f"matbench {command}" in text, command


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    text = page("README.md")
    assert len(text.splitlines()) <= 125
    for path in (ROOT / "docs").glob("*.md"):
        assert f"]({name(path)})" in text, path
    assert "make test" in "\n".join(blocks(text, "sh"))
    assert "pip install matbench`" in text
    assert "`matbench-cuda`" in text


def test_the_readme_says_what_is_different_from_nvbenchs_verdicts() -> None:
    [row] = [row for row in tables(page("README.md"))["tool 1"] if row[0] == "NVBench"]
    assert "`nvbench-compare-robust`" in row[1]
    for word in ("results are checked", "in one process, in turns", "no harness"):
        assert word in row[2]


def patched(source: str, diff: str) -> str:
    """A source with the hunks of a diff applied; lines of `…` separate the hunks."""
    for hunk in diff.split("…\n"):
        before, after = (
            "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in f" {sign}")
            for sign in "-+"
        )
        assert source.count(before) == 1, hunk
        source = source.replace(before, after)
    return source


@pytest.mark.long
def test_the_walk_through_goes_as_told(matbench: Callable[..., Result], tmp_path: Path) -> None:
    text = page("docs/writing-kernels.md")
    [source], [diff] = blocks(text, "c"), blocks(text, "diff")
    file = saved(tmp_path / "strip.cu", source)
    found = matbench("check", file, "--set", "ROWS=4", code=1).output
    [shown] = [block for block in blocks(text, "console") if "matbench check" in block]
    for row in re.findall(r"^\d+ .*$", shown, re.MULTILINE):
        size, inputs, *_, verdict = row.split()
        assert re.search(rf"^{size} +{inputs} .* {verdict} *$", found, re.MULTILINE), row
    [(right, probes)] = re.findall(r" (\d+) of (\d+) probes", shown)
    assert f" {right} of {probes} probes " in found
    [refused] = [block for block in blocks(text, "console") if "version 2 ·" in block]
    [told] = re.findall(r"^strip ROWS=16 at 1000 is wrong: (.*)$", refused, re.MULTILINE)
    matbench("run", file, "--sizes", "1000", "--set", "ROWS=16", "--format", "json",
             "--output", tmp_path / "out.jsonl", code=1)  # fmt: skip
    _, [wrong] = record_files.read(tmp_path / "out.jsonl")
    assert wrong.reason == " ".join(told.split())
    file.write_text(patched(source, diff), encoding="utf-8")
    matbench("check", file, "--set", "ROWS=4,16")


def test_the_walk_through_shows_the_screens_of_watch() -> None:
    at = Problem(1000, 1000, 1000)
    tiled, strip = (
        tables_of.hot("strip", ms, device(name="AMD EPYC"), problem=at, params=params)
        for ms, params in ((39.88, {"TILE": 32}), (15.89, {"ROWS": 8}))
    )
    compared = msgspec.structs.replace(
        tables_of.compared(1 / 2.51, baseline_name="version 1", candidate_name="version 3"),
        baseline=tiled,
        candidate=strip,
    )
    case: Any = SimpleNamespace(params={"TILE": 32})
    first = Contender("", case, tables_of.hot("strip", 83.84, problem=at))
    reason = "guards: wrote outside C: 8,000 elements, starting 1 after its end"
    versions = [
        SavedVersion(1, "17:12:30", contenders={at: first}),
        SavedVersion(2, "17:14:09", wrong=f"strip ROWS=16 at 1000 is wrong: {reason}"),
        SavedVersion(3, "17:14:11", contenders={at: first}, comparisons={at: compared}),
    ]
    told = [block for block in blocks(page("docs/writing-kernels.md"), "console") if " · " in block]
    for number, block in enumerate(told, 2):
        console = Console(width=100, file=io.StringIO(), highlight=False)
        with console.capture() as capture:
            parts = screen("strip.cu", versions[:number], 100)
            console.print(Group(*parts))
        drawn = [line.rstrip() for line in capture.get().strip().splitlines()]
        assert block.strip().splitlines() == drawn
    assert len(told) == 2
