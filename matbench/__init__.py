"""How fast, how accurate and why: measure CUDA matrix-product kernels.

What `__all__` names is the public interface, imported when it is first used; all else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matbench.cli.judge import Judge
    from matbench.cli.verdicts import Comparisons, Records, Verdict, read
    from matbench.errors import MatbenchError, UsageError
    from matbench.features.verify.verification import Verification, verify

__version__ = "0.1.0"
__all__ = [
    "Comparisons", "Judge", "MatbenchError", "Records", "UsageError", "Verdict", "Verification",
    "read", "verify",
]  # fmt: skip

_PLACES = {
    "matbench.features.verify.verification": ("Verification", "verify"),
    "matbench.errors": ("MatbenchError", "UsageError"),
    "matbench.cli.judge": ("Judge",),
    "matbench.cli.verdicts": ("Comparisons", "Records", "Verdict", "read"),
    "matbench.features.notebook.magic": ("load_ipython_extension", "unload_ipython_extension"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'matbench' has no attribute {name!r}")
