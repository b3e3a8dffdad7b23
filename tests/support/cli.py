"""Running the command line in tests, and reading what a run leaves behind."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import click
from click.testing import Result

from matbench import cli
from matbench.records.environment import last_run_path
from matbench.records.outcome import Outcome
from support import record_files
from support.terminal import COMMAND

#: As little sampling as possible, for tests that ignore the times.
QUICK = ("--max-time", "0.001", "--no-blocks")


#: The fixture `planned`: from arguments of `run` to the outcomes that it would record.
Plan = Callable[..., list[Outcome]]
#: The fixture `refusal`: from a command line to the message that refuses it.
Refusal = Callable[..., str]


class Matbench(Protocol):
    """Runs the command line in this process; without `code` any exit code is accepted."""

    def __call__(self, *arguments: str | Path, code: int | None = 0) -> Result: ...


def ran(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outside(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a separate process, which opens the cache and its streams again."""
    known = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False,
        env=known | environment,
    )  # fmt: skip


def command_paths(command: click.Command = cli.main, *path: str) -> list[tuple[str, ...]]:
    """The name path of every command, and () for the program itself."""
    found = [path]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found += command_paths(command_at((*path, name)), *path, name)
    return found


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli.main
    for name in path:
        assert isinstance(command, click.Group)
        child = command.get_command(click.Context(command), name)
        assert child is not None, name
        command = child
    return command


def records_in(path: Path) -> list[Outcome]:
    """The outcomes of a record file."""
    return record_files.read(path)[1]


def last_run() -> list[Outcome]:
    """The outcomes of the last run."""
    return records_in(last_run_path())


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a table, by its columns."""
    return list(csv.DictReader(text.splitlines()))


def summary(outcomes: list[Outcome]) -> list[tuple[str, int | None, str, str]]:
    """Kernel, TILE, size and status of each."""
    return [
        (o.case.kernel, o.case.params.get("TILE"), o.case.problem.size, o.status) for o in outcomes
    ]
