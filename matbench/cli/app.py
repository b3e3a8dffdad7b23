"""The program itself: one group of commands, and errors as one line with an exit code.

Exit codes: 0 all measured, or skipped with a reason; 1 a wrong or failed case, or slower than
allowed; 2 bad input; 3 records that cannot be compared; 130 interrupted.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from matbench import __version__
from matbench.model import MatbenchError, UsageError

INTERRUPTED = 130


class Group(click.Group):
    """Turns matbench's own errors into one line and an exit code; lists commands in order."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UsageError as error:
            raise click.UsageError(str(error)) from None
        except MatbenchError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:  # where there is no table so far
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


# One line, not click's three: what, where, how to mend.
def _show_usage_error(error: click.UsageError, file: Any = None) -> None:
    where = f"matbench {error.ctx.info_name}" if error.ctx and error.ctx.parent else "matbench"
    click.echo(f"{where}: {error.format_message()}", file=file or sys.stderr)


click.UsageError.show = _show_usage_error  # type: ignore[method-assign,assignment]


@click.group(
    cls=Group,
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
