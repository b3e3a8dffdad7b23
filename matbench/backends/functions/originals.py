"""Notices code that replaces the functions which matbench measures with."""

from __future__ import annotations

import sys
import time
from types import FunctionType, ModuleType
from typing import Any

#: Modules, besides matbench's own, whose functions and classes decide what is measured.
_OTHERS = ("pycuda._driver", "pyopencl._cl")


class Originals:
    """Functions as they were when this was made; from then on, nobody monitors this process."""

    def __init__(self) -> None:
        sys.addaudithook(_refuse_monitors)
        modules = [
            time,
            *(m for name, m in sys.modules.items() if name in _OTHERS or _is_own(name)),
        ]
        self._known: list[tuple[Any, str, str, Any]] = []
        for module in modules:
            self._keep(module, module.__name__)
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value.__module__ == module.__name__:
                    self._keep(value, f"{module.__name__}.{name}")

    def _keep(self, owner: ModuleType | type, called: str) -> None:
        kept = dict(vars(owner))
        self._known += [
            (owner, called, name, value)
            for name, value in kept.items()
            if callable(value) or isinstance(value, FunctionType | property)
        ]

    def replaced(self) -> str | None:
        """The name of a function that is another one now; None if all are as they were."""
        for owner, called, name, value in self._known:
            if vars(owner).get(name) is not value:
                return f"{called}.{name}"
        return None


def _is_own(name: str) -> bool:
    return name == "matbench" or name.startswith("matbench.")


def _refuse_monitors(event: str, given: tuple[Any, ...]) -> None:
    if event == "sys.monitoring.register_callback" and given[0] is not None:
        raise RuntimeError("callbacks of sys.monitoring cannot be timed; remove them")
