"""The pages of the site, at their paths in the project; and their index, llms.txt.

MkDocs calls its `on_` functions as docs/mkdocs.yml says (`make site`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from measured import DOCS, ROOT

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?=[)#])")


def sections() -> dict[str, list[str]]:
    """The paths of the pages in each section, in the order in which they are read."""
    text = (DOCS / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - which makes texts of all
    return {title: paths for section in config["nav"] for title, paths in section.items()}


def pages() -> list[str]:
    return [path for paths in sections().values() for path in paths]


def index() -> str:
    """A line for each page, by sections: its title, and the first sentence of its text, without
    links and emphasis."""
    lines = []
    for section, paths in sections().items():
        lines.append(f"\n## {section}\n")
        for path in paths:
            text = (ROOT / path).read_text(encoding="utf-8")
            title, first = re.findall(r"^# (.+)\n\n((?:.+\n)+)", text)[0]
            plain = re.sub(r"\[([^]]+)\]\([^)]+\)|[*]+", r"\1", " ".join(first.split()))
            sentence = re.sub(":$", ".", re.split(r"(?<=[.?])\s", plain)[0])
            lines.append(f"- [{title}]({path}): {sentence}")
    return "\n".join(lines).strip()


def linked(path: str) -> Iterator[str]:
    """The files to which a page links."""
    for target in LINK.findall((ROOT / path).read_text(encoding="utf-8")):
        yield Path(os.path.normpath(Path(path).parent / target)).as_posix()


def diagram(source: re.Match[str]) -> str:
    import mermaidx

    return f'<div class="diagram">{mermaidx.render(source[1]).svg()}</div>\n'


def on_files(files: Any, config: Any) -> None:
    """Add the pages, and the files to which they link: kernels as pages, with their colours."""
    from mkdocs.structure.files import File

    for path in sorted({*pages(), *(file for page in pages() for file in linked(page))}):
        if path.endswith(".cu"):
            source = (ROOT / path).read_text(encoding="utf-8")
            text = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````cuda\n{source}````\n"
            files.append(File.generated(config, f"{path}.md", content=text))
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Kernels are shown as pages, and diagrams drawn."""
    markdown = LINK.sub(lambda found: found[0] + ".md" * found[1].endswith(".cu"), markdown)
    return re.sub(r"(?ms)^```mermaid\n(.*?)^```\n", diagram, markdown)


def on_post_build(config: Any) -> None:
    """Programs read the pages as they were written."""
    for path in pages():
        shutil.copy(ROOT / path, Path(config.site_dir) / path)
