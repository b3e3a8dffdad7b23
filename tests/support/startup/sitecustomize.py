"""With this folder in PYTHONPATH, a process and all that it starts have the scripted device."""

from __future__ import annotations

import sys
from typing import Any


class _Late:
    """A module that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        from support.scripted import STAND_INS

        return getattr(STAND_INS[self.name], attribute)


for _name in ("matbench.backends.opencl", "matbench.backends.cuda"):
    sys.modules[_name] = _Late(_name)  # type: ignore[assignment]
