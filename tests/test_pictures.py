"""What docs/ shows of committed records: up to date, complete, and checked in earnest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT, script
from support.pictures import needs_plots
from support.records import outcome

from matbench.model import Problem
from matbench.records.outcome import Outcome
from matbench.show import outcomes, terminal

readme = script("docs/generate_readme.py")
screens, freshness = readme.screens, readme.freshness
published = script("docs/generate_published.py")

DOCS = ROOT / "docs"
WRITTEN = readme.pages() | published.pages()
IMAGES = (".svg", ".png")

pytestmark = needs_plots


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_what_is_generated_is_up_to_date() -> None:
    assert [name(path) for path in freshness.outdated(WRITTEN)] == [], "run `make docs`"


def test_every_picture_is_generated_and_shown() -> None:
    folders = (DOCS, readme.READING)
    drawn = {path for folder in folders for path in folder.iterdir() if path.suffix in IMAGES}
    assert {path for path in WRITTEN if path.suffix == ".svg"} == drawn
    shown = set()
    for page in (ROOT / "README.md", *DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        shown |= {
            (page.parent / path).resolve() for path in re.findall(r"!\[[^]]*\]\((.+?)\)", text)
        }
    assert {path.resolve() for path in drawn} <= shown


# Controls: each check fails when what it checks is changed


def other_digit(found: re.Match[str]) -> str:
    return found[1] + str((int(found[2]) + 1) % 10)


@pytest.mark.parametrize("path", [p for p in WRITTEN if p.suffix == ".svg"], ids=name)
def test_a_changed_figure_in_a_picture_is_noticed(path: Path) -> None:
    old = path.read_text(encoding="utf-8")
    changed = re.sub(r"(?<=>)([^<>]*?)(\d)(?=[^<>]*</text>)", other_digit, old, count=1)
    assert changed != old
    assert WRITTEN[path](changed) != changed


@pytest.mark.parametrize("path", [p for p in WRITTEN if p.suffix == ".md"], ids=name)
def test_a_changed_figure_in_a_page_is_noticed(path: Path) -> None:
    """In each block that a script writes; it leaves those of other scripts as they are."""
    old = path.read_text(encoding="utf-8")
    noticed = []
    for block in re.findall(r"^<!-- (\w+) -->$", old, re.MULTILINE):
        emptied = freshness.inserted(old, block, "nothing")
        if WRITTEN[path](emptied) != emptied:
            pattern = rf"(?s)(<!-- {block} -->\n.*?)(\d)"
            changed = re.sub(pattern, other_digit, old, count=1)
            assert WRITTEN[path](changed) != changed, block
            noticed.append(block)
    assert noticed


@pytest.mark.parametrize("path", [*readme.CHARTS, published.CHART], ids=name)
def test_a_mark_that_moved_is_noticed(path: Path) -> None:
    old = path.read_text(encoding="utf-8")
    assert screens.same_chart(old, old)
    marks = list(re.finditer(r'(<path (?:d="M|transform="translate\()|<rect x=")([\d.]+)', old))
    middle = marks[len(marks) // 2]
    moved = f"{old[: middle.start(2)]}{float(middle[2]) + 30}{old[middle.end(2) :]}"
    assert not screens.same_chart(moved, old)


# Screens


def test_a_screen_is_compared_by_its_words_and_their_places() -> None:
    at = {"problem": Problem(1000, 1000, 1000)}
    found = [outcome("tiled", ms=0.2, **at), outcome("kahan", ms=0.3, **at)]

    def screen(found: list[Outcome]) -> str:
        parts = terminal.renderables(outcomes.report(found, []), 100)
        return str(screens.terminal(parts, 100, ""))

    drawn = screen(found)
    words = screens.words(drawn)
    assert re.search(r"^kahan +300\.0 µs ", words, re.MULTILINE)
    assert "2 measured" in words
    assert screens.words(drawn.replace('x="0"', 'x="12.2"')) != words
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
    slower = [found[0], outcome("kahan", ms=0.4, **at)]
    assert screens.words(screen(slower)) != words


# Published kernels


def test_the_page_on_published_kernels_tells_what_was_measured() -> None:
    page, (_, rows, libraries) = published.PAGE.read_text(encoding="utf-8"), published.read()
    single = [row for row in rows if row["precision"] == "float32"]
    fastest = sorted({row["repository"]: float(row["tflops"]) for row in single[::-1]}.values())
    low, high = (100 * fastest[at] / libraries["float32"] for at in (-6, -2))
    wider = [row for row in rows if not row["where"] and float(row["tflops"]) > 10]
    for told in (
        f"the {len(rows)} functions", f"{sum(bool(r['where']) for r in rows)} of {len(rows)}",
        f"All {len(single)} in float32", f"{low:.0f}% to {high:.0f}%", "13 others five give",
    ):  # fmt: skip
        assert told in " ".join(page.split()), told
    assert len(wider) == 5
    assert {row["max_rel_err"] for row in single} == {"4.7e-06"}
    speed = {row["function"]: float(row["tflops"]) for row in rows}
    assert 2 * speed["gemm_v06_vectorized_double_buffered"] < speed["gemm_v06_vectorized"]
    conflicts = speed["sgemmResolveBankConflicts"], speed["sgemmResolveBankExtraCol"]
    assert max(conflicts) < speed["sgemmVectorize"]
