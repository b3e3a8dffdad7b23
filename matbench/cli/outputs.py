"""Files that commands write: refused if they would destroy or mix up others."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from matbench.cli.options import resuming_command
from matbench.errors import MatbenchError, UsageError

#: A longer recorded command line is not shown.
_LONGEST_COMMAND = 1000


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


def require_own_kernels(path: Path) -> None:
    """Refuse `run --resume` without kernels if its default ones were never selected for the file.

    The file's command lines are only parsed and shown: it may be anyone's.
    """
    from matbench.records.reading import Contents

    is_file = os.path.isfile(path)  # noqa: PTH113 - false for any path that cannot be looked up
    if _selects_kernels(click.get_current_context().params) or not is_file:
        return
    environments = Contents(path).environments
    recorded = [run.argv[1:] for run in environments if run.argv[:1] == ("run",)]
    if not environments or not all(map(_may_select_kernels, recorded)):
        return
    commands = [resuming_command(arguments, path) for arguments in recorded]
    shown = [command for command in commands if len(command) <= _LONGEST_COMMAND]
    how = f"; to continue the recorded run: {shown[-1]}" if shown else ""
    raise UsageError(f"--resume {path}: name the kernels to measure{how}")


def _may_select_kernels(arguments: Iterable[str]) -> bool:
    """Whether the arguments of a recorded run select kernels, or are not valid."""
    run = click.get_current_context().command
    try:
        parsed = run.make_context("run", [*arguments], help_option_names=[])
    except (click.ClickException, MatbenchError):
        return True
    return _selects_kernels(parsed.params)


def _selects_kernels(parameters: Mapping[str, Any]) -> bool:
    selecting = ("kernels", "kernel_files", "kernels_dir", "group", "workload", "smoke")
    return any(parameters[name] for name in selecting)


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
