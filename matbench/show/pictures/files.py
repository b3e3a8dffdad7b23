"""What all written files share: checks of the output file, and writing it."""

from __future__ import annotations

import importlib.util
import itertools
import secrets
import shutil
from pathlib import Path

from matbench.errors import UsageError, listed


def require(path: Path, *more: str) -> None:
    """`UsageError` if no picture, or file of `more` suffixes, can be written to `path`.

    Call this before measuring.
    """
    suffixes = (".svg", ".png", *more)
    require_file(path, suffixes, wrong_suffix=f"a picture's name must end in {listed(suffixes)}")
    require_libraries(path, "pictures")


def require_libraries(path: Path, what: str) -> None:
    """`UsageError` if what draws is not installed."""
    if importlib.util.find_spec("vl_convert") is None:
        raise UsageError(f"{path}: {what} need vl_convert; pip install 'matbench-cuda[plots]'")


def require_file(path: Path, suffixes: tuple[str, ...], *, wrong_suffix: str) -> None:
    """`UsageError` if `path` has another suffix, or lacks a folder."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: {wrong_suffix}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {path.parent}; create it, or name another file")


def unused(path: Path) -> Path:
    """The path, or the first of `NAME_2`, `NAME_3` … that does not exist."""
    numbered = (path.with_name(f"{path.stem}_{n}{path.suffix}") for n in itertools.count(2))
    return next(p for p in itertools.chain([path], numbered) if not p.exists())


def suffix(path: Path) -> str:
    """`svg` of `Roof.SVG`."""
    return path.suffix.lower().removeprefix(".")


def write(path: Path, data: bytes) -> None:
    """Replace the file as a whole, with its permissions, or leave it as it was."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        if target.exists() and not target.is_file():  # a device or a pipe
            path.write_bytes(data)
            return
        part.touch(exist_ok=False)  # never through a link
        part.write_bytes(data)
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
