"""What scripts that generate documentation share: pages with markers, tables, and how they end."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).parent.parent

#: Files, and how what each must hold follows from what it holds.
Pages = dict[Path, Callable[[str], str]]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """A table in Markdown; the last columns are so many `numbers`."""
    align = ["left"] * (len(titles) - numbers) + ["right"] * numbers
    return tabulate(rows, titles, "pipe", colalign=align, disable_numparse=True)


def inserted(page: str, name: str, block: str) -> str:
    """A page with `block` between the markers of `name`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"the page needs the markers of {name!r} once")
    return pattern.sub(lambda found: f"{found[1]}\n{block}\n\n{found[2]}", page)


def page(blocks: Mapping[str, Callable[[], str]]) -> Callable[[str], str]:
    """What a page must hold: a block between the markers of each name."""

    def written(old: str) -> str:
        for name, made in blocks.items():
            old = inserted(old, name, made())
        return old

    return written


def outdated(pages: Pages) -> dict[Path, str]:
    """The files that do not hold what they must, with what that is."""
    old = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in pages}
    new = {path: made(old[path]) for path, made in pages.items()}
    return {path: text for path, text in new.items() if text != old[path]}


def finish(pages: Pages) -> int:
    """Write the files that changed; with `--check` only name them. The exit code of the script."""
    check, changes = "--check" in sys.argv[1:], outdated(pages)
    for path, text in changes.items():
        print(f"{path.relative_to(ROOT)}: {'not up to date' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changes))
