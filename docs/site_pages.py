"""The pages of the site, which llms.txt lists, at their paths in the project.

MkDocs calls its `on_` functions as docs/mkdocs.yml says (`make site`).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from tables import ROOT

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?=[)#])")


def nav() -> list[dict[str, list[str]]]:
    """The paths of the pages in each section of llms.txt."""
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)\n\n((?:- .+\n)+)", text, re.MULTILINE)
    return [{title: re.findall(r"^- \[.+?\]\((.+?)\)", of, re.MULTILINE)} for title, of in sections]


def pages() -> list[str]:
    return [path for section in nav() for paths in section.values() for path in paths]


def on_config(config: Any) -> None:
    config["nav"] = nav()


def on_files(files: Any, config: Any) -> None:
    """Add the pages, and the files to which they link: kernels as pages, with their colours."""
    from mkdocs.structure.files import File

    paths = set(pages())
    for page in pages():
        targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
        paths |= {Path(os.path.normpath(Path(page).parent / to)).as_posix() for to in targets}
    for path in sorted(paths):
        if path.endswith(".cu"):
            source = (ROOT / path).read_text(encoding="utf-8")
            text = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````cuda\n{source}````\n"
            files.append(File.generated(config, f"{path}.md", content=text))
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Kernels are shown as pages, and diagrams drawn."""
    from mermaidx import render

    markdown = LINK.sub(lambda found: found[0] + ".md" * found[1].endswith(".cu"), markdown)
    return re.sub(
        r"(?ms)^```mermaid\n(.*?)^```\n",
        lambda found: f'<div class="diagram">{render(found[1]).svg()}</div>\n',
        markdown,
    )


def on_post_build(config: Any) -> None:
    """Programs read the pages as they were written."""
    for path in pages():
        shutil.copy(ROOT / path, Path(config.site_dir) / path)
