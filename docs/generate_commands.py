"""Writes docs/commands.md: the help of every command, as `--help` prints it.

`python docs/generate_commands.py` writes it; with `--check` it only says whether the page is up to
date, and exits 1 if it is not. Line breaks are ignored, because versions of click differ in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from matbench.cli import main as matbench

PAGE = Path(__file__).parent / "commands.md"
WIDTH = 96
INTRODUCTION = """\
# Commands

What `--help` prints for every command; `python docs/generate_commands.py` writes this page.

Exit codes: 0 everything was measured, or skipped with a reason; 1 a wrong or failed case, a case
slower than allowed, or nothing measured at all; 2 bad input, and nothing was run; 3 record files
that cannot be compared; 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by a terminal that was
closed; 141 when the reader of a pipe has left.
"""


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """The path and the help of a command and of all below it, in their order."""
    context = click.Context(
        command, parent, name, terminal_width=WIDTH, help_option_names=["-h", "--help"]
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from commands(found, child, context)


def page() -> str:
    """The page as it should be."""
    sections = [
        f"## {path}\n\n```text\n{text}\n```\n" for path, text in commands(matbench, "matbench")
    ]
    return "\n".join([INTRODUCTION, *sections])


def is_fresh(text: str) -> bool:
    """Whether a page says what it should, whatever its line breaks."""
    return text.split() == page().split()


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    if arguments == ["--check"]:
        fresh = PAGE.is_file() and is_fresh(PAGE.read_text(encoding="utf-8"))
        if not fresh:
            print(f"{PAGE.name} is not up to date: run python docs/generate_commands.py")
        return 0 if fresh else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
