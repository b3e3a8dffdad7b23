"""Loads the module of a function, says where in its file an error is, and what it replaced."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from matbench import cache
from matbench.errors import BuildError, CaseError, message_of
from matbench.model import Kernel

#: The modules that have been loaded, by their file, and the hash of it and what it imports.
_modules: dict[tuple[str, str], Any] = {}

#: Where folders of functions are on the path: what matbench and libraries import comes first.
_AFTER = len(sys.path)
#: What Numba says before the reason.
_NUMBA = re.compile(r"^Failed in nopython mode pipeline.*\n")


def loaded(kernel: Kernel) -> Callable[..., Any]:
    """The function of a kernel; its module is run once in this process.

    What runs is a copy of the source that was parsed, which may have changed since then. It can
    import from the folder of its file. `BuildError`: it cannot be run.
    """
    cache.seal()
    file, key = Path(kernel.file), (kernel.file, kernel.sha256)
    if key not in _modules:
        copy = Path(tempfile.mkdtemp(prefix="matbench-")) / file.name
        copy.write_text(kernel.source, encoding="utf-8")
        sys.path.insert(_AFTER, str(file.parent))
        _require_reachable(kernel)
        spec = importlib.util.spec_from_file_location(file.stem, copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        module.__file__ = kernel.file  # what it reads may lie beside it
        before, sys.modules[file.stem] = sys.modules.get(file.stem), module
        try:
            with blaming(kernel, BuildError):
                spec.loader.exec_module(module)
        except BuildError:
            sys.modules.pop(file.stem)
            if before is not None:
                sys.modules[file.stem] = before
            raise
        _modules[key] = module
    function: Callable[..., Any] | None = getattr(_modules[key], kernel.entry, None)
    if not callable(function):
        raise BuildError(f"{kernel.path}: its module has no function {kernel.entry} after it ran")
    return function


def _require_reachable(kernel: Kernel) -> None:
    """`BuildError` if a module beside the function's file has the name of another one."""
    folder = Path(kernel.file).parent.resolve()
    for header in kernel.includes:
        name = Path(os.path.relpath(header.path, folder)).parts[0].removesuffix(".py")
        found = importlib.util.find_spec(name) if name.isidentifier() else None
        if found is None or not found.has_location or found.origin is None:
            continue
        if folder not in Path(found.origin).resolve().parents:
            same = f"{found.origin} has the same name; rename one"
            raise BuildError(f"{header.path} cannot be imported: {same}")


@contextlib.contextmanager
def blaming(kernel: Kernel, kind: type[CaseError] = CaseError) -> Iterator[None]:
    """Raise whatever goes wrong in the function's code as an error that names its line."""
    process = os.getpid()
    try:
        yield
    except (MemoryError, CaseError):
        raise
    except BaseException as error:  # also `SystemExit`: only this case ends
        name, text = Path(kernel.file).name, message_of(error).strip()
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).name == name and "matbench-" in frame.filename
        ]
        lines += re.findall(rf'/{re.escape(name)}", line ([0-9]+)', text)[:1]  # as Numba says it
        at = f"{name}:{lines[-1]}: " if lines else ""
        said = _NUMBA.sub("", text).partition("\n")[0]
        is_lost = "CUDA" in said or "cuda" in type(error).__module__  # some errors stay for ever
        reason = f"{at}{type(error).__name__}{f': {said}' if said else ''}"
        if kind is BuildError:
            raise BuildError(reason) from None
        raise CaseError(reason, fatal=is_lost) from None
    finally:
        if os.getpid() != process:  # it has forked: this child must not measure on
            os._exit(0)


#: Modules, besides matbench's own, whose functions and classes decide what is measured.
_OTHERS = ("time", "pycuda._driver", "pyopencl._cl")


class Originals:
    """Functions, and modules by the names that matbench has for them, as they were when this was
    made; from then on, nobody monitors this process."""

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
                    if callable(value) or isinstance(value, (property, ModuleType))
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
