"""Stands in for `task` and `utils`, which kernelbot puts beside a submission, if they are not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from unittest.mock import MagicMock

#: What `import *` takes of them.
_NAMES = {
    "task": ["input_t", "output_t", "TestSpec"],
    "utils": ["make_match_reference", "match_reference", "verbose_allclose", "verbose_allequal",
              "DeterministicContext", "DisableCuDNNTF32", "set_seed", "clear_l2_cache"],
}  # fmt: skip


def supply(name: str) -> None:
    """Let a module of that name be there, which has any name: what that is can be made, called and
    entered, as types, checks and contexts are."""
    sys.modules.setdefault(name, MagicMock(__all__=_NAMES[name]))


def with_supplied(text: str, module: ast.Module, folder: Path) -> str:
    """The text of a file in a folder, where an import of a module that is not there comes after
    what supplies it. Lines stay where they are."""
    lines = text.split("\n")
    lacking = {name for name in _NAMES if not [*folder.glob(f"{name}.py"), *folder.glob(name)]}
    imports = [one for one in ast.walk(module) if isinstance(one, ast.Import | ast.ImportFrom)]
    for node in sorted(imports, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        own = getattr(node, "module", None)
        asked = {own} if own else {alias.name for alias in node.names}
        for name in lacking & asked if getattr(node, "level", 0) == 0 else ():
            line, at = lines[node.lineno - 1].encode(), node.col_offset
            supplying = f"from {__name__} import supply; supply({name!r}); ".encode()
            lines[node.lineno - 1] = (line[:at] + supplying + line[at:]).decode()
    return "\n".join(lines)
