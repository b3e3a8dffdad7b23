"""Tables in TOML files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text)
    return found


def table(path: Path) -> dict[str, Any]:
    return read(path.read_text(encoding="utf-8"))
