"""Paths in the project, and what lies there."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
KERNELS = TESTS / "kernels"
BAD_KERNELS = KERNELS / "bad"
FUNCTIONS = KERNELS / "functions"
FOREIGN = KERNELS / "foreign"
#: The README and the pages in docs.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
#: What Python runs first if PYTHONPATH has it.
STARTUP = TESTS / "support" / "startup"


def output_of(name: str) -> str:
    """What a tool printed: a file of tests/outputs."""
    return (TESTS / "outputs" / name).read_text(encoding="utf-8")


def programs(test: str) -> dict[str, str]:
    """What tests run elsewhere, from `programs.txt` beside a test, by the titles in it."""
    text = Path(test).with_name("programs.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"(?ms)^== (.*?)\n\n(.*?)(?=\n== |\Z)", text))


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def script(path: str) -> ModuleType:
    """The script at a path from the top of the project; it may import those beside it."""
    folder = str((ROOT / path).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(
        path.removesuffix(".py").replace("/", "."), ROOT / path
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
