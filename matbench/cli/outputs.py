"""Files that commands write: refused if they would destroy or mix up others; error maps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench.cli.options import resuming_command
from matbench.errors import MatbenchError, UsageError

if TYPE_CHECKING:
    from matbench.records.outcome import Outcome

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


def require_error_map(path: str) -> None:
    """`UsageError` if no error map can be drawn there; ask before anything is measured for it."""
    from matbench.show.pictures import files

    files.require(Path(path))


def draw_error_map(outcome: Outcome, path: str) -> str:
    """Draw where C is wrong, to a new file; returns a note that names it, or says why not.

    The note is empty if the outcome has no error map.
    """
    from matbench.records.outcome import ErrorCells
    from matbench.show.pictures import error_map, files

    cells = outcome.error_map
    if not isinstance(cells, ErrorCells):
        return ""
    title = f"{outcome.case.label} on {outcome.case.device}"
    unused = files.unused(Path(path))
    try:
        error_map.draw(cells, unused, title, outcome.reason or "")
    except (MatbenchError, MemoryError) as error:
        return f"no error map: {error}"
    return f"error map: {unused}"
