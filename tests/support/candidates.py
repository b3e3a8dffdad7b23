"""Kernels without front matter, as programs write them: right ones, and ones with usual mistakes.

All are asked to compute C = A·B, row-major, of any size.
"""

from __future__ import annotations

from typing import Any

from support.kernels import changed
from support.paths import KERNELS
from support.toml import table

_FOLDER = KERNELS / "candidates"
NAIVE, TILED = ((_FOLDER / f"{name}.cu").read_text(encoding="utf-8") for name in ("naive", "tiled"))


def _made(row: dict[str, Any]) -> str:
    return changed({"naive": NAIVE, "tiled": TILED}[row.get("of", "naive")], *row["changes"])


_ROWS = table(_FOLDER / "changes.toml")
#: A faulty kernel, and a piece of the reason why it is not measured.
FAULTY = {name: (_made(row), row["told"]) for name, row in _ROWS["faulty"].items()}
RIGHT = {"naive": NAIVE, "tiled": TILED} | {
    name: _made(row) for name, row in _ROWS["right"].items()
}
#: Right, but it is passed one size alone.
SQUARE = _made(_ROWS["alone"]["square"])
