"""The program itself: a group of commands whose errors are one line with an exit code.

Exit codes: 0 all cases measured, or skipped with a reason; 1 a case wrong, failed or slower than
allowed, or nothing measured; 2 bad input; 3 no case could be judged; 130 interrupted, 143 by
SIGTERM, 129 by closing the terminal. docs/ci.md has all of them.
"""

from __future__ import annotations

import errno
import io
import logging
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from matbench import __version__, signals
from matbench.cli import registry
from matbench.cli.console import say
from matbench.errors import MatbenchError, UsageError, explanation
from matbench.show import safe


class Command(click.Command):
    """Lists options under the titles of their groups, and those of the command alone at the end.

    The options that most people need come `first`, in the order given.
    """

    def __init__(self, *arguments: Any, first: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.first = first
        for parameter in self.params:
            if re.search("FILE|DIR|FOLDER", parameter.metavar or ""):
                parameter.type = click.Path(readable=False)  # shells complete it

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        def place(parameter: click.Parameter) -> int:
            """Its place among the `first`, or the one after them."""
            return [*self.first, parameter.opts[0]].index(parameter.opts[0])

        titled: dict[str, list[tuple[str, str]]] = {}
        for parameter in sorted(self.get_params(context), key=place):
            shown = parameter.get_help_record(context)
            if shown is not None and isinstance(parameter, click.Option):
                is_first = parameter.opts[0] in self.first
                title = "Most used" if is_first else getattr(parameter, "title", "")
                titled.setdefault(title, []).append(shown)
        own = titled.pop("", [])
        titled["Other options" if titled else "Options"] = own
        for title, lines in titled.items():
            with formatter.section(title):
                formatter.write_dl(lines)


class MainGroup(click.Group):
    """Turns matbench's errors, and a failed write, into one line and an exit code.

    It lists commands in order, and imports them late.
    """

    command_class = Command

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UsageError as error:
            told = registry.with_lines_to_paste(error)
            refused = click.UsageError(str(told))
            refused.paste = told.paste  # type: ignore[attr-defined]
            raise refused from None
        except MatbenchError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:  # before there is a table to print
            signals.ignore()
            say("interrupted", err=True)
            raise click.exceptions.Exit(signals.exit_code()) from None

    def list_commands(self, context: click.Context) -> list[str]:
        return [*registry.COMMANDS]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        # For an unknown name, click suggests one of those that are loaded.
        for known in [name] if name in registry.COMMANDS else registry.COMMANDS:
            registry.load(registry.COMMANDS[known].module)
        return super().get_command(context, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        summaries = [(part.command, part.summary) for part in registry.COMMANDS.values()]
        with formatter.section("Commands"):
            formatter.write_dl(summaries)

    def main(self, *arguments: Any, **more: Any) -> Any:
        # Click's errors and other packages' notes are shown in matbench's way; not when this module
        # is imported, which programs that use click may do.
        click.ClickException.show = _show_error  # type: ignore[method-assign,assignment]
        click.UsageError.show = _show_error  # type: ignore[method-assign,assignment]
        logging.getLogger("matbench").addHandler(_notes)
        try:
            return super().main(*arguments, **more)
        except OSError as error:
            _end(error)


def _end(error: OSError) -> NoReturn:
    """Report what could not be written or read: an error without a file name is standard output's.

    click handles a reader that leaves early, as `head` does, before.
    """
    full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    why = f"standard output: {error.strerror}" if full else explanation(error)
    with suppress(OSError):  # otherwise the interpreter flushes the rest, and reports a failure
        sys.stdout.close()
    with suppress(OSError):  # a closed terminal takes no error messages either
        say(f"matbench: {why}", err=True)
    if signals.is_heard():
        with suppress(OSError):
            sys.stderr.close()
    sys.exit(signals.exit_code() if signals.is_heard() else 1)


# One line instead of click's three: where, what, how to fix it.
def _show_error(error: click.ClickException, file: Any = None) -> None:
    context = getattr(error, "ctx", None)
    where = f"matbench {context.info_name}" if context and context.parent else "matbench"
    message = safe.text(error.format_message())
    if isinstance(error, click.UsageError):  # it may quote the command line
        message = message.replace("\n", " ")
    lines = [f"{where}: {message}", *(f"    {line}" for line in getattr(error, "paste", ()))]
    click.echo("\n".join(lines), file=file or sys.stderr)


class _Notes(logging.Handler):
    """Prints what the other packages have to say to the user."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage(), err=True)


_notes = _Notes()


@click.group(
    cls=MainGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="matbench")
def main() -> None:
    """Measure CUDA matrix-product kernels: how fast, how accurate, and why.

    Every kernel is checked against a float64 reference, and so is every timed launch. Without an
    NVIDIA GPU, the same kernel files run through OpenCL, on the CPU if necessary.
    """
    for stream in (sys.stdout, sys.stderr):  # encodings without × or ★ show a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
