"""Scripts of the project that belong to no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from support.paths import ROOT


def load(path: str) -> ModuleType:
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
