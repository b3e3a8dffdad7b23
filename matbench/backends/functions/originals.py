"""Notices code that replaces the functions which matbench measures with."""

from __future__ import annotations

import sys
from typing import Any

#: Modules, besides matbench's own, whose functions and classes decide what is measured.
_OTHERS = ("time", "pycuda._driver", "pyopencl._cl")


class Originals:
    """Functions as they were when this was made; from then on, nobody monitors this process."""

    def __init__(self) -> None:
        sys.addaudithook(_refuse_monitors)
        self._known: list[tuple[Any, str, str, Any]] = []
        for called, module in list(sys.modules.items()):
            if called not in _OTHERS and called.partition(".")[0] != "matbench":
                continue
            owners: dict[str, Any] = {called: module}
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value.__module__ == called:
                    owners[f"{called}.{name}"] = value
            for owned, owner in owners.items():
                self._known += [
                    (owner, owned, name, value)
                    for name, value in list(vars(owner).items())
                    if callable(value) or isinstance(value, property)
                ]

    def replaced(self) -> str | None:
        """The name of a function that is another one now; None if all are as they were."""
        for owner, called, name, value in self._known:
            if vars(owner).get(name) is not value:
                return f"{called}.{name}"
        return None


def _refuse_monitors(event: str, given: tuple[Any, ...]) -> None:
    if event == "sys.monitoring.register_callback" and given[0] is not None:
        raise RuntimeError("callbacks of sys.monitoring cannot be timed; remove them")
