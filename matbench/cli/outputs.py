"""Files that commands write: refused if they would destroy or mix up others."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from matbench import files
from matbench.errors import UsageError, listed


def require_apart(
    outputs: Mapping[str, str | None], others: Iterable[str | Path | None] = ()
) -> None:
    """`UsageError` if an output, by its option, is the file of another one or one of the `others`.

    Links lead to the same file, also if it does not exist yet. Special files can be shared.
    """
    used = [Path(other) for other in others if other is not None]
    for option, output in outputs.items():
        if output is None:
            continue
        path = Path(output)
        if any(_is_same(path, other) for other in used) and (path.is_file() or not path.exists()):
            raise UsageError(
                f"{option} {path}: this command reads or writes that file already; name another"
            )
        used.append(path)


def require_file(option: str, path: Path, suffixes: Collection[str], *, force: bool) -> None:
    """`UsageError` if the file of an option has another suffix, lacks a folder, or exists."""
    wrong = f"{option} {path}:"
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{wrong} the name must end in {listed(suffixes)}")
    if path.is_dir():
        raise UsageError(f"{wrong} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{wrong} no folder {path.parent}; create it, or name another file")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{wrong} exists; --force replaces it")


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):  # one does not exist
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def write_file(path: Path, data: bytes) -> None:
    """Replace the file as a whole, with its permissions, or leave it as it was."""
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():  # a device or a pipe
            path.write_bytes(data)
        else:
            files.replace(target, data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
