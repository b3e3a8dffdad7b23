"""The program itself: one group of commands, and errors as one line with an exit code.

Exit codes: 0 all measured, or skipped with a reason; 1 a wrong or failed case, slower than allowed,
or nothing measured; 2 bad input; 3 records that cannot be compared; 130 interrupted, 143 by
SIGTERM, 129 by a terminal that was closed; 141 when the reader of a pipe has left.
"""

from __future__ import annotations

import errno
import io
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from matbench import __version__, signals
from matbench.cli.console import say
from matbench.errors import MatbenchError, UsageError
from matbench.show import safe

_UNREAD = 128 + 13  # SIGPIPE, also where there is no such signal


class Group(click.Group):
    """Turns matbench's own errors into one line and an exit code; lists commands in order."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UsageError as error:
            refused = click.UsageError(str(error))
            refused.paste = error.paste  # type: ignore[attr-defined]
            raise refused from None
        except MatbenchError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:  # where there is no table so far
            signals.ignore()
            say("interrupted", err=True)
            raise click.exceptions.Exit(signals.exit_code()) from None

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


class Program(Group):
    """The outermost group: what cannot be printed ends it with one line, or with none."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if any("\0" in argument for argument in arguments):  # never from a shell
            raise click.UsageError("an argument holds a NUL byte", context)
        return super().parse_args(context, arguments)

    def main(self, *arguments: Any, **more: Any) -> Any:
        try:
            return super().main(*arguments, **more)
        except OSError as error:
            _end(error)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:  # click would make it exit code 1
            _end(error)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            _end(error)


def _end(error: OSError) -> NoReturn:
    """Say what could not be written or read: files have names, standard output has none.

    A reader that leaves early, as `head` does, has had what it wants: nothing is said, and the exit
    code is what shells show for the tools that SIGPIPE ends.
    """
    unread = isinstance(error, BrokenPipeError)
    full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    where = "standard output" if full else error.filename
    reason = error.strerror or error
    with suppress(OSError):  # the interpreter would try to write what is left, and complain
        sys.stdout.close()
    with suppress(OSError):  # a terminal that was closed takes no errors either
        if not unread:
            say(f"matbench: {where}: {reason}" if where else f"matbench: {reason}", err=True)
    if unread or signals.is_heard():
        with suppress(OSError):
            sys.stderr.close()
    sys.exit(_UNREAD if unread else signals.exit_code() if signals.is_heard() else 1)


# One line, not click's three: what, where, how to fix it.
def _show_error(error: click.ClickException, file: Any = None) -> None:
    context = getattr(error, "ctx", None)
    where = f"matbench {context.info_name}" if context and context.parent else "matbench"
    message = safe.text(error.format_message())
    if isinstance(error, click.UsageError):  # which may quote what was typed
        message = message.replace("\n", " ")
    lines = [f"{where}: {message}", *(f"    {line}" for line in getattr(error, "paste", ()))]
    click.echo("\n".join(lines), file=file or sys.stderr)


click.ClickException.show = _show_error  # type: ignore[method-assign,assignment]
click.UsageError.show = _show_error  # type: ignore[method-assign,assignment]


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="matbench")
def main() -> None:
    """Measure CUDA matrix-product kernels: how fast, how exact, and why.

    Every kernel is checked against a float64 reference before it is timed, and again after. Without
    an NVIDIA GPU the same kernel files run through OpenCL, on the CPU if need be.
    """
    for stream in (sys.stdout, sys.stderr):  # one that has no × or ★ shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
