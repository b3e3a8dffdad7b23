"""Files that commands write: refused if they would destroy or mix up others."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from matbench.errors import UsageError


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


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):  # one does not exist
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def write_file(path: Path, data: bytes) -> None:
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
