"""`%%matbench`: checks and times the kernel in a cell, and shows the table and where C is wrong."""

from __future__ import annotations

import base64
import html
import importlib.util
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from matbench.cli.app import Command
from matbench.cli.console import open_console
from matbench.cli.judge import Judges
from matbench.cli.options import DeadlineOptions, DeviceOptions, SizeOptions, grouped
from matbench.cli.selection import ContractOptions, KernelFiles
from matbench.cli.serve import JudgeOptions
from matbench.errors import MatbenchError, UsageError
from matbench.features.charts import picture
from matbench.features.charts.outcomes import error_maps
from matbench.features.page import findings
from matbench.records.environment import run_environment
from matbench.records.outcome import Outcome
from matbench.show import outcomes, safe, terminal

_NAME = "matbench"
_STYLE = """<style>
.matbench table { font-variant-numeric: tabular-nums; margin: .5em 0; }
.matbench :is(td, th):not([style]) { text-align: left !important; }
.matbench p { margin: .1em 0 !important; }
.matbench h3 { margin: .8em 0 .2em !important; }
.matbench .wide { overflow-x: auto; }
</style>"""


class CellMagic:
    """The magic of one shell: its judge stays warm between cells with the same options."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.judges = Judges(1)

    def run(self, line: str, cell: str) -> None:
        """Check and time the kernel of this cell; %%matbench --help has the options."""
        from IPython.core.error import UsageError as Refused  # is shown as one line

        try:
            obj = self, f"{cell}\n"
            _command.main(shlex.split(line), f"%%{_NAME}", standalone_mode=False, obj=obj)
        except click.ClickException as error:
            raise Refused(safe.flat(error.format_message())) from None
        except (MatbenchError, ValueError) as error:
            raise Refused(safe.flat(str(error))) from None
        except click.Abort:
            self.judges.close()  # a task may be half done
            raise Refused("interrupted") from None


def load_ipython_extension(shell: Any) -> None:
    """Register `%%matbench` with an IPython shell: what `%load_ext matbench` calls."""
    shell.register_magic_function(CellMagic(shell).run, "cell", _NAME)


def unload_ipython_extension(shell: Any) -> None:
    """Forget `%%matbench`, and end its process."""
    shell.magics_manager.magics["cell"].pop(_NAME).__self__.judges.close()


@click.command(cls=Command)
@click.option(
    "--baseline", "baselines", multiple=True, metavar="NAME|FILE",
    help="Show it in the same table: cublas, numpy, tiled, or a file. Repeatable.",
)  # fmt: skip
@grouped
def _command(
    baselines: tuple[str, ...], sizes: SizeOptions, timing: JudgeOptions, files: KernelFiles,
    contract: ContractOptions, device: DeviceOptions, deadlines: DeadlineOptions,
) -> None:  # fmt: skip
    """Check and time the kernel in this cell: CUDA C, or a function in Python.

    \b
    %%matbench --sizes 256,1000
    %%matbench --sizes 1000 --baseline cublas
    """
    magic, cell = click.get_current_context().obj
    asked = replace(sizes, sizes=None), ContractOptions(()), device, deadlines
    judge = magic.judges.get(**timing.arguments(*asked))
    judged = partial(judge.run, sizes=sizes.sizes)
    own = judged(cell, front_matter=files.given, contract=contract.asked)
    remark = ""
    if not own.cases and own.adoption is not None:  # shows where it is wrong, called in that way
        remark = own.reason or ""
        own = judged(cell, front_matter=own.adoption.table)
    verdicts = [own, *map(judged, baselines)]
    for verdict in verdicts:
        if not verdict.cases:
            raise UsageError(verdict.reason or f"{verdict.kernel} has no cases")
    cases = [case for verdict in verdicts for case in verdict.cases]
    about = run_environment([_NAME], [judge.device], sizes.recorded)
    report = outcomes.report(cases, [about])
    console = open_console()
    plain = terminal.renderables(report, console.width if console.is_terminal else None)
    below = [safe.text(line) for line in (report.footer, remark) if line]
    parts = [_STYLE, *map(findings.table, report.sections)]
    parts += [f"<p>{html.escape(line)}</p>" for line in below]
    magic.shell.display_pub.publish({
        "text/plain": terminal.text(*plain, *below[1:]),
        "text/html": f'<div class="matbench">{"".join(parts)}{_maps(cases)}</div>',
    })  # fmt: skip


def _maps(cases: Sequence[Outcome]) -> str:
    """Where C is wrong, of the first cases that are: an image, as the names in an SVG would be
    those of other cells, too."""
    maps = error_maps(cases)
    if not maps:
        return ""
    if importlib.util.find_spec("vl_convert") is None:
        return "<p>To see where C is wrong: pip install 'matbench-cuda[plots]'</p>"
    image = base64.b64encode(picture.drawn(maps, "Where C is wrong")).decode()
    said = html.escape(safe.line("; ".join(f"{one.title}: {one.note}" for one in maps)))
    return f'<img alt="Where C is wrong: {said}" src="data:image/svg+xml;base64,{image}">'
