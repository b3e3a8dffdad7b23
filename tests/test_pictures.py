"""What docs/ shows of committed records: up to date, complete, and checked in earnest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT, script
from support.pictures import needs_plots
from support.records import outcome

from matbench.features.charts.definitions import Chart
from matbench.model import Problem
from matbench.records.outcome import Outcome
from matbench.show import outcomes, terminal

generator = script("docs/generate.py")
pictures, published = (script(f"docs/{name}.py") for name in ("pictures", "published"))

DOCS = ROOT / "docs"
IMAGES = (".svg", ".png")
#: Those that cog writes, which draws no other.
GENERATED = [path for path in generator.FILES
             if path.suffix in IMAGES and "[[[cog" in path.read_text(encoding="utf-8")]  # fmt: skip

pytestmark = needs_plots


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_picture_is_generated_and_shown() -> None:
    folders = (DOCS, DOCS / "reading")
    drawn = {path for folder in folders for path in folder.iterdir() if path.suffix in IMAGES}
    assert {*GENERATED} == drawn
    shown = set()
    for page in generator.PAGES:
        text = page.read_text(encoding="utf-8")
        shown |= {
            (page.parent / path).resolve() for path in re.findall(r"!\[[^]]*\]\((.+?)\)", text)
        }
    assert {path.resolve() for path in drawn} <= shown


# Controls: each check fails when what it checks is changed


@pytest.mark.parametrize("path", GENERATED, ids=name)
def test_a_changed_figure_or_mark_in_a_picture_is_noticed(path: Path) -> None:
    old = path.read_text(encoding="utf-8")
    assert generator.page(old) == old, "run `make docs`"
    for pattern in (r"(?<=>)([^<>]*?)(\d)(?=[^<>]*</text>)", r'(<(?:path|rect)[^>]*?")([0-9])'):
        changed = re.sub(pattern, lambda f: f[1] + str((int(f[2]) + 1) % 10), old, count=1)
        assert changed != old
        assert generator.page(changed) != changed


def test_a_picture_is_kept_while_it_shows_the_same() -> None:
    old = pictures.kept("", ("<svg/>\n", "1 ms"))
    assert old.startswith("<svg/>\n<!-- ")
    assert pictures.kept(f"{old}\n", ("<svg></svg>", "1 ms")) == old  # another release's
    new = pictures.kept(old, ("<svg></svg>", "2 ms"))
    assert new.startswith("<svg></svg>\n<!-- ")
    assert pictures.kept(old.replace("svg", "path"), ("<svg/>", "1 ms")) == old


def test_a_chart_shows_what_is_drawn_to_six_digits() -> None:
    def shows(value: float) -> str:
        data = {"data": {"values": [{"x": value}]}, "mark": "tick", "encoding": {}}
        chart = Chart("", "", data)
        return str(pictures.chart([chart], "")[1])

    assert shows(0.1 + 0.2) == shows(0.3) != shows(0.30001)


# Screens


def test_a_screen_is_compared_by_its_words_and_their_places() -> None:
    at = {"problem": Problem(1000, 1000, 1000)}
    found = [outcome("tiled", ms=0.2, **at), outcome("kahan", ms=0.3, **at)]

    def screen(found: list[Outcome]) -> tuple[str, str]:
        drawn: tuple[str, str] = pictures.screen(
            *terminal.renderables(outcomes.report(found, []), 100)
        )
        return drawn

    svg, words = screen(found)
    assert re.search(r"^kahan +300\.0 µs ", words, re.MULTILINE)
    assert "2 measured" in words
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
    slower = [found[0], outcome("kahan", ms=0.4, **at)]
    assert screen(slower)[1] != words


# Published kernels


def test_the_page_on_published_kernels_tells_what_was_measured() -> None:
    page = (DOCS / "published.md").read_text(encoding="utf-8")
    frame, libraries = published.measured()
    rows = frame.to_dict("records")
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
