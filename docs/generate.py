"""Writes what the documentation shows of the program, of kernel files and of committed records.

`python docs/generate.py` writes it; with `--check` it names the files that are out of date, and
exits 1. A page or a picture says in Python what stands in it, as cog reads it:
`<!-- [[[cog print(…) ]]] -->` with a function of a module beside this one, the text, and
`<!-- [[[end]]] -->`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cogapp import Cog
from measured import DOCS, ROOT

PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
FILES = (*PAGES, ROOT / "llms.txt", *sorted(DOCS.rglob("*.svg")))


def page(text: str) -> str:
    """A page with what its blocks print."""
    cog = Cog()
    cog.options.prologue = "import fields, judged, lessons, pictures, published, site_pages, tables"
    cog.options.print_output = True
    written: str = cog.process_string(text)
    return written


def outdated() -> dict[Path, str]:
    """The files that do not hold what they must, with what that is."""
    old = {path: path.read_text(encoding="utf-8") for path in FILES}
    new = {path: page(text) for path, text in old.items()}
    return {path: text for path, text in new.items() if text != old[path]}


if __name__ == "__main__":
    changes, check = outdated(), "--check" in sys.argv[1:]
    for path, text in changes.items():
        print(f"{path.relative_to(ROOT)}: {'not up to date' if check else 'written'}")
        if not check:
            path.write_text(text, encoding="utf-8")
    sys.exit(check and bool(changes))
