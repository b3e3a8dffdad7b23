"""The site of the documentation: built without a warning, read from the disk, in a browser."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from support.browser import Browser, browser, needs_browser
from support.paths import ROOT, script

pages = script("docs/site_pages.py")
needs_mkdocs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("material", "mermaidx")),
    reason="no mkdocs-material or mermaidx: `make site` installs them",
)


def test_the_index_leads_to_every_page() -> None:
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", text, re.MULTILINE)
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    top = {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
    assert sorted(path for _, path, _ in lines) == sorted(found | top)
    assert [path for _, path, _ in lines] == pages.pages()
    for title, path, sentence in lines:
        assert (ROOT / path).read_text(encoding="utf-8").startswith(f"# {title}\n"), path
        assert sentence.endswith((".", "?")), f"{path}: {sentence}"
        assert 30 < len(sentence) < 200, f"{path}: {sentence}"


def look(window: Browser, page: Path, width: int) -> list[str]:
    """What is wrong with a page at that width."""
    window.open(page, width=width)
    images = "[...document.images].filter((image) => !image.naturalWidth).map((image) => image.src)"
    wide = f"document.documentElement.scrollWidth > {width} ? ['sticks out'] : []"
    asked = [url for url in window.requests() if not url.startswith("file://")]
    return [*asked, *window.messages(), *window.evaluate(images), *window.evaluate(wide)]


def ground(window: Browser, selector: str) -> int:
    """How light what is behind an element is, from 0 to 255."""
    colour = f"getComputedStyle(document.querySelector({selector!r})).backgroundColor"
    return int(window.evaluate(f"parseInt({colour}.match(/\\d+/)[0])"))


@pytest.mark.long
@needs_browser
@needs_mkdocs
def test_the_site_is_read_from_the_disk(tmp_path: Path) -> None:
    """At the widths of a phone and a screen, light and dark; nothing is asked of another host."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    config = ["--config-file", str(ROOT / "docs/mkdocs.yml")]
    done = subprocess.run([*command, *config], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = sorted(tmp_path.glob("[A-Zi]*.html")) + sorted(tmp_path.glob("docs/*.html"))
    built.append(tmp_path / "kernels/ladder/02-tiled.cu.html")
    for target in pages.LINK.findall((tmp_path / "llms.txt").read_text(encoding="utf-8")):
        assert (tmp_path / target).is_file(), target
    with browser() as window:
        for scheme, width in product(("light", "dark"), (390, 1280)):
            window.prefer(scheme)
            for page in built:
                assert look(window, page, width) == [], f"{page}, {scheme}, {width}"
            for name, picture in (("architecture", ".diagram svg"), ("ladder", "img[src$=svg]")):
                window.open(tmp_path / f"docs/{name}.html")
                assert (ground(window, "body") > 128) == (scheme == "light")
                assert ground(window, picture) == 255
        assert window.evaluate("document.querySelector('a[href$=\"02-tiled.cu.html\"]').href")
        window.evaluate("document.querySelector('.md-search__input').focus()")
        window.driver.switch_to.active_element.send_keys("coalesced")
        window.until("document.querySelector('.md-search-result__item a[href*=\"ladder.html\"]')")
