"""Writes what the documentation shows of the program, of kernel files and of committed records.

`python docs/generate.py` writes it; with `--check` it names the files that are out of date, and
fails. A page or a picture says in Python what stands in it, as cog reads it: a call of a module
beside this one in `<!-- [[[cog print(…) ]]] -->`, the text, and `<!-- [[[end]]] -->`.
"""

from __future__ import annotations

import sys

from cogapp import Cog
from tables import DOCS, ROOT

PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
FILES = (*PAGES, *sorted(DOCS.rglob("*.svg")))
PROLOGUE = "import lessons, pictures, published, tables"
OPTIONS = ("-P", "-p", PROLOGUE, "--verbosity=1")


def page(text: str) -> str:
    """A page with what its blocks print."""
    cog = Cog()
    cog.options.parse_args(OPTIONS)
    written: str = cog.process_string(text)
    return written


if __name__ == "__main__":
    mode = "--check" if "--check" in sys.argv[1:] else "-r"
    sys.exit(Cog().main(["cog", *OPTIONS, mode, *map(str, FILES)]))
