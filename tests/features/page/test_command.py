"""Pages from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import needs_page
from support.cli import Matbench
from support.paths import ROOT

SMALL = ROOT / "results" / "h200-cubes.jsonl"


@needs_page
def test_a_page_is_named_like_the_first_file(matbench: Matbench, tmp_path: Path) -> None:
    first, second = (tmp_path / f"{name}.part.jsonl" for name in "ab")
    for path in (first, second):
        path.write_bytes(SMALL.read_bytes())
    assert f"wrote {tmp_path / 'a.part.html'} (" in matbench("page", first, second).stderr
    refused = matbench("page", first, code=2).stderr
    assert f"{tmp_path / 'a.part.html'}: exists; --force replaces it" in refused
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.part.html", "a.part.jsonl", "b.part.jsonl"
    ]  # fmt: skip


@needs_page
def test_a_page_is_replaced_only_by_force(matbench: Matbench, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("mine")
    refused = matbench("page", SMALL, "--output", page, code=2)
    assert "--force replaces it" in refused.stderr
    assert page.read_text() == "mine"
    done = matbench("page", SMALL, "--output", page, "--force")
    assert done.stdout == ""
    assert done.stderr.startswith(f"wrote {page} (")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@needs_page
@pytest.mark.parametrize("command", ["compare", "blocks"])
def test_findings_add_their_sections(matbench: Matbench, tmp_path: Path, command: str) -> None:
    others = ("naive-2d", "--max-time", "0.01") if command == "compare" else ()
    done = matbench(
        command, "tiled", *others, "--set", "TILE=8", "--sizes", "20", "--format", "json"
    )
    records = tmp_path / "found.json"
    records.write_text(done.stdout, encoding="utf-8")
    page = tmp_path / "p.html"
    matbench("page", records, "--output", page)
    section = {"compare": "verdicts", "blocks": "blocks"}[command]
    assert f'<a href="#{section}">' in page.read_text(encoding="utf-8")


def test_a_page_of_no_file_name_is_refused(matbench: Matbench) -> None:
    for name in ("", ".", "/"):
        assert "not a file name" in matbench("page", name, code=2).stderr
