"""What takes seconds to make, from the cache: the definitions of all charts."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matbench.cache import Cache

_HERE = Path(__file__).parent


def specs() -> dict[str, dict[str, Any]]:
    """Every definition by its name; they depend on the modules here and on Altair alone."""

    def made() -> str:
        from matbench.show.charts import definitions

        return json.dumps(definitions.specs())

    sources = b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py")))
    own = hashlib.sha256(sources).hexdigest()
    found: dict[str, dict[str, Any]] = json.loads(text(f"charts {own}", "altair", made))
    return found


def text(name: str, package: str, make: Callable[[], str]) -> str:
    """What `make` returns for this release of a package."""
    key = f"page {name} {package} {importlib.metadata.version(package)}"
    return str(Cache().get_or_make(key, lambda: make().encode()), "utf-8")
