"""Refusals, before anything is measured, of outputs that would destroy or mix up files."""

from __future__ import annotations

import os
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
